//===- BlockManagerTest.cpp - Who owns which block ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The free stack, the counters, and every mistake that must be named and must
// change nothing.
//
//===----------------------------------------------------------------------===//

#include "pagoda/BlockManager.h"
#include "TestErrors.h"

#include <gtest/gtest.h>
#include <set>
#include <vector>

using namespace pagoda;
using namespace pagoda::test;
using Ids = std::vector<int32_t>;

TEST(BlockManager, HandsOutIdsFromZeroUpward) {
  BlockManager blocks(4);
  EXPECT_EQ(blocks.allocate(), 0);
  EXPECT_EQ(blocks.allocate(), 1);
  Ids rest(2);
  ASSERT_TRUE(blocks.allocate(rest));
  EXPECT_EQ(rest, (Ids{2, 3}));
  EXPECT_EQ(blocks.numFree(), 0);
  EXPECT_EQ(blocks.allocate(), -1);
}

TEST(BlockManager, AllocatesAllOrNothing) {
  BlockManager blocks(3);
  Ids many(4, -7);
  EXPECT_FALSE(blocks.allocate(many));
  EXPECT_EQ(many, (Ids{-7, -7, -7, -7}));
  EXPECT_EQ(blocks.numFree(), 3);
  for (int32_t block = 0; block != 3; ++block)
    EXPECT_EQ(blocks.refs(block), 0u);
  Ids three(3);
  EXPECT_TRUE(blocks.allocate(three));
}

TEST(BlockManager, ReleasesTheLastBlockFirst) {
  BlockManager blocks(3);
  Ids all(3);
  ASSERT_TRUE(blocks.allocate(all));
  blocks.release(all);
  Ids again(3);
  ASSERT_TRUE(blocks.allocate(again));
  EXPECT_EQ(again, all);
}

TEST(BlockManager, SharedBlockStaysUntilItsLastOwnerGoes) {
  BlockManager blocks(2);
  int32_t block = blocks.allocate();
  blocks.share(block);
  EXPECT_EQ(blocks.refs(block), 2u);
  blocks.release(block);
  EXPECT_EQ(blocks.refs(block), 1u);
  EXPECT_EQ(blocks.numFree(), 1);
  blocks.release(block);
  EXPECT_EQ(blocks.numFree(), 2);
}

// Known fault E1: one block listed twice in one call corrupts the free list.
TEST(BlockManager, E1_DoubleReleaseInOneCall) {
  BlockManager blocks(3);
  int32_t block = blocks.allocate();
  EXPECT_PAGODA_ERROR(blocks.release(Ids{block, block}),
                      ErrorCode::DoubleRelease,
                      "block 0: cannot release: expected 1 owner or more");
  EXPECT_EQ(blocks.refs(block), 1u);
  EXPECT_EQ(blocks.numFree(), 2);
  Ids rest(2);
  ASSERT_TRUE(blocks.allocate(rest));
  std::set<int32_t> ids(rest.begin(), rest.end());
  ids.insert(block);
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(blocks.allocate(), -1);
}

TEST(BlockManager, ListedAsOftenAsOwnedIsFine) {
  BlockManager blocks(2);
  int32_t block = blocks.allocate();
  blocks.share(block);
  blocks.release(Ids{block, block});
  EXPECT_EQ(blocks.refs(block), 0u);
  EXPECT_EQ(blocks.numFree(), 2);
  Ids both(2);
  ASSERT_TRUE(blocks.allocate(both));
  EXPECT_NE(both[0], both[1]);
}

TEST(BlockManager, RefusedListsChangeNothing) {
  BlockManager blocks(4);
  Ids owned(2);
  ASSERT_TRUE(blocks.allocate(owned));
  for (int32_t wrong : {-1, 4, INT32_MAX, INT32_MIN}) {
    EXPECT_PAGODA_ERROR(blocks.release(Ids{wrong, owned[0], owned[1]}),
                        ErrorCode::UnknownBlock, "expected an id from 0 to 3");
    EXPECT_PAGODA_ERROR(blocks.share(Ids{owned[0], owned[1], wrong}),
                        ErrorCode::UnknownBlock, "expected an id from 0 to 3");
    EXPECT_PAGODA_ERROR((void)blocks.refs(wrong), ErrorCode::UnknownBlock,
                        std::to_string(wrong));
  }
  EXPECT_PAGODA_ERROR(blocks.release(Ids{3, owned[0]}),
                      ErrorCode::DoubleRelease, "block 3");
  EXPECT_PAGODA_ERROR(blocks.share(Ids{owned[0], 3}), ErrorCode::DoubleRelease,
                      "block 3: cannot share");
  EXPECT_EQ(blocks.refs(owned[0]), 1u);
  EXPECT_EQ(blocks.refs(owned[1]), 1u);
  EXPECT_EQ(blocks.numFree(), 2);
}

TEST(BlockManager, CounterOverflowIsAnError) {
  BlockManager blocks(2, 3);
  int32_t a = blocks.allocate(), b = blocks.allocate();
  blocks.share(Ids{a, a});
  EXPECT_PAGODA_ERROR(blocks.share(Ids{b, a}), ErrorCode::RefOverflow,
                      "expected fewer than 3 owners, got 3");
  EXPECT_EQ(blocks.refs(a), 3u);
  EXPECT_EQ(blocks.refs(b), 1u);
  EXPECT_PAGODA_ERROR(BlockManager(2, 0), ErrorCode::InvalidArgument,
                      "reference limit");
}

TEST(BlockManager, EmptyPool) {
  BlockManager blocks(0);
  EXPECT_EQ(blocks.allocate(), -1);
  EXPECT_TRUE(blocks.allocate(std::span<int32_t>()));
  EXPECT_PAGODA_ERROR(BlockManager(-1), ErrorCode::InvalidArgument, "got -1");
}
