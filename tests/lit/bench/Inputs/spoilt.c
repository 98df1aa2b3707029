/* A library as good as LIBRARY, but for prefill, which gets dim 1 of query head
 * 1 in row 5 wrong: what a check of some rows alone would miss. With IDLE it
 * does nothing: what a check would miss that sees another's output. */
#include <dlfcn.h>
#include <pagoda/kernel_abi.h>

enum { MOST = 16 };
static pagoda_kernel_info kernels[MOST];
pagoda_library_info pagoda_library = {PAGODA_ABI_VERSION, 0, kernels};
static pagoda_kernel_fn prefill;

static void spoil(const void *args, int64_t begin, int64_t end, void *scratch) {
  const pagoda_attention_args *a = args;
#ifdef IDLE
  return;
#endif
  prefill(args, begin, end, scratch);
  for (int64_t i = begin; i < end; ++i)
    for (int32_t r = 0; r < a->items[i].row_count; ++r)
      if (a->row_map[a->items[i].row_map_offset + r] == 5 &&
          a->items[i].head_begin == 0)
        ((float *)a->o)[5 * a->o_token_stride + a->o_head_stride + 1] += 1;
}

__attribute__((constructor)) static void load(void) {
  void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  const pagoda_library_info *good =
      handle ? dlsym(handle, PAGODA_LIBRARY_SYMBOL) : 0;
  for (uint32_t i = 0; good && i < good->kernel_count && i < MOST; ++i) {
    kernels[i] = good->kernels[i];
    if (kernels[i].role == PAGODA_ROLE_ATTENTION && kernels[i].max_rows > 1)
      prefill = kernels[i].entry, kernels[i].entry = spoil;
    ++pagoda_library.kernel_count;
  }
}
