//===- Compare.h - Error bounds and comparison with the oracle --*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How far a kernel's output may be from the definition, and the comparison of a
// whole output with it. The bound is part of the project's contract: a kernel
// that misses it is wrong, and it is not widened to make a test pass.
//
// For an output element, with A = Row::condition, n = Row::keys,
// S = sum_j p_j |v_j| and M = sum_j |v_j|:
//
//   |o - ref| <= (c * eps(T) + eps32 * (8 * (1 + A) + sqrt(n))) * S
//                + 2^-126 * M                                     (elementwise)
//   |lse - ref| <= eps32 * (8 * (1 + A) + sqrt(n)) + c * eps(T) * 2
//
//   type of q and o  eps(T)  c  precision of P, m, l, o while accumulating
//   f32              2^-23   0  f32, f32, f32, f32
//   f16              2^-10   2  f16 or better, f32, f32, f32
//   bf16             2^-7    2  bf16 or better, f32, f32, f32
//
// Where the terms come from (u = eps32 / 2 is half a unit in the last place):
//  - 8 * A: a score is a rounded sum of products. Its error is a small multiple
//    of u * scale * sum_d |q_d k_d| <= u * A (rounding errors of the d terms
//    grow like sqrt(d): about 3 at d = 128), plus one rounding each of the
//    scaling, the subtraction of the maximum and a folded log2(e). An absolute
//    error x in an exponent is a relative error x in p_j, which enters twice:
//    in the numerator and in the sum.
//  - 8 * 1: exp2 (4 units at most), the division, the final rounding.
//  - sqrt(n): rounding errors of an n-term sum, of the weighted values and of
//    the weights, grow like sqrt(n) * u (Higham and Mary, "A new approach to
//    probabilistic rounding error analysis", 2019); each gets that much.
//  - c * eps(T): P rounded (or truncated: one eps) to T for the second product
//    and the output rounded to T (half an eps).
//  - 2^-126 * M: weights below f32's normal range may be flushed to zero.
// 8-bit caches add nothing: their values times their scales are what the oracle
// reads too.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_REFERENCE_COMPARE_H
#define PAGODA_TESTS_REFERENCE_COMPARE_H

#include "tests/reference/Attention.h"

#include <functional>
#include <string>

namespace pagoda::reference {

/// Largest allowed |o[dim] - row.o[dim]|; `qType` is the pagoda_dtype of o.
double outputBound(const Row &row, int64_t dim, int32_t qType);

/// Largest allowed |lse - row.lse|. An lse of -inf must be met exactly.
double lseBound(const Row &row, int32_t qType);

/// One compared element: output element `dim`, or the lse when dim is -1.
struct Element {
  int64_t seq = -1, token = -1, head = -1, dim = -1;
  double actual = 0, expected = 0, error = 0, bound = 0;

  /// error / bound, 0 when both are 0; infinite for an error with bound 0 and
  /// for a NaN.
  double ratio() const;
  bool ok() const { return ratio() <= 1; }
  /// "seq 1, token 3, head 0, dim 5: 0.25 expected 0.2, error 0.05, bound 1e-6"
  std::string text() const;
};

struct Comparison {
  int64_t elements = 0; ///< compared
  int64_t failures = 0; ///< outside their bounds
  Element worst;        ///< of the largest ratio
  Element largest;      ///< of the largest absolute error in o
  bool ok() const { return failures == 0; }
  void merge(const Comparison &other);
};

/// Which rows to compare: (seq, token, head) -> bool. Empty: all.
using RowFilter = std::function<bool(int64_t, int64_t, int64_t)>;

/// Compares args.o, and args.lse unless null, with the oracle, on `threads`
/// threads.
Comparison compare(const Problem &problem, int threads = 1,
                   const RowFilter &filter = {});

/// Compares one row that the caller has computed.
void compareRow(const Problem &problem, int64_t seq, int64_t token,
                int64_t head, const Row &row, Comparison &result);

} // namespace pagoda::reference

#endif // PAGODA_TESTS_REFERENCE_COMPARE_H
