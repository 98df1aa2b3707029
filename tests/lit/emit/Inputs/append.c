/* A new token and a block copy through a generated library, with nothing but
 * the ABI header. At position 1 with frequencies pi / 2 and 0, interleaved, the
 * pair (k0, k1) becomes (-k1, k0) and (k2, k3) stays; the rest does not rotate.
 */
#include "cache.h"
#include <stdio.h>

enum { HEADS = 2, DIM = 6, V_DIM = 3, BLOCK = 4, BLOCKS = 3 };

int main(void) {
  const pagoda_kernel_info *append =
      &pagoda_library.kernels[PAGODA_KERNEL_CACHE_APPEND];
  if (append->role != PAGODA_ROLE_APPEND || append->rotary_dim != 4 ||
      !append->rope_interleaved)
    return puts("not the append kernel"), 1;

  float k[BLOCKS * HEADS * BLOCK * DIM], v[BLOCKS * HEADS * BLOCK * V_DIM];
  for (int i = 0; i < BLOCKS * HEADS * BLOCK * DIM; ++i)
    k[i] = -99;
  for (int i = 0; i < BLOCKS * HEADS * BLOCK * V_DIM; ++i)
    v[i] = -99;
  float new_k[HEADS * DIM], new_v[HEADS * V_DIM];
  for (int i = 0; i < HEADS * DIM; ++i)
    new_k[i] = (float)i;
  for (int i = 0; i < HEADS * V_DIM; ++i)
    new_v[i] = (float)(100 + i);
  const float cosines[2][2] = {{1, 1}, {0, 1}}, sines[2][2] = {{0, 0}, {1, 0}};
  int64_t slot = 1 * BLOCK + 2;
  int32_t position = 1;

  pagoda_append_args args = {0};
  args.k_new = new_k, args.k_head_stride = DIM;
  args.k_token_stride = HEADS * DIM;
  args.v_new = new_v, args.v_head_stride = V_DIM;
  args.v_token_stride = HEADS * V_DIM;
  pagoda_kv_view k_pool = {k, HEADS * BLOCK * DIM, BLOCK * DIM, DIM};
  pagoda_kv_view v_pool = {v, HEADS * BLOCK * V_DIM, BLOCK * V_DIM, V_DIM};
  args.k = k_pool, args.v = v_pool;
  args.slot_mapping = &slot, args.positions = &position;
  args.rope_cos = cosines[0], args.rope_sin = sines[0], args.rope_stride = 2;
  cache_append(&args, 0, 1, 0);

  pagoda_block_copy copy = {1, 2};
  pagoda_copy_args copy_args = {k_pool, v_pool, &copy};
  cache_copy(&copy_args, 0, 1, 0);

  for (int block = 0; block < BLOCKS; ++block)
    for (int h = 0; h < HEADS; ++h)
      for (int s = 0; s < BLOCK; ++s) {
        int row = (block * HEADS + h) * BLOCK + s, written = block && s == 2;
        const float *x = new_k + h * DIM;
        const float rotated[DIM] = {-x[1], x[0], x[2], x[3], x[4], x[5]};
        for (int d = 0; d < DIM; ++d)
          if (k[row * DIM + d] != (written ? rotated[d] : -99))
            return printf("k[%d][%d] = %g\n", row, d, k[row * DIM + d]), 1;
        for (int d = 0; d < V_DIM; ++d)
          if (v[row * V_DIM + d] != (written ? new_v[h * V_DIM + d] : -99))
            return printf("v[%d][%d] = %g\n", row, d, v[row * V_DIM + d]), 1;
      }
  puts("cache is right");
  return 0;
}
