//===- AttentionPlanTest.cpp - Is the work complete and balanced ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks plans as lists: every row is written once, every visible key is
// visited once, splits keep to their bounds, and skewed batches are balanced.
// LauncherTest runs plans.
//
//===----------------------------------------------------------------------===//

#include "pagoda/AttentionPlan.h"
#include "FakeKernels.h"
#include "TestErrors.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <set>

using namespace pagoda;
using namespace pagoda::test;
using Ints = std::vector<int32_t>;

namespace {

struct Kernels {
  explicit Kernels(const FakeSpec &spec = {})
      : fake(spec), library(KernelLibrary::wrap(fake.info())),
        set(library.select(fake.spec())) {}
  FakeLibrary fake;
  KernelLibrary library;
  KernelSet set;
};

/// Checks that the plan covers (row, KV head, key) exactly once for every key
/// that the row can see. Returns how many (item, key) visits there are.
int64_t checkCover(const AttentionPlan &plan, const Ints &qLens,
                   const Ints &kvLens, const int32_t *tables, int64_t stride,
                   const Ints &tableRows) {
  const pagoda_kernel_info &any = plan.kernel();
  std::vector<int32_t> seqOf, posOf;
  for (size_t s = 0; s != qLens.size(); ++s)
    for (int32_t i = 0; i != qLens[s]; ++i) {
      seqOf.push_back(static_cast<int32_t>(s));
      posOf.push_back(kvLens[s] - qLens[s] + i);
    }
  int32_t rows = static_cast<int32_t>(seqOf.size());
  EXPECT_EQ(plan.numRows(), rows);
  // Per row and KV head: key ranges, direct writes, slots, first splits.
  using Range = std::pair<int32_t, int32_t>;
  std::map<std::pair<int32_t, int32_t>, std::vector<Range>> ranges;
  std::map<std::pair<int32_t, int32_t>, int> direct, first;
  std::map<int32_t, std::set<int32_t>> slots;
  std::map<std::pair<int32_t, int32_t>, int> slotWrites;
  int64_t visits = 0;
  int32_t itemsSeen = 0;
  for (const PlanSegment &segment : plan.segments()) {
    const pagoda_kernel_info &kernel = *segment.kernel;
    EXPECT_LT(segment.begin, segment.end);
    itemsSeen += segment.end - segment.begin;
    for (int32_t n = segment.begin; n != segment.end; ++n) {
      const pagoda_work_item &item = plan.items()[n];
      if (n != segment.begin) {
        EXPECT_LE(plan.costs()[n], plan.costs()[n - 1]);
      }
      EXPECT_GE(item.row_count, 1);
      EXPECT_LE(item.row_count, kernel.max_rows);
      EXPECT_EQ(item.head_count, kernel.heads_per_item);
      EXPECT_EQ(item.head_begin % kernel.heads_per_item, 0);
      EXPECT_LE(item.kv_begin, item.kv_end);
      EXPECT_EQ(item.q_pos0, plan.rowPos()[item.row_map_offset]);
      visits += item.kv_end - item.kv_begin;
      for (int32_t i = 0; i != item.row_count; ++i) {
        int32_t at = item.row_map_offset + i;
        int32_t row = plan.rowMap()[at];
        int32_t seq = plan.rowSeq()[at];
        EXPECT_EQ(seq, seqOf.at(row));
        EXPECT_EQ(plan.rowPos()[at], posOf.at(row));
        if (i) {
          EXPECT_GE(plan.rowPos()[at], plan.rowPos()[at - 1]);
        }
        EXPECT_LE(item.kv_end, kvLens[seq]);
        // The item's table names the same blocks as the row's own.
        for (int32_t b = item.kv_begin / kernel.block_size;
             tables && b * kernel.block_size < item.kv_end; ++b)
          EXPECT_EQ(tables[item.table_row * stride + b],
                    tables[tableRows[seq] * stride + b]);
        if (!tables) {
          EXPECT_EQ(item.table_row, tableRows[seq]);
        }
        for (int32_t h = item.head_begin;
             h != item.head_begin + item.head_count; ++h) {
          std::pair<int32_t, int32_t> key(row, h);
          ranges[key].push_back({item.kv_begin, item.kv_end});
          first[key] += item.flags & PAGODA_ITEM_FIRST_SPLIT ? 1 : 0;
          if (item.partial_slot < 0) {
            ++direct[key];
          } else {
            EXPECT_LT(item.partial_slot + i, plan.partialSlots());
            slots[row].insert(item.partial_slot + i);
            ++slotWrites[{item.partial_slot + i, h}];
          }
        }
      }
    }
  }
  EXPECT_EQ(itemsSeen, int32_t(plan.items().size()));
  std::map<int32_t, int> merged;
  for (const pagoda_merge_item &merge : plan.merges()) {
    ++merged[merge.q_row];
    std::set<int32_t> joined;
    for (int32_t i = 0; i != merge.slot_count; ++i)
      joined.insert(plan.mergeSlots()[merge.slots_begin + i]);
    EXPECT_EQ(joined, slots[merge.q_row]);
    EXPECT_EQ(int32_t(joined.size()), merge.slot_count);
  }
  for (auto [slot, writes] : slotWrites)
    EXPECT_EQ(writes, 1) << "slot " << slot.first;
  for (int32_t row = 0; row != rows; ++row)
    for (int32_t h = 0; h != any.kv_heads; ++h) {
      std::pair<int32_t, int32_t> key(row, h);
      EXPECT_EQ(direct[key] + merged[row], 1) << "row " << row;
      EXPECT_EQ(first[key], 1) << "row " << row;
      auto &list = ranges[key];
      std::sort(list.begin(), list.end());
      int32_t at = list.empty() ? -1 : list.front().first;
      for (Range range : list) {
        EXPECT_EQ(range.first, at) << "row " << row;
        at = range.second;
      }
      int32_t seen = std::max(0, std::min(kvLens[seqOf[row]], posOf[row] + 1));
      EXPECT_GE(at, seen) << "row " << row;
      int32_t window = plan.options().window;
      int32_t low = window ? std::max(0, posOf[row] - window + 1) : 0;
      EXPECT_LE(list.front().first, std::min(low, at)) << "row " << row;
    }
  return visits;
}

int64_t build(AttentionPlan &plan, const Ints &qLens, const Ints &kvLens,
              const int32_t *tables = nullptr, int64_t stride = 0) {
  Ints rows(qLens.size());
  std::iota(rows.begin(), rows.end(), 0);
  plan.build({qLens, kvLens, rows, tables, stride});
  return checkCover(plan, qLens, kvLens, tables, stride, rows);
}

/// The time that the costs take when free threads take the next item.
int64_t makespan(const AttentionPlan &plan, int threads) {
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> busy;
  for (int t = 0; t != threads; ++t)
    busy.push(0);
  int64_t last = 0;
  for (const PlanSegment &segment : plan.segments())
    for (int32_t n = segment.begin; n != segment.end; ++n) {
      int64_t end = busy.top() + plan.costs()[n];
      busy.pop();
      busy.push(end);
      last = std::max(last, end);
    }
  return last;
}

int64_t totalCost(const AttentionPlan &plan) {
  return std::accumulate(plan.costs().begin(), plan.costs().end(), int64_t(0));
}

} // namespace

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
  for (int round = 0; round != 200; ++round) {
    FakeSpec spec;
    spec.blockSize = 1 << random() % 5;
    spec.kvTile = 1 << (3 + random() % 4);
    spec.headsPerItem = 1 + static_cast<int32_t>(random() % 2);
    spec.maxRows = round % 3 ? Ints{1, 16} : Ints{4};
    static std::map<std::tuple<int, int, int, size_t>, Kernels *> cache;
    Kernels *&k = cache[{spec.blockSize, spec.kvTile, spec.headsPerItem,
                         spec.maxRows.size()}];
    if (!k)
      k = new Kernels(spec);
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

namespace {

/// Tables of sequences that share beginnings: each sequence names its parent
/// and how many blocks it has from it.
struct Family {
  explicit Family(int64_t stride) : stride(stride) {}
  int64_t stride;
  Ints tables;
  int32_t next = 1000;
  void add(int parent, int32_t shared, int32_t blocks) {
    size_t row = tables.size();
    tables.resize(row + stride, -1);
    for (int32_t i = 0; i != blocks; ++i)
      tables[row + i] = i < shared ? tables[parent * stride + i] : next++;
  }
};

FakeSpec decodeSpec() {
  FakeSpec spec;
  spec.headDim = spec.vHeadDim = 64;
  spec.maxRows = {1, 16};
  spec.blockSize = 4;
  return spec;
}

} // namespace

TEST(Cascade, SharedPrefixIsVisitedOnce) {
  Kernels k(decodeSpec());
  PlanOptions options;
  options.cascade = true;
  AttentionPlan plan(k.set.attention, options);
  Family family(600);
  Ints q, kv;
  for (int s = 0; s != 8; ++s) {
    family.add(0, s ? 500 : 0, 501 + s);
    q.push_back(1);
    kv.push_back(4 * (501 + s) - s % 4);
  }
  int64_t visits = build(plan, q, kv, family.tables.data(), 600);
  int64_t own = std::accumulate(kv.begin(), kv.end(), int64_t(0)) - 8 * 2000;
  EXPECT_EQ(visits, 2000 + own);
  EXPECT_EQ(plan.merges().size(), 8u);
  // Without: each sequence visits it.
  options.cascade = false;
  AttentionPlan apart(k.set.attention, options);
  EXPECT_EQ(build(apart, q, kv, family.tables.data(), 600), 8 * 2000 + own);
}

TEST(Cascade, NestedGroups) {
  Kernels k(decodeSpec());
  PlanOptions options;
  options.cascade = true;
  AttentionPlan plan(k.set.attention, options);
  Family family(1000);
  family.add(0, 0, 500);
  family.add(0, 400, 500); // shares 400 with all
  family.add(1, 450, 500); // and 50 more with sequence 1
  family.add(1, 450, 500);
  family.add(0, 490, 500); // 90 more with sequence 0
  Ints q(5, 1), kv(5, 2000);
  // 400 blocks for all five, 90 for {0, 4}, 50 for {1, 2, 3}, and the rest.
  EXPECT_EQ(build(plan, q, kv, family.tables.data(), 1000),
            4 * (400 + 90 + 50 + 2 * 10 + 3 * 50));
}

TEST(Cascade, ShortSharedPrefixIsNotWorthIt) {
  Kernels k(decodeSpec());
  PlanOptions options;
  options.cascade = true;
  AttentionPlan plan(k.set.attention, options);
  Family family(300);
  for (int s = 0; s != 3; ++s)
    family.add(0, s ? 2 : 0, 200);
  Ints q(3, 1), kv(3, 800);
  build(plan, q, kv, family.tables.data(), 300);
  EXPECT_TRUE(plan.merges().empty());
  EXPECT_EQ(plan.items().size(), 3u);
}

// A run that is not worth a group is part of the runs that continue it.
TEST(Cascade, RunsJoinTheRunsBelowThem) {
  Kernels k(decodeSpec());
  PlanOptions options;
  options.cascade = true;
  AttentionPlan plan(k.set.attention, options);
  Family family(1000);
  family.add(0, 0, 500);
  family.add(0, 490, 500);
  family.add(0, 2, 500); // shares two blocks only
  Ints q(3, 1), kv(3, 2000);
  EXPECT_EQ(build(plan, q, kv, family.tables.data(), 1000),
            4 * (490 + 10 + 10 + 500));
}

TEST(Cascade, OwnQueriesAreNotShared) {
  Kernels k(decodeSpec());
  PlanOptions options;
  options.cascade = true;
  AttentionPlan plan(k.set.attention, options);
  Family family(600);
  family.add(0, 0, 500);
  family.add(0, 500, 500); // a fork: every block is the same
  Ints q{30, 2}, kv{2000, 1998};
  build(plan, q, kv, family.tables.data(), 600);
}

TEST(Cascade, RandomFamiliesAreComplete) {
  std::mt19937 random(23);
  Kernels k(decodeSpec());
  int grouped = 0;
  for (int round = 0; round != 300; ++round) {
    PlanOptions options;
    options.cascade = true;
    options.threads = 1 + static_cast<int>(random() % 8);
    AttentionPlan plan(k.set.attention, options);
    Family family(400);
    Ints q, kv;
    int count = 1 + static_cast<int>(random() % 10);
    for (int s = 0; s != count; ++s) {
      int32_t blocks = 1 + static_cast<int32_t>(random() % 400);
      int parent = s ? static_cast<int>(random() % s) : 0;
      int32_t most = std::min(blocks, s ? (kv[parent] + 3) / 4 : 0);
      int32_t shared = most && random() % 4
                           ? static_cast<int32_t>(random() % (most + 1))
                           : 0;
      family.add(parent, shared, blocks);
      kv.push_back(blocks * 4 - static_cast<int32_t>(random() % 4));
      q.push_back(std::min<int32_t>(
          kv.back(), random() % 3 ? 1 : static_cast<int32_t>(random() % 40)));
    }
    int64_t together = build(plan, q, kv, family.tables.data(), 400);
    options.cascade = false;
    AttentionPlan apart(k.set.attention, options);
    grouped += together < build(apart, q, kv);
  }
  EXPECT_GT(grouped, 100);
}

TEST(Cascade, TablesAreNeeded) {
  Kernels k(decodeSpec());
  PlanOptions options;
  options.cascade = true;
  AttentionPlan plan(k.set.attention, options);
  Ints one{1};
  EXPECT_PAGODA_ERROR(plan.build({one, one, {}, nullptr, 0}),
                      ErrorCode::InvalidArgument,
                      "block_table: expected one for a cascade plan");
}
