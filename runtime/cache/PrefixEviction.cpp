//===- PrefixEviction.cpp - Which cached block goes next ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of PrefixCache that follows blocks as they change hands. Idle blocks
// stand in one ring a priority, the least recently used first. Sequences
// release their last block first, so a block stands before its parent; should a
// parent come up first all the same, it is set aside and takes its place at the
// front again when the last block after it has gone. All of it is O(1) a block.
//
//===----------------------------------------------------------------------===//

#include "cache/BlockHash.h"
#include "cache/IdleRings.h"

#include <algorithm>
#include <utility>

using namespace pagoda;

/// Takes the blocks at the beginning of \p blocks that stand side by side out
/// of their ring, each one before the one that follows it in the list, as the
/// blocks of a prompt do; returns how many. One splice does for all of them.
size_t PrefixCache::unlistRun(std::span<const int32_t> blocks) {
  Entry *entries = Entries.data();
  int32_t last = blocks[0];
  size_t count = 1;
  entries[last].state = Out;
  while (count != blocks.size() && entries[last].prev == blocks[count] &&
         entries[blocks[count]].state == Listed) {
    last = blocks[count++];
    entries[last].state = Out;
  }
  int32_t prev = entries[last].prev, next = entries[blocks[0]].next;
  entries[prev].next = next;
  entries[next].prev = prev;
  Idle -= static_cast<int32_t>(count);
  return count;
}

void PrefixCache::blocksShared(std::span<const int32_t> blocks) {
  while (!blocks.empty()) {
    size_t count = 1;
    State state = Entries[blocks[0]].state;
    if (state == Listed)
      count = unlistRun(blocks);
    else if (state == SetAside)
      unlist(blocks[0]);
    blocks = blocks.subspan(count);
  }
}

void PrefixCache::blocksReleased(std::span<const int32_t> blocks) {
  for (size_t i = blocks.size(); i-- > 0;) {
    int32_t block = blocks[i];
    if (Entries[block].node < 0)
      continue;
    uint32_t owners = Blocks.refs(block);
    if (owners == 0)
      removeEntry(block);
    else if (owners == 1 && Retain && Entries[block].state == Out)
      // Without retention the one owner left is a sequence.
      list(block, false);
  }
}

void PrefixCache::blockWritten(int32_t block) {
  Blocks.unwatch(block);
  removeEntry(block);
}

/// Takes \p node out of its bucket.
void PrefixCache::unmap(int32_t node) {
  int32_t *link = &bucket(Nodes[node].hash);
  while (*link != node)
    link = &Nodes[*link].next;
  *link = Nodes[node].next;
}

/// Drops \p node, and its ancestors, as long as they have neither a block nor a
/// child.
void PrefixCache::dropNodes(int32_t node) {
  while (node >= 0 && Nodes[node].uses == 0) {
    unmap(node);
    int32_t parent = Nodes[node].parent;
    ++Nodes[node].generation;
    if (!Extras.empty())
      Extras[node].clear();
    Nodes[node].next = std::exchange(FreeNode, node);
    if (parent >= 0)
      --Nodes[parent].uses;
    node = parent;
  }
}

void PrefixCache::removeEntry(int32_t block) {
  Entry &entry = Entries[block];
  int32_t node = entry.node, group = entry.group;
  if (entry.state != Out)
    unlist(block);
  record(CacheEvent::Removed, node, group, block);
  entry.node = -1;
  blockOf(node, group) = -1;
  --Nodes[node].uses;
  --Stored;
  int32_t parent = Nodes[node].parent;
  if (parent >= 0 && --childEntries(parent, group) == 0) {
    int32_t above = blockOf(parent, group);
    if (above >= 0 && Entries[above].state == SetAside) {
      // It was the oldest when it was set aside, so it is now.
      unlist(above);
      list(above, true);
    }
  }
  dropNodes(node);
}

/// Frees up to \p count idle blocks; returns how many.
[[gnu::flatten]] int32_t PrefixCache::evict(int32_t count) {
  int32_t freed = 0;
  for (int32_t p = 0; p != Priorities && freed != count; ++p) {
    int32_t sentinel = Blocks.numBlocks() + p;
    for (int32_t block;
         freed != count && (block = Entries[sentinel].next) != sentinel;) {
      Entry &entry = Entries[block];
      // In a windowed group every block is of use without the ones before it.
      if (childEntries(entry.node, entry.group) > 0 &&
          !Groups[entry.group].window) {
        unlist(block);
        entry.state = SetAside;
        ++Idle;
        continue;
      }
      removeEntry(block);
      Blocks.giveBack(block);
      ++freed;
      if (p) { // its parent may have come back to a ring before this one
        p = -1;
        break;
      }
    }
  }
  Counters.evicted += freed;
  return freed;
}

void PrefixCache::reclaim(int32_t count) { evict(count); }

void PrefixCache::clear() {
  for (int32_t block = 0; block != Blocks.numBlocks(); ++block) {
    if (Entries[block].node < 0 || Pins[block])
      continue;
    removeEntry(block);
    Blocks.unwatch(block);
    if (Retain)
      Blocks.release(block);
  }
}

//===----------------------------------------------------------------------===//
// Events and self-checks
//===----------------------------------------------------------------------===//

size_t PrefixCache::drainEvents(std::span<CacheEvent> out) {
  if (EventsWritten - EventsRead > Events.size()) {
    uint64_t lost = EventsWritten - EventsRead - Events.size();
    Counters.lostEvents += static_cast<int64_t>(lost);
    EventsRead += lost;
  }
  size_t count = 0;
  while (count != out.size() && EventsRead != EventsWritten)
    out[count++] = Events[EventsRead++ & EventMask];
  return count;
}

std::string PrefixCache::checkInvariants() const {
  auto say = [](const char *what, int64_t which) {
    return std::string(what) + " (" + std::to_string(which) + ")";
  };
  size_t groups = NumGroups;
  std::vector<bool> free(Nodes.size());
  for (int32_t node = FreeNode; node >= 0; node = Nodes[node].next)
    free[node] = true;
  std::vector<int32_t> uses(Nodes.size());
  std::vector<int32_t> childEntries(Nodes.size() * groups);
  int32_t stored = 0;
  for (size_t n = 0; n != Nodes.size(); ++n) {
    if (free[n])
      continue;
    const Node &node = Nodes[n];
    int32_t entries = 0;
    for (size_t g = 0; g != groups; ++g) {
      int32_t block = NodeGroups[n * groups + g].block;
      if (block < 0)
        continue;
      ++entries;
      if (Entries[block].node != int32_t(n) || Entries[block].group != g)
        return say("a block does not name its node", block);
      if (node.parent >= 0)
        ++childEntries[node.parent * groups + g];
    }
    stored += entries;
    uses[n] += entries;
    if (node.parent >= 0)
      ++uses[node.parent];
    Hash128 above = node.parent >= 0 ? Nodes[node.parent].hash : Hash128{};
    std::string_view extra;
    if (!Extras.empty())
      extra = Extras[n];
    const int32_t *tokens = NodeTokens.data() + n * BlockSize;
    Hash128 hash =
        Hash ? Hash(above, {tokens, size_t(BlockSize)}, extra, Seed)
             : blockHash(above, {tokens, size_t(BlockSize)}, extra, Seed);
    if (!(hash == node.hash))
      return say("a node does not carry the hash of its tokens", int64_t(n));
    if (find(node.hash, node.parent, tokens, extra) != int32_t(n))
      return say("the map does not find a node", int64_t(n));
  }
  size_t mapped = 0;
  for (int32_t first : Buckets)
    for (int32_t n = first; n >= 0; n = Nodes[n].next)
      ++mapped;
  if (mapped + std::count(free.begin(), free.end(), true) != Nodes.size())
    return say("the map has another number of nodes", int64_t(mapped));
  for (size_t n = 0; n != Nodes.size(); ++n) {
    if (free[n])
      continue;
    if (uses[n] != Nodes[n].uses)
      return say("a node counts its children and blocks wrongly", int64_t(n));
    if (uses[n] == 0)
      return say("a node has neither block nor child", int64_t(n));
    for (size_t g = 0; g != groups; ++g) {
      if (childEntries[n * groups + g] !=
          NodeGroups[n * groups + g].childEntries)
        return say("a node counts its children's blocks wrongly", int64_t(n));
      if (Retain && !Groups[g].window && NodeGroups[n * groups + g].block < 0 &&
          childEntries[n * groups + g])
        return say("a block went before the ones after it", int64_t(n));
    }
  }
  if (stored != Stored)
    return say("the count of stored blocks is wrong", Stored);
  int32_t idle = 0;
  for (int32_t b = 0; b != Blocks.numBlocks(); ++b) {
    bool known = Entries[b].node >= 0;
    if (known != Blocks.watched(b))
      return say("a block is stored and not watched, or the reverse", b);
    bool alone = known && Retain && Blocks.refs(b) == 1;
    if (alone != (Entries[b].state != Out))
      return say("an idle block is not listed, or the reverse", b);
    if (known && Blocks.refs(b) == 0)
      return say("a free block is stored", b);
    idle += alone;
  }
  if (idle != Idle)
    return say("the count of idle blocks is wrong", Idle);
  int32_t listed = 0, aside = 0;
  for (int32_t p = 0; p != Priorities; ++p) {
    int32_t sentinel = Blocks.numBlocks() + p;
    for (int32_t b = Entries[sentinel].next; b != sentinel;
         b = Entries[b].next) {
      if (Entries[Entries[b].next].prev != b || Entries[b].priority != p)
        return say("a ring is broken", b);
      ++listed;
    }
  }
  for (int32_t b = 0; b != Blocks.numBlocks(); ++b)
    aside += Entries[b].state == SetAside;
  if (listed + aside != idle)
    return say("the rings hold another number of blocks", listed);
  return {};
}
