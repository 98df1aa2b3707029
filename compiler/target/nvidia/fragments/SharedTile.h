//===- SharedTile.h - A tile in shared memory -------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that knows where a chunk of a row lies. A phase of ldmatrix
// reads 16 bytes of eight consecutive rows; shared memory serves 128 bytes,
// eight chunks, at a time. Rows of c chunks begin in bank group c * row % 8,
// which takes 8 / p values, p the largest power of two (up to 8) that divides
// c. Permuting the chunks within groups of p by row / (8 / p) makes them eight.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENTS_SHAREDTILE_H
#define PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENTS_SHAREDTILE_H

#include "compiler/target/nvidia/GpuBuilder.h"

namespace pagoda {

/// Rows of 16-bit elements in 16-byte chunks.
struct SharedTile {
  static constexpr int64_t chunkBytes = 16;

  Value base;     ///< of the first row
  int64_t chunks; ///< per row; even

  /// Rows after which the permutation repeats, and chunks that it permutes.
  int64_t period() const { return std::min<int64_t>(8, chunks & -chunks); }
  /// i32 chunk number at which chunk `chunk` of row `row` is kept.
  Value placeOf(GpuBuilder &b, Value row, Value chunk) const {
    Value turn = b.rem(b.div(row, 8 / period()), period());
    return b.bitXor(chunk, turn);
  }
  /// Address of chunk `chunk` of row `row` + `ahead`. The permutation repeats
  /// every eight rows: so many ahead are a constant offset.
  Value chunkAt(GpuBuilder &b, Value row, Value chunk, int64_t ahead) const {
    row = b.add(row, ahead % 8);
    Value index = b.add(b.mul(row, chunks), placeOf(b, row, chunk));
    return b.at(b.at(base, b.mul(index, chunkBytes)),
                ahead / 8 * 8 * chunks * chunkBytes);
  }
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENTS_SHAREDTILE_H
