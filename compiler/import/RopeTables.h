//===- RopeTables.h - cos and sin for append kernels ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables that pagoda_append_args takes, from a model's rotary parameters.
// Whoever rotates the queries uses the same ones.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_ROPETABLES_H
#define PAGODA_COMPILER_IMPORT_ROPETABLES_H

#include "compiler/import/Rope.h"

namespace pagoda {

/// cos and sin of the angles of positions 0, 1, ..., both [positions, pairs]
/// without gaps: the rope_cos and rope_sin of an append kernel, with
/// rope_stride `pairs`. Empty for RopeKind::None.
struct RopeTables {
  int64_t positions = 0;
  int64_t pairs = 0; ///< rotaryDim / 2
  std::vector<float> cos, sin;
};

/// Fills tables for `positions` positions of sequences of `length` tokens. Only
/// Dynamic and LongRope depend on `length`: their frequencies change once it
/// passes the trained length, for all positions of the sequence, so keys that
/// are in the cache already were rotated by the tables of their time, as in
/// transformers.
///
/// The attention factor of Yarn and LongRope is in cos and in sin, so that it
/// enters q.k twice, once with q and once with k; the softmax scale does not
/// hold it. Angles are computed in f64 and rounded once, as values of the
/// tables.
RopeTables ropeTables(const RopeConfig &rope, int64_t positions,
                      int64_t length);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_ROPETABLES_H
