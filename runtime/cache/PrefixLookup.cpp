//===- PrefixLookup.cpp - Finding and taking a cached prefix --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks a prompt through the nodes, finds the length that serves every table
// group, and hands blocks of a hit to owners: sequences and pins.
//
//===----------------------------------------------------------------------===//

#include "cache/BlockHash.h"
#include "cache/IdleRings.h"

#include <algorithm>

using namespace pagoda;

static Error bad(const std::string &text) {
  return Error(ErrorCode::InvalidArgument, "prefix cache: " + text);
}

/// Follows \p prompt from the root as far as there are nodes.
///
/// A block is compared up to \c Most blocks after it was hashed: its bucket and
/// then its node are on their way meanwhile, and the comparison fills the time
/// that the chain of hashes spends waiting for itself.
void PrefixCache::walk(std::span<const int32_t> prompt, int32_t blocks,
                       std::span<const ExtraKey> keys, PrefixHit &hit) const {
  constexpr int32_t Most = 16;
  const int32_t behind = std::min(Most, blocks), fetch = behind / 2;
  Hash128 hashes[Most]; // of block i at i % Most
  std::string extra;
  auto extraOf = [&](int32_t block) -> std::string_view {
    if (keys.empty()) [[likely]]
      return {};
    extra = serialise(keys, block * BlockSize, BlockSize);
    return extra;
  };
  auto tokensOf = [&](int32_t block) {
    return prompt.data() + int64_t(block) * BlockSize;
  };
  hit.nodes.resize(blocks);
  PrefixHit::Ref *out = hit.nodes.data();
  Hash128 chain;
  int32_t parent = -1, found = 0;
  for (int32_t i = 0; found != blocks; ++i) {
    if (i >= behind) {
      parent =
          find(hashes[found % Most], parent, tokensOf(found), extraOf(found));
      if (parent < 0)
        break;
      out[found++] = {parent, Nodes[parent].generation};
    }
    if (i < blocks) {
      chain = hashOf(chain, tokensOf(i), extraOf(i));
      hashes[i % Most] = chain;
      __builtin_prefetch(&Buckets[chain.low & Mask]);
    }
    int32_t near = i - fetch;
    if (near >= 0 && near < blocks)
      if (int32_t node = bucket(hashes[near % Most]); node >= 0) {
        __builtin_prefetch(&Nodes[node]);
        __builtin_prefetch(&NodeTokens[size_t(node) * BlockSize]);
        __builtin_prefetch(&NodeGroups[size_t(node) * NumGroups]);
      }
  }
  hit.nodes.resize(found);
}

/// The longest length, at most \p blocks, for which every group has the blocks
/// that it needs.
int32_t PrefixCache::commonBlocks(const PrefixHit &hit, int32_t blocks) const {
  int32_t groups = static_cast<int32_t>(Groups.size());
  auto has = [&](int32_t i, int32_t g) {
    return blockOf(hit.nodes[i].node, g) >= 0;
  };
  // Blocks that are needed whatever the length: all of a full group, the sinks
  // of a windowed one.
  for (int32_t g = 0; g != groups; ++g) {
    int32_t always = Groups[g].window
                         ? std::min(blocks, Groups[g].sinkBlocks(BlockSize))
                         : blocks;
    for (int32_t i = 0; i < always; ++i)
      if (!has(i, g))
        blocks = always = i;
  }
  // A gap within the window of a length is within the windows of all lengths
  // down to the gap.
  for (bool changed = true; changed;) {
    changed = false;
    for (int32_t g = 0; g != groups; ++g) {
      if (!Groups[g].window)
        continue;
      int32_t i = blocks;
      while (i > Groups[g].firstVisible(blocks * BlockSize, BlockSize)) {
        --i;
        if (!has(i, g)) {
          blocks = i;
          changed = true;
        }
      }
    }
  }
  return blocks;
}

int32_t PrefixCache::lookup(std::span<const int32_t> prompt,
                            std::span<const ExtraKey> keys,
                            PrefixHit &hit) const {
  int32_t length = static_cast<int32_t>(prompt.size());
  checkKeys(keys);
  hit.cache = this;
  hit.nodes.clear();
  hit.promptTokens = length;
  // One token is left to compute: its logits are what the caller is after.
  int32_t blocks = length > 0 ? (length - 1) / BlockSize : 0;
  walk(prompt, blocks, keys, hit);
  blocks = commonBlocks(hit, static_cast<int32_t>(hit.nodes.size()));
  hit.nodes.resize(blocks);
  hit.tokens = blocks * BlockSize;
  return hit.tokens;
}

//===----------------------------------------------------------------------===//
// Acquiring
//===----------------------------------------------------------------------===//

/// Throws when \p hit names nodes of another cache.
void PrefixCache::checkHit(const PrefixHit &hit) const {
  if (!hit.nodes.empty() && hit.cache != this)
    throw bad("hit: expected one that this cache gave, got another cache's");
}

/// Calls \p fn(group, index, block) for every block that \p hit needs; false
/// when one of them is gone or \p fn says so.
template <typename Fn>
bool PrefixCache::forBlocks(const PrefixHit &hit, Fn &&fn) const {
  checkHit(hit);
  int32_t count = static_cast<int32_t>(hit.nodes.size());
  for (int32_t g = 0; g != int32_t(Groups.size()); ++g) {
    int32_t sinks = std::min(count, Groups[g].sinkBlocks(BlockSize));
    int32_t first = Groups[g].firstVisible(hit.tokens, BlockSize);
    for (int32_t i = 0; i != count; ++i) {
      if (Groups[g].window && i >= sinks && i < first)
        continue;
      PrefixHit::Ref ref = hit.nodes[i];
      if (Nodes[ref.node].generation != ref.generation)
        return false;
      int32_t block = blockOf(ref.node, g);
      if (block < 0 || !fn(g, i, block))
        return false;
    }
  }
  return true;
}

bool PrefixCache::acquire(const PrefixHit &hit,
                          std::span<int32_t *const> tables) {
  if (tables.size() != Groups.size())
    throw bad("acquire: tables: expected " + std::to_string(Groups.size()) +
              ", got " + std::to_string(tables.size()));
  size_t count = hit.nodes.size();
  auto clear = [&] {
    for (int32_t *table : tables)
      std::fill_n(table, count, -1);
  };
  clear();
  if (!forBlocks(hit, [&](int32_t g, int32_t i, int32_t block) {
        tables[g][i] = block;
        return true;
      })) {
    clear();
    return false;
  }
  // Calls fn for each run of blocks without holes, in pieces that stay in the
  // cache while the block manager and the rings go over them in turn.
  constexpr size_t Piece = 32;
  auto forRuns = [&](auto fn) {
    for (int32_t *table : tables)
      for (size_t i = 0; i != count;) {
        size_t begin = i;
        while (i != count && table[i] >= 0 && i - begin != Piece)
          ++i;
        if (i != begin)
          fn(std::span<const int32_t>(table + begin, i - begin));
        while (i != count && table[i] < 0)
          ++i;
      }
  };
  size_t shared = 0; // runs
  try {
    forRuns([&](auto run) {
      for (int32_t block : run)
        __builtin_prefetch(&Entries[block], 1);
      Blocks.share(run);
      ++shared;
    });
  } catch (...) {
    // A block has too many owners: what was taken so far is given back.
    forRuns([&](auto run) {
      if (shared && shared--)
        Blocks.release(run);
    });
    clear();
    throw;
  }
  ++Counters.acquisitions;
  Counters.promptTokens += hit.promptTokens;
  Counters.acquiredTokens += hit.tokens;
  return true;
}

void PrefixCache::touch(const PrefixHit &hit) {
  checkHit(hit);
  // The last block first, so that a block stays older than its parent. The
  // blocks of a prompt mostly stand like that already: what stands side by
  // side moves together.
  int32_t oldest = -1, newest = -1;
  for (size_t i = hit.nodes.size(); i-- > 0;) {
    PrefixHit::Ref ref = hit.nodes[i];
    if (Nodes[ref.node].generation != ref.generation)
      continue;
    for (uint32_t g = 0; g != NumGroups; ++g) {
      int32_t block = blockOf(ref.node, static_cast<int32_t>(g));
      if (block < 0 || Entries[block].state != Listed)
        continue;
      if (newest < 0 || Entries[newest].next != block) {
        if (newest >= 0)
          renewRun(oldest, newest);
        oldest = block;
      }
      newest = block;
    }
  }
  if (newest >= 0)
    renewRun(oldest, newest);
}

void PrefixCache::setPriority(const PrefixHit &hit, int32_t priority) {
  checkHit(hit);
  if (priority < 0 || priority >= Priorities)
    throw bad("priority: expected 0 to " + std::to_string(Priorities - 1) +
              ", got " + std::to_string(priority));
  for (size_t i = hit.nodes.size(); i-- > 0;) {
    PrefixHit::Ref ref = hit.nodes[i];
    if (Nodes[ref.node].generation != ref.generation)
      continue;
    for (size_t g = 0; g != Groups.size(); ++g) {
      int32_t block = blockOf(ref.node, static_cast<int32_t>(g));
      if (block < 0)
        continue;
      bool listed = Entries[block].state == Listed;
      if (listed)
        unlist(block);
      Entries[block].priority = static_cast<uint8_t>(priority);
      if (listed)
        list(block, false);
    }
  }
}

bool PrefixCache::pin(const PrefixHit &hit) {
  std::vector<int32_t> blocks;
  if (!forBlocks(hit, [&](int32_t, int32_t, int32_t block) {
        blocks.push_back(block);
        return true;
      }))
    return false;
  Blocks.share(blocks);
  for (int32_t block : blocks)
    ++Pins[block];
  TotalPins += static_cast<int64_t>(blocks.size());
  return true;
}

void PrefixCache::unpin(const PrefixHit &hit) {
  bool pinned = forBlocks(
      hit, [&](int32_t, int32_t, int32_t block) { return Pins[block] > 0; });
  if (!pinned)
    throw bad("unpin: expected a hit that is pinned, got one that is not");
  // The last block first: it is the first that may be evicted.
  std::vector<int32_t> blocks;
  forBlocks(hit, [&](int32_t, int32_t, int32_t block) {
    blocks.push_back(block);
    --Pins[block];
    --TotalPins;
    return true;
  });
  Blocks.release(blocks);
}
