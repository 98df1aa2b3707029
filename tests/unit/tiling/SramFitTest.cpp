//===- SramFitTest.cpp - Countings against numbers worked out by hand -----===//
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

const LevelUse &level(const TileCandidate &candidate, llvm::StringRef name) {
  for (const LevelUse &use : candidate.levels)
    if (use.level == name)
      return use;
  ADD_FAILURE() << "no level " << name.str();
  static const LevelUse none{};
  return none;
}

int64_t part(const LevelUse &use, llvm::StringRef name) {
  for (auto [what, count] : use.parts)
    if (what == name)
      return count;
  ADD_FAILURE() << "no part " << name.str();
  return -1;
}

double step(const TileCandidate &candidate, llvm::StringRef name) {
  for (const Step &step : candidate.steps)
    if (step.name == name)
      return step.result;
  ADD_FAILURE() << "no step " << name.str();
  return -1;
}

} // namespace

// A worked example: M = 48 KiB of f32, then 1 MiB.
TEST(Example, tile_formula) {
  PaperTiles small = paperTiles(12288, 128);
  EXPECT_EQ(small.bc, 24);
  EXPECT_EQ(small.br, 24);
  PaperTiles large = paperTiles(262144, 128);
  EXPECT_EQ(large.bc, 512);
  EXPECT_EQ(large.br, 128);
}

TEST(SramFit, PaperFormulaRoundsUp) {
  EXPECT_EQ(paperTiles(1, 128).bc, 1);
  EXPECT_EQ(paperTiles(513, 128).bc, 2);
  EXPECT_EQ(paperTiles(512, 128).bc, 1);
}

TEST(SramFit, CountsLanesAreQueries) {
  Schedule s;
  s.qTile = 90; // four panels of 24, the last one short
  s.kvTile = 64;
  s.blockRows = 4;
  s.blockVectors = 3;
  AttentionSpec bf16 = spec(16, 8, 128, DType::BF16);
  bf16.vHeadDim = 64;
  TileCandidate c = evaluate(s, machine("x86-64-v3"), bf16);

  const LevelUse &registers = level(c, "registers");
  EXPECT_EQ(registers.total(), 4 * 3 + 3 + 1);
  EXPECT_EQ(registers.budget, 16);
  EXPECT_TRUE(registers.fits());
  EXPECT_TRUE(registers.hard);

  const LevelUse &l1 = level(c, "L1");
  EXPECT_EQ(part(l1, "Q^T or O^T panel"), 128 * 24 * 4);
  EXPECT_EQ(part(l1, "S^T panel"), 64 * 24 * 4);
  EXPECT_EQ(l1.budget, 32 * 1024 * 7 / 10);
  EXPECT_FALSE(l1.hard);

  const LevelUse &l2 = level(c, "L2");
  EXPECT_EQ(part(l2, "K tile"), 64 * 128 * 2);
  EXPECT_EQ(part(l2, "V tile"), 64 * 64 * 2);
  EXPECT_EQ(part(l2, "next V tile"), 0);
  EXPECT_EQ(part(l2, "Q^T and O^T"), 96 * (128 + 64) * 4);
  EXPECT_EQ(part(l2, "S^T panel"), 64 * 24 * 4);
  EXPECT_EQ(part(l2, "m, l, alpha"), 3 * 96 * 4);
  EXPECT_EQ(l2.total(), 24576 + 73728 + 6144 + 1152);
  EXPECT_EQ(l2.budget, 512 * 1024 * 9 / 10);

  EXPECT_EQ(step(c, "panel"), 24);
  // 96 rows computed for 45 tokens of 2 heads.
  EXPECT_NEAR(step(c, "rows computed per row used"), 96.0 / 90, 1e-12);
  // A panel of 24 rows holds 12 tokens; keys go by fours.
  EXPECT_NEAR(step(c, "keys beyond the diagonal"), (12 + 4) / 2048.0, 1e-12);
  EXPECT_NEAR(step(c, "items too large to spread"), 45 / 4096.0, 1e-12);
  // 8 lanes of 2 bytes, twice a cycle, against 4 bytes a cycle.
  EXPECT_NEAR(step(c, "K and V from beyond L2"), 2.0 * 8 * 2 / (4 * 90), 1e-12);
}

TEST(SramFit, CountsLanesAreHeadDim) {
  Schedule s;
  s.lanes = Schedule::Lanes::HeadDim;
  s.qTile = 2;
  s.kvTile = 16;
  s.heads = 8;
  s.blockRows = 2;
  s.blockVectors = 4;
  s.prefetch = 1;
  // Rows of 80 values take ten vectors of 8; on AVX-512 five of 16.
  AttentionSpec narrow = spec(16, 8, 80);
  TileCandidate c = evaluate(s, machine("x86-64-v3"), narrow);
  const LevelUse &l1 = level(c, "L1");
  EXPECT_EQ(part(l1, "Q and O of a head"), 2 * 160 * 4);
  EXPECT_EQ(part(l1, "S"), 8 * 2 * 16 * 4);
  EXPECT_EQ(part(l1, "K and V of a head"), 16 * 160 * 4);
  const LevelUse &l2 = level(c, "L2");
  EXPECT_EQ(part(l2, "Q and O"), 8 * 2 * 160 * 4);
  EXPECT_EQ(part(l2, "m, l, what it lost, alpha"), 4 * 8 * 2 * 4);
  EXPECT_EQ(part(l2, "K and V on their way"), 8 * 16 * 160 * 4);
  EXPECT_EQ(step(c, "contiguous run"), 8 * 16 * 80 * 4);
  s.prefetch = 0;
  EXPECT_GT(evaluate(s, machine("x86-64-v3"), narrow).cost, c.cost + 0.2);
  s.prefetch = 2;
  c = evaluate(s, machine("x86-64-v3"), narrow);
  EXPECT_EQ(part(level(c, "L2"), "K and V on their way"), 2 * 8 * 16 * 160 * 4);

  // Head dims are padded to whole vectors in scratch, not in the cache.
  AttentionSpec odd = spec(16, 8, 70);
  c = evaluate(s, machine("x86-64-v4"), odd);
  EXPECT_EQ(part(level(c, "L1"), "Q and O of a head"), 2 * 160 * 4);
  EXPECT_EQ(part(level(c, "L1"), "K and V of a head"), 16 * 140 * 4);
}

TEST(SramFit, RunsAreContiguousInTheOrderOfABlock) {
  Schedule s;
  s.lanes = Schedule::Lanes::HeadDim;
  s.qTile = 2;
  s.kvTile = 16;
  s.heads = 8;
  AttentionSpec spec = test::spec(16, 8, 128);
  auto run = [&] {
    return step(evaluate(s, machine("x86-64-v3"), spec), "contiguous run");
  };
  EXPECT_EQ(run(), 8 * 16 * 128 * 4);
  s.kvTile = 32; // two blocks: head after head no longer lies together
  EXPECT_EQ(run(), 16 * 128 * 4);
  s.kvTile = 16;
  spec.layout = KvLayout::NHD;
  EXPECT_EQ(run(), 8 * 16 * 128 * 4);
  s.kvTile = 32; // token after token all the same
  EXPECT_EQ(run(), 8 * 16 * 128 * 4);
  s.heads = 4; // half of each token
  EXPECT_EQ(run(), 4 * 128 * 4);
  // An only head's tokens follow each other in either layout.
  spec.kvHeads = s.heads = 1;
  spec.blockSize = 64;
  EXPECT_EQ(run(), 64 * 128 * 4);
  spec.layout = KvLayout::HND;
  EXPECT_EQ(run(), 64 * 128 * 4);
}

TEST(SramFit, TwoStagesWalkTwoStreams) {
  Schedule s;
  s.lanes = Schedule::Lanes::HeadDim;
  s.qTile = s.blockRows = 2;
  s.kvTile = 32;
  s.heads = 8;
  s.stages = 2;
  AttentionSpec shape = spec(16, 8, 128);
  auto use = [&] { return evaluate(s, machine("x86-64-v3"), shape); };
  TileCandidate c = use();
  EXPECT_EQ(part(level(c, "L1"), "Q and O of a head"), 2 * 256 * 4);
  EXPECT_EQ(part(level(c, "L1"), "S"), 8 * 2 * 32 * 4);
  EXPECT_EQ(part(level(c, "L1"), "rows of K and V"), 2 * 256 * 4);
  EXPECT_EQ(part(level(c, "L2"), "K and V on their way"), 0);
  // Half a tile is a block: a walk through all its heads.
  EXPECT_EQ(step(c, "contiguous run"), 8 * 16 * 128 * 4);
  EXPECT_EQ(step(c, "two streams in a page"), 0);
  EXPECT_EQ(step(c, "keys of a stream"), 0);
  EXPECT_EQ(step(c, "one stream"), 0);
  s.kvTile = 64;
  EXPECT_NEAR(step(use(), "keys of a stream"), 0.04, 1e-12);
  EXPECT_EQ(step(use(), "contiguous run"), 8 * 16 * 128 * 4);
  // Keys 8 and 4 rows apart, 4096 and 2048 bytes.
  s.kvTile = 16;
  EXPECT_EQ(step(use(), "two streams in a page"), 0);
  EXPECT_EQ(step(use(), "contiguous run"), 8 * 128 * 4);
  s.kvTile = 8;
  EXPECT_EQ(step(use(), "two streams in a page"), 1);
  // An odd tile has one stream of each.
  s.kvTile = 15;
  EXPECT_EQ(step(use(), "two streams in a page"), 0);
  EXPECT_EQ(part(level(use(), "L1"), "rows of K and V"), 256 * 4);
  s.stages = 1;
  EXPECT_NEAR(step(use(), "one stream"), 0.4, 1e-12);
  // An only head's streams lie in one block and skip each other's halves.
  s.stages = 2;
  s.kvTile = 32;
  shape = spec(2, 1, 128);
  shape.blockSize = 128;
  s.heads = 1;
  EXPECT_EQ(step(use(), "contiguous run"), 16 * 128 * 4);
  EXPECT_EQ(step(use(), "keys of a stream"), 0);
  s.heads = 8;
  // Token-major, each key meets the rows of all heads.
  s.stages = 2;
  s.kvTile = 32;
  shape = spec(32, 8, 128);
  shape.layout = KvLayout::NHD;
  s.qTile = s.blockRows = 4;
  EXPECT_EQ(part(level(use(), "L1"), "Q and O of all heads"), 8 * 4 * 256 * 4);
}

// With two stages and prefetch: rows that are due are in L1, too, and so should
// be Q and O of all heads where rows are visited token by token.
TEST(SramFit, FetchedRowsTakeRoom) {
  Schedule s;
  s.lanes = Schedule::Lanes::HeadDim;
  s.qTile = s.blockRows = 4;
  s.kvTile = 32;
  s.heads = 8;
  s.stages = 2;
  AttentionSpec shape = spec(32, 8, 128);
  shape.layout = KvLayout::NHD;
  auto use = [&](const char *on, int64_t prefetch) {
    s.prefetch = prefetch;
    return evaluate(s, machine(on), shape);
  };
  // Two keys and two values, 2048 bytes ahead of each.
  EXPECT_EQ(part(level(use("x86-64-v4", 2), "L1"), "rows of K and V"),
            2 * 256 * 4 + 4 * 2048);
  // 32 rows of Q and O and their scores are not all that L1 must hold: 44 of
  // 48 KiB are too much. Each key meets 4 rows as long as its own and its
  // value's.
  EXPECT_NEAR(step(use("x86-64-v4", 2), "Q and O that leave L1"), 0.4, 1e-12);
  EXPECT_EQ(step(use("x86-64-v4", 1), "Q and O that leave L1"), 0);
  EXPECT_EQ(step(use("x86-64-v4", 3), "Q and O that leave L1"), 0);
  shape.layout = KvLayout::HND;
  EXPECT_EQ(step(use("x86-64-v4", 2), "Q and O that leave L1"), 0);
  // A whole tile on its way is in L2.
  TileCandidate c = use("x86-64-v4", 3);
  EXPECT_EQ(part(level(c, "L2"), "K and V on their way"), 8 * 32 * 256 * 4);
  EXPECT_EQ(part(level(c, "L1"), "rows of K and V"), 2 * 256 * 4);
  EXPECT_NEAR(step(c, "a tile fetched at once"), 0.15, 1e-12);

  EXPECT_NEAR(step(use("x86-64-v4", 1), "rows fetched"), 0.3, 1e-12);
  EXPECT_EQ(step(use("x86-64-v4", 2), "rows fetched"), 0);
  EXPECT_EQ(step(use("x86-64-v3", 1), "rows fetched"), 0);
  EXPECT_NEAR(step(use("x86-64-v3", 2), "rows fetched"), 0.1, 1e-12);

  // Keys that meet pairs of bf16 leave Q half as large.
  shape.qType = shape.kvType = DType::BF16;
  EXPECT_EQ(part(level(use("avx512-bf16", 2), "L1"), "Q and O of a head"),
            4 * (128 * 2 + 128 * 4));
  EXPECT_EQ(part(level(use("x86-64-v4", 2), "L1"), "Q and O of a head"),
            4 * 256 * 4);
}

// A score and a weight of each row for each of two keys and two values, beside
// 8 other registers; half of the rows at most where nothing fetches them, else
// passes of about the same length.
TEST(SramFit, RowsOfAPassFitTheRegisters) {
  auto unfetched = [](int64_t rows, int64_t streams, int64_t registers) {
    return rowsOfPass(rows, streams, registers, /*fetched=*/false);
  };
  EXPECT_EQ(unfetched(1, 2, 16), 1);
  EXPECT_EQ(unfetched(2, 2, 16), 1);
  EXPECT_EQ(unfetched(3, 2, 16), 2);
  EXPECT_EQ(unfetched(4, 2, 16), 2);
  EXPECT_EQ(unfetched(16, 2, 16), 2);
  EXPECT_EQ(unfetched(16, 1, 16), 4);
  EXPECT_EQ(unfetched(4, 2, 32), 2);
  EXPECT_EQ(unfetched(16, 2, 32), 6);
  auto fetched = [](int64_t rows, int64_t registers) {
    return rowsOfPass(rows, 2, registers, /*fetched=*/true);
  };
  EXPECT_EQ(fetched(1, 32), 1);
  EXPECT_EQ(fetched(4, 32), 4);
  EXPECT_EQ(fetched(6, 32), 6);
  EXPECT_EQ(fetched(7, 32), 4);
  EXPECT_EQ(fetched(16, 32), 6);
  EXPECT_EQ(fetched(4, 16), 2);

  Schedule s;
  s.lanes = Schedule::Lanes::HeadDim;
  s.kvTile = 32;
  s.heads = 8;
  s.stages = 2;
  s.blockVectors = 2;
  s.qTile = s.blockRows = 16;
  AttentionSpec shape = spec(128, 8, 128);
  TileCandidate c = evaluate(s, machine("x86-64-v3"), shape);
  EXPECT_EQ(part(level(c, "registers"), "scores and weights of a pass"), 8);
  EXPECT_TRUE(level(c, "registers").fits());
  s.stages = 1;
  EXPECT_FALSE(
      level(evaluate(s, machine("x86-64-v3"), shape), "registers").fits());
}

// 227 KiB of shared memory, 128 rows of Q, two stages, two bytes, d = 128: 195
// keys by shared memory; half a register a column for S, a quarter for P, 64
// for O and 40 others of 240: 181. Whole matrix shapes of the smaller: 176.
TEST(SramFit, TwoBudgetsOfAGpu) {
  Schedule s;
  s.qTile = 128;
  s.kvTile = 176;
  s.stages = 2;
  s.warps = 8;
  AttentionSpec f16 = spec(32, 8, 128, DType::F16);
  TileCandidate c = evaluate(s, machine("sm_90a"), f16);
  EXPECT_EQ(step(c, "keys by shared memory"), 195);
  EXPECT_EQ(step(c, "keys by registers"), 181);
  EXPECT_EQ(step(c, "largest legal kv_tile"), 176);
  EXPECT_TRUE(level(c, "registers").fits());
  EXPECT_TRUE(level(c, "shared memory").fits());
  s.kvTile = 192;
  c = evaluate(s, machine("sm_90a"), f16);
  EXPECT_FALSE(level(c, "registers").fits());
  EXPECT_TRUE(level(c, "shared memory").fits());
  s.kvTile = 208;
  c = evaluate(s, machine("sm_90a"), f16);
  EXPECT_FALSE(level(c, "shared memory").fits());
}

TEST(SramFit, CountsNvidia) {
  Schedule s;
  s.qTile = s.kvTile = 64;
  s.stages = 2;
  s.warps = 4;
  TileCandidate c = evaluate(s, machine("sm_80"), spec(16, 8, 64, DType::F16));
  const LevelUse &shared = level(c, "shared memory");
  EXPECT_EQ(part(shared, "Q"), 64 * 64 * 2);
  EXPECT_EQ(part(shared, "K and V"), 2 * 64 * 128 * 2);
  EXPECT_EQ(shared.total(), 40 * 1024);
  const LevelUse &registers = level(c, "registers");
  EXPECT_EQ(part(registers, "S"), 32);
  EXPECT_EQ(part(registers, "P"), 16);
  EXPECT_EQ(part(registers, "O"), 32);
  EXPECT_EQ(registers.total(), 120);
  EXPECT_EQ(registers.budget, 240);
  ASSERT_TRUE(c.claim.has_value());
  EXPECT_EQ(c.claim->need, 120 + 48);
  EXPECT_EQ(step(c, "registers needed"), 120 + 48);
  EXPECT_EQ(step(c, "blocks claimed"), 3);
  EXPECT_EQ(step(c, "registers claimed"), 168);
  // 12 chunks of a row leave 8 of 128 threads without one; rows of 63 elements
  // pass through registers.
  c = evaluate(s, machine("sm_80"), spec(16, 8, 96, DType::F16));
  EXPECT_EQ(c.claim->need, 136 + 48 + 16);
  c = evaluate(s, machine("sm_80"), spec(16, 8, 63, DType::F16));
  EXPECT_EQ(c.claim->need, 120 + 48 + 32);
  EXPECT_EQ(step(c, "one block per multiprocessor"), 0);
  s.kvTile = 144; // 80 KiB: 160 of 163 for two blocks
  c = evaluate(s, machine("sm_80"), spec(16, 8, 64, DType::F16));
  EXPECT_EQ(step(c, "one block per multiprocessor"), 0);
  s.kvTile = 160;
  c = evaluate(s, machine("sm_80"), spec(16, 8, 64, DType::F16));
  EXPECT_GT(step(c, "one block per multiprocessor"), 0);
}

TEST(SramFit, NonCausalWorkEndsWithAPartTile) {
  Schedule s;
  s.qTile = 96;
  s.kvTile = 64;
  s.blockRows = 4;
  s.blockVectors = 3;
  AttentionSpec full = spec(16, 8, 128);
  full.causal = false;
  TileCandidate c = evaluate(s, machine("x86-64-v3"), full);
  EXPECT_NEAR(step(c, "keys beyond the end"), 4 / 2 / 2048.0, 1e-12);
  for (const Step &step : c.steps)
    EXPECT_NE(step.name, "keys beyond the diagonal");
}

// What is explained is what ranks: the terms of the steps add up to the cost.
TEST(SramFit, StepsAddUpToTheCost) {
  Schedule s;
  s.qTile = 480;
  s.kvTile = 256;
  s.blockRows = 8;
  s.blockVectors = 3;
  TileCandidate c = evaluate(s, machine("x86-64-v4"), spec(16, 8, 256));
  double sum = 1;
  for (const char *term :
       {"L1 overflow", "L2 overflow", "loads", "register pressure",
        "K and V from beyond L2", "values in too few sets of L1",
        "values fetched by columns", "values that come late", "state update",
        "keys beyond the diagonal", "items too large to spread"})
    sum += step(c, term);
  EXPECT_NEAR(c.cost, sum * step(c, "rows computed per row used"), 1e-12);
  EXPECT_EQ(step(c, "cost"), c.cost);
  EXPECT_GT(step(c, "L1 overflow"), 0);
  EXPECT_GT(step(c, "L2 overflow"), 0);
  EXPECT_GT(step(c, "register pressure"), 0);
  TileCandidate brief =
      evaluate(s, machine("x86-64-v4"), spec(16, 8, 256), /*explain=*/false);
  EXPECT_EQ(brief.cost, c.cost);
  EXPECT_TRUE(brief.steps.empty());
}

TEST(SramFit, StepsAreReadable) {
  Step step{"panel",
            "block_vectors * lanes",
            {{"block_vectors", 3}, {"lanes", 8}},
            24,
            "rows"};
  EXPECT_EQ(
      step.str(),
      "panel: block_vectors * lanes = 24 rows (block_vectors 3, lanes 8)");
  EXPECT_EQ((Step{"x", "a / b", {{"a", 1}, {"b", 3}}, 1.0 / 3, ""}.str()),
            "x: a / b = 0.3333 (a 1, b 3)");
  EXPECT_EQ((Step{"x", "M", {}, 1048576, "B"}.str()), "x: M = 1048576 B");
}

// Rows of one head lie 512 bytes apart in a head-major block and 4096 in a
// token-major one of 8 heads: they share 8 sets of L1, or one.
TEST(SramFit, PackedValuesPayOffWhereSetsCollide) {
  Schedule s;
  s.qTile = 288;
  s.kvTile = 40;
  s.blockRows = 4;
  s.blockVectors = 3;
  AttentionSpec head = spec(16, 8, 128), token = head;
  token.layout = KvLayout::NHD;
  const char *term = "values in too few sets of L1";
  EXPECT_EQ(step(evaluate(s, machine("x86-64-v3"), head), term), 0);
  EXPECT_EQ(step(evaluate(s, machine("x86-64-v3"), token), term), 0.15);
  s.kvTile = 96;
  EXPECT_EQ(step(evaluate(s, machine("x86-64-v3"), head), term), 0.15);
  s.pack = 1;
  TileCandidate c = evaluate(s, machine("x86-64-v3"), head);
  EXPECT_NEAR(step(c, "copy of V"), 1.5 * 8 / 288, 1e-12);
  EXPECT_EQ(part(level(c, "L2"), "V tile"), 96 * 128 * 4);
}

TEST(SramFit, ReasonIsOneLine) {
  Schedule s;
  s.qTile = 96;
  s.kvTile = 64;
  s.blockRows = 4;
  s.blockVectors = 3;
  EXPECT_EQ(evaluate(s, machine("x86-64-v3"), spec(16, 8, 128)).reason(),
            "q_tile 96, kv_tile 64: registers 16 of 16, L1 18432 of 22937 B, "
            "L2 171136 of 471859 B");
  // A cache that overflows is said, not refused.
  s.kvTile = 128;
  EXPECT_NE(evaluate(s, machine("x86-64-v3"), spec(16, 8, 128))
                .reason()
                .find("L1 24576 of 22937 B (over), L2 "),
            std::string::npos);
}
