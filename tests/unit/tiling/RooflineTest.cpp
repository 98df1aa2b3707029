//===- RooflineTest.cpp - Bytes and flops worked out by hand --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/Roofline.h"
#include "gtest/gtest.h"

using namespace pagoda;

namespace {

/// 4 query heads on 2 KV heads, head dims 8 and 4, f32.
AttentionSpec smallSpec() {
  AttentionSpec spec;
  spec.qHeads = 4;
  spec.kvHeads = 2;
  spec.headDim = 8;
  spec.vHeadDim = 4;
  return spec;
}

Machine machine(const char *name) {
  return llvm::cantFail(Machine::named(name));
}

Schedule tiles(int64_t qTile, int64_t kvTile) {
  Schedule schedule;
  schedule.qTile = qTile;
  schedule.kvTile = kvTile;
  schedule.blockVectors = 1;
  return schedule;
}

} // namespace

TEST(Roofline, PairsOfACausalPrompt) {
  // 1 + 2 + ... + 6 pairs a head, 2 (8 + 4) flops a pair, 4 heads.
  Roofline r = roofline(machine("x86-64-v3"), smallSpec(), tiles(4, 2), {6, 6});
  EXPECT_EQ(r.pairs, 21);
  EXPECT_EQ(r.flops(), 21 * 24 * 4);
  EXPECT_EQ(r.limits[0].perCycle, 32);
}

TEST(Roofline, QueryTilesReadTheKeysTheySee) {
  // Tiles of two tokens read 2, 4 and 6 keys of each of 2 heads, 48 bytes a key
  // and value; q and o are 6 tokens of 4 heads, 48 bytes.
  Roofline r = roofline(machine("x86-64-v3"), smallSpec(), tiles(4, 2), {6, 6});
  EXPECT_EQ(r.memoryBytes(), 2 * 12 * 48 + 6 * 4 * 48);
  EXPECT_EQ(r.leastBytes, 2 * 6 * 48 + 6 * 4 * 48);
  // 1 + 2 + 3 KV tiles, one panel of 8 rows: 2 keys, Q^T once and O^T twice.
  EXPECT_EQ(r.limits[2].amount, 2 * 6 * (2 * 48 + 8 * (8 + 2 * 4) * 4));
  EXPECT_DOUBLE_EQ(r.intensity(), r.flops() / r.memoryBytes());
  EXPECT_DOUBLE_EQ(r.ridge(), 8);
}

TEST(Roofline, LoadsOfTheInnerLoops) {
  // 21 pairs of 4 heads, 12 dims, 8 lanes: 126 fused operations.
  Machine cpu = machine("x86-64-v3");
  Schedule s = tiles(4, 2);
  s.blockRows = 4;
  s.blockVectors = 2;
  auto loads = [&] {
    return roofline(cpu, smallSpec(), s, {6, 6}).limits[1].amount;
  };
  EXPECT_DOUBLE_EQ(loads(), 126 * (0.25 + 0.5));
  // Pairs halve the steps, and are twice as fast where there is an instruction.
  s.pack = 2;
  EXPECT_DOUBLE_EQ(loads(), 63 * (0.25 + 0.5));
  auto rate = [&](const char *name) {
    return roofline(machine(name), smallSpec(), s, {6, 6}).limits[0].perCycle;
  };
  EXPECT_EQ(rate("x86-64-v4"), 64);
  EXPECT_EQ(rate("avx512-bf16"), 128);
  // Two thirds of the operations are of keys: one row of keys, a vector of
  // queries each; the rest of values: one row, weights for two vectors.
  s = tiles(4, 2);
  s.lanes = Schedule::Lanes::HeadDim;
  s.blockRows = 4;
  s.blockVectors = 2;
  EXPECT_DOUBLE_EQ(loads(), 84 * 1.25 + 42 * 0.75);
  // Two keys and two values at a time: half a vector of Q each, half one of O;
  // two rows of the four in a pass share them.
  s.stages = 2;
  EXPECT_DOUBLE_EQ(loads(), (84 + 42) * (0.5 + 0.5));
}

TEST(Roofline, LargerQueryTilesMoveLess) {
  AttentionSpec spec = smallSpec();
  Machine cpu = machine("x86-64-v3");
  double small = roofline(cpu, spec, tiles(8, 16), {512, 512}).memoryBytes();
  double large = roofline(cpu, spec, tiles(128, 16), {512, 512}).memoryBytes();
  EXPECT_GT(small, 8 * large);
  EXPECT_GT(large, roofline(cpu, spec, tiles(128, 16), {512, 512}).leastBytes);
}

// K and V of a layer that the cache of all multiprocessors holds come from
// memory once.
TEST(Roofline, SharedCacheOfAGpuSavesReads) {
  AttentionSpec spec = smallSpec();
  Machine gpu = machine("sm_80");
  Roofline r = roofline(gpu, spec, tiles(16, 16), {512, 512});
  EXPECT_EQ(r.memoryBytes(), r.leastBytes);
  gpu.l3Bytes = 1 << 10;
  r = roofline(gpu, spec, tiles(16, 16), {512, 512});
  EXPECT_GT(r.memoryBytes(), 2 * r.leastBytes);
}

TEST(Roofline, WindowsAndChunksBoundWhatIsRead) {
  AttentionSpec spec = smallSpec();
  spec.window = 3;
  // Position 9 of 20 sees 7, 8 and 9.
  EXPECT_EQ(visibleKeys(spec, 9, 20), std::pair(int64_t(7), int64_t(10)));
  EXPECT_EQ(visibleKeys(spec, 1, 20), std::pair(int64_t(0), int64_t(2)));
  Roofline r = roofline(machine("x86-64-v3"), spec, tiles(2, 2), {1, 1000});
  EXPECT_EQ(r.pairs, 3);
  spec.window.reset();
  spec.chunk = 4;
  EXPECT_EQ(visibleKeys(spec, 9, 20), std::pair(int64_t(8), int64_t(10)));
  spec.causal = false;
  EXPECT_EQ(visibleKeys(spec, 9, 20), std::pair(int64_t(8), int64_t(12)));
  EXPECT_EQ(visibleKeys(spec, 9, 11), std::pair(int64_t(8), int64_t(11)));
}

TEST(Roofline, DecodeIsBoundByMemoryAndLongPromptsAreNot) {
  AttentionSpec spec;
  spec.qHeads = 16;
  spec.kvHeads = 8;
  spec.headDim = spec.vHeadDim = 128;
  Schedule decode = tiles(2, 16);
  decode.lanes = Schedule::Lanes::HeadDim;
  for (const char *name : {"x86-64-v3", "x86-64-v4", "neon"}) {
    Machine cpu = machine(name);
    EXPECT_EQ(roofline(cpu, spec, decode, {1, 2048}).binding().name, "memory");
    Schedule prefill = tiles(288, 64);
    prefill.blockRows = 4;
    prefill.blockVectors = 3;
    EXPECT_EQ(roofline(cpu, spec, prefill, {2048, 2048}).binding().name, "FMA");
    // A register block of one row loads more than it multiplies.
    prefill.blockRows = 1;
    EXPECT_EQ(roofline(cpu, spec, prefill, {2048, 2048}).binding().name,
              "load ports");
  }
  // One query token of a group of 2: an intensity of about 2 flops for each 2
  // bytes of 16-bit keys, far below any GPU's ridge.
  spec.qType = spec.kvType = DType::F16;
  Schedule warps = tiles(64, 64);
  warps.warps = 4;
  Roofline r = roofline(machine("sm_90a"), spec, warps, {1, 2048});
  EXPECT_EQ(r.binding().name, "memory");
  EXPECT_NEAR(r.intensity(), 2, 0.01);
  EXPECT_GT(r.ridge(), 100);
}
