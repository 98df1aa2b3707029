//===- PrefixCacheTest.cpp - Blocks found again by their tokens -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hits, verification, keys and eviction order, and the known faults E5, F1, F2,
// F6, F12 and F14 of other prefix caches.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "PrefixTesting.h"
#include "TestErrors.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <list>
#include <random>

using namespace pagoda;
using namespace pagoda::test;

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
TEST(PrefixCache, F2_EveryTokenIsCompared) {
  for (int32_t size : {1, 4, 15, 16, 17}) {
    PrefixCacheOptions options;
    options.hash = constantHash;
    Cached c(8, options, size);
    c.runAndEnd(tokens(0, size));
    EXPECT_EQ(c.lookup(tokens(0, size + 1)), size);
    for (int32_t i = 0; i != size; ++i) {
      Ids other = tokens(0, size + 1);
      other[i] += 1 << (i % 31);
      EXPECT_EQ(c.lookup(other), 0) << size << " tokens, other " << i;
    }
  }
}

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
  // Each of these sizes takes another way through the hash, or ends one.
  for (int32_t size : {1, 4, 15, 16, 17, 256, 257})
    for (std::string_view keys : {"", "keys"}) {
      Ids block = tokens(1, size);
      auto hash = [&](const Ids &of) {
        return PrefixCache::blockHash({1, 2}, of, keys, 7);
      };
      Hash128 base = hash(block);
      auto differs = [&](const Hash128 &other) {
        EXPECT_FALSE(base == other) << size << " tokens, keys '" << keys << "'";
      };
      EXPECT_EQ(base, hash(block));
      differs(PrefixCache::blockHash({1, 3}, block, keys, 7));
      differs(PrefixCache::blockHash({0, 2}, block, keys, 7));
      differs(PrefixCache::blockHash({2, 1}, block, keys, 7));
      differs(PrefixCache::blockHash({1, 2}, block, "k", 7));
      differs(PrefixCache::blockHash({1, 2}, block, keys, 8));
      for (size_t i = 0; i != block.size(); ++i) {
        Ids other = block;
        ++other[i];
        differs(hash(other));
      }
      differs(hash(tokens(1, size - 1)));
    }
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
