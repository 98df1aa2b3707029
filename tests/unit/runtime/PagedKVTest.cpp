//===- PagedKVTest.cpp - Sequences and their block tables ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables, forks, truncation, copy-on-write, windows and preemption, and the
// known faults E4, E8 and E9 of other block managers.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "TestErrors.h"

#include <gtest/gtest.h>

using namespace pagoda;
using namespace pagoda::test;
using Ids = std::vector<int32_t>;

static PagedKVOptions options(int32_t blockSize, int32_t maxTokens = 64,
                              std::vector<TableGroup> groups = {TableGroup{}}) {
  PagedKVOptions result;
  result.blockSize = blockSize;
  result.maxSequences = 4;
  result.maxTokens = maxTokens;
  result.groups = std::move(groups);
  return result;
}

static Ids ids(std::span<const int32_t> table) {
  return {table.begin(), table.end()};
}

TEST(PagedKV, AppendTakesBlocksAsTheyFill) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4));
  SeqId seq = kv.add();
  EXPECT_EQ(kv.length(seq), 0);
  ASSERT_TRUE(kv.append(seq, 4));
  EXPECT_EQ(ids(kv.table(seq)), (Ids{0}));
  ASSERT_TRUE(kv.append(seq, 1));
  EXPECT_EQ(ids(kv.table(seq)), (Ids{0, 1}));
  ASSERT_TRUE(kv.append(seq, 3));
  EXPECT_EQ(blocks.numFree(), 6);
  // A kernel reads the same ids from the flat array.
  const int32_t *row = kv.tables() + kv.row(seq) * kv.tableStride();
  EXPECT_EQ((Ids{row[0], row[1]}), (Ids{0, 1}));
}

TEST(PagedKV, RefusedAppendChangesNothing) {
  BlockManager blocks(3);
  PagedKV kv(blocks, options(4, 64, {TableGroup{}, TableGroup{}}));
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 3));  // two groups: two blocks
  EXPECT_FALSE(kv.append(seq, 2)); // needs two more, one is left
  EXPECT_EQ(kv.length(seq), 3);
  EXPECT_EQ(blocks.numFree(), 1);
  EXPECT_TRUE(kv.append(seq, 1));
}

TEST(PagedKV, SlotMapping) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4));
  SeqId a = kv.add(), b = kv.add();
  ASSERT_TRUE(kv.append(a, 4) && kv.append(b, 4) && kv.append(a, 3));
  std::vector<int64_t> slots(4);
  kv.slotMapping(a, 3, slots);
  EXPECT_EQ(slots, (std::vector<int64_t>{3, 8, 9, 10}));
  EXPECT_PAGODA_ERROR(kv.slotMapping(a, 4, slots), ErrorCode::InvalidArgument,
                      "expected positions within 0 to 7, got 4 to 8");
}

TEST(PagedKV, CallersMistakesAreNamed) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4, 10));
  SeqId seq = kv.add();
  EXPECT_PAGODA_ERROR((void)kv.append(seq, 11), ErrorCode::TooLong,
                      "expected at most 10 tokens in a sequence, got 11");
  EXPECT_PAGODA_ERROR((void)kv.append(seq, -1), ErrorCode::InvalidArgument,
                      "append: tokens");
  EXPECT_PAGODA_ERROR((void)kv.append(seq + 1, 1), ErrorCode::UnknownSequence,
                      "sequence");
  EXPECT_PAGODA_ERROR(kv.truncate(seq, 1), ErrorCode::InvalidArgument,
                      "length 0, got 1");
  EXPECT_PAGODA_ERROR((void)kv.fork(seq, 1), ErrorCode::InvalidArgument,
                      "parent's length 0, got 1");
  EXPECT_PAGODA_ERROR((void)kv.resume(seq), ErrorCode::InvalidArgument,
                      "got a running one");
  EXPECT_PAGODA_ERROR(PagedKV(blocks, options(0)), ErrorCode::InvalidArgument,
                      "block_size: expected 1 or more, got 0");
  EXPECT_TRUE(kv.remove(seq));
  SeqId next = kv.add();
  EXPECT_NE(next, seq); // the slot is used again, the name is not
  EXPECT_PAGODA_ERROR((void)kv.length(seq), ErrorCode::UnknownSequence, "live");
}

TEST(PagedKV, NoSlotIsAnAnswer) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4));
  SeqId first = kv.add();
  for (int i = 1; i != 4; ++i)
    EXPECT_NE(kv.add(), NoSequence);
  EXPECT_EQ(kv.add(), NoSequence);
  EXPECT_EQ(kv.fork(first), NoSequence);
}

TEST(PagedKV, TruncateReturnsBlocks) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4));
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 11));
  kv.truncate(seq, 8);
  EXPECT_EQ(ids(kv.table(seq)), (Ids{0, 1}));
  kv.truncate(seq, 5);
  EXPECT_EQ(blocks.numFree(), 6);
  kv.truncate(seq, 0);
  EXPECT_EQ(blocks.numFree(), 8);
  EXPECT_EQ(kv.tables()[0], -1);
}

// Truncation into a shared full block, then a write: the other owner keeps its
// tokens.
TEST(PagedKV, TruncatedSharedBlockIsCopiedOnWrite) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4));
  SeqId parent = kv.add();
  ASSERT_TRUE(kv.append(parent, 8));
  SeqId child = kv.fork(parent);
  kv.truncate(child, 6);
  ASSERT_TRUE(kv.append(child, 1));
  ASSERT_EQ(kv.pendingCopies().size(), 1u);
  EXPECT_EQ(kv.pendingCopies()[0].src, 1);
  EXPECT_EQ(kv.pendingCopies()[0].dst, 2);
  EXPECT_EQ(ids(kv.table(parent)), (Ids{0, 1}));
  EXPECT_EQ(ids(kv.table(child)), (Ids{0, 2}));
}

TEST(PagedKV, CopySourceStaysOwnedUntilTheCopyIsMade) {
  BlockManager blocks(3);
  PagedKV kv(blocks, options(4));
  SeqId parent = kv.add();
  ASSERT_TRUE(kv.append(parent, 2));
  SeqId child = kv.fork(parent);
  ASSERT_TRUE(kv.append(child, 1)); // copies 0 to 1
  kv.remove(parent);                // block 0 has no table left
  Ids rest(2);
  EXPECT_FALSE(blocks.allocate(rest)) << "the copy's source was handed out";
  kv.copiesDone();
  EXPECT_TRUE(blocks.allocate(rest));
}

TEST(PagedKV, CopyIntoARemovedSequenceIsNotMade) {
  BlockManager blocks(4);
  PagedKV kv(blocks, options(4));
  SeqId parent = kv.add();
  ASSERT_TRUE(kv.append(parent, 2));
  SeqId one = kv.fork(parent), two = kv.fork(parent);
  ASSERT_TRUE(kv.append(one, 1) && kv.append(two, 1));
  ASSERT_EQ(kv.pendingCopies().size(), 2u);
  int32_t kept = kv.table(two)[0];
  kv.remove(one);
  ASSERT_EQ(kv.pendingCopies().size(), 1u);
  EXPECT_EQ(kv.pendingCopies()[0].dst, kept);
  kv.remove(two);
  EXPECT_TRUE(kv.pendingCopies().empty());
  kv.remove(parent);
  EXPECT_EQ(blocks.numFree(), 4);
}

TEST(PagedKV, CopiesOfOneStepDoNotFeedEachOther) {
  BlockManager blocks(8);
  PagedKV kv(blocks, options(4));
  SeqId a = kv.add();
  ASSERT_TRUE(kv.append(a, 2));
  SeqId b = kv.fork(a);
  ASSERT_TRUE(kv.append(b, 1));
  SeqId c = kv.fork(b);
  ASSERT_TRUE(kv.append(c, 1));
  for (const pagoda_block_copy &x : kv.pendingCopies())
    for (const pagoda_block_copy &y : kv.pendingCopies())
      EXPECT_NE(x.src, y.dst);
  kv.copiesDone();
  EXPECT_EQ(blocks.refs(0), 1u);
  EXPECT_EQ(kv.heldReferences(), 3);
}

// Known fault E4: blocks leak when a request is aborted.
TEST(PagedKV, E4_AbortInEveryState) {
  BlockManager blocks(16);
  PagedKV kv(blocks, options(4, 64, {TableGroup{}, TableGroup{8, 0}}));
  auto allFree = [&](const char *state) {
    EXPECT_EQ(blocks.numFree(), 16) << state;
    EXPECT_EQ(kv.numSequences(), 0) << state;
    EXPECT_EQ(kv.heldReferences(), 0) << state;
  };
  SeqId seq = kv.add();
  EXPECT_TRUE(kv.remove(seq));
  allFree("waiting");
  seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 6));
  EXPECT_TRUE(kv.remove(seq));
  allFree("half prefilled");
  seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 20) && kv.append(seq, 1));
  kv.releaseWindow(seq);
  EXPECT_TRUE(kv.remove(seq));
  allFree("decoding");
  seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 20));
  kv.preempt(seq);
  EXPECT_TRUE(kv.remove(seq));
  allFree("preempted");
  EXPECT_FALSE(kv.remove(seq));
  EXPECT_FALSE(kv.remove(NoSequence));
  EXPECT_FALSE(kv.remove(123456789));
  allFree("finished and unknown");
}

// Known fault E8: references after a fork, and the order of removal.
TEST(PagedKV, E8_ForkAndRemoveParentFirst) {
  for (int32_t at : {20, 18, 16}) {
    EngineOptions o;
    o.kernels.blockSize = 16;
    o.kernels.kvTile = 16;
    o.numBlocks = 16;
    Engine engine(o);
    SeqId parent = engine.add();
    ASSERT_TRUE(engine.append(parent, 20));
    SeqId child = engine.fork(parent, at);
    engine.truncate(child, at - 3);
    ASSERT_TRUE(engine.append(child, 2));
    ASSERT_TRUE(engine.append(parent, 2));
    EXPECT_LT(engine.step({{parent, 1}, {child, 1}}), 1e-4) << at;
    engine.remove(parent);
    EXPECT_LT(engine.step({{child, 1}}), 1e-4) << at;
    for (int32_t p = 0; p != engine.kv.length(child); ++p)
      EXPECT_EQ(engine.stored(child, p), engine.written(child, p)) << at;
    engine.remove(child);
    EXPECT_EQ(engine.blocks.numFree(), 16) << at;
  }
}

// Known fault E9: a shared partial block written without a copy.
TEST(PagedKV, E9_SharedPartialBlockInEveryLayer) {
  EngineOptions o;
  o.kernels.blockSize = 16;
  o.kernels.kvTile = 16;
  o.groups = {TableGroup{}, TableGroup{}, TableGroup{}}; // one table a layer
  o.numBlocks = 32;
  Engine engine(o);
  SeqId parent = engine.add();
  ASSERT_TRUE(engine.append(parent, 18));
  int32_t before = engine.blocks.numFree();
  SeqId child = engine.fork(parent, 18);
  ASSERT_TRUE(engine.append(child, 1));
  ASSERT_TRUE(engine.append(parent, 1));
  // Exactly one block a layer was copied.
  EXPECT_EQ(engine.blocks.numFree(), before - 3);
  for (int32_t layer = 0; layer != 3; ++layer) {
    EXPECT_EQ(engine.kv.table(parent, layer)[0],
              engine.kv.table(child, layer)[0]);
    EXPECT_NE(engine.kv.table(parent, layer)[1],
              engine.kv.table(child, layer)[1]);
    for (int32_t p : {16, 17})
      EXPECT_EQ(engine.stored(parent, p, layer),
                engine.stored(child, p, layer));
    EXPECT_NE(engine.stored(parent, 18, layer),
              engine.stored(child, 18, layer));
    // K and V: attention reads both.
    EXPECT_LT(engine.step({{parent, 3}, {child, 2}}, layer), 1e-4);
  }
}

TEST(PagedKV, WindowLetsGoOfWhatNoQueryCanSee) {
  BlockManager blocks(32);
  PagedKV kv(blocks, options(4, 64, {TableGroup{}, TableGroup{6, 0}}));
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 13));
  // The next query, at 13, sees keys 8 .. 13: blocks 0 and 1 can go.
  EXPECT_EQ(kv.releaseWindow(seq), 2);
  EXPECT_EQ(kv.releaseWindow(seq), 0);
  EXPECT_EQ(kv.table(seq, 1)[0], -1);
  EXPECT_EQ(kv.table(seq, 1)[1], -1);
  EXPECT_GE(kv.table(seq, 1)[2], 0);
  EXPECT_EQ(ids(kv.table(seq, 0)), (Ids{0, 1, 2, 3}));
  // Going back is possible as far as the window's blocks are there.
  EXPECT_PAGODA_ERROR(kv.truncate(seq, 12), ErrorCode::InvalidArgument,
                      "needs block 1 of table group 1");
  EXPECT_PAGODA_ERROR((void)kv.fork(seq, 8), ErrorCode::InvalidArgument,
                      "needs block");
  SeqId child = kv.fork(seq);
  EXPECT_TRUE(kv.append(child, 4));
  std::vector<int64_t> slots(5);
  kv.slotMapping(seq, 6, slots, 1);
  EXPECT_EQ(slots[0], -1);
  EXPECT_EQ(slots[1], -1);
  EXPECT_GE(slots[2], 0);
  kv.remove(seq);
  kv.remove(child);
  EXPECT_EQ(blocks.numFree(), 32);
}

TEST(PagedKV, WindowOfAUnconfirmedStepKeepsWhatARollbackNeeds) {
  BlockManager blocks(32);
  PagedKV kv(blocks, options(4, 64, {TableGroup{6, 0}}));
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 17));        // 9 confirmed, 8 speculated
  EXPECT_EQ(kv.releaseWindow(seq, 9), 1); // sees keys 4 .. 9
  kv.truncate(seq, 9);
  EXPECT_EQ(kv.length(seq), 9);
}

TEST(PagedKV, SinkBlocksStay) {
  BlockManager blocks(32);
  PagedKV kv(blocks, options(4, 64, {TableGroup{4, 5}}));
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 32));
  EXPECT_EQ(kv.releaseWindow(seq), 5); // blocks 2 .. 6; 0 and 1 hold sinks
  EXPECT_GE(kv.table(seq)[0], 0);
  EXPECT_GE(kv.table(seq)[1], 0);
  EXPECT_EQ(kv.table(seq)[2], -1);
  EXPECT_EQ(kv.table(seq)[6], -1);
  EXPECT_GE(kv.table(seq)[7], 0);
}

TEST(PagedKV, WindowedAttentionAfterRelease) {
  EngineOptions o;
  o.kernels.features |= PAGODA_FEATURE_WINDOW;
  o.groups = {TableGroup{6, 0}};
  o.window = o.plan.window = 6;
  o.numBlocks = 8;
  Engine engine(o);
  SeqId seq = engine.add();
  // 4 blocks at a time are enough for a sequence of any length.
  for (int32_t i = 0; i != 40; ++i) {
    ASSERT_TRUE(engine.append(seq, i % 3 + 1));
    EXPECT_LT(engine.step({{seq, i % 3 + 1}}), 1e-4);
    engine.kv.releaseWindow(seq);
    EXPECT_GE(engine.blocks.numFree(), 5);
  }
}

TEST(PagedKV, PreemptAndResume) {
  BlockManager blocks(6);
  PagedKV kv(blocks, options(4));
  SeqId seq = kv.add(), other = kv.add();
  ASSERT_TRUE(kv.append(seq, 10));
  kv.preempt(seq);
  EXPECT_TRUE(kv.preempted(seq));
  EXPECT_EQ(kv.length(seq), 10);
  EXPECT_EQ(blocks.numFree(), 6);
  EXPECT_PAGODA_ERROR((void)kv.append(seq, 1), ErrorCode::InvalidArgument,
                      "got a preempted one");
  ASSERT_TRUE(kv.append(other, 16));
  EXPECT_FALSE(kv.resume(seq));
  EXPECT_TRUE(kv.preempted(seq));
  EXPECT_EQ(blocks.numFree(), 2);
  kv.remove(other);
  ASSERT_TRUE(kv.resume(seq));
  EXPECT_EQ(kv.length(seq), 10);
  EXPECT_EQ(kv.table(seq).size(), 3u);
  EXPECT_TRUE(kv.append(seq, 1));
}

TEST(PagedKV, DestructorReturnsEverything) {
  BlockManager blocks(8);
  {
    PagedKV kv(blocks, options(4));
    SeqId seq = kv.add();
    ASSERT_TRUE(kv.append(seq, 6));
    SeqId child = kv.fork(seq);
    ASSERT_TRUE(kv.append(child, 1));
  }
  EXPECT_EQ(blocks.numFree(), 8);
}
