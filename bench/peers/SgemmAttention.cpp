//===- SgemmAttention.cpp - Attention built on a BLAS ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of a tile are (token, head of the group) pairs, so that query heads that
// share a KV head share its products. Scores are in base 2: the product is
// scaled by scale * log2(e).
//
//===----------------------------------------------------------------------===//

#include "bench/peers/SgemmAttention.h"

#include "bench/peers/RowMath.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pagoda::peers {

using reference::Problem;
using reference::Sequence;

namespace {

/// Rows of a query tile and keys of a tile: their scores fit in half of an L2
/// cache of 512 KB. With 128 to 512 of each both libraries are as fast.
constexpr int64_t QueryRows = 256, Keys = 256;

constexpr float Infinity = std::numeric_limits<float>::infinity();

size_t bytesOf(int32_t type) {
  return type == PAGODA_F32 ? sizeof(float) : sizeof(uint16_t);
}

/// n elements of `type` from element `offset` of `base` as `operands`.
void load(const void *base, int32_t type, int64_t offset, int64_t n,
          int32_t operands, std::byte *out) {
  if (type == operands)
    std::memcpy(out,
                static_cast<const std::byte *>(base) +
                    size_t(offset) * bytesOf(type),
                size_t(n) * bytesOf(type));
  else // to f32: of other types nothing is asked, refusal() says so
    widen(base, type, offset, n, reinterpret_cast<float *>(out));
}

/// A tile of keys or values as a matrix.
struct Matrix {
  const void *data;
  int64_t stride;
};

/// Rows [begin, begin + n) of one head: in place, or gathered into `copy`.
Matrix rowsOf(const pagoda_kv_view &view, int32_t type, const int32_t *table,
              int64_t blockSize, int64_t head, int64_t dim, int64_t begin,
              int64_t n, int32_t operands, std::vector<std::byte> &copy) {
  auto offset = [&](int64_t position) {
    return table[position / blockSize] * view.block_stride +
           head * view.head_stride + position % blockSize * view.token_stride;
  };
  if (type == operands && begin / blockSize == (begin + n - 1) / blockSize)
    return {static_cast<const std::byte *>(view.base) +
                size_t(offset(begin)) * bytesOf(type),
            view.token_stride};
  size_t rowBytes = size_t(dim) * bytesOf(operands);
  copy.resize(size_t(Keys) * rowBytes);
  for (int64_t i = 0; i < n; ++i)
    load(view.base, type, offset(begin + i), dim, operands,
         copy.data() + size_t(i) * rowBytes);
  return {copy.data(), dim};
}

} // namespace

SgemmAttention::SgemmAttention(Sgemm sgemm, int threads)
    : sgemm(std::move(sgemm)), pool(threads), scratch(size_t(pool.threads())) {}

std::string SgemmAttention::refusal(const reference::Shape &shape) const {
  if (shape.features & ~uint32_t(PAGODA_FEATURE_CAUSAL))
    return "has causal and full attention only";
  for (int32_t type : {shape.qType, shape.kvType})
    if (type != PAGODA_F32 && type != PAGODA_F16 && type != PAGODA_BF16)
      return "has no cache of 8 bits";
  if (sgemm.operands == PAGODA_BF16 &&
      (shape.qType != PAGODA_BF16 || shape.kvType != PAGODA_BF16))
    return "multiplies bf16 only";
  return "";
}

void SgemmAttention::attend(const Problem &problem, const Item &item,
                            Scratch &scratch) const {
  const reference::Shape &shape = problem.shape;
  const pagoda_attention_args &args = *problem.args;
  const Sequence &sequence = problem.sequences[size_t(item.sequence)];
  const int32_t *table =
      args.block_table + sequence.tableRow * args.block_table_stride;
  int64_t group = shape.qHeads / shape.kvHeads;
  int64_t dim = shape.headDim, vDim = shape.vHeadDim;
  int64_t rows = (item.tokenEnd - item.tokenBegin) * group;
  auto token = [&](int64_t row) { return item.tokenBegin + row / group; };
  auto head = [&](int64_t row) { return item.kvHead * group + row % group; };
  // Keys that a row sees are [0, visible(row)).
  auto visible = [&](int64_t row) {
    return shape.has(PAGODA_FEATURE_CAUSAL)
               ? std::clamp<int64_t>(sequence.kvLen - sequence.qLen +
                                         token(row) + 1,
                                     0, sequence.kvLen)
               : sequence.kvLen;
  };

  int32_t operands = sgemm.operands;
  size_t qBytes = size_t(dim) * bytesOf(operands);
  scratch.q.resize(size_t(rows) * qBytes);
  scratch.scores.resize(size_t(rows * Keys));
  scratch.o.assign(size_t(rows * vDim), 0);
  scratch.max.assign(size_t(rows), -Infinity);
  scratch.sum.assign(size_t(rows), 0);
  for (int64_t row = 0; row < rows; ++row)
    load(args.q, shape.qType,
         (sequence.qBegin + token(row)) * args.q_token_stride +
             head(row) * args.q_head_stride,
         dim, operands, scratch.q.data() + size_t(row) * qBytes);

  int64_t end = visible(rows - 1);
  for (int64_t begin = 0; begin < end; begin += Keys) {
    int64_t n = std::min(Keys, end - begin);
    Matrix k = rowsOf(args.k, shape.kvType, table, shape.blockSize, item.kvHead,
                      dim, begin, n, operands, scratch.k);
    sgemm.multiply(true, rows, n, dim, args.scale * float(M_LOG2E),
                   scratch.q.data(), dim, k.data, k.stride, 0,
                   scratch.scores.data(), Keys);
    for (int64_t row = 0; row < rows; ++row) {
      float *scores = scratch.scores.data() + row * Keys;
      int64_t seen = std::clamp<int64_t>(visible(row) - begin, 0, n);
      std::fill(scores + seen, scores + n, 0.f);
      if (seen == 0)
        continue;
      float &max = scratch.max[size_t(row)], &sum = scratch.sum[size_t(row)];
      float next = std::max(max, largest(scores, seen));
      if (next != max) {
        float factor = std::exp2(max - next);
        sum *= factor;
        scale(scratch.o.data() + row * vDim, vDim, factor);
        max = next;
      }
      sum += exponentials(scores, seen, max);
    }
    Matrix v = rowsOf(args.v, shape.kvType, table, shape.blockSize, item.kvHead,
                      vDim, begin, n, operands, scratch.v);
    const void *p = scratch.scores.data();
    if (operands != PAGODA_F32) {
      scratch.p.resize(size_t(rows * Keys) * bytesOf(operands));
      for (int64_t row = 0; row < rows; ++row)
        narrow(scratch.scores.data() + row * Keys, n, scratch.p.data(),
               operands, row * Keys);
      p = scratch.p.data();
    }
    sgemm.multiply(false, rows, vDim, n, 1, p, Keys, v.data, v.stride, 1,
                   scratch.o.data(), vDim);
  }

  for (int64_t row = 0; row < rows; ++row) {
    float *o = scratch.o.data() + row * vDim;
    float sum = scratch.sum[size_t(row)];
    scale(o, vDim, sum > 0 ? 1 / sum : 0);
    int64_t qRow = sequence.qBegin + token(row);
    narrow(o, vDim, args.o, shape.qType,
           qRow * args.o_token_stride + head(row) * args.o_head_stride);
    if (args.lse)
      args.lse[qRow * args.lse_token_stride +
               head(row) * args.lse_head_stride] =
          sum > 0 ? (scratch.max[size_t(row)] + std::log2(sum)) * float(M_LN2)
                  : -Infinity;
  }
}

void SgemmAttention::run(const Problem &problem) {
  int64_t group = problem.shape.qHeads / problem.shape.kvHeads;
  int64_t tokens = std::max<int64_t>(QueryRows / group, 1);
  std::vector<Item> items;
  for (size_t s = 0; s < problem.sequences.size(); ++s)
    // The last tokens see the most keys: they go first.
    for (int64_t last = problem.sequences[s].qLen; last > 0; last -= tokens)
      for (int64_t kvHead = 0; kvHead < problem.shape.kvHeads; ++kvHead)
        items.push_back(
            {int64_t(s), kvHead, std::max<int64_t>(last - tokens, 0), last});
  struct Work {
    SgemmAttention &self;
    const Problem &problem;
    const std::vector<Item> &items;
  } work{*this, problem, items};
  pool.forEach(
      int64_t(items.size()), 1,
      [](void *context, int64_t begin, int64_t end, int thread) {
        Work &work = *static_cast<Work *>(context);
        for (int64_t i = begin; i < end; ++i)
          work.self.attend(work.problem, work.items[size_t(i)],
                           work.self.scratch[size_t(thread)]);
      },
      &work);
}

Peers findPeers(int threads) {
  Peers result;
  for (Sgemm (*find)() : {openBlas, oneDnn, oneDnnBf16}) {
    Sgemm sgemm = find();
    if (sgemm.multiply)
      result.present.push_back(
          std::make_shared<SgemmAttention>(std::move(sgemm), threads));
    else
      result.missing.push_back(sgemm.name + ": " + sgemm.missing);
  }
  return result;
}

} // namespace pagoda::peers
