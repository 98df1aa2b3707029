//===- PrefixGroupsTest.cpp - A prefix cache in an engine -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Storing as sequences grow, preemption, table groups with windows, pins,
// priorities, events and counters.
//
//===----------------------------------------------------------------------===//

#include "PrefixTesting.h"
#include "TestErrors.h"

#include <gtest/gtest.h>

using namespace pagoda;
using namespace pagoda::test;

// A parent of low priority is set aside while a child of higher priority keeps
// it; once that child has gone, it is the next, before others like the child.
TEST(PrefixCache, AParentComesBackToItsOwnPriority) {
  Cached c(4);
  c.runAndEnd(tokens(0, 8)); // parent and child
  c.runAndEnd(tokens(100, 8));
  for (int32_t first : {0, 100}) {
    c.lookup(tokens(first, 9));
    c.cache.setPriority(c.hit, 2);
  }
  c.lookup(tokens(0, 5));
  c.cache.setPriority(c.hit, 0);
  Ids two(2);
  ASSERT_TRUE(c.blocks.allocate(two));
  EXPECT_EQ(c.lookup(tokens(0, 9)), 0);
  EXPECT_EQ(c.lookup(tokens(100, 9)), 8);
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

// What other engines met: speculated tokens that were stored and then rejected.
TEST(PrefixCache, RejectedTokensThatWereStored) {
  Cached c(32);
  Ids text = tokens(0, 10), draft = text + tokens(100, 6),
      real = text + tokens(200, 6);
  SeqId seq = c.run(text);
  ASSERT_TRUE(c.kv.append(seq, 6));
  c.kv.storePrefix(seq, c.cache, draft);
  c.kv.truncate(seq, 10);
  ASSERT_TRUE(c.kv.append(seq, 6));
  // Block 2 holds two accepted tokens, and the cache owns it, too.
  EXPECT_EQ(c.kv.pendingCopies().size(), 1u);
  c.kv.copiesDone();
  c.kv.storePrefix(seq, c.cache, real);
  EXPECT_EQ(c.lookup(real + Ids{0}), 16);
  EXPECT_EQ(c.lookup(draft + Ids{0}), 16);
  SeqId other = c.kv.add();
  ASSERT_TRUE(c.kv.attachPrefix(other, c.cache, c.hit));
  EXPECT_EQ(c.table(other)[1], c.table(seq)[1]);
  EXPECT_NE(c.table(other)[2], c.table(seq)[2]);
  EXPECT_NE(c.table(other)[3], c.table(seq)[3]);
}

// And a hit whose rest found no room: torn down, its blocks stayed owned.
TEST(PrefixCache, NoRoomAfterAHit) {
  Cached c(8);
  c.runAndEnd(tokens(0, 16));
  for (int i = 0; i != 3; ++i) {
    EXPECT_EQ(c.run(tokens(0, 16) + tokens(500, 40)), NoSequence);
    EXPECT_EQ(c.hitTokens, 16);
    EXPECT_EQ(c.blocks.numAvailable(), 8);
  }
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

// What other engines met: a prompt again, or one that leaves an earlier one
// inside its last block, found nothing for its windowed layers.
TEST(PrefixCache, WindowedBlocksAreEvictedFromTheFront) {
  PrefixCacheOptions options;
  options.groups = {TableGroup{}, TableGroup{6, 0}};
  Cached c(14, options);
  SeqId seq = c.run(tokens(0, 24));
  c.kv.releaseWindow(seq); // blocks 0 to 3
  c.kv.remove(seq);
  Ids others(2 + 2); // two that are free, and two that the cache gives up
  ASSERT_TRUE(c.blocks.allocate(others));
  for (int32_t common : {25, 24, 23, 20, 19, 16, 15})
    EXPECT_EQ(c.lookup(tokens(0, common) + tokens(1000, 1)),
              common < 16 ? 0 : common / 4 * 4)
        << common;
  EXPECT_EQ(c.lookup(tokens(0, 24)), 20);
  c.blocks.release(others);
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

TEST(PrefixCache, TooManyOwnersChangeNothing) {
  BlockManager blocks(16, 3);
  PrefixCacheOptions options;
  options.blockSize = 4;
  options.groups = {TableGroup{}, TableGroup{}};
  PrefixCache cache(blocks, options);
  PagedKVOptions kvOptions;
  kvOptions.blockSize = 4;
  kvOptions.groups = options.groups;
  PagedKV kv(blocks, kvOptions);
  SeqId first = kv.add(), second = kv.add(), third = kv.add();
  ASSERT_TRUE(kv.append(first, 9));
  kv.storePrefix(first, cache, tokens(0, 9));
  PrefixHit hit;
  ASSERT_EQ(cache.lookup(tokens(0, 9), {}, hit), 8);
  // One more owner for the last block of the second group alone.
  int32_t last = kv.table(first, 1)[1];
  blocks.share(last);
  ASSERT_EQ(blocks.refs(last), 3u);
  EXPECT_PAGODA_ERROR((void)kv.attachPrefix(second, cache, hit),
                      ErrorCode::RefOverflow, "cannot share");
  EXPECT_PAGODA_ERROR((void)cache.pin(hit), ErrorCode::RefOverflow, "cannot");
  EXPECT_EQ(kv.length(second), 0);
  EXPECT_EQ(kv.tables(0)[kv.row(second) * kv.tableStride()], -1);
  EXPECT_EQ(blocks.refs(kv.table(first, 0)[0]), 2u);
  blocks.release(last);
  ASSERT_TRUE(kv.attachPrefix(second, cache, hit));
  EXPECT_PAGODA_ERROR((void)kv.attachPrefix(third, cache, hit),
                      ErrorCode::RefOverflow, "cannot share");
  EXPECT_EQ(cache.checkInvariants(), "");
  EXPECT_EQ(cache.numPins(), 0);
}

TEST(PrefixCache, PinsOutliveClearAndNotTheCache) {
  BlockManager blocks(8);
  {
    PrefixCacheOptions options;
    options.blockSize = 4;
    PrefixCache cache(blocks, options);
    PagedKVOptions kvOptions;
    kvOptions.blockSize = 4;
    PagedKV kv(blocks, kvOptions);
    SeqId seq = kv.add();
    ASSERT_TRUE(kv.append(seq, 12));
    kv.storePrefix(seq, cache, tokens(0, 12));
    kv.remove(seq);
    PrefixHit hit;
    ASSERT_EQ(cache.lookup(tokens(0, 9), {}, hit), 8);
    ASSERT_TRUE(cache.pin(hit));
    ASSERT_TRUE(cache.pin(hit));
    cache.clear();
    EXPECT_EQ(cache.numStored(), 2);
    EXPECT_EQ(blocks.numAvailable(), 6);
    EXPECT_EQ(cache.checkInvariants(), "");
    EXPECT_EQ(cache.lookup(tokens(0, 12), {}, hit), 8);
    cache.unpin(hit);
    EXPECT_EQ(cache.numPins(), 2);
  }
  EXPECT_EQ(blocks.numFree(), 8);
}

TEST(PrefixCache, HitsBelongToTheirCache) {
  Cached a(8), b(8);
  a.runAndEnd(tokens(0, 8));
  b.runAndEnd(tokens(100, 8));
  ASSERT_EQ(a.lookup(tokens(0, 8)), 4);
  SeqId seq = b.kv.add();
  const char *text = "expected one that this cache gave";
  EXPECT_PAGODA_ERROR((void)b.kv.attachPrefix(seq, b.cache, a.hit),
                      ErrorCode::InvalidArgument, text);
  EXPECT_PAGODA_ERROR((void)b.cache.pin(a.hit), ErrorCode::InvalidArgument,
                      text);
  EXPECT_PAGODA_ERROR(b.cache.unpin(a.hit), ErrorCode::InvalidArgument, text);
  EXPECT_PAGODA_ERROR(b.cache.touch(a.hit), ErrorCode::InvalidArgument, text);
  EXPECT_PAGODA_ERROR(b.cache.setPriority(a.hit, 1), ErrorCode::InvalidArgument,
                      text);
  EXPECT_EQ(b.kv.length(seq), 0);
  // A hit of nothing fits everywhere.
  EXPECT_TRUE(b.kv.attachPrefix(seq, b.cache, PrefixHit{}));
}

TEST(PrefixCache, RefusedStoresLeaveNoTrace) {
  BlockManager blocks(8, 2);
  PrefixCacheOptions options;
  options.blockSize = 4;
  PrefixCache cache(blocks, options);
  PagedKVOptions kvOptions;
  kvOptions.blockSize = 4;
  PagedKV kv(blocks, kvOptions);
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 8));
  int32_t last = kv.table(seq)[1];
  blocks.share(last); // the cache would be a third owner
  EXPECT_PAGODA_ERROR(kv.storePrefix(seq, cache, tokens(0, 8)),
                      ErrorCode::RefOverflow, "cannot share");
  EXPECT_EQ(cache.numStored(), 1);
  EXPECT_EQ(cache.checkInvariants(), "");
  blocks.release(last);
  kv.storePrefix(seq, cache, tokens(0, 8));
  EXPECT_EQ(cache.numStored(), 2);
  // A salt at a position that does not exist must not be left out silently.
  SeqId other = kv.add();
  ASSERT_TRUE(kv.append(other, 4));
  std::vector<ExtraKey> keys = {{KeySalt, "tenant", -1}};
  EXPECT_PAGODA_ERROR(kv.storePrefix(other, cache, tokens(50, 4), keys),
                      ErrorCode::InvalidArgument, "expected 0 or more, got -1");
  EXPECT_EQ(cache.numStored(), 2);
}

TEST(PrefixCache, OptionsAreChecked) {
  BlockManager blocks(8);
  auto make = [&](auto change) {
    PrefixCacheOptions options;
    change(options);
    PrefixCache cache(blocks, options);
  };
  EXPECT_PAGODA_ERROR(make([](auto &o) { o.blockSize = 0; }),
                      ErrorCode::InvalidArgument, "block_size");
  EXPECT_PAGODA_ERROR(make([](auto &o) { o.groups.clear(); }),
                      ErrorCode::InvalidArgument, "groups");
  EXPECT_PAGODA_ERROR(make([](auto &o) { o.groups[0].window = -1; }),
                      ErrorCode::InvalidArgument, "window: expected 0 or more");
  EXPECT_PAGODA_ERROR(make([](auto &o) { o.groups[0].sinkTokens = -2; }),
                      ErrorCode::InvalidArgument, "sink_tokens");
  EXPECT_PAGODA_ERROR(make([](auto &o) { o.eventCapacity = INT32_MAX; }),
                      ErrorCode::InvalidArgument, "event_capacity");
  // The largest values count blocks without overflow.
  TableGroup all{INT32_MAX, INT32_MAX};
  EXPECT_EQ(all.sinkBlocks(16), 1 << 27);
  EXPECT_EQ(all.firstVisible(INT32_MAX, 1), INT32_MAX);
}
