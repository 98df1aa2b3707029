//===- MemoryPlan.h - How much memory sequences take ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Answers "how many blocks, bytes and wasted tokens" before anything is
// allocated, and replays the same requests on a pool of blocks and on
// contiguous reservations, to show what paging saves. Pure arithmetic and small
// simulations; the cache itself does not use it.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_MEMORYPLAN_H
#define PAGODA_MEMORYPLAN_H

#include "pagoda/BlockManager.h"
#include "pagoda/KvPool.h"
#include "pagoda/PagedKV.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace pagoda {

/// What the sequences of given lengths take.
struct MemoryPlan {
  int64_t blocks = 0;         ///< in all table groups
  int64_t bytes = 0;          ///< of those blocks, all layers
  int64_t reservedTokens = 0; ///< token slots of one layer's table
  int64_t wastedTokens = 0;   ///< of those, slots without a token
  /// Wasted part of the reserved tokens, 0 when nothing is reserved.
  double waste() const {
    return reservedTokens ? double(wastedTokens) / double(reservedTokens) : 0;
  }
};

/// \p lengths tokens each, in blocks of \p format, for \p layers layers in
/// \p groups table groups of equal size. Error: InvalidArgument.
MemoryPlan planPaged(const KvFormat &format, int32_t layers, int32_t groups,
                     std::span<const int32_t> lengths);

/// The same with one contiguous piece of memory a sequence: \p maxLength
/// tokens, doubled until the sequence fits.
MemoryPlan planContiguous(const KvFormat &format, int32_t layers,
                          int32_t maxLength, std::span<const int32_t> lengths);

/// One layer's pool of token slots, shared out in blocks (paged) or in one
/// piece a request (contiguous, first fit).
class PoolSimulation {
public:
  enum Kind { Contiguous, Paged };
  /// \p tokens slots, a multiple of \p blockSize.
  PoolSimulation(Kind kind, int32_t tokens, int32_t blockSize);
  ~PoolSimulation();

  /// Reserves room for a request of \p tokens tokens under \p name; false when
  /// there is none, which for contiguous pools may be for want of a hole that
  /// is long enough. A contiguous request reserves exactly \p tokens rounded up
  /// to blocks.
  bool request(char name, int32_t tokens);
  void release(char name);

  int32_t freeTokens() const;
  int32_t largestHole() const; ///< of a contiguous pool; paged: freeTokens()
  /// One character a block: its owner's name, or '.' when it is free.
  std::string draw() const;

private:
  Kind TheKind;
  int32_t BlockSize;
  std::string Map; ///< contiguous: owners by block
  BlockManager Blocks;
  std::unique_ptr<PagedKV> Tables;
  std::map<char, SeqId> Names;
};

} // namespace pagoda

#endif // PAGODA_MEMORYPLAN_H
