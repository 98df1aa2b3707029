//===- CascadeTest.cpp - Shared prefixes are attended to once -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups of sequences whose tables begin alike: found, nested, weighed,
// complete.
//
//===----------------------------------------------------------------------===//

#include "PlanChecks.h"
#include "TestErrors.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace pagoda;
using namespace pagoda::test;

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
  Ints table{3}, five{5};
  EXPECT_PAGODA_ERROR(plan.build({one, five, {}, table.data(), 1}),
                      ErrorCode::InvalidArgument,
                      "kv_lens[0]: expected at most 4 tokens");
}
