//===- PrefixCache.h - Blocks found again by their tokens -------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Remembers which full blocks hold the K and V of which tokens after which
// tokens, so that a prompt that begins like an earlier one starts with its
// blocks. A *node* is one block's worth of tokens after its parent node; it has
// one block in each table group that still keeps one. Nodes are found by a
// chained 128-bit hash and then compared, tokens and parent, so a collision is
// never a wrong answer.
//
// With retention the cache is one of a block's owners; a block that it alone
// owns is idle and is evicted when the BlockManager runs out, the least
// recently used first and never before the blocks that continue it. Without
// retention the cache owns nothing and forgets a block when its last owner
// goes.
//
// Knows no memory and no sequences. Threads: one thread at a time may change an
// object or its BlockManager; const members may run beside each other.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_PREFIXCACHE_H
#define PAGODA_PREFIXCACHE_H

#include "pagoda/BlockManager.h"
#include "pagoda/LineVector.h"
#include "pagoda/TableGroup.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128 &) const = default;
};

/// What an extra key is. Other values from 256 on are the caller's.
enum KeyTag : uint32_t { KeyAdapter = 1, KeySalt = 2, KeyImage = 3 };

/// Something besides tokens that K and V depend on from a position on: an
/// adapter or a tenant's salt (position 0), the content of an image (the
/// position of its first token). Keys of one block count in the order given.
struct ExtraKey {
  uint32_t tag = 0;
  std::string_view bytes;
  int32_t position = 0;
};

struct CacheEvent {
  enum Kind : int32_t { Stored, Removed };
  Kind kind;
  int32_t group;
  int32_t block;
  Hash128 hash;   ///< of the node
  Hash128 parent; ///< of its parent; zero for a first block
};

struct CacheCounters {
  int64_t acquisitions = 0;   ///< hits given out, those of length 0 included
  int64_t promptTokens = 0;   ///< tokens of the prompts they were looked up for
  int64_t acquiredTokens = 0; ///< tokens that did not need computing
  int64_t stored = 0;         ///< blocks taken in
  int64_t duplicates = 0;     ///< blocks replaced by one that was there already
  int64_t evicted = 0;        ///< blocks given up to the BlockManager
  int64_t lostEvents = 0;     ///< events overwritten before they were drained
};

struct PrefixCacheOptions {
  int32_t blockSize = 16;
  std::vector<TableGroup> groups = {TableGroup{}};
  /// Keep blocks that nobody else owns.
  bool retain = true;
  /// Seed of the hash; none: a random one for this object.
  std::optional<uint64_t> seed;
  /// Replaces the hash, for tests: see PrefixCache::blockHash.
  Hash128 (*hash)(const Hash128 &parent, std::span<const int32_t> tokens,
                  std::string_view extra, uint64_t seed) = nullptr;
  /// Events kept until they are drained, rounded up to a power of two; the
  /// oldest are lost first.
  int32_t eventCapacity = 1024;
};

class PrefixCache;

/// The answer to a lookup. Keep one and use it again: its memory is reused.
struct PrefixHit {
  int32_t tokens = 0;       ///< length of the hit, a multiple of block_size
  int32_t promptTokens = 0; ///< length of the prompt
  const PrefixCache *cache = nullptr; ///< that gave it
  struct Ref {
    int32_t node;
    uint32_t generation;
  };
  std::vector<Ref> nodes;
};

/// How far the blocks of a sequence are stored.
struct PrefixCursor {
  int32_t node = -1;
  uint32_t generation = 0;
  int32_t blocks = 0;
};

class PrefixCache final : private BlockListener {
public:
  static constexpr int32_t Priorities = 4;

  /// Becomes the listener of \p blocks, which must outlive it. Error:
  /// InvalidArgument.
  PrefixCache(BlockManager &blocks, const PrefixCacheOptions &options);
  /// Gives its blocks back, pinned ones too.
  ~PrefixCache() override;

  /// Finds the longest beginning of \p prompt whose blocks every table group
  /// has, as far as the group's window needs them. At least one token of the
  /// prompt is left out. Changes nothing; returns hit.tokens. Error:
  /// InvalidArgument (a key's position).
  int32_t lookup(std::span<const int32_t> prompt,
                 std::span<const ExtraKey> keys, PrefixHit &hit) const;

  /// Becomes an owner of the blocks of \p hit on the caller's behalf and writes
  /// them to tables[group][0 .. tokens / block_size), -1 where a window needs
  /// none. Acquire before allocating: a hit alone protects nothing. False, and
  /// nothing happens, when some of it has been evicted since the lookup.
  /// Errors: RefOverflow; InvalidArgument (tables, or the hit of another
  /// cache, here and below).
  [[nodiscard]] bool acquire(const PrefixHit &hit,
                             std::span<int32_t *const> tables);

  /// Stores the full blocks of a sequence whose first \p tokens.size() tokens
  /// have been written, from \p cursor on. A block whose tokens are stored
  /// already is replaced in tables[group] by the one stored, and the caller's
  /// reference moves with it: call it between steps. Errors: InvalidArgument
  /// (a block that is stored for other tokens, a priority or a key's position
  /// out of range), RefOverflow.
  void store(PrefixCursor &cursor, std::span<const int32_t> tokens,
             std::span<const ExtraKey> keys, std::span<int32_t *const> tables,
             int32_t priority = 0);

  /// Makes the blocks of \p hit the most recently used ones of their priority
  /// without owning them.
  void touch(const PrefixHit &hit);
  /// Whether a node with this hash (of an event, say) is known; by the hash
  /// alone.
  bool contains(const Hash128 &hash) const;
  /// Blocks of a higher priority (0 .. Priorities - 1) are evicted later.
  void setPriority(const PrefixHit &hit, int32_t priority);
  /// A pin is an owner that is no sequence. False when the hit is stale. A hit
  /// that was pinned can be unpinned at any time. Error: InvalidArgument
  /// (unpinning what is not pinned).
  [[nodiscard]] bool pin(const PrefixHit &hit);
  void unpin(const PrefixHit &hit);

  /// Forgets every block that is not pinned; idle ones become free.
  void clear();

  /// Idle blocks: owned by the cache alone.
  int32_t numIdle() const { return Idle; }
  /// Blocks that the cache knows.
  int32_t numStored() const { return Stored; }
  int64_t numPins() const { return TotalPins; }
  int32_t blockSize() const { return BlockSize; }
  bool retains() const { return Retain; }
  const BlockListener *asListener() const { return this; }
  std::span<const TableGroup> groups() const { return Groups; }
  const CacheCounters &counters() const { return Counters; }

  /// Moves up to \p out.size() events to \p out, the oldest first; returns how
  /// many.
  size_t drainEvents(std::span<CacheEvent> out);

  /// The hash of one block: of its parent's hash (zero for the first block),
  /// its tokens and its serialised extra keys. XXH3, 128 bits.
  static Hash128 blockHash(const Hash128 &parent,
                           std::span<const int32_t> tokens,
                           std::string_view extra, uint64_t seed);
  /// The keys of the block that starts at \p firstToken, as (tag, position
  /// within the block, length, bytes) each.
  static std::string serialise(std::span<const ExtraKey> keys,
                               int32_t firstToken, int32_t blockSize);

  /// Compares every structure with every other one; a description of the first
  /// contradiction, or nothing. Takes time in the size of the pool.
  std::string checkInvariants() const;

private:
  struct Node {
    Hash128 hash;
    int32_t parent;
    int32_t uses; ///< children, and groups in which it has a block
    uint32_t generation;
    int32_t next; ///< in its bucket of the map, or of the free ones
  };
  /// A node in one table group.
  struct NodeGroup {
    int32_t block = -1;       ///< -1: none
    int32_t childEntries = 0; ///< children that have a block in the group
  };
  enum State : uint8_t { Out, Listed, SetAside };
  /// What the cache knows of one block. Blocks and, after them, one sentinel a
  /// priority are linked into rings, the least recently used first.
  struct Entry {
    int32_t node = -1;
    int32_t prev = -1;
    int32_t next = -1;
    uint16_t group = 0;
    uint8_t priority = 0;
    State state = Out;
  };

  void blocksShared(std::span<const int32_t> blocks) override;
  void blocksReleased(std::span<const int32_t> blocks) override;
  void blockWritten(int32_t block) override;
  int32_t reclaimable() const override { return Idle; }
  void reclaim(int32_t count) override;

  static void checkKeys(std::span<const ExtraKey> keys);
  void checkHit(const PrefixHit &hit) const;
  Hash128 hashOf(const Hash128 &parent, const int32_t *tokens,
                 std::string_view extra) const;
  int32_t &bucket(const Hash128 &hash) { return Buckets[hash.low & Mask]; }
  int32_t bucket(const Hash128 &hash) const { return Buckets[hash.low & Mask]; }
  bool isNode(int32_t node, int32_t parent, const int32_t *tokens,
              std::string_view extra) const;
  int32_t find(const Hash128 &hash, int32_t parent, const int32_t *tokens,
               std::string_view extra) const;
  void walk(std::span<const int32_t> prompt, int32_t blocks,
            std::span<const ExtraKey> keys, PrefixHit &hit) const;
  int32_t commonBlocks(const PrefixHit &hit, int32_t blocks) const;
  template <typename Fn> bool forBlocks(const PrefixHit &hit, Fn &&fn) const;

  int32_t makeNode(const Hash128 &hash, int32_t parent, const int32_t *tokens,
                   const std::string &extra);
  void dropNodes(int32_t node);
  void unmap(int32_t node);
  void storeBlock(int32_t node, int32_t group, int32_t &entry,
                  int32_t priority);
  void addEntry(int32_t node, int32_t group, int32_t block, int32_t priority);
  void removeEntry(int32_t block);
  int32_t sentinelOf(int32_t block) const;
  void link(int32_t block, int32_t prev, int32_t next);
  void unlink(int32_t block);
  void renewRun(int32_t oldest, int32_t newest);
  void list(int32_t block, bool oldest);
  void unlist(int32_t block);
  size_t unlistRun(std::span<const int32_t> blocks);
  int32_t evict(int32_t count);
  void record(CacheEvent::Kind kind, int32_t node, int32_t group,
              int32_t block);

  int32_t &blockOf(int32_t node, int32_t group) {
    return NodeGroups[size_t(node) * NumGroups + group].block;
  }
  int32_t blockOf(int32_t node, int32_t group) const {
    return NodeGroups[size_t(node) * NumGroups + group].block;
  }
  int32_t &childEntries(int32_t node, int32_t group) {
    return NodeGroups[size_t(node) * NumGroups + group].childEntries;
  }

  BlockManager &Blocks;
  int32_t BlockSize;
  std::vector<TableGroup> Groups;
  uint32_t NumGroups;
  bool Retain;
  uint64_t Seed;
  decltype(PrefixCacheOptions::hash) Hash;

  LineVector<Node> Nodes;
  LineVector<int32_t> NodeTokens;   ///< [nodes, block_size]
  LineVector<NodeGroup> NodeGroups; ///< [nodes, groups]
  std::vector<std::string> Extras;  ///< [nodes], empty until a key is used
  int32_t FreeNode = -1;            ///< the first one of a list along `next`
  LineVector<int32_t> Buckets;      ///< first node of each, -1: none
  size_t Mask = 0;
  LineVector<Entry> Entries;
  std::vector<uint32_t> Pins;
  std::vector<CacheEvent> Events; ///< a ring of EventMask + 1
  uint64_t EventMask = 0;
  uint64_t EventsWritten = 0;
  uint64_t EventsRead = 0;
  int32_t Idle = 0;
  int32_t Stored = 0;
  int64_t TotalPins = 0;
  CacheCounters Counters;
};

} // namespace pagoda

#endif // PAGODA_PREFIXCACHE_H
