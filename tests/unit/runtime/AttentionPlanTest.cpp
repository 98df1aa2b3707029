//===- AttentionPlanTest.cpp - Is the work complete and balanced ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans as lists: kernels, clipping, splits, balance of skewed batches, batch
// invariance and refused input. LauncherTest runs plans.
//
//===----------------------------------------------------------------------===//

#include "PlanChecks.h"
#include "TestErrors.h"

#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

using namespace pagoda;
using namespace pagoda::test;

TEST(AttentionPlan, EmptyBatchAndEmptySequences) {
  Kernels k;
  AttentionPlan plan(k.set.attention);
  build(plan, {}, {});
  EXPECT_TRUE(plan.items().empty());
  build(plan, {0, 1, 0, 3}, {0, 0, 17, 3});
  EXPECT_EQ(plan.numRows(), 4);
  // Queries before the first key: q = 4, kv = 2.
  build(plan, {4}, {2});
  EXPECT_EQ(plan.items()[0].q_pos0, -2);
  build(plan, {20}, {2});
}

TEST(AttentionPlan, PicksTheKernelThatSuits) {
  FakeSpec spec;
  spec.maxRows = {16, 1, 4};
  Kernels k(spec);
  AttentionPlan plan(k.set.attention);
  build(plan, {1, 3, 4, 5, 40}, {9, 9, 9, 9, 50});
  std::map<int32_t, std::set<int32_t>> rowsOf;
  for (const PlanSegment &segment : plan.segments())
    for (int32_t n = segment.begin; n != segment.end; ++n)
      rowsOf[segment.kernel->max_rows].insert(
          plan.rowSeq()[plan.items()[n].row_map_offset]);
  EXPECT_EQ(rowsOf[1], (std::set<int32_t>{0}));
  EXPECT_EQ(rowsOf[4], (std::set<int32_t>{1, 2}));
  EXPECT_EQ(rowsOf[16], (std::set<int32_t>{3, 4}));
}

TEST(AttentionPlan, CausalTilesStopAtTheirLastRow) {
  Kernels k;
  AttentionPlan plan(k.set.attention);
  // 4 tiles of 8 rows see 8, 16, 24 and 32 keys.
  EXPECT_EQ(build(plan, {32}, {32}), 8 + 16 + 24 + 32);
}

TEST(AttentionPlan, WindowedTilesStartAtTheirFirstKey) {
  FakeSpec spec;
  spec.features |= PAGODA_FEATURE_WINDOW;
  Kernels k(spec);
  PlanOptions options;
  options.window = 5;
  AttentionPlan plan(k.set.attention, options);
  build(plan, {1}, {1000});
  // Keys 995 .. 999; a KV tile has 8.
  EXPECT_EQ(plan.items()[0].kv_begin, 992);
  EXPECT_TRUE(plan.items()[0].flags & PAGODA_ITEM_FIRST_SPLIT);
  build(plan, {64, 1}, {64, 3});
}

TEST(AttentionPlan, OneThreadSplitsNothing) {
  Kernels k;
  AttentionPlan plan(k.set.attention);
  build(plan, {1, 1}, {100000, 3});
  EXPECT_EQ(plan.items().size(), 2u);
  EXPECT_TRUE(plan.merges().empty());
}

TEST(AttentionPlan, LonelySequenceKeepsEveryThreadBusy) {
  Kernels k;
  PlanOptions options;
  options.threads = 8;
  AttentionPlan plan(k.set.attention, options);
  build(plan, {1}, {32768});
  EXPECT_GE(plan.items().size(), 8u);
  EXPECT_EQ(plan.merges().size(), 1u);
  EXPECT_LE(makespan(plan, 8), totalCost(plan) / 8 * 11 / 10);
}

TEST(AttentionPlan, SplitsAreWholeTiles) {
  FakeSpec spec;
  spec.kvTile = 48;
  Kernels k(spec);
  PlanOptions options;
  options.threads = 7;
  AttentionPlan plan(k.set.attention, options);
  build(plan, {1, 8}, {10007, 20011});
  for (const pagoda_work_item &item : plan.items()) {
    EXPECT_EQ(item.kv_begin % 48, 0);
    if (item.partial_slot >= 0) {
      EXPECT_GE(item.kv_end - item.kv_begin, 256);
    }
  }
}

// One long sequence among 63 short ones, the batch that a split is for.
TEST(AttentionPlan, SkewedBatchIsBalanced) {
  for (int32_t heads : {1, 2})
    for (int threads : {2, 4, 16, 64}) {
      FakeSpec spec;
      spec.headsPerItem = heads;
      Kernels k(spec);
      PlanOptions options;
      options.threads = threads;
      AttentionPlan plan(k.set.attention, options);
      std::mt19937 random(threads);
      Ints q(64, 1), kv(64);
      for (int32_t &length : kv)
        length = 50 + static_cast<int32_t>(random() % 200);
      kv[37] = 32768;
      build(plan, q, kv);
      EXPECT_LE(makespan(plan, threads), totalCost(plan) / threads * 5 / 4)
          << threads << " threads";
      // Short ones are not cut: joining them would cost more than it helps.
      EXPECT_EQ(plan.merges().size(), 1u);
    }
}

TEST(AttentionPlan, RandomMixedBatchesAreComplete) {
  std::mt19937 random(7);
  std::map<std::tuple<int32_t, int32_t, int32_t, size_t>,
           std::unique_ptr<Kernels>>
      kernels;
  for (int round = 0; round != 200; ++round) {
    FakeSpec spec;
    spec.blockSize = 1 << random() % 5;
    spec.kvTile = 1 << (3 + random() % 4);
    spec.headsPerItem = 1 + static_cast<int32_t>(random() % 2);
    spec.maxRows = round % 3 ? Ints{1, 16} : Ints{4};
    auto &k = kernels[{spec.blockSize, spec.kvTile, spec.headsPerItem,
                       spec.maxRows.size()}];
    if (!k)
      k = std::make_unique<Kernels>(spec);
    PlanOptions options;
    options.threads = 1 + static_cast<int>(random() % 12);
    options.deterministic = random() % 3 == 0;
    options.deterministicSplit = 64;
    AttentionPlan plan(k->set.attention, options);
    Ints q, kv;
    for (size_t n = random() % 12; n != 0; --n) {
      q.push_back(static_cast<int32_t>(random() % 3 ? 1 : random() % 60));
      kv.push_back(static_cast<int32_t>(
          random() % 8 ? q.back() + random() % 3000 : random() % 40));
    }
    build(plan, q, kv);
  }
}

TEST(AttentionPlan, NoAllocationAfterWarmUp) {
  Kernels k;
  PlanOptions options;
  options.threads = 4;
  AttentionPlan plan(k.set.attention, options);
  Ints q(64, 1), kv(64, 5000);
  kv[3] = 50000;
  plan.build({q, kv, {}, nullptr, 0});
  const void *items = plan.items().data(), *rows = plan.rowMap().data(),
             *slots = plan.mergeSlots().data();
  plan.build({q, kv, {}, nullptr, 0});
  EXPECT_EQ(plan.items().data(), items);
  EXPECT_EQ(plan.rowMap().data(), rows);
  EXPECT_EQ(plan.mergeSlots().data(), slots);
}

TEST(AttentionPlan, DeterministicPlansIgnoreNeighbours) {
  Kernels k;
  PlanOptions options;
  options.deterministic = true;
  options.deterministicSplit = 100; // rounded up to 104
  auto itemsOf = [&](int32_t seq, const Ints &q, const Ints &kv, int threads) {
    options.threads = threads;
    AttentionPlan plan(k.set.attention, options);
    build(plan, q, kv);
    std::set<std::vector<int32_t>> items;
    for (const pagoda_work_item &item : plan.items())
      if (plan.rowSeq()[item.row_map_offset] == seq)
        items.insert({item.q_pos0, item.row_count, item.head_begin,
                      item.kv_begin, item.kv_end, item.flags});
    return items;
  };
  auto alone = itemsOf(0, {3}, {1000}, 1);
  EXPECT_EQ(alone.size(), 10u);
  EXPECT_EQ(itemsOf(0, {3, 1, 1}, {1000, 90000, 4}, 16), alone);
  EXPECT_EQ(itemsOf(2, {50, 1, 3}, {50, 7, 1000}, 3), alone);
}

TEST(AttentionPlan, BadInputIsNamed) {
  Kernels k;
  AttentionPlan plan(k.set.attention);
  Ints one{1}, two{1, 1}, minus{-1};
  EXPECT_PAGODA_ERROR(plan.build({one, two, {}, nullptr, 0}),
                      ErrorCode::InvalidArgument,
                      "kv_lens: expected 1 as in q_lens, got 2");
  EXPECT_PAGODA_ERROR(plan.build({minus, one, {}, nullptr, 0}),
                      ErrorCode::InvalidArgument,
                      "q_lens[0]: expected 0 or more, got -1");
  EXPECT_PAGODA_ERROR(plan.build({one, one, two, nullptr, 0}),
                      ErrorCode::InvalidArgument, "table_rows");
  EXPECT_PAGODA_ERROR(plan.build({one, one, minus, nullptr, 0}),
                      ErrorCode::InvalidArgument,
                      "table_rows[0]: expected 0 or more, got -1");
  EXPECT_TRUE(plan.items().empty());
  PlanOptions options;
  options.threads = 0;
  EXPECT_PAGODA_ERROR(AttentionPlan(k.set.attention, options),
                      ErrorCode::InvalidArgument, "threads");
  options.threads = 1;
  options.cascade = options.deterministic = true;
  EXPECT_PAGODA_ERROR(AttentionPlan(k.set.attention, options),
                      ErrorCode::InvalidArgument, "deterministic");
  EXPECT_PAGODA_ERROR(AttentionPlan({}, {}), ErrorCode::InvalidArgument,
                      "expected 1 or more, got 0");
  FakeSpec other;
  other.headDim = 16;
  Kernels k2(other);
  std::vector<const pagoda_kernel_info *> mixed = {k.set.attention[0],
                                                   k2.set.attention[0]};
  EXPECT_PAGODA_ERROR(AttentionPlan(mixed, {}), ErrorCode::Mismatch,
                      "head_dim: kernel has 16, caller has 8");
}
