//===- Sgemm.h - Other people's matrix products -----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products, of f32 or of bf16 into f32, of libraries that this machine
// may have. They are loaded at run time: nothing of ours depends on them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_PEERS_SGEMM_H
#define PAGODA_BENCH_PEERS_SGEMM_H

#include "runtime/include/pagoda/kernel_abi.h"

#include <cstdint>
#include <functional>
#include <string>

namespace pagoda::peers {

struct Sgemm {
  /// c[m x n] = alpha * a[m x k] * b + beta * c, row-major, on the calling
  /// thread alone and from several threads at once. b is [k x n], or [n x k] if
  /// `transposeB`; elements of a and b are of `operands`.
  using Function =
      std::function<void(bool transposeB, int64_t m, int64_t n, int64_t k,
                         float alpha, const void *a, int64_t lda, const void *b,
                         int64_t ldb, float beta, float *c, int64_t ldc)>;

  std::string name;              ///< "openblas"
  int32_t operands = PAGODA_F32; ///< or PAGODA_BF16
  std::string version;           ///< "0.3.21, Zen"
  Function multiply;             ///< empty: not here
  std::string missing;           ///< why it is not
};

/// OpenBLAS, with matrix-vector products for a few rows.
Sgemm openBlas();
/// oneDNN.
Sgemm oneDnn();
/// oneDNN's product of bf16, where the machine has instructions for it.
Sgemm oneDnnBf16();

} // namespace pagoda::peers

#endif // PAGODA_BENCH_PEERS_SGEMM_H
