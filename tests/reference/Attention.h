//===- Attention.h - The definition of attention, in f64 --------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle: scaled dot-product attention over a paged cache, computed from
// its definition in double precision, one (token, head) row at a time. It reads
// the same argument struct as a kernel and none of the plan (items, row maps,
// merges), and shares no index or mask code with the compiler or the runtime.
// Error bounds live in Compare.h.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_REFERENCE_ATTENTION_H
#define PAGODA_TESTS_REFERENCE_ATTENTION_H

#include "runtime/include/pagoda/kernel_abi.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace pagoda::reference {

/// What the kernel under test was built for.
struct Shape {
  int64_t qHeads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;  ///< of q and k
  int64_t vHeadDim = 0; ///< of v and o
  int64_t blockSize = 0;
  int32_t qType = PAGODA_F32; ///< of q and o, a pagoda_dtype
  int32_t kvType = PAGODA_F32;
  uint32_t features = PAGODA_FEATURE_CAUSAL; ///< pagoda_feature bits

  bool has(pagoda_feature feature) const { return features & feature; }
};

/// The shape an attention kernel declares.
Shape shapeOf(const pagoda_kernel_info &info);

/// One sequence of a ragged batch. Its `qLen` new tokens sit at positions
/// kvLen - qLen .. kvLen - 1 and occupy rows qBegin .. qBegin + qLen - 1 of q.
/// With qLen > kvLen the first positions are negative: such rows see no key
/// under a causal mask.
struct Sequence {
  int64_t qBegin = 0;
  int64_t qLen = 0;
  int64_t kvLen = 0;
  int64_t tableRow = 0; ///< row of args.block_table
};

/// One step: the tensors, the shape and the lengths. Of `args` only tensors and
/// scalar parameters are read: q, k, v, their scales and strides, block_table,
/// sinks, alibi_slopes, prefix_lens, scale, softcap, window, chunk.
struct Problem {
  Shape shape;
  const pagoda_attention_args *args = nullptr;
  std::vector<Sequence> sequences; ///< index = row_seq, index of prefix_lens
  /// A user's functions: (seq, head, q_pos, kv_pos) -> whether the key counts,
  /// (score, seq, head, q_pos, kv_pos) -> the score to use. Empty: none.
  std::function<bool(int64_t, int64_t, int64_t, int64_t)> maskMod;
  std::function<double(double, int64_t, int64_t, int64_t, int64_t)> scoreMod;
};

/// The result of one (token, head) row, with what an error bound needs.
struct Row {
  std::vector<double> o; ///< [v_head_dim]; 0 when the row sees no key
  /// Natural logarithm of the sum of exponentials, the sink's included; -inf
  /// when there is nothing to sum.
  double lse = 0;
  std::vector<double> absolute;  ///< [v_head_dim] sum_j p_j |v_j|
  std::vector<double> magnitude; ///< [v_head_dim] sum_j |v_j|
  /// Largest magnitude that enters an exponent: over visible keys j, the sum
  /// of scale * sum_d |q_d| |k_jd| and |ALiBi bias|; and |sink|.
  double condition = 0;
  int64_t keys = 0;    ///< visible keys
  int64_t headDim = 0; ///< terms of a score's sum
};

/// Whether query position `qPos` sees key position `kvPos` (0 <= kvPos < kvLen)
/// of sequence `seq`:
///   causal     kvPos <= qPos, or kvPos < prefix_lens[seq] with prefix-LM
///   window w   qPos - kvPos < w: w keys, itself included
///   chunk c    floor(qPos / c) == floor(kvPos / c)
bool sees(const Problem &problem, int64_t seq, int64_t qPos, int64_t kvPos);

/// Attention of new token `token` (0 .. qLen - 1) of sequence `seq`, query head
/// `head`. The score of key j is
///   s_j = scale * q.k_j;  then a user's scoreMod;  s_j = cap * tanh(s_j / cap)
///   with a soft cap; s_j += slope[head] * (kvPos - qPos) with ALiBi;
/// p = softmax(s) over visible keys and the head's sink, which has no value.
/// Only visible keys are read. Reuses the vectors of `row`.
void attendRow(const Problem &problem, int64_t seq, int64_t token, int64_t head,
               Row &row);

} // namespace pagoda::reference

#endif // PAGODA_TESTS_REFERENCE_ATTENTION_H
