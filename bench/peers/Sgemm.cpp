//===- Sgemm.cpp - Other people's matrix products -------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few declarations of each library that are needed. Both would start
// threads of their own; work is shared out above them, by heads and rows, and
// each product stays on its thread.
//
//===----------------------------------------------------------------------===//

#include "bench/peers/Sgemm.h"

#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>

namespace pagoda::peers {

namespace {

/// The first of `names` that can be loaded; it stays loaded.
void *load(std::initializer_list<const char *> names, std::string &missing) {
  for (const char *name : names)
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
  missing = std::string("cannot load ") + *names.begin();
  return nullptr;
}

template <typename Function>
bool find(void *library, const char *name, Function *&function,
          std::string &missing) {
  function = reinterpret_cast<Function *>(dlsym(library, name));
  if (!function)
    missing = std::string("the library has no ") + name;
  return function;
}

} // namespace

Sgemm openBlas() {
  enum { RowMajor = 101, NoTrans = 111, Trans = 112 };
  using Gemm = void(int, int, int, int, int, int, float, const float *, int,
                    const float *, int, float, float *, int);
  using Gemv = void(int, int, int, int, float, const float *, int,
                    const float *, int, float, float *, int);
  /// Up to as many rows a product each is faster than one of matrices.
  constexpr int64_t fewRows = 4;

  Sgemm result;
  result.name = "openblas";
  void *library = load({"libopenblas.so.0"}, result.missing);
  Gemm *gemm;
  Gemv *gemv;
  void (*setThreads)(int);
  char *(*core)(), *(*config)();
  if (!library || !find(library, "cblas_sgemm", gemm, result.missing) ||
      !find(library, "cblas_sgemv", gemv, result.missing) ||
      !find(library, "openblas_set_num_threads", setThreads, result.missing) ||
      !find(library, "openblas_get_corename", core, result.missing) ||
      !find(library, "openblas_get_config", config, result.missing))
    return result;
  setThreads(1);
  std::string text = config(); // "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
  size_t begin = text.find(' ') + 1;
  result.version =
      text.substr(begin, text.find(' ', begin) - begin) + ", " + core() +
      (std::getenv("OPENBLAS_CORETYPE") ? " as OPENBLAS_CORETYPE asks for"
                                        : "");
  result.multiply = [=](bool transposeB, int64_t m, int64_t n, int64_t k,
                        float alpha, const void *left, int64_t lda,
                        const void *right, int64_t ldb, float beta, float *c,
                        int64_t ldc) {
    auto *a = static_cast<const float *>(left);
    auto *b = static_cast<const float *>(right);
    if (m > fewRows)
      return gemm(RowMajor, NoTrans, transposeB ? Trans : NoTrans, int(m),
                  int(n), int(k), alpha, a, int(lda), b, int(ldb), beta, c,
                  int(ldc));
    for (int64_t row = 0; row < m; ++row)
      gemv(RowMajor, transposeB ? NoTrans : Trans, int(transposeB ? n : k),
           int(transposeB ? k : n), alpha, b, int(ldb), a + row * lda, 1, beta,
           c + row * ldc, 1);
  };
  return result;
}

/// oneDNN's product `function`.
static Sgemm oneDnn(const char *function) {
  using Gemm = int(char, char, int64_t, int64_t, int64_t, float, const void *,
                   int64_t, const void *, int64_t, float, float *, int64_t);
  struct Version {
    int major, minor, patch;
  };

  Sgemm result;
  result.name = "onednn";
  void *library = load({"libdnnl.so.3", "libdnnl.so.2"}, result.missing);
  Gemm *gemm;
  const Version *(*version)();
  if (!library || !find(library, function, gemm, result.missing) ||
      !find(library, "dnnl_version", version, result.missing))
    return result;
  // Builds with OpenMP take the calling thread's number of threads.
  void (*setThreads)(int) = nullptr;
  std::string none;
  find(library, "omp_set_num_threads", setThreads, none);
  result.version = std::to_string(version()->major) + "." +
                   std::to_string(version()->minor) + "." +
                   std::to_string(version()->patch);
  result.multiply = [=](bool transposeB, int64_t m, int64_t n, int64_t k,
                        float alpha, const void *a, int64_t lda, const void *b,
                        int64_t ldb, float beta, float *c, int64_t ldc) {
    if (setThreads)
      setThreads(1);
    gemm('N', transposeB ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c,
         ldc);
  };
  return result;
}

Sgemm oneDnn() { return oneDnn("dnnl_sgemm"); }

Sgemm oneDnnBf16() {
  Sgemm result = oneDnn("dnnl_gemm_bf16bf16f32");
  result.name = "onednn-bf16";
  result.operands = PAGODA_BF16;
#ifdef __x86_64__
  bool hasInstruction = __builtin_cpu_supports("avx512bf16");
#else
  bool hasInstruction = false;
#endif
  if (result.multiply && !hasInstruction) {
    result.multiply = nullptr;
    result.missing = "this machine has no dot products of bf16";
  }
  return result;
}

} // namespace pagoda::peers
