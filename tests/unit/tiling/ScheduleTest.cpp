//===- ScheduleTest.cpp - Text, overrides and check of schedules ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "gtest/gtest.h"

using namespace pagoda;
using namespace pagoda::test;

namespace {

/// A legal prefill schedule for 16 to 8 heads on AVX2.
Schedule prefill() {
  Schedule s;
  s.qTile = 96;
  s.kvTile = 64;
  s.blockRows = 4;
  s.blockVectors = 3;
  return s;
}

/// A legal decode schedule for 16 to 8 heads on AVX2.
Schedule decode() {
  Schedule s;
  s.order = Schedule::Order::SplitKv;
  s.lanes = Schedule::Lanes::HeadDim;
  s.qTile = 2;
  s.kvTile = 16;
  s.heads = 8;
  s.blockRows = 2;
  s.blockVectors = 4;
  s.prefetch = 1;
  return s;
}

/// A legal schedule for sm_80.
Schedule ampere() {
  Schedule s;
  s.qTile = s.kvTile = 64;
  s.stages = 2;
  s.warps = 4;
  return s;
}

std::string apply(Schedule &s, std::vector<std::string> overrides,
                  const char *on = "x86-64-v3",
                  Variant variant = Variant::Prefill) {
  return text(applyOverrides(s, machine(on), variant, overrides));
}

std::string check(const Schedule &s, const char *on = "x86-64-v3") {
  return text(checkSchedule(s, machine(on), spec(16, 8, 128)));
}

} // namespace

TEST(Schedule, TextReadsBack) {
  for (const Schedule &s : {prefill(), decode()}) {
    // Of the other machine's fields only those at their default are dropped.
    std::string all = s.str();
    size_t cut = all.find(",stages=");
    ASSERT_NE(cut, std::string::npos);
    Schedule back;
    EXPECT_EQ(apply(back, {all.substr(0, cut)}), "");
    EXPECT_EQ(back, s) << all;
  }
  EXPECT_EQ(decode().str(),
            "order=split_kv,lanes=head_dim,q_tile=2,kv_tile=16,heads=8,block_"
            "rows=2,block_vectors=4,prefetch=1,pack=0,stages=1,warps=1");
}

TEST(Schedule, OverridesHoldForTheirVariant) {
  const std::vector<std::string> overrides = {
      "kv_tile=32", "prefill.q_tile=48,decode.heads=4"};
  Schedule p = prefill(), d = decode();
  EXPECT_EQ(apply(p, overrides), "");
  EXPECT_EQ(apply(d, overrides, "x86-64-v3", Variant::Decode), "");
  Schedule wantP = prefill(), wantD = decode();
  wantP.kvTile = wantD.kvTile = 32;
  wantP.qTile = 48;
  wantD.heads = 4;
  EXPECT_EQ(p, wantP);
  EXPECT_EQ(d, wantD);
}

TEST(Schedule, OverrideErrorsNameTheFault) {
  Schedule s;
  EXPECT_EQ(apply(s, {"q_tile"}),
            "schedule override must be key=value, got 'q_tile'");
  EXPECT_EQ(apply(s, {"q_tile=x"}),
            "schedule q_tile must be a number, got 'x'");
  EXPECT_EQ(apply(s, {"order=outer"}),
            "schedule order must be one of naive, gather, kv_outer, q_outer, "
            "split_kv, got 'outer'");
  EXPECT_EQ(apply(s, {"lanes=keys"}),
            "schedule lanes must be one of queries, head_dim, got 'keys'");
  EXPECT_EQ(apply(s, {"warps=2"}),
            "unknown schedule key 'warps' for a cpu target, known are order, "
            "lanes, q_tile, kv_tile, heads, block_rows, block_vectors, "
            "prefetch, pack, stages, each for one kernel of the two with "
            "prefill. or decode. before it");
  EXPECT_EQ(apply(s, {"lanes=queries"}, "sm_80"),
            "unknown schedule key 'lanes' for a nvidia target, known are "
            "order, q_tile, kv_tile, heads, stages, warps, each for one kernel "
            "of the two with prefill. or decode. before it");
  EXPECT_EQ(apply(s, {"kv_tile=64", "prefill.kv_tile=32,kv_tile=16"}),
            "schedule kv_tile is given twice, 64 and 16");
  // A mistake in the other variant's overrides is found too.
  EXPECT_EQ(apply(s, {"decode.q_tile=x"}),
            "schedule q_tile must be a number, got 'x'");
  s.kvTile = Schedule().kvTile; // what came before the fault
  EXPECT_EQ(s, Schedule());
}

TEST(Schedule, LegalOnesPass) {
  EXPECT_EQ(check(prefill()), "");
  EXPECT_EQ(check(decode()), "");
  EXPECT_EQ(check(ampere(), "sm_80"), "");
}

TEST(Schedule, FieldsAreBounded) { // M1, M2, M3
  Schedule s = prefill();
  s.kvTile = 0;
  EXPECT_EQ(check(s),
            "schedule kv_tile must be between 1 and 65536, got 0 (M1)");
  s = prefill();
  s.qTile = 65537;
  EXPECT_EQ(check(s),
            "schedule q_tile must be between 1 and 65536, got 65537 (M1)");
  s = prefill();
  s.prefetch = -1;
  EXPECT_EQ(check(s),
            "schedule prefetch must be between 0 and 65536, got -1 (M1)");
  s = decode();
  s.pack = 3;
  EXPECT_EQ(check(s), "schedule pack must be 0, 1 or 2, got 3 (M1)");
  s = prefill();
  s.warps = 2;
  EXPECT_EQ(check(s), "schedule warps is not read by a cpu target, expected "
                      "1, got 2 (M2)");
  s = ampere();
  s.blockRows = 4;
  EXPECT_EQ(check(s, "sm_80"), "schedule block_rows is not read by a nvidia "
                               "target, expected 1, got 4 (M2)");
  for (auto [order, name] : {std::pair{Schedule::Order::Naive, "naive"},
                             {Schedule::Order::Gather, "gather"},
                             {Schedule::Order::KvOuter, "kv_outer"}}) {
    s = ampere();
    s.order = order;
    EXPECT_EQ(check(s, "sm_80"),
              std::string("schedule order must be q_outer or split_kv for a "
                          "nvidia target, got ") +
                  name + " (M3)");
    s = prefill();
    s.order = order;
    EXPECT_EQ(check(s), "");
  }
}

TEST(Schedule, HeadsFollowTheLanes) { // M4
  Schedule s = prefill();
  s.heads = 2;
  EXPECT_EQ(check(s),
            "schedule heads must be 1 for lanes = queries, got 2 (M4)");
  s = ampere();
  s.heads = 8;
  EXPECT_EQ(check(s, "sm_80"),
            "schedule heads must be 1 for a nvidia target, got 8 (M4)");
  s = decode();
  s.heads = 3;
  EXPECT_EQ(check(s), "schedule heads must divide 8 kv heads, got 3 (M4)");
}

TEST(Schedule, QTileHoldsATokenAndWholeWarps) { // M5
  Schedule s = prefill();
  s.qTile = 1;
  EXPECT_EQ(check(s), "schedule q_tile must be at least the 2 query heads of "
                      "a kv head, got 1 (M5)");
  s = ampere();
  s.warps = 2;
  EXPECT_EQ(check(s, "sm_80"), "schedule q_tile must be 16 rows for each of at "
                               "most 32 warps, got 64 rows and 2 warps (M5)");
  s.warps = 64;
  s.qTile = 1024;
  EXPECT_EQ(check(s, "sm_80"),
            "schedule q_tile must be 16 rows for each of at most 32 warps, got "
            "1024 rows and 64 warps (M5)");
}

TEST(Schedule, TilesAreWholeBlocks) { // M6
  Schedule s = prefill();
  s.kvTile = 66;
  EXPECT_EQ(
      check(s),
      "schedule kv_tile must be a multiple of block_rows, 4, got 66 (M6)");
  s = decode();
  s.kvTile = 18; // lanes = head dim: any
  EXPECT_EQ(check(s), "");
  s = decode();
  s.blockRows = 4;
  s.blockVectors = 2;
  EXPECT_EQ(check(s),
            "schedule block_rows must be at most q_tile, 2, got 4 (M6)");
  s = ampere();
  s.kvTile = 72;
  EXPECT_EQ(check(s, "sm_80"), "schedule kv_tile must be a multiple of the "
                               "matrix shape, 16, got 72 (M6)");
}

TEST(Schedule, RegistersAndSharedMemoryAreHardLimits) { // M7, M8
  Schedule s = prefill();
  s.blockRows = 8;
  EXPECT_EQ(check(s), "schedule needs 28 registers, x86-64-v3 has 16 (M7)");
  EXPECT_EQ(check(s, "x86-64-v4"), "");
  s = ampere();
  s.stages = 1;
  s.kvTile = 192; // 96 + 48 + 64 + 40
  EXPECT_EQ(
      text(checkSchedule(s, machine("sm_80"), spec(16, 8, 128, DType::F16))),
      "schedule needs 248 registers, sm_80 has 240 (M7)");
  s.kvTile = 64;
  s.stages = 5; // 16384 + 5 * 32768
  EXPECT_EQ(
      text(checkSchedule(s, machine("sm_80"), spec(16, 8, 128, DType::F16))),
      "schedule needs 180224 bytes of shared memory, sm_80 has 166912 "
      "(M8)");
}

TEST(Schedule, PairsNeedBf16AndEvenSizes) { // M9
  AttentionSpec shape = spec(16, 8, 128);
  Schedule s;
  s.qTile = 48;
  s.kvTile = 64;
  s.blockRows = 4;
  s.blockVectors = 3;
  s.pack = 2;
  auto check = [&] {
    return llvm::toString(
        checkSchedule(s, llvm::cantFail(Machine::named("x86-64-v3")), shape));
  };
  EXPECT_NE(check().find("of bf16"), std::string::npos);
  shape.qType = shape.kvType = DType::BF16;
  EXPECT_EQ(check(), "");
  shape.headDim = 127;
  EXPECT_EQ(check(), "schedule pack 2 needs lanes = queries, queries and keys "
                     "of bf16, an even head dim and an even kv_tile, got head "
                     "dim 127 and kv_tile 64 (M9)");
  shape.headDim = 128;
  s.blockRows = 1;
  s.kvTile = 63;
  EXPECT_NE(check().find("kv_tile 63 (M9)"), std::string::npos);
}

TEST(Schedule, CacheSharesAreAdvice) {
  Schedule s = prefill();
  s.qTile = 24 * 100; // 2.4 MB of Q and O
  EXPECT_EQ(check(s), "");
}

TEST(Schedule, TwoStagesNeedLanesOfTheHeadDim) { // M10
  Schedule s = decode();
  s.stages = 2;
  EXPECT_EQ(check(s), "");
  s.stages = 3;
  EXPECT_EQ(check(s), "schedule stages must be 1, or 2 with lanes = head_dim, "
                      "for a cpu target, got 3 (M10)");
  s = prefill();
  s.stages = 2;
  EXPECT_EQ(check(s), "schedule stages must be 1, or 2 with lanes = head_dim, "
                      "for a cpu target, got 2 (M10)");
}

TEST(Schedule, TwoStagesFetchInOneOfFiveWays) { // M10
  Schedule s = decode();
  s.prefetch = 5;
  EXPECT_EQ(check(s), "");
  s.stages = 2;
  EXPECT_EQ(check(s), "schedule prefetch must be at most 4 with two stages, "
                      "got 5 (M10)");
  s.prefetch = 4;
  EXPECT_EQ(check(s), "");
}
