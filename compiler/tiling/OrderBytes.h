//===- OrderBytes.h - What each loop order moves ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_ORDERBYTES_H
#define PAGODA_COMPILER_TILING_ORDERBYTES_H

#include "compiler/tiling/Roofline.h"

namespace pagoda {

/// The cache that the work of one query tile has to itself.
struct FastMemory {
  int64_t bytes = 512 << 10;
  int64_t ways = 8; ///< lines of a set
};

/// Bytes between a fast memory and what lies beyond: lines that come in, read
/// or about to be written, and written ones that go back.
struct MovedBytes {
  double in = 0, out = 0;

  double total() const { return in + out; }
  MovedBytes &operator+=(MovedBytes other) {
    in += other.in;
    out += other.out;
    return *this;
  }
};

/// What the kernels of a CPU move for one sequence and layer, query tile after
/// query tile. `splits`: runs that split_kv cuts the keys of a query into, at
/// least 1. The rules are at the top of OrderBytes.cpp.
MovedBytes orderBytes(const Machine &machine, const AttentionSpec &spec,
                      const Schedule &schedule, const SequenceWork &work,
                      FastMemory memory, int64_t splits = 1);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_ORDERBYTES_H
