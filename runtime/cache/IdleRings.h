//===- IdleRings.h - The rings of idle blocks, inline -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Putting a block into the ring of its priority and taking it out: what happens
// to every cached block of a prompt when a sequence begins and when it ends.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CACHE_IDLERINGS_H
#define PAGODA_CACHE_IDLERINGS_H

#include "pagoda/PrefixCache.h"

namespace pagoda {

/// Puts \p block at the end of its ring, as the most recently used one, or at
/// the front.
inline void PrefixCache::list(int32_t block, bool oldest) {
  Entry &entry = Entries[block];
  int32_t sentinel = Blocks.numBlocks() + entry.priority;
  int32_t prev = oldest ? sentinel : Entries[sentinel].prev;
  int32_t next = Entries[prev].next;
  entry.prev = prev;
  entry.next = next;
  Entries[prev].next = block;
  Entries[next].prev = block;
  entry.state = Listed;
  ++Idle;
}

/// Takes an idle block out of its ring, or from beside it.
inline void PrefixCache::unlist(int32_t block) {
  Entry &entry = Entries[block];
  if (entry.state == Listed) {
    Entries[entry.prev].next = entry.next;
    Entries[entry.next].prev = entry.prev;
  }
  entry.state = Out;
  --Idle;
}

} // namespace pagoda

#endif // PAGODA_CACHE_IDLERINGS_H
