//===- Roofline.h - What a kernel moves and computes ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For one sequence: the flops that attention needs, the bytes that a schedule
// moves at each level of memory for them, and which of the machine's limits is
// met first (Williams et al., "Roofline", 2009). Pure functions. An estimate
// for a person to compare with a measurement; no tile is chosen by it.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_ROOFLINE_H
#define PAGODA_COMPILER_TILING_ROOFLINE_H

#include "compiler/tiling/Schedule.h"
#include "llvm/ADT/SmallVector.h"

namespace pagoda {

/// One sequence: `queries` new tokens at the end of `keys` tokens, of one
/// layer.
struct SequenceWork {
  int64_t queries = 1;
  int64_t keys = 1; ///< at least `queries`
};

/// Something that a machine has only so much of.
struct Limit {
  llvm::StringRef name; ///< "FMA", "tensor cores", "L2", "memory", ...
  double amount = 0;    ///< flops, loads or bytes
  double perCycle = 0;  ///< of one core or multiprocessor
  llvm::StringRef unit; ///< "flop", "load" or "B"

  double cycles() const { return amount / perCycle; }
};

struct Roofline {
  double pairs = 0;      ///< of a query and a key it sees, of one query head
  double leastBytes = 0; ///< q, o, and the visible keys and values, once each
  llvm::SmallVector<Limit, 4> limits; ///< arithmetic first, memory last

  double flops() const { return limits[0].amount; }
  double memoryBytes() const { return limits.back().amount; }
  /// Flops per byte that is moved from and to memory.
  double intensity() const { return flops() / memoryBytes(); }
  /// The intensity at which the machine's peak and its memory bind alike.
  double ridge() const { return limits[0].perCycle / limits.back().perCycle; }
  /// The limit that takes most cycles.
  const Limit &binding() const;
};

/// The keys that the query at `position` sees are [first, second); `keys` is
/// the sequence's length.
std::pair<int64_t, int64_t> visibleKeys(const AttentionSpec &spec,
                                        int64_t position, int64_t keys);

Roofline roofline(const Machine &machine, const AttentionSpec &spec,
                  const Schedule &schedule, const SequenceWork &work);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_ROOFLINE_H
