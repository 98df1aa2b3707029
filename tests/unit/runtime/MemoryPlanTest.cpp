//===- MemoryPlanTest.cpp - Memory plans against real tables --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic must say what real sequences take: windows, sinks, shared
// prefixes. What no machine holds is still counted, or refused by name.
//
//===----------------------------------------------------------------------===//

#include "pagoda/MemoryPlan.h"
#include "TestErrors.h"
#include "pagoda/PoolSimulation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

using namespace pagoda;
using namespace pagoda::test;

static CacheLayers layersOf(int32_t blockSize, TableGroup keeps = {}) {
  CacheLayers layers;
  layers.format.kvHeads = 2;
  layers.format.headDim = 8;
  layers.format.vHeadDim = 4;
  layers.format.blockSize = blockSize;
  layers.keeps = keeps;
  return layers;
}

TEST(MemoryPlan, RandomLoadsTakeWhatRealTablesTake) {
  std::mt19937 random(1);
  auto below = [&](uint32_t n) { return int32_t(random() % n); };
  for (int round = 0; round != 3000; ++round) {
    int32_t blockSize = 1 + below(7);
    TableGroup keeps;
    if (round % 3)
      keeps = {1 + below(20), round % 3 == 2 ? below(9) : 0};
    int32_t prefix = round % 2 ? below(40) : 0;
    std::vector<SequenceLoad> load;
    for (int32_t n = 1 + below(4); n--;)
      load.push_back({prefix + below(round % 5 ? 60 : 3), 1 + below(2)});
    PoolOptions options;
    options.blocks = 600;
    options.blockSize = blockSize;
    options.maxTokens = 128;
    options.keeps = keeps;
    options.sharedPrefix = prefix;
    PoolSimulation pool(options);
    int32_t name = 0;
    for (const SequenceLoad &some : load)
      for (int64_t i = 0; i != some.count; ++i)
        ASSERT_TRUE(pool.request(name++, some.tokens, 0, true));
    pool.endPrefix();
    MemoryPlan plan = planPaged(layersOf(blockSize, keeps), load, prefix);
    ASSERT_EQ(plan.blocks, options.blocks - pool.freeBlocks())
        << "block size " << blockSize << ", window " << keeps.window
        << ", sinks " << keeps.sinkTokens << ", prefix " << prefix;
    ASSERT_EQ(plan.reservedSlots, plan.blocks * blockSize);
    ASSERT_GE(plan.wastedSlots, 0);
    // Tokens that are seen, one by one; those of shared blocks once.
    int32_t shared = prefix / blockSize * blockSize;
    std::set<int32_t> once;
    int64_t seen = 0;
    for (const SequenceLoad &some : load)
      for (int32_t p = 0; p != some.tokens; ++p)
        if (!keeps.window || p < keeps.sinkTokens ||
            some.tokens - 1 - p < keeps.window) {
          seen += p < shared ? 0 : some.count;
          if (p < shared)
            once.insert(p);
        }
    ASSERT_EQ(plan.reservedSlots - plan.wastedSlots,
              seen + int64_t(once.size()))
        << "block size " << blockSize << ", window " << keeps.window
        << ", sinks " << keeps.sinkTokens << ", prefix " << prefix;
  }
}

TEST(MemoryPlan, LayersAndTables) {
  CacheLayers layers = layersOf(4);
  layers.layers = 6;
  EXPECT_EQ(layers.format.blockBytes(), 4 * 2 * (8 + 4) * 4);
  SequenceLoad load{9, 2};
  MemoryPlan one = planPaged(layers, {&load, 1});
  EXPECT_EQ(one.blocks, 6);
  EXPECT_EQ(one.bytes, 6 * 6 * layers.format.blockBytes());
  // The same memory in smaller pieces.
  layers.tables = 6;
  MemoryPlan each = planPaged(layers, {&load, 1});
  EXPECT_EQ(each.blocks, 36);
  EXPECT_EQ(each.bytes, one.bytes);
  EXPECT_EQ(each.reservedSlots, 24);
  // Values inside keys take no memory of their own.
  layers.format.vInsideK = true;
  EXPECT_EQ(planPaged(layers, {&load, 1}).bytes * (8 + 4), one.bytes * 8);
}

TEST(MemoryPlan, SequencesThatFit) {
  for (int32_t prefix : {0, 5, 8, 17})
    for (TableGroup keeps : {TableGroup{}, TableGroup{6, 0}}) {
      CacheLayers kinds[] = {layersOf(4, keeps), layersOf(4)};
      auto bytes = [&](int64_t count) {
        SequenceLoad load{21, count};
        return planPaged(kinds[0], {&load, 1}, prefix).bytes +
               planPaged(kinds[1], {&load, 1}, prefix).bytes;
      };
      int64_t memory = bytes(7) + 1;
      EXPECT_EQ(sequencesPaged(kinds, memory, 21, prefix), 7);
      EXPECT_EQ(sequencesPaged(kinds, memory - 2, 21, prefix), 6);
      EXPECT_EQ(sequencesPaged(kinds, bytes(1) - 1, 21, prefix), 0);
    }
  CacheLayers kind = layersOf(4);
  EXPECT_EQ(sequencesPaged({&kind, 1}, 1 << 20, 8, 8), INT64_MAX);
  int64_t slot = kind.format.blockBytes() / 4;
  EXPECT_EQ(sequencesContiguous({&kind, 1}, 100 * slot, 21, 32), 3);
  EXPECT_EQ(sequencesContiguous({&kind, 1}, 100 * slot, 33, 32), 1);
}

TEST(MemoryPlan, BadInputIsNamed) {
  CacheLayers layers = layersOf(4);
  SequenceLoad load{9, 2};
  std::span<const SequenceLoad> one(&load, 1);
  EXPECT_PAGODA_ERROR(planPaged(layers, one, 10), ErrorCode::InvalidArgument,
                      "shared prefix: expected 0 to 9, got 10");
  EXPECT_PAGODA_ERROR(planContiguous(layers, one, 0),
                      ErrorCode::InvalidArgument, "max_length");
  load.count = INT64_MAX;
  EXPECT_PAGODA_ERROR(planPaged(layers, one), ErrorCode::InvalidArgument,
                      "expected less than 2^63");
  EXPECT_PAGODA_ERROR(planContiguous(layers, one, 8),
                      ErrorCode::InvalidArgument, "expected less than 2^63");
  load.count = -1;
  EXPECT_PAGODA_ERROR(planPaged(layers, one), ErrorCode::InvalidArgument,
                      "sequence count");
  load = {-1, 1};
  EXPECT_PAGODA_ERROR(planPaged(layers, one), ErrorCode::InvalidArgument,
                      "sequence tokens");
  load = {9, 1};
  layers.layers = 6;
  layers.tables = 4;
  EXPECT_PAGODA_ERROR(planPaged(layers, one), ErrorCode::InvalidArgument,
                      "expected a divisor of the 6 layers, got 4");
  layers.tables = 0;
  EXPECT_PAGODA_ERROR(planPaged(layers, one), ErrorCode::InvalidArgument,
                      "tables");
  layers = layersOf(0);
  EXPECT_PAGODA_ERROR(planPaged(layers, one), ErrorCode::InvalidArgument,
                      "block_size");
}

TEST(MemoryPlan, NothingTakesNothing) {
  CacheLayers layers = layersOf(4);
  EXPECT_EQ(planPaged(layers, {}, 100).blocks, 0);
  EXPECT_EQ(planPaged(layers, {}).waste(), 0);
  SequenceLoad empty{0, 5};
  EXPECT_EQ(planPaged(layers, {&empty, 1}).bytes, 0);
  EXPECT_EQ(planContiguous(layers, {&empty, 1}, 8).wastedSlots, 40);
  SequenceLoad none{7, 0};
  EXPECT_EQ(planPaged(layers, {&none, 1}, 3).blocks, 0);
}

// What no query sees again is wasted, wherever it lies.
TEST(MemoryPlan, ContiguousMemoryKeepsWhatWindowsForget) {
  CacheLayers layers = layersOf(4);
  layers.keeps.window = 10;
  SequenceLoad load{50, 3};
  EXPECT_EQ(planContiguous(layers, {&load, 1}, 64).wastedSlots, 3 * (64 - 10));
  layers.keeps.sinkTokens = 4;
  EXPECT_EQ(planContiguous(layers, {&load, 1}, 64).wastedSlots, 3 * (64 - 14));
  load.tokens = 7;
  EXPECT_EQ(planContiguous(layers, {&load, 1}, 64).wastedSlots, 3 * (64 - 7));
}

TEST(PoolSimulation, RequestsThatDoNotFitLeaveNoTrace) {
  for (auto kind : {PoolOptions::Contiguous, PoolOptions::Paged}) {
    PoolOptions options;
    options.kind = kind;
    options.blocks = 4;
    options.blockSize = 4;
    PoolSimulation pool(options);
    ASSERT_TRUE(pool.request(0, 5));
    EXPECT_FALSE(pool.request(1, 9));
    EXPECT_FALSE(pool.request(1, INT32_MAX));
    EXPECT_EQ(pool.freeBlocks(), 2);
    EXPECT_EQ(pool.cells()[1].tokens, 1);
    EXPECT_TRUE(pool.request(1, 0));
    EXPECT_PAGODA_ERROR((void)pool.request(0, 1), ErrorCode::InvalidArgument,
                        "expected a new name");
    pool.release(0);
    pool.release(7);
    EXPECT_EQ(pool.freeBlocks(), 4);
  }
}
