//===- SmallProblem.h - Hand-sized inputs for the oracle's tests -*- C++
//-*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A one-sequence problem that owns its tensors: a pool of NaN in which logical
// block i lies in physical block 2 * i + 1, in the nhd layout.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_REFERENCE_SMALLPROBLEM_H
#define PAGODA_TESTS_UNIT_REFERENCE_SMALLPROBLEM_H

#include "tests/reference/Attention.h"

#include <cmath>
#include <vector>

namespace pagoda::reference {

struct SmallProblem : Problem {
  pagoda_attention_args storage{};
  std::vector<float> q, k, v, o, lse;
  std::vector<int32_t> table;

  SmallProblem(Shape s, int64_t qLen, int64_t kvLen) {
    shape = s;
    int64_t blocks = (kvLen + s.blockSize - 1) / s.blockSize;
    int64_t physical = 2 * blocks + 1;
    q.assign(qLen * s.qHeads * s.headDim, 0);
    o.assign(qLen * s.qHeads * s.vHeadDim, 0);
    lse.assign(qLen * s.qHeads, 0);
    k.assign(physical * s.blockSize * s.kvHeads * s.headDim, NAN);
    v.assign(physical * s.blockSize * s.kvHeads * s.vHeadDim, NAN);
    for (int64_t i = 0; i < blocks; ++i)
      table.push_back(int32_t(2 * i + 1));
    storage.q = q.data();
    storage.q_head_stride = s.headDim;
    storage.q_token_stride = s.qHeads * s.headDim;
    storage.o = o.data();
    storage.o_head_stride = s.vHeadDim;
    storage.o_token_stride = s.qHeads * s.vHeadDim;
    storage.lse = lse.data();
    storage.lse_head_stride = 1;
    storage.lse_token_stride = s.qHeads;
    int64_t kRow = s.kvHeads * s.headDim, vRow = s.kvHeads * s.vHeadDim;
    storage.k = {k.data(), s.blockSize * kRow, s.headDim, kRow};
    storage.v = {v.data(), s.blockSize * vRow, s.vHeadDim, vRow};
    storage.block_table = table.data();
    storage.block_table_stride = int64_t(table.size());
    storage.scale = 1;
    args = &storage;
    sequences.push_back({0, qLen, kvLen, 0});
  }
  SmallProblem(const SmallProblem &) = delete;

  float *keyRow(int64_t position, int64_t head) {
    return k.data() + rowOf(position, head) * shape.headDim;
  }
  float *valueRow(int64_t position, int64_t head) {
    return v.data() + rowOf(position, head) * shape.vHeadDim;
  }

private:
  int64_t rowOf(int64_t position, int64_t head) const {
    int64_t block = table[position / shape.blockSize];
    return (block * shape.blockSize + position % shape.blockSize) *
               shape.kvHeads +
           head;
  }
};

} // namespace pagoda::reference

#endif // PAGODA_TESTS_UNIT_REFERENCE_SMALLPROBLEM_H
