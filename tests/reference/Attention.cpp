//===- Attention.cpp - The definition of attention, in f64 ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two passes over the visible keys of a row: scores, then the weighted sum. No
// tiles, no online softmax, no base 2: nothing that a kernel does.
//
//===----------------------------------------------------------------------===//

#include "tests/reference/Attention.h"

#include "tests/reference/Element.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pagoda::reference {

namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();

int64_t floorDiv(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Reads rows of the paged K or V pool as doubles, 8-bit scales applied.
struct PagedRows {
  const pagoda_kv_view &view;
  const pagoda_scale_view &scale;
  const int32_t *table;
  int64_t blockSize;
  int32_t dtype;

  void read(int64_t position, int64_t head, int64_t n, double *out) const {
    int64_t block = table[position / blockSize];
    int64_t slot = position % blockSize;
    loadRow(view.base, dtype,
            block * view.block_stride + head * view.head_stride +
                slot * view.token_stride,
            n, out);
    if (!scale.base)
      return;
    double factor =
        scale.base[block * scale.block_stride + head * scale.head_stride +
                   slot * scale.token_stride];
    for (int64_t i = 0; i < n; ++i)
      out[i] *= factor;
  }
};

} // namespace

Shape shapeOf(const pagoda_kernel_info &info) {
  Shape shape;
  shape.qHeads = info.q_heads;
  shape.kvHeads = info.kv_heads;
  shape.headDim = info.head_dim;
  shape.vHeadDim = info.v_head_dim;
  shape.blockSize = info.block_size;
  shape.qType = info.q_dtype;
  shape.kvType = info.k_dtype;
  shape.features = info.features;
  return shape;
}

bool sees(const Problem &problem, int64_t seq, int64_t qPos, int64_t kvPos) {
  const Shape &shape = problem.shape;
  const pagoda_attention_args &args = *problem.args;
  bool inPrefix =
      shape.has(PAGODA_FEATURE_PREFIX_LM) && kvPos < args.prefix_lens[seq];
  if (shape.has(PAGODA_FEATURE_CAUSAL) && kvPos > qPos && !inPrefix)
    return false;
  if (shape.has(PAGODA_FEATURE_WINDOW) && qPos - kvPos >= args.window)
    return false;
  if (shape.has(PAGODA_FEATURE_CHUNK) &&
      floorDiv(qPos, args.chunk) != floorDiv(kvPos, args.chunk))
    return false;
  return true;
}

void attendRow(const Problem &problem, int64_t seq, int64_t token, int64_t head,
               Row &row) {
  const Shape &shape = problem.shape;
  const pagoda_attention_args &args = *problem.args;
  const Sequence &sequence = problem.sequences[seq];
  int64_t qPos = sequence.kvLen - sequence.qLen + token;
  int64_t kvHead = head / (shape.qHeads / shape.kvHeads);
  const int32_t *table =
      args.block_table + sequence.tableRow * args.block_table_stride;
  PagedRows keys{args.k, args.k_scale, table, shape.blockSize, shape.kvType};
  PagedRows values{args.v, args.v_scale, table, shape.blockSize, shape.kvType};

  std::vector<double> q(shape.headDim), k(shape.headDim), v(shape.vHeadDim);
  loadRow(args.q, shape.qType,
          (sequence.qBegin + token) * args.q_token_stride +
              head * args.q_head_stride,
          shape.headDim, q.data());

  row.o.assign(shape.vHeadDim, 0);
  row.absolute.assign(shape.vHeadDim, 0);
  row.magnitude.assign(shape.vHeadDim, 0);
  row.condition = 0;
  row.headDim = shape.headDim;

  std::vector<int64_t> positions;
  std::vector<double> scores;
  double largest = -Infinity;
  for (int64_t kvPos = 0; kvPos < sequence.kvLen; ++kvPos) {
    if (!sees(problem, seq, qPos, kvPos) ||
        (problem.maskMod && !problem.maskMod(seq, head, qPos, kvPos)))
      continue;
    keys.read(kvPos, kvHead, shape.headDim, k.data());
    double dot = 0, absDot = 0;
    for (int64_t d = 0; d < shape.headDim; ++d) {
      dot += q[d] * k[d];
      absDot += std::fabs(q[d] * k[d]);
    }
    double score = args.scale * dot;
    double size = args.scale * absDot;
    if (problem.scoreMod) {
      double plain = score;
      score = problem.scoreMod(plain, seq, head, qPos, kvPos);
      if (std::isfinite(score))
        size += std::fabs(score - plain);
    }
    if (shape.has(PAGODA_FEATURE_SOFTCAP))
      score = args.softcap * std::tanh(score / args.softcap);
    if (shape.has(PAGODA_FEATURE_ALIBI)) {
      double bias = double(args.alibi_slopes[head]) * double(kvPos - qPos);
      score += bias;
      size += std::fabs(bias);
    }
    positions.push_back(kvPos);
    scores.push_back(score);
    largest = std::max(largest, score);
    row.condition = std::max(row.condition, size);
  }
  row.keys = int64_t(positions.size());

  double sink = -Infinity;
  if (shape.has(PAGODA_FEATURE_SINKS))
    sink = args.sinks[head];
  if (std::isfinite(sink))
    row.condition = std::max(row.condition, std::fabs(sink));
  largest = std::max(largest, sink);
  row.lse = -Infinity;
  if (largest == -Infinity)
    return;

  double sum = std::exp(sink - largest);
  for (double score : scores)
    sum += std::exp(score - largest);
  row.lse = largest + std::log(sum);
  for (size_t j = 0; j < positions.size(); ++j) {
    double p = std::exp(scores[j] - largest) / sum;
    values.read(positions[j], kvHead, shape.vHeadDim, v.data());
    for (int64_t d = 0; d < shape.vHeadDim; ++d) {
      row.o[d] += p * v[d];
      row.absolute[d] += p * std::fabs(v[d]);
      row.magnitude[d] += std::fabs(v[d]);
    }
  }
}

} // namespace pagoda::reference
