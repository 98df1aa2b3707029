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
// For an output element, with d the head dim, A = Row::condition, n =
// Row::keys, S = sum_j p_j |v_j|, M = sum_j |v_j| and eps32 = 2^-23:
//
//   r            = eps32 * (8 + (8 + d / 8) * A + sqrt(n))
//   |o - ref|   <= (c * eps(T) + r) * S + 2^-126 * (M + n + 2) (elementwise)
//                  + 2^-25 * (M + 1) for f16
//   |lse - ref| <= 2 * c * eps(T) + r
//
//   T: type of q and o  eps(T)  c  precision of P; of m, l, o on the way
//   f32                 2^-23   0  f32; f32
//   f16                 2^-10   2  f16 or better; f32
//   bf16                2^-7    2  bf16 or better; f32
//
// Where the terms come from:
//  - (8 + d / 8) * A: a score is a rounded sum of d products that together are
//    at most A. Random rounding errors would grow like sqrt(d), but d equal
//    terms added to one accumulator all round the same way within a binade:
//    d / 8 eps32, which is met. 8: the scaling, a folded log2(e), the
//    subtraction of the maximum, cap and bias, one rounding each. An absolute
//    error x in an exponent is a relative error x of p_j, which enters in the
//    weighted sum and in the sum of weights.
//  - 8: exp2 (a few units), the division, the logarithm, the final rounding.
//  - sqrt(n): rounding errors of a sum of n terms grow like sqrt(n) (Higham and
//    Mary, "A new approach to probabilistic rounding error analysis", 2019).
//    For n equal terms that needs sums by tiles: of t keys each, (t + n / t) /
//    8 instead of n / 8.
//  - c * eps(T): P rounded (or truncated: one eps) to T for the second product
//    and the output rounded to T (half an eps).
//  - 2^-126 * (M + n + 2): what is below the normal range of f32 and bf16 may
//    be flushed to zero, as x86's instructions for bf16 do: weights, which are
//    relative to the largest one (M); values, whose weights are at most 1 in
//    all (1); a sum after each of its n terms; the output (1). An element of q
//    or k below it may count as 0, too: what that does to a score beside
//    elements near 2^126 is in no bound.
//  - 2^-25 * (M + 1): below 2^-14, f16 has multiples of 2^-24 only; weights,
//    relative to the largest one, and the output are rounded to those.
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
