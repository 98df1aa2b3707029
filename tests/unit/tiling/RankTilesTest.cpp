//===- RankTilesTest.cpp - The default tiles and their neighbours ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "compiler/tiling/SramFit.h"
#include "gtest/gtest.h"

using namespace pagoda;
using namespace pagoda::test;

namespace {

Schedule best(const char *on, const AttentionSpec &spec, Variant variant) {
  llvm::Expected<TileCandidate> tile = selectTile(machine(on), spec, variant);
  EXPECT_TRUE(bool(tile)) << text(tile.takeError());
  return tile ? tile->schedule : Schedule();
}

} // namespace

TEST(RankTiles, PrefillOnAvx2) {
  Schedule s = best("x86-64-v3", spec(16, 8, 128), Variant::Prefill);
  EXPECT_EQ(s.str(),
            "order=q_outer,lanes=queries,q_tile=288,kv_tile=96,heads=1,"
            "block_rows=4,block_vectors=3,prefetch=1,pack=1,stages=1,"
            "warps=1");
}

TEST(RankTiles, PrefillOnAvx512) {
  Schedule s = best("x86-64-v4", spec(16, 8, 128), Variant::Prefill);
  EXPECT_EQ(s.str(),
            "order=q_outer,lanes=queries,q_tile=512,kv_tile=128,heads="
            "1,block_rows=4,block_vectors=4,prefetch=1,pack=0,stages=1,"
            "warps=1");
}

// The block that a sample of pair products ran best with (4x4, 64 keys).
TEST(RankTiles, PairsWhereTheMachineAddsThem) {
  AttentionSpec shape = spec(16, 8, 128);
  shape.qType = shape.kvType = DType::BF16;
  auto first = [&](const char *name) {
    return rankTiles(machine(name), shape, Variant::Prefill).front().schedule;
  };
  Schedule pairs = first("avx512-bf16");
  EXPECT_EQ(pairs.pack, 2);
  EXPECT_EQ(pairs.blockRows, 4);
  EXPECT_EQ(pairs.blockVectors, 4);
  EXPECT_EQ(first("x86-64-v4").pack, 1);
  shape.headDim = 127;
  EXPECT_EQ(first("avx512-bf16").pack, 1);
  shape.headDim = 128;
  shape.qType = shape.kvType = DType::F16;
  EXPECT_EQ(first("avx512-bf16").pack, 1);
}

TEST(RankTiles, DecodeTakesAllHeadsOfTwoBlocks) {
  Schedule s = best("x86-64-v3", spec(16, 8, 128), Variant::Decode);
  EXPECT_EQ(s.str(),
            "order=split_kv,lanes=head_dim,q_tile=2,kv_tile=32,heads="
            "8,block_rows=2,block_vectors=2,prefetch=1,pack=0,stages=2,"
            "warps=1");
  // However many heads: nothing of them waits in L2.
  EXPECT_EQ(best("x86-64-v3", spec(32, 32, 128), Variant::Decode).heads, 32);
  EXPECT_EQ(best("x86-64-v3", spec(16, 16, 256), Variant::Decode).heads, 16);
}

// Wide vectors: rows are fetched as they are due; where Q and O of all heads do
// not stay in L1 beside whole tokens of four walks, those of values and then
// those of keys, if tokens are a page, or a tile at once.
TEST(RankTiles, DecodeFetchesRowsOnWideMachines) {
  auto prefetch = [](const char *on, int64_t group, KvLayout layout,
                     DType type) {
    AttentionSpec shape = spec(8 * group, 8, 128);
    shape.layout = layout;
    shape.qType = shape.kvType = type;
    Schedule s = best(on, shape, Variant::Decode);
    EXPECT_EQ(s.heads, 8);
    EXPECT_EQ(s.kvTile, 32);
    EXPECT_EQ(s.blockRows, group);
    return s.prefetch;
  };
  for (DType type : {DType::F32, DType::BF16, DType::F16}) {
    for (int64_t group : {2, 4, 8}) {
      EXPECT_EQ(prefetch("x86-64-v3", group, KvLayout::HND, type), 1);
      EXPECT_EQ(prefetch("x86-64-v3", group, KvLayout::NHD, type), 1);
      EXPECT_EQ(prefetch("avx512-bf16", group, KvLayout::HND, type), 2);
    }
    EXPECT_EQ(prefetch("avx512-bf16", 2, KvLayout::NHD, type),
              type == DType::F32 ? 4 : 2);
    EXPECT_EQ(prefetch("avx512-bf16", 4, KvLayout::NHD, type),
              type == DType::F32    ? 4
              : type == DType::BF16 ? 2
                                    : 3);
    EXPECT_EQ(prefetch("avx512-bf16", 8, KvLayout::NHD, type), 3);
  }
}

TEST(RankTiles, RowsOfATokenAreOneBlockOfDecode) {
  for (KvLayout layout : {KvLayout::NHD, KvLayout::HND})
    for (int64_t group : {1, 2, 3, 4, 5, 7, 8, 12, 16}) {
      AttentionSpec s = spec(8 * group, 8, 128);
      s.layout = layout;
      Schedule first = best("x86-64-v3", s, Variant::Decode);
      EXPECT_EQ(first.heads, 8);
      EXPECT_EQ(first.kvTile, 32);
      EXPECT_EQ(first.stages, 2);
      EXPECT_EQ(first.blockRows, group);
    }
}

// With one stage, what is on its way waits in L2.
TEST(RankTiles, OneStageCostsRoomInL2) {
  for (int64_t kvHeads : {8, 32}) {
    AttentionSpec shape = spec(kvHeads, kvHeads, 128);
    Machine on = machine("x86-64-v3");
    Schedule s = best("x86-64-v3", shape, Variant::Decode);
    Schedule one = s;
    one.stages = 1;
    one.kvTile = 16;
    TileCandidate two = evaluate(s, on, shape),
                  alone = evaluate(one, on, shape);
    EXPECT_GT(alone.cost, two.cost + 0.3);
    bool fits = llvm::all_of(
        alone.levels, [](const LevelUse &level) { return level.fits(); });
    EXPECT_EQ(fits, kvHeads == 8);
    for (const LevelUse &level : two.levels)
      EXPECT_TRUE(level.fits()) << level.level.str();
  }
}

TEST(RankTiles, ShortWindowsTakeSmallerKvTiles) {
  AttentionSpec s = spec(8, 4, 64);
  int64_t without = best("x86-64-v3", s, Variant::Prefill).kvTile;
  s.window = 128;
  EXPECT_LT(best("x86-64-v3", s, Variant::Prefill).kvTile, without);
  // One that no prompt of the length in question fills changes nothing.
  s.window = 4096;
  EXPECT_EQ(best("x86-64-v3", s, Variant::Prefill).kvTile, without);
}

TEST(RankTiles, DecodeVisitsTwoBlocksSideBySide) {
  for (auto [block, keys] : {std::pair<int64_t, int64_t>{16, 32},
                             {24, 48},
                             {20, 40},
                             {32, 64},
                             {48, 96},
                             {128, 256},
                             {192, 256}}) {
    AttentionSpec s = spec(16, 8, 64);
    s.blockSize = block;
    EXPECT_EQ(best("x86-64-v3", s, Variant::Decode).kvTile, keys) << block;
  }
}

TEST(RankTiles, GroupsThatFillVectorsDecodeWithLanesOverQueries) {
  EXPECT_EQ(best("x86-64-v3", spec(16, 1, 64), Variant::Decode).lanes,
            Schedule::Lanes::HeadDim);
  Schedule s = best("x86-64-v3", spec(17, 1, 64), Variant::Decode);
  EXPECT_EQ(s.lanes, Schedule::Lanes::Queries);
  EXPECT_EQ(s.qTile, 17);
  // The same group fills one vector only of a machine with wider ones.
  EXPECT_EQ(best("x86-64-v4", spec(17, 1, 64), Variant::Decode).lanes,
            Schedule::Lanes::HeadDim);
}

TEST(RankTiles, OddGroupsWasteFewRows) {
  for (auto [q, kv] : {std::pair<int64_t, int64_t>{71, 1},
                       {14, 2},
                       {9, 3},
                       {40, 8},
                       {36, 4},
                       {128, 1}})
    for (const char *on : {"x86-64-v3", "x86-64-v4", "neon"}) {
      Schedule s = best(on, spec(q, kv, 64), Variant::Prefill);
      int64_t group = q / kv, used = s.qTile / group * group;
      int64_t panel = s.blockVectors * machine(on).lanesF32();
      EXPECT_EQ(s.qTile % panel, 0);
      EXPECT_LE(double(s.qTile) / double(used), 1.05)
          << on << " group " << group << " q_tile " << s.qTile;
    }
}

TEST(RankTiles, NvidiaFitsTheMatrixShape) {
  for (const char *on : {"sm_80", "sm_86", "sm_90a"}) {
    Schedule s = best(on, spec(16, 8, 64, DType::F16), Variant::Prefill);
    EXPECT_EQ(s.str(),
              "order=q_outer,lanes=queries,q_tile=64,kv_tile=64,heads="
              "1,block_rows=1,block_vectors=1,prefetch=0,pack=0,stages=2,"
              "warps=4");
    s = best(on, spec(16, 8, 64, DType::F16), Variant::Decode);
    EXPECT_EQ(s.order, Schedule::Order::SplitKv);
    EXPECT_EQ(s.qTile, 64);
  }
  // 71 heads need 80 rows; warps come in fours.
  EXPECT_EQ(best("sm_80", spec(71, 1, 64, DType::F16), Variant::Decode).qTile,
            128);
}

TEST(RankTiles, NvidiaNamesTheLimitWhereNothingFits) {
  AttentionSpec mla = spec(128, 1, 576, DType::F16);
  mla.vHeadDim = 512;
  EXPECT_TRUE(rankTiles(machine("sm_80"), mla, Variant::Decode).empty());
  // Q alone takes 128 * 576 * 2 bytes; the smallest tile two stages more.
  EXPECT_EQ(
      text(selectTile(machine("sm_80"), mla, Variant::Decode).takeError()),
      "schedule needs 217088 bytes of shared memory, sm_80 has 166912 (M8)");
}

// Over machines, head shapes, types and block sizes: there is always a tile on
// a CPU, and every candidate is legal, in order, and there once.
TEST(RankTiles, CandidatesAreLegalSortedAndDistinct) {
  for (const char *on : {"x86-64-v3", "x86-64-v4", "neon", "sm_80"})
    for (auto [q, kv, dim] : {std::tuple<int64_t, int64_t, int64_t>{16, 8, 128},
                              {71, 1, 64},
                              {5, 5, 1},
                              {36, 4, 80},
                              {32, 32, 128},
                              {8, 4, 256}})
      for (DType type : {DType::F32, DType::BF16, DType::I8})
        for (int64_t block : {1, 7, 8, 16, 24, 48, 96, 192, 251, 256})
          for (Variant variant : {Variant::Prefill, Variant::Decode}) {
            AttentionSpec s = spec(q, kv, dim, type);
            s.blockSize = block;
            Machine m = machine(on);
            std::vector<TileCandidate> ranked = rankTiles(m, s, variant);
            if (m.kind == TargetKind::Cpu)
              ASSERT_FALSE(ranked.empty()) << on << " block " << block;
            ASSERT_LE(ranked.size(), 32u);
            for (size_t i = 0; i < ranked.size(); ++i) {
              ASSERT_EQ(text(checkSchedule(ranked[i].schedule, m, s)), "");
              if (i == 0)
                continue;
              ASSERT_LE(ranked[i - 1].cost, ranked[i].cost + 1e-6);
              for (size_t j = 0; j < i; ++j)
                ASSERT_FALSE(ranked[i].schedule == ranked[j].schedule);
            }
          }
}

TEST(RankTiles, LargeHeadsStillHaveATile) {
  // Nothing fits the share of L2; the least bad tile is taken.
  AttentionSpec mla = spec(128, 1, 576, DType::BF16);
  mla.vHeadDim = 512;
  for (Variant variant : {Variant::Prefill, Variant::Decode}) {
    llvm::Expected<TileCandidate> tile =
        selectTile(machine("x86-64-v3"), mla, variant);
    ASSERT_TRUE(bool(tile)) << text(tile.takeError());
    EXPECT_GE(tile->schedule.qTile, 128);
    EXPECT_LE(tile->schedule.qTile, 144);
  }
}

TEST(SelectTile, OverridesAreAppliedExplainedAndChecked) {
  Machine m = machine("x86-64-v3");
  AttentionSpec s = spec(16, 8, 128);
  llvm::Expected<TileCandidate> tile =
      selectTile(m, s, Variant::Prefill, {"q_tile=48,kv_tile=128"});
  ASSERT_TRUE(bool(tile));
  EXPECT_EQ(tile->schedule.qTile, 48);
  EXPECT_EQ(tile->schedule.kvTile, 128);
  EXPECT_EQ(tile->schedule.blockRows, 4);
  EXPECT_EQ(tile->cost, evaluate(tile->schedule, m, s).cost);
  EXPECT_EQ(
      text(selectTile(m, s, Variant::Prefill, {"kv_tile=33"}).takeError()),
      "schedule kv_tile must be a multiple of block_rows, 4, got 33 (M6)");
  EXPECT_EQ(text(selectTile(m, s, Variant::Prefill, {"tile=33"}).takeError())
                .find("unknown schedule key 'tile'"),
            0u);
}

TEST(SelectTile, HeadsMustDivide) {
  EXPECT_EQ(
      text(selectTile(machine("x86-64-v3"), spec(9, 2, 64), Variant::Prefill)
               .takeError()),
      "query heads must be a multiple of kv heads, got 9 and 2");
  EXPECT_EQ(
      text(selectTile(machine("x86-64-v3"), spec(9, 0, 64), Variant::Prefill)
               .takeError()),
      "query heads must be a multiple of kv heads, got 9 and 0");
}
