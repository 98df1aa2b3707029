//===- MemoryPlan.h - How much memory sequences take ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Answers "how many blocks, bytes and empty slots" before anything is
// allocated. Pure arithmetic over what BlockManager and PagedKV do; the cache
// itself does not use it. PoolSimulation replays the same requests block by
// block.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_MEMORYPLAN_H
#define PAGODA_MEMORYPLAN_H

#include "pagoda/KvPool.h"
#include "pagoda/TableGroup.h"

#include <cstdint>
#include <span>

namespace pagoda {

/// Layers of one kind, as the cache sees them.
struct CacheLayers {
  KvFormat format; ///< of one block in one layer
  int32_t layers = 1;
  /// Block tables that a sequence has for them, each for an equal number of
  /// layers: 1 for all of them together, or as many as there are layers.
  int32_t tables = 1;
  TableGroup keeps = {}; ///< what a window lets go of

  /// Bytes of one block in all the layers that share a table.
  int64_t blockBytes() const { return layers / tables * format.blockBytes(); }
  /// Throws InvalidArgument naming the first field that is out of range.
  void verify() const;
};

/// \p count sequences of \p tokens tokens each.
struct SequenceLoad {
  int32_t tokens = 0;
  int64_t count = 1;
};

/// What the sequences take while the last token of each is computed.
struct MemoryPlan {
  int64_t blocks = 0;        ///< in all tables; 0 for contiguous memory
  int64_t bytes = 0;         ///< in all layers
  int64_t reservedSlots = 0; ///< token slots in one layer
  /// Of those, slots without a token that a query may still see.
  int64_t wastedSlots = 0;
  /// Wasted part of the reserved slots, 0 when nothing is reserved.
  double waste() const {
    return reservedSlots ? double(wastedSlots) / double(reservedSlots) : 0;
  }
};

/// In blocks. The first \p sharedPrefix tokens of all sequences are the same:
/// its full blocks are there once. A windowed kind keeps what the query of the
/// last token sees. Errors: InvalidArgument (a field, a sequence shorter than
/// the prefix, a total that 64 bits do not hold).
MemoryPlan planPaged(const CacheLayers &layers,
                     std::span<const SequenceLoad> load,
                     int32_t sharedPrefix = 0);

/// In one contiguous piece of memory a sequence and layer: \p maxLength tokens,
/// doubled until the sequence fits; nothing is shared and nothing is let go.
MemoryPlan planContiguous(const CacheLayers &layers,
                          std::span<const SequenceLoad> load,
                          int32_t maxLength);

/// How many sequences of \p tokens tokens have room in \p bytes bytes for all
/// \p kinds of layers together; INT64_MAX when one more takes nothing.
int64_t sequencesPaged(std::span<const CacheLayers> kinds, int64_t bytes,
                       int32_t tokens, int32_t sharedPrefix = 0);
int64_t sequencesContiguous(std::span<const CacheLayers> kinds, int64_t bytes,
                            int32_t tokens, int32_t maxLength);

} // namespace pagoda

#endif // PAGODA_MEMORYPLAN_H
