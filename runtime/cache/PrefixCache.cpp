//===- PrefixCache.cpp - Blocks found again by their tokens ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hashing, the nodes and the map that finds them, and storing. Lookup is in
// PrefixLookup.cpp, what happens when blocks change hands in
// PrefixEviction.cpp.
//
//===----------------------------------------------------------------------===//

#include "pagoda/PrefixCache.h"
#include "cache/BlockHash.h"
#include "cache/IdleRings.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <random>
#include <utility>

using namespace pagoda;

static constexpr int32_t MaxEvents = 1 << 30;

static Error bad(const std::string &text) {
  return Error(ErrorCode::InvalidArgument, "prefix cache: " + text);
}

PrefixCache::PrefixCache(BlockManager &blocks,
                         const PrefixCacheOptions &options)
    : Blocks(blocks), BlockSize(options.blockSize), Groups(options.groups),
      NumGroups(static_cast<uint32_t>(Groups.size())), Retain(options.retain),
      Hash(options.hash) {
  if (BlockSize < 1)
    throw bad("block_size: expected 1 or more, got " +
              std::to_string(BlockSize));
  if (Groups.empty() || Groups.size() > UINT16_MAX)
    throw bad("groups: expected 1 to 65535, got " +
              std::to_string(Groups.size()));
  for (const TableGroup &group : Groups)
    group.verify();
  if (options.eventCapacity < 1 || options.eventCapacity > MaxEvents)
    throw bad("event_capacity: expected 1 to " + std::to_string(MaxEvents) +
              ", got " + std::to_string(options.eventCapacity));
  if (blocks.listener())
    throw bad("blocks: expected a block manager without a listener, got one "
              "that has a prefix cache");
  if (options.seed) {
    Seed = *options.seed;
  } else {
    std::random_device random;
    Seed = uint64_t(random()) << 32 | random();
  }
  bool windowed = std::any_of(Groups.begin(), Groups.end(),
                              [](const TableGroup &g) { return g.window; });
  // A windowed group lets go of the first blocks of a chain before the last
  // ones; their nodes stay without a block, so there may be more nodes.
  size_t nodes = size_t(blocks.numBlocks()) * (windowed ? 2 : 1);
  Nodes.resize(nodes);
  NodeTokens.resize(nodes * BlockSize);
  NodeGroups.resize(nodes * Groups.size());
  for (size_t i = nodes; i-- > 0;)
    Nodes[i].next = std::exchange(FreeNode, static_cast<int32_t>(i));
  Buckets.assign(std::bit_ceil(std::max<size_t>(16, 2 * nodes)), -1);
  Mask = Buckets.size() - 1;
  Entries.resize(blocks.numBlocks() + Priorities);
  for (int32_t p = 0; p != Priorities; ++p) {
    int32_t sentinel = blocks.numBlocks() + p;
    Entries[sentinel].prev = Entries[sentinel].next = sentinel;
  }
  Pins.assign(blocks.numBlocks(), 0);
  Events.resize(std::bit_ceil(static_cast<uint32_t>(options.eventCapacity)));
  EventMask = Events.size() - 1;
  blocks.setListener(this);
}

PrefixCache::~PrefixCache() {
  for (int32_t block = 0; TotalPins && block != Blocks.numBlocks(); ++block)
    for (; Pins[block]; --Pins[block], --TotalPins)
      Blocks.release(block);
  clear();
  Blocks.setListener(nullptr);
}

//===----------------------------------------------------------------------===//
// Hashing
//===----------------------------------------------------------------------===//

Hash128 pagoda::hashAnyBlock(const Hash128 &parent, const int32_t *tokens,
                             size_t count, std::string_view extra,
                             uint64_t seed) {
  // Seeding a state costs more than hashing a block, so a buffer does where one
  // is large enough.
  struct {
    Hash128 parent;
    int32_t tokens[256];
  } input;
  XXH128_hash_t all;
  if (count <= std::size(input.tokens) && extra.empty()) {
    input.parent = parent;
    std::copy_n(tokens, count, input.tokens);
    all = XXH3_128bits_withSeed(
        &input, sizeof(Hash128) + count * sizeof(int32_t), seed);
  } else {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset_withSeed(&state, seed);
    XXH3_128bits_update(&state, &parent, sizeof(parent));
    XXH3_128bits_update(&state, tokens, count * sizeof(int32_t));
    XXH3_128bits_update(&state, extra.data(), extra.size());
    all = XXH3_128bits_digest(&state);
  }
  return {all.low64, all.high64};
}

Hash128 PrefixCache::blockHash(const Hash128 &parent,
                               std::span<const int32_t> tokens,
                               std::string_view extra, uint64_t seed) {
  return hashBlock(parent, tokens.data(), tokens.size(), extra, seed);
}

void PrefixCache::checkKeys(std::span<const ExtraKey> keys) {
  for (const ExtraKey &key : keys)
    if (key.position < 0)
      throw bad("key: position: expected 0 or more, got " +
                std::to_string(key.position));
}

std::string PrefixCache::serialise(std::span<const ExtraKey> keys,
                                   int32_t firstToken, int32_t blockSize) {
  std::string text;
  auto number = [&](uint64_t value) {
    text.append(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  for (const ExtraKey &key : keys) {
    int32_t within = key.position - firstToken;
    if (within < 0 || within >= blockSize)
      continue;
    // Tag and length before the bytes: no two lists of keys read the same.
    number(uint64_t(key.tag) << 32 | uint32_t(within));
    number(key.bytes.size());
    text.append(key.bytes);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Nodes and the map
//===----------------------------------------------------------------------===//

bool PrefixCache::contains(const Hash128 &hash) const {
  int32_t node = bucket(hash);
  while (node >= 0 && !(Nodes[node].hash == hash))
    node = Nodes[node].next;
  return node >= 0;
}

/// A node that find() will return, or -1 when there is no room for one.
int32_t PrefixCache::makeNode(const Hash128 &hash, int32_t parent,
                              const int32_t *tokens, const std::string &extra) {
  // Counted first, so that an eviction does not take the parent away.
  if (parent >= 0)
    ++Nodes[parent].uses;
  while (FreeNode < 0 && evict(1))
    ;
  if (FreeNode < 0) {
    if (parent >= 0)
      --Nodes[parent].uses;
    return -1;
  }
  int32_t node = FreeNode;
  FreeNode = Nodes[node].next;
  int32_t &first = bucket(hash);
  Nodes[node] = {hash, parent, 0, Nodes[node].generation, first};
  first = node;
  std::copy_n(tokens, BlockSize, NodeTokens.data() + size_t(node) * BlockSize);
  if (!extra.empty() && Extras.empty())
    Extras.resize(Nodes.size());
  if (!Extras.empty())
    Extras[node] = extra;
  return node;
}

//===----------------------------------------------------------------------===//
// Storing
//===----------------------------------------------------------------------===//

void PrefixCache::store(PrefixCursor &cursor, std::span<const int32_t> tokens,
                        std::span<const ExtraKey> keys,
                        std::span<int32_t *const> tables, int32_t priority) {
  if (tables.size() != Groups.size())
    throw bad("store: tables: expected " + std::to_string(Groups.size()) +
              ", got " + std::to_string(tables.size()));
  if (priority < 0 || priority >= Priorities)
    throw bad("store: priority: expected 0 to " +
              std::to_string(Priorities - 1) + ", got " +
              std::to_string(priority));
  checkKeys(keys);
  if (cursor.blocks && (size_t(cursor.node) >= Nodes.size() ||
                        Nodes[cursor.node].generation != cursor.generation))
    cursor = {};
  int32_t blocks = static_cast<int32_t>(tokens.size() / BlockSize);
  std::string extra;
  for (; cursor.blocks < blocks; ++cursor.blocks) {
    int32_t i = cursor.blocks;
    const int32_t *own = tokens.data() + int64_t(i) * BlockSize;
    if (!keys.empty())
      extra = serialise(keys, i * BlockSize, BlockSize);
    Hash128 hash = hashOf(i ? Nodes[cursor.node].hash : Hash128{}, own, extra);
    int32_t node = find(hash, cursor.node, own, extra);
    if (node < 0)
      node = makeNode(hash, cursor.node, own, extra);
    if (node < 0)
      break;
    try {
      for (int32_t g = 0; g != int32_t(Groups.size()); ++g)
        storeBlock(node, g, tables[g][i], priority);
    } catch (...) {
      dropNodes(node); // it may have no block
      throw;
    }
    cursor.node = node;
    cursor.generation = Nodes[node].generation;
  }
  // The last node may have got no block: its window has moved on.
  if (cursor.node >= 0)
    dropNodes(cursor.node);
}

/// Makes \p entry, of a table, the block of \p node, or the node's block the
/// entry.
void PrefixCache::storeBlock(int32_t node, int32_t group, int32_t &entry,
                             int32_t priority) {
  int32_t block = entry, known = blockOf(node, group);
  if (block < 0 || block == known)
    return;
  (void)Blocks.refs(block); // names a bad id before it is used as an index
  if (Entries[block].node >= 0)
    throw bad("store: block " + std::to_string(block) +
              ": expected a block that is not stored, got one that is stored "
              "for other tokens");
  if (known < 0) {
    addEntry(node, group, block, priority);
    return;
  }
  Blocks.share(known);
  entry = known;
  Blocks.release(block);
  ++Counters.duplicates;
}

void PrefixCache::addEntry(int32_t node, int32_t group, int32_t block,
                           int32_t priority) {
  // The one thing that can fail comes first.
  if (Retain)
    Blocks.share(block);
  Blocks.watch(block);
  Entries[block].node = node;
  Entries[block].group = static_cast<uint16_t>(group);
  Entries[block].priority = static_cast<uint8_t>(priority);
  blockOf(node, group) = block;
  ++Nodes[node].uses;
  if (int32_t parent = Nodes[node].parent; parent >= 0)
    ++childEntries(parent, group);
  ++Stored;
  ++Counters.stored;
  record(CacheEvent::Stored, node, group, block);
}
