//===- PrefixCacheTest.cpp - Blocks found again by their tokens ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hits, verification, keys, eviction order, pins, priorities, table groups,
// events, and the known faults E5, F1, F2, F6, F12 and F14 of other prefix
// caches.
//
//===----------------------------------------------------------------------===//

#include "pagoda/PrefixCache.h"
#include "Engine.h"
#include "TestErrors.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <list>
#include <numeric>
#include <random>

using namespace pagoda;
using namespace pagoda::test;
using Ids = std::vector<int32_t>;

namespace {

Hash128 constantHash(const Hash128 &, std::span<const int32_t>,
                     std::string_view, uint64_t) {
  return {42, 42};
}

/// A cache with sequences over it, and the token lists of the sequences.
struct Cached {
  explicit Cached(int32_t numBlocks, PrefixCacheOptions options = {},
                  int32_t blockSize = 4)
      : blocks(numBlocks), cache(blocks, with(options, blockSize)),
        kv(blocks, kvOptions(options, blockSize)) {}
  ~Cached() { EXPECT_EQ(cache.checkInvariants(), ""); }

  static PrefixCacheOptions with(PrefixCacheOptions options,
                                 int32_t blockSize) {
    options.blockSize = blockSize;
    return options;
  }
  static PagedKVOptions kvOptions(const PrefixCacheOptions &options,
                                  int32_t blockSize) {
    PagedKVOptions result;
    result.blockSize = blockSize;
    result.maxSequences = 64;
    result.maxTokens = 4096;
    result.groups = options.groups;
    return result;
  }

  /// Admits a prompt: hit first, then blocks, then everything stored.
  SeqId run(const Ids &prompt, std::vector<ExtraKey> keys = {},
            int32_t priority = 0) {
    SeqId seq = kv.add();
    cache.lookup(prompt, keys, hit);
    EXPECT_TRUE(kv.attachPrefix(seq, cache, hit));
    hitTokens = hit.tokens;
    if (!kv.append(seq, static_cast<int32_t>(prompt.size()) - hit.tokens)) {
      kv.remove(seq);
      return NoSequence;
    }
    kv.storePrefix(seq, cache, prompt, keys, priority);
    return seq;
  }
  void runAndEnd(const Ids &prompt, std::vector<ExtraKey> keys = {},
                 int32_t priority = 0) {
    kv.remove(run(prompt, keys, priority));
  }
  int32_t lookup(const Ids &prompt, std::vector<ExtraKey> keys = {}) {
    return cache.lookup(prompt, keys, hit);
  }
  Ids table(SeqId seq, int32_t group = 0) const {
    return {kv.table(seq, group).begin(), kv.table(seq, group).end()};
  }

  BlockManager blocks;
  PrefixCache cache;
  PagedKV kv;
  PrefixHit hit;
  int32_t hitTokens = -1;
};

Ids tokens(int32_t first, int32_t count) {
  Ids result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}
Ids operator+(Ids a, const Ids &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

} // namespace

TEST(PrefixCache, SecondPromptSharesTheFirst) {
  Cached c(16);
  SeqId a = c.run(tokens(0, 10));
  EXPECT_EQ(c.hitTokens, 0);
  SeqId b = c.run(tokens(0, 8) + tokens(100, 5));
  EXPECT_EQ(c.hitTokens, 8);
  EXPECT_EQ(c.table(a)[0], c.table(b)[0]);
  EXPECT_EQ(c.table(a)[1], c.table(b)[1]);
  EXPECT_NE(c.table(a)[2], c.table(b)[2]);
  EXPECT_EQ(c.blocks.refs(c.table(a)[0]), 3u); // two sequences and the cache
}

// Known fault F1: the whole prompt is cached and no token is left to run.
TEST(PrefixCache, F1_OneTokenIsLeftToCompute) {
  Cached c(16);
  c.runAndEnd(tokens(0, 8));
  c.runAndEnd(tokens(0, 8));
  EXPECT_EQ(c.hitTokens, 4);
  c.runAndEnd(tokens(0, 9));
  EXPECT_EQ(c.hitTokens, 8);
  EXPECT_EQ(c.lookup(tokens(0, 4)), 0);
  EXPECT_EQ(c.lookup({}), 0);
  EXPECT_EQ(c.lookup({0}), 0);
}

// F1 through kernels: the run after a hit gives what the cold run gave.
TEST(PrefixCache, F1_SameResultsWarmAndCold) {
  EngineOptions o;
  o.numBlocks = 16;
  Engine engine(o);
  PrefixCacheOptions options;
  options.blockSize = 4;
  PrefixCache cache(engine.blocks, options);
  Ids prompt = tokens(0, 8);
  SeqId cold = engine.add();
  ASSERT_TRUE(engine.append(cold, 8));
  engine.kv.storePrefix(cold, cache, prompt);
  PrefixHit hit;
  ASSERT_EQ(cache.lookup(prompt, {}, hit), 4);
  SeqId warm = engine.add();
  ASSERT_TRUE(engine.kv.attachPrefix(warm, cache, hit));
  auto &content = engine.tokens.at(warm);
  const auto &origin = engine.tokens.at(cold);
  content.assign(origin.begin(), origin.begin() + 4);
  ASSERT_TRUE(engine.append(warm, 4));
  EXPECT_EQ(engine.stored(warm, 3), engine.written(cold, 3));
  EXPECT_LT(engine.step({{warm, 4}, {cold, 8}}), 1e-5);
  engine.remove(cold);
  engine.remove(warm);
}

// Known fault F2: equal blocks after different beginnings.
TEST(PrefixCache, F2_ConstantHashGivesNoFalseHit) {
  PrefixCacheOptions options;
  options.hash = constantHash;
  Cached c(2000, options);
  Ids x = tokens(50, 4);
  c.runAndEnd(tokens(0, 4) + x + Ids{1});
  SeqId b = c.run(tokens(10, 4) + x + Ids{1});
  EXPECT_EQ(c.hitTokens, 0);
  SeqId a = c.run(tokens(0, 4) + x + Ids{1});
  EXPECT_EQ(c.hitTokens, 8);
  EXPECT_NE(c.table(a)[1], c.table(b)[1]);
  // 200 random prompts over a small alphabet, against a list of prefixes.
  std::mt19937 random(3);
  std::vector<Ids> seen = {tokens(0, 4) + x + Ids{1},
                           tokens(10, 4) + x + Ids{1}};
  for (int i = 0; i != 200; ++i) {
    Ids prompt(1 + random() % 20);
    for (int32_t &token : prompt)
      token = static_cast<int32_t>(random() % 2);
    size_t best = 0;
    for (const Ids &other : seen) {
      size_t common = 0;
      while (common < std::min(other.size(), prompt.size()) &&
             other[common] == prompt[common])
        ++common;
      best = std::max(best, std::min(common, other.size() / 4 * 4));
    }
    best = std::min(best, prompt.size() - 1) / 4 * 4;
    ASSERT_EQ(c.lookup(prompt), int32_t(best));
    c.runAndEnd(prompt);
    seen.push_back(prompt);
  }
}

// Known fault E5: a hit block is handed out as a new block of the same request.
TEST(PrefixCache, E5_HitIsNotEvictedUnderTheRequest) {
  Cached c(4);
  c.runAndEnd(tokens(0, 8)); // two blocks stay, idle
  ASSERT_EQ(c.cache.numIdle(), 2);
  // Needs the two and three new ones; two are free.
  EXPECT_EQ(c.run(tokens(0, 8) + tokens(100, 12)), NoSequence);
  EXPECT_EQ(c.hitTokens, 8);
  EXPECT_EQ(c.cache.numIdle(), 2);
  EXPECT_EQ(c.blocks.numFree(), 2);
  EXPECT_EQ(c.lookup(tokens(0, 9)), 8);
  EXPECT_EQ(c.cache.counters().evicted, 0);
}

TEST(PrefixCache, StaleHitIsRefused) {
  Cached c(4);
  c.runAndEnd(tokens(0, 8));
  PrefixHit old;
  ASSERT_EQ(c.cache.lookup(tokens(0, 9), {}, old), 8);
  c.runAndEnd(tokens(100, 16)); // evicts both
  SeqId seq = c.kv.add();
  EXPECT_FALSE(c.kv.attachPrefix(seq, c.cache, old));
  EXPECT_FALSE(c.cache.pin(old));
  EXPECT_EQ(c.kv.length(seq), 0);
  // The node is used again, for other tokens.
  c.runAndEnd(tokens(200, 16));
  EXPECT_FALSE(c.kv.attachPrefix(seq, c.cache, old));
}

// Known fault F6: a block that is used again keeps its old hash.
TEST(PrefixCache, F6_EvictedBlockIsForgotten) {
  Cached c(2);
  c.runAndEnd(tokens(0, 4));
  c.runAndEnd(tokens(100, 8));
  EXPECT_EQ(c.lookup(tokens(0, 5)), 0);
  EXPECT_EQ(c.lookup(tokens(100, 9)), 8);
  EXPECT_LE(c.cache.numStored(), 2);
  EXPECT_EQ(c.cache.checkInvariants(), "");
}

// Known fault F12: keys of different kinds that read alike.
TEST(PrefixCache, F12_KeysAreTaggedAndLengthPrefixed) {
  for (bool constant : {false, true}) {
    PrefixCacheOptions options;
    if (constant)
      options.hash = constantHash;
    Cached c(64, options);
    Ids prompt = tokens(0, 9);
    using Keys = std::vector<ExtraKey>;
    std::vector<Keys> all = {
        {},
        {{KeyAdapter, "X"}},
        {{KeySalt, "X"}},
        {{KeyAdapter, "ab"}, {KeySalt, "c"}},
        {{KeyAdapter, "a"}, {KeySalt, "bc"}},
        {{KeySalt, "c"}, {KeyAdapter, "ab"}},
        {{KeyAdapter, "abc"}},
        {{KeyAdapter, ""}},
        {{KeyImage, "X", 1}},
        {{KeyImage, "X", 2}},
        {{KeyImage, "X", 5}},
    };
    for (size_t i = 0; i != all.size(); ++i) {
      // The image at position 5 changes the second block alone.
      EXPECT_EQ(c.lookup(prompt, all[i]),
                all[i].size() == 1 && all[i][0].position == 5 ? 4 : 0)
          << i;
      c.runAndEnd(prompt, all[i]);
      EXPECT_EQ(c.lookup(prompt, all[i]), 8) << i;
    }
    EXPECT_PAGODA_ERROR(c.lookup(prompt, {{KeyImage, "X", -1}}),
                        ErrorCode::InvalidArgument, "position");
  }
}

TEST(PrefixCache, HashCoversParentTokensKeysAndSeed) {
  Ids block = tokens(1, 16);
  Hash128 base = PrefixCache::blockHash({1, 2}, block, "", 7);
  auto differs = [&](const Hash128 &other) { EXPECT_FALSE(base == other); };
  EXPECT_EQ(base, PrefixCache::blockHash({1, 2}, block, "", 7));
  differs(PrefixCache::blockHash({1, 3}, block, "", 7));
  differs(PrefixCache::blockHash({0, 2}, block, "", 7));
  differs(PrefixCache::blockHash({1, 2}, block, "k", 7));
  differs(PrefixCache::blockHash({1, 2}, block, "", 8));
  for (size_t i = 0; i != block.size(); ++i) {
    Ids other = block;
    ++other[i];
    differs(PrefixCache::blockHash({1, 2}, other, "", 7));
  }
  differs(PrefixCache::blockHash({1, 2}, tokens(1, 15), "", 7));
}

TEST(PrefixCache, SeedIsRandomUnlessGiven) {
  auto hashOf = [](std::optional<uint64_t> seed) {
    PrefixCacheOptions options;
    options.seed = seed;
    Cached c(8, options);
    c.runAndEnd(tokens(0, 4));
    std::vector<CacheEvent> events(1);
    EXPECT_EQ(c.cache.drainEvents(events), 1u);
    return events[0].hash;
  };
  EXPECT_EQ(hashOf(5), hashOf(5));
  EXPECT_FALSE(hashOf(5) == hashOf(6));
  EXPECT_FALSE(hashOf({}) == hashOf({}));
}

// Known fault F14: hits that do not refresh an entry.
TEST(PrefixCache, F14_HitRefreshesRecency) {
  Cached c(3);
  for (int32_t p : {0, 100, 200})
    c.runAndEnd(tokens(p, 4));
  SeqId hit = c.run(tokens(0, 4) + Ids{1});
  // The hit and its next token need a block: B goes, not A.
  EXPECT_EQ(c.hitTokens, 4);
  c.kv.remove(hit);
  EXPECT_EQ(c.lookup(tokens(100, 5)), 0);
  EXPECT_EQ(c.lookup(tokens(0, 5)), 4);
  EXPECT_EQ(c.lookup(tokens(200, 5)), 4);
}

TEST(PrefixCache, F14_SameVictimsAsAListOfLeastRecentlyUsed) {
  Cached c(12);
  std::mt19937 random(11);
  std::list<int32_t> order; // the least recently used first
  for (int i = 0; i != 100000; ++i) {
    int32_t name = static_cast<int32_t>(random() % 20) * 1000;
    auto it = std::find(order.begin(), order.end(), name);
    bool known = it != order.end();
    if (known)
      order.erase(it);
    ASSERT_EQ(c.lookup(tokens(name, 5)), known ? 4 : 0);
    if (!known && order.size() == 12)
      order.pop_front();
    order.push_back(name);
    if (known) {
      SeqId seq = c.kv.add();
      ASSERT_TRUE(c.kv.attachPrefix(seq, c.cache, c.hit));
      c.kv.remove(seq);
    } else {
      c.runAndEnd(tokens(name, 4));
    }
    ASSERT_EQ(c.cache.numStored(), int32_t(order.size()));
  }
  EXPECT_GT(c.cache.counters().evicted, 10000);
}

TEST(PrefixCache, ChildrenGoBeforeParents) {
  Cached c(4);
  c.runAndEnd(tokens(0, 12));                // a chain of three blocks
  c.runAndEnd(tokens(0, 8) + tokens(50, 4)); // two of them and another leaf
  ASSERT_EQ(c.cache.numStored(), 4);
  // Hits of the two prompts after each eviction.
  const int32_t expected[][2] = {{8, 12}, {8, 8}, {4, 4}, {0, 0}};
  for (auto [first, second] : expected) {
    ASSERT_NE(c.blocks.allocate(), -1);
    EXPECT_EQ(c.lookup(tokens(0, 13)), first);
    EXPECT_EQ(c.lookup(tokens(0, 8) + tokens(50, 5)), second);
    EXPECT_EQ(c.cache.checkInvariants(), "");
  }
  EXPECT_EQ(c.blocks.allocate(), -1);
}

TEST(PrefixCache, ParentReleasedFirstIsSetAside) {
  Cached c(3);
  SeqId seq = c.run(tokens(0, 12));
  Ids table = c.table(seq);
  for (int32_t block : table)
    c.blocks.share(block);
  c.kv.remove(seq);
  // Another owner lets go of the first block first.
  for (int32_t block : table)
    c.blocks.release(block);
  EXPECT_EQ(c.cache.numIdle(), 3);
  for (int32_t left : {8, 4, 0}) {
    ASSERT_NE(c.blocks.allocate(), -1);
    EXPECT_EQ(c.lookup(tokens(0, 13)), left);
    EXPECT_EQ(c.cache.checkInvariants(), "");
  }
}

TEST(PrefixCache, LookupChangesNothing) {
  Cached c(2);
  c.runAndEnd(tokens(0, 4));
  c.runAndEnd(tokens(100, 4));
  for (int i = 0; i != 3; ++i)
    EXPECT_EQ(c.lookup(tokens(0, 5)), 4);
  ASSERT_NE(c.blocks.allocate(), -1); // the older one goes all the same
  EXPECT_EQ(c.lookup(tokens(0, 5)), 0);
  EXPECT_EQ(c.lookup(tokens(100, 5)), 4);
  EXPECT_EQ(c.cache.counters().acquisitions, 2);
}

TEST(PrefixCache, TouchPinAndPriority) {
  auto three = [](Cached &c) {
    for (int32_t p : {0, 100, 200})
      c.runAndEnd(tokens(p, 4));
  };
  auto evicted = [](Cached &c) {
    EXPECT_NE(c.blocks.allocate(), -1);
    for (int32_t p : {0, 100, 200})
      if (c.lookup(tokens(p, 5)) == 0)
        return p;
    return -1;
  };
  {
    Cached c(3);
    three(c);
    EXPECT_EQ(evicted(c), 0);
  }
  {
    Cached c(3);
    three(c);
    c.lookup(tokens(0, 5));
    c.cache.touch(c.hit);
    EXPECT_EQ(evicted(c), 100);
  }
  {
    Cached c(3);
    three(c);
    PrefixHit hit;
    c.cache.lookup(tokens(0, 5), {}, hit);
    ASSERT_TRUE(c.cache.pin(hit));
    EXPECT_EQ(c.cache.numIdle(), 2);
    EXPECT_EQ(c.cache.numPins(), 1);
    Ids all(3);
    EXPECT_FALSE(c.blocks.allocate(all));
    EXPECT_EQ(evicted(c), 100);
    c.cache.unpin(hit);
    EXPECT_EQ(c.cache.numIdle(), 2);
    EXPECT_PAGODA_ERROR(c.cache.unpin(hit), ErrorCode::InvalidArgument,
                        "expected a hit that is pinned");
  }
  {
    Cached c(3);
    three(c);
    c.lookup(tokens(0, 5));
    c.cache.setPriority(c.hit, 2);
    EXPECT_EQ(evicted(c), 100);
    EXPECT_PAGODA_ERROR(c.cache.setPriority(c.hit, 4),
                        ErrorCode::InvalidArgument, "expected 0 to 3, got 4");
  }
  {
    Cached c(3);
    c.runAndEnd(tokens(0, 4), {}, 1);
    c.runAndEnd(tokens(100, 4));
    c.runAndEnd(tokens(200, 4));
    EXPECT_EQ(evicted(c), 100);
  }
}

TEST(PrefixCache, DuplicatesAreReplacedByWhatIsStored) {
  Cached c(16);
  // Two sequences compute the same prompt at the same time.
  Ids prompt = tokens(0, 10);
  SeqId a = c.kv.add(), b = c.kv.add();
  ASSERT_TRUE(c.kv.append(a, 10) && c.kv.append(b, 10));
  EXPECT_EQ(c.blocks.numFree(), 10);
  c.kv.storePrefix(a, c.cache, prompt);
  c.kv.storePrefix(b, c.cache, prompt);
  EXPECT_EQ(c.table(a)[0], c.table(b)[0]);
  EXPECT_EQ(c.table(a)[1], c.table(b)[1]);
  EXPECT_NE(c.table(a)[2], c.table(b)[2]);
  EXPECT_EQ(c.blocks.numFree(), 12);
  EXPECT_EQ(c.cache.counters().duplicates, 2);
}

TEST(PrefixCache, DecodeStoresBlockByBlock) {
  Cached c(16);
  Ids all = tokens(0, 13);
  SeqId seq = c.run(tokens(0, 5));
  for (size_t n = 6; n <= all.size(); ++n) {
    ASSERT_TRUE(c.kv.append(seq, 1));
    c.kv.storePrefix(seq, c.cache, std::span(all).first(n));
  }
  EXPECT_EQ(c.cache.numStored(), 3);
  // Rejected tokens, then others.
  c.kv.truncate(seq, 6);
  ASSERT_TRUE(c.kv.append(seq, 3));
  EXPECT_EQ(c.kv.pendingCopies().size(), 1u) << "a cached block was written";
  c.kv.copiesDone();
  Ids other = tokens(0, 6) + tokens(90, 3);
  c.kv.storePrefix(seq, c.cache, other);
  EXPECT_EQ(c.lookup(other), 8);
  EXPECT_EQ(c.lookup(all + Ids{0}), 12);
}

TEST(PrefixCache, BlocksForOtherTokensAreRefused) {
  Cached c(16);
  SeqId seq = c.run(tokens(0, 8));
  SeqId other = c.kv.fork(seq);
  PrefixCursor cursor;
  Ids table = c.table(other);
  int32_t *tables[] = {table.data()};
  EXPECT_PAGODA_ERROR(c.cache.store(cursor, tokens(50, 8), {}, tables),
                      ErrorCode::InvalidArgument, "stored for other tokens");
  EXPECT_EQ(c.cache.checkInvariants(), "");
  EXPECT_PAGODA_ERROR(c.kv.storePrefix(seq, c.cache, tokens(0, 9)),
                      ErrorCode::InvalidArgument,
                      "expected at most the sequence's length 8, got 9");
}

TEST(PrefixCache, CacheMustFitTheSequences) {
  BlockManager blocks(8), others(8);
  PrefixCacheOptions options;
  options.blockSize = 4;
  PrefixCache cache(blocks, options);
  EXPECT_PAGODA_ERROR(PrefixCache(blocks, options), ErrorCode::InvalidArgument,
                      "without a listener");
  PagedKVOptions kvOptions;
  kvOptions.blockSize = 8;
  PrefixHit hit;
  PagedKV kv(blocks, kvOptions);
  EXPECT_PAGODA_ERROR((void)kv.attachPrefix(kv.add(), cache, hit),
                      ErrorCode::Mismatch, "cache has 4, sequences have 8");
  kvOptions.blockSize = 4;
  PagedKV kv2(others, kvOptions);
  EXPECT_PAGODA_ERROR((void)kv2.attachPrefix(kv2.add(), cache, hit),
                      ErrorCode::Mismatch, "another block manager");
}

TEST(PrefixCache, ResumeAfterPreemptionStartsWithAHit) {
  Cached c(8);
  Ids prompt = tokens(0, 14);
  SeqId seq = c.run(prompt);
  c.kv.preempt(seq);
  EXPECT_EQ(c.cache.numIdle(), 3);
  ASSERT_EQ(c.lookup(prompt), 12);
  ASSERT_TRUE(c.kv.attachPrefix(seq, c.cache, c.hit));
  EXPECT_FALSE(c.kv.preempted(seq));
  ASSERT_TRUE(c.kv.append(seq, 2));
  EXPECT_EQ(c.kv.length(seq), 14);
  EXPECT_EQ(c.cache.numIdle(), 0);
}

TEST(PrefixCache, WindowedGroupsNeedTheirWindowOnly) {
  PrefixCacheOptions options;
  options.groups = {TableGroup{}, TableGroup{6, 0}};
  Cached c(64, options);
  Ids prompt = tokens(0, 24);
  SeqId seq = c.run(prompt);
  c.kv.releaseWindow(seq); // the windowed group keeps blocks 4 and 5
  c.kv.remove(seq);
  ASSERT_EQ(c.lookup(tokens(0, 25)), 24);
  SeqId next = c.kv.add();
  ASSERT_TRUE(c.kv.attachPrefix(next, c.cache, c.hit));
  Ids windowed = c.table(next, 1);
  // A query at 24 sees keys 19 .. 24.
  EXPECT_EQ(windowed[3], -1);
  EXPECT_GE(windowed[4], 0);
  EXPECT_GE(windowed[5], 0);
  EXPECT_EQ(c.table(next, 0).size(), 6u);
  c.kv.remove(next);
}

TEST(PrefixCache, CommonLengthOfGroups) {
  PrefixCacheOptions options;
  options.groups = {TableGroup{}, TableGroup{6, 0}};
  Cached c(64, options);
  Ids prompt = tokens(0, 24);
  PrefixCursor cursor;
  // The windowed group has blocks 0, 1 and 4 only.
  Ids full(6), few(6, -1);
  ASSERT_TRUE(c.blocks.allocate(full));
  for (int i : {0, 1, 4})
    few[i] = c.blocks.allocate();
  int32_t *tables[] = {full.data(), few.data()};
  c.cache.store(cursor, prompt, {}, tables);
  // 24 needs 4 and 5; 20 needs 3 and 4; 16 needs 2 and 3; 12 needs 1 and 2; 8
  // needs 0 (keys 3 .. 8) and 1.
  EXPECT_EQ(c.lookup(tokens(0, 25)), 8);
  few[2] = c.blocks.allocate();
  PrefixCursor again;
  c.cache.store(again, prompt, {}, tables);
  EXPECT_EQ(c.lookup(tokens(0, 25)), 12);
  few[3] = c.blocks.allocate();
  again = {};
  c.cache.store(again, prompt, {}, tables);
  EXPECT_EQ(c.lookup(tokens(0, 25)), 20);
}

TEST(PrefixCache, SinkBlocksBelongToTheHit) {
  PrefixCacheOptions options;
  options.groups = {TableGroup{6, 4}};
  Cached c(64, options);
  SeqId seq = c.run(tokens(0, 24));
  c.kv.releaseWindow(seq);
  EXPECT_EQ(c.lookup(tokens(0, 25)), 24);
  SeqId next = c.kv.add();
  ASSERT_TRUE(c.kv.attachPrefix(next, c.cache, c.hit));
  EXPECT_EQ(c.table(next)[0], c.table(seq)[0]);
  EXPECT_EQ(c.table(next)[1], -1);
  c.kv.remove(next);
  c.kv.remove(seq);
}

TEST(PrefixCache, EventsAndCounters) {
  PrefixCacheOptions options;
  options.eventCapacity = 4;
  Cached c(3, options);
  c.runAndEnd(tokens(0, 8));
  std::vector<CacheEvent> events(8);
  ASSERT_EQ(c.cache.drainEvents(events), 2u);
  EXPECT_EQ(events[0].kind, CacheEvent::Stored);
  EXPECT_EQ(events[0].parent, Hash128{});
  EXPECT_EQ(events[1].parent, events[0].hash);
  Hash128 leaf = events[1].hash;
  Ids two(2);
  ASSERT_TRUE(c.blocks.allocate(two));
  ASSERT_EQ(c.cache.drainEvents(events), 1u);
  EXPECT_EQ(events[0].kind, CacheEvent::Removed);
  EXPECT_EQ(events[0].hash, leaf);
  c.blocks.release(two);
  for (int32_t p : {100, 200, 300})
    c.runAndEnd(tokens(p, 12));
  EXPECT_EQ(c.cache.drainEvents(events), 4u);
  EXPECT_GT(c.cache.counters().lostEvents, 0);
  EXPECT_EQ(c.cache.counters().promptTokens, 8 + 3 * 12);
  EXPECT_EQ(c.cache.counters().acquiredTokens, 0);
  EXPECT_EQ(c.cache.counters().stored - c.cache.counters().evicted,
            c.cache.numStored());
}

TEST(PrefixCache, ClearAndDestructorGiveEverythingBack) {
  BlockManager blocks(16);
  {
    PrefixCacheOptions options;
    options.blockSize = 4;
    PrefixCache cache(blocks, options);
    PagedKVOptions kvOptions;
    kvOptions.blockSize = 4;
    PagedKV kv(blocks, kvOptions);
    SeqId seq = kv.add();
    ASSERT_TRUE(kv.append(seq, 8));
    kv.storePrefix(seq, cache, tokens(0, 8));
    cache.clear();
    EXPECT_EQ(cache.numStored(), 0);
    EXPECT_EQ(cache.checkInvariants(), "");
    EXPECT_EQ(blocks.refs(kv.table(seq)[0]), 1u);
    // The sequence goes on as if nothing had been stored.
    ASSERT_TRUE(kv.append(seq, 4));
    kv.storePrefix(seq, cache, tokens(0, 12));
    EXPECT_EQ(cache.numStored(), 3);
  }
  EXPECT_EQ(blocks.numFree(), 16);
}
