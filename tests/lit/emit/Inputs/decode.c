/* One decode step through a generated library, with nothing but the ABI header.
 * Four keys, all scores equal: the output is the mean of the values. */
#include "kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 2, KV_HEADS = 1, DIM = 8, BLOCK = 4 };

int main(void) {
  const pagoda_kernel_info *kernel = 0;
  for (uint32_t i = 0; i < pagoda_library.kernel_count; ++i)
    if (pagoda_library.kernels[i].role == PAGODA_ROLE_ATTENTION &&
        pagoda_library.kernels[i].max_rows == 1)
      kernel = &pagoda_library.kernels[i];
  if (!kernel || kernel->abi_version != PAGODA_ABI_VERSION)
    return puts("no decode kernel"), 1;

  float q[HEADS * DIM] = {0}, o[HEADS * DIM], lse[HEADS];
  float k[2 * BLOCK * DIM], v[2 * BLOCK * DIM]; /* block 1 is the sequence's */
  for (int i = 0; i < 2 * BLOCK * DIM; ++i)
    k[i] = v[i] = i < BLOCK * DIM ? NAN : (float)(i - BLOCK * DIM);
  int32_t table[1] = {1}, row = 0, position = BLOCK - 1;
  pagoda_work_item item = {0, 0,     1,         0,  KV_HEADS,
                           0, BLOCK, BLOCK - 1, -1, PAGODA_ITEM_FIRST_SPLIT};
  pagoda_attention_args args = {0};
  args.q = q, args.o = o, args.lse = lse;
  args.q_token_stride = args.o_token_stride = HEADS * DIM;
  args.q_head_stride = args.o_head_stride = DIM;
  args.lse_token_stride = HEADS, args.lse_head_stride = 1;
  args.k.base = k, args.v.base = v;
  args.k.block_stride = args.v.block_stride = BLOCK * DIM;
  args.k.head_stride = args.v.head_stride = BLOCK * DIM;
  args.k.token_stride = args.v.token_stride = DIM;
  args.block_table = table, args.block_table_stride = 1;
  args.items = &item;
  args.row_map = args.row_seq = &row, args.row_pos = &position;
  args.scale = 0.5f;

  void *scratch =
      aligned_alloc(64, (size_t)(kernel->scratch_bytes + 63) / 64 * 64);
  kernel->entry(&args, 0, 1, scratch);
  free(scratch);
  for (int d = 0; d < DIM; ++d) /* values d, d + 8, d + 16, d + 24 */
    if (fabsf(o[d] - (d + 12.0f)) > 1e-5f)
      return printf("o[%d] = %g\n", d, o[d]), 1;
  if (fabsf(lse[0] - logf(4.0f)) > 1e-6f)
    return printf("lse = %g\n", lse[0]), 1;
  puts("decode step is right");
  return 0;
}
