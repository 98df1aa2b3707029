//===- IdleRings.h - The rings of idle blocks, inline -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Putting a block into the ring of its priority and taking it out: what happens
// to every cached block of a prompt when a sequence begins and when it ends;
// and the event that tells of a block that came or went.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CACHE_IDLERINGS_H
#define PAGODA_CACHE_IDLERINGS_H

#include "pagoda/PrefixCache.h"

namespace pagoda {

inline int32_t PrefixCache::sentinelOf(int32_t block) const {
  return Blocks.numBlocks() + Entries[block].priority;
}

inline void PrefixCache::link(int32_t block, int32_t prev, int32_t next) {
  Entries[block].prev = prev;
  Entries[block].next = next;
  Entries[prev].next = block;
  Entries[next].prev = block;
}

inline void PrefixCache::unlink(int32_t block) {
  const Entry &entry = Entries[block];
  Entries[entry.prev].next = entry.next;
  Entries[entry.next].prev = entry.prev;
}

/// Makes blocks that stand side by side in a ring, from \p oldest to \p newest,
/// the most recently used ones, in that order.
inline void PrefixCache::renewRun(int32_t oldest, int32_t newest) {
  int32_t sentinel = sentinelOf(oldest);
  int32_t prev = Entries[oldest].prev, next = Entries[newest].next;
  Entries[prev].next = next;
  Entries[next].prev = prev;
  int32_t last = Entries[sentinel].prev;
  Entries[last].next = oldest;
  Entries[oldest].prev = last;
  Entries[newest].next = sentinel;
  Entries[sentinel].prev = newest;
}

/// Puts \p block at the end of its ring, as the most recently used one, or at
/// the front.
inline void PrefixCache::list(int32_t block, bool oldest) {
  Entries[block].state = Listed;
  if (oldest)
    link(block, sentinelOf(block), Entries[sentinelOf(block)].next);
  else
    link(block, Entries[sentinelOf(block)].prev, sentinelOf(block));
  ++Idle;
}

/// Takes an idle block out of its ring, or from beside it.
inline void PrefixCache::unlist(int32_t block) {
  Entry &entry = Entries[block];
  if (entry.state == Listed)
    unlink(block);
  entry.state = Out;
  --Idle;
}

inline void PrefixCache::record(CacheEvent::Kind kind, int32_t node,
                                int32_t group, int32_t block) {
  CacheEvent &event = Events[EventsWritten++ & EventMask];
  int32_t parent = Nodes[node].parent;
  event.kind = kind;
  event.group = group;
  event.block = block;
  event.hash = Nodes[node].hash;
  event.parent = parent >= 0 ? Nodes[parent].hash : Hash128{};
}

} // namespace pagoda

#endif // PAGODA_CACHE_IDLERINGS_H
