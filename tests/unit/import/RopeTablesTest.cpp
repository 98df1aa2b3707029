//===- RopeTablesTest.cpp - cos and sin of RoPE ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that can be worked out by hand. That whole tables rotate keys as every
// kind of scaling says is tested in tests/conformance.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "compiler/import/RopeTables.h"

#include <cmath>

using namespace pagoda;

namespace {

RopeConfig plain(int64_t rotaryDim) {
  RopeConfig rope;
  rope.kind = RopeKind::Default;
  rope.rotaryDim = rotaryDim;
  return rope;
}

TEST(RopeTables, RowsArePositions) {
  RopeTables tables = ropeTables(plain(128), 3, 3);
  EXPECT_EQ(tables.positions, 3);
  EXPECT_EQ(tables.pairs, 64);
  ASSERT_EQ(tables.cos.size(), 3u * 64);
  ASSERT_EQ(tables.sin.size(), 3u * 64);
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(tables.cos[i], 1);
    EXPECT_EQ(tables.sin[i], 0);
  }
  EXPECT_FLOAT_EQ(tables.cos[64], 0.54030231f);            // cos(1)
  EXPECT_FLOAT_EQ(tables.sin[2 * 64 + 32], 0.0199986667f); // sin(2 / 100)
}

TEST(RopeTables, AnglesAreNotRounded) {
  // 100000 times a frequency of 0.01: in f32 that is off by 2e-5.
  RopeTables tables = ropeTables(plain(4), 100001, 100001);
  EXPECT_FLOAT_EQ(tables.cos[2 * 100000 + 1], 0.56237908f); // cos(1000)
  EXPECT_FLOAT_EQ(tables.sin[2 * 100000 + 1], 0.82687954f);
}

TEST(RopeTables, AttentionFactorIsInBoth) {
  RopeConfig rope = plain(8);
  rope.kind = RopeKind::Yarn;
  rope.factor = 32;
  rope.originalMaxPosition = 4096;
  rope.attentionFactor = 1.5;
  RopeTables tables = ropeTables(rope, 2, 2);
  EXPECT_EQ(tables.cos[0], 1.5f);
  EXPECT_FLOAT_EQ(tables.cos[4], 1.5f * 0.54030231f);
  EXPECT_FLOAT_EQ(tables.sin[4], 1.5f * 0.84147098f);
}

TEST(RopeTables, LengthChoosesAmongFactors) {
  RopeConfig rope = plain(4);
  rope.kind = RopeKind::LongRope;
  rope.originalMaxPosition = 10;
  rope.shortFactor = {1, 1};
  rope.longFactor = {2, 4};
  EXPECT_FLOAT_EQ(ropeTables(rope, 2, 10).cos[2], 0.54030231f);
  EXPECT_FLOAT_EQ(ropeTables(rope, 2, 11).cos[2], 0.87758256f); // cos(1 / 2)
}

TEST(RopeTables, NoRotationIsEmpty) {
  RopeTables tables = ropeTables(RopeConfig(), 100, 100);
  EXPECT_EQ(tables.pairs, 0);
  EXPECT_TRUE(tables.cos.empty() && tables.sin.empty());
}

TEST(RopeTables, SpecsSayWhatAppendKernelsRotate) {
  ModelConfig neox = importText(R"({"model_type":"gpt_neox",
      "num_hidden_layers":2,"hidden_size":512,"num_attention_heads":8,
      "rotary_pct":0.25})");
  EXPECT_EQ(neox.kinds[0].spec.rotaryDim, 16);
  EXPECT_FALSE(neox.kinds[0].spec.ropeInterleaved);
  ModelConfig gptj = importText(R"({"model_type":"gptj","n_layer":2,
      "n_embd":512,"n_head":8,"rotary_dim":32})");
  EXPECT_EQ(gptj.kinds[0].spec.rotaryDim, 32);
  EXPECT_TRUE(gptj.kinds[0].spec.ropeInterleaved);
  // Latent attention: the rotated row is one for all heads.
  ModelConfig mla = importText(R"({"model_type":"deepseek_v2",
      "num_hidden_layers":2,"hidden_size":2048,"num_attention_heads":16})");
  EXPECT_GT(mla.kinds[0].rope.rotaryOffset, 0);
  EXPECT_EQ(mla.kinds[0].spec.rotaryDim, 0);
  EXPECT_FALSE(mla.kinds[0].spec.ropeInterleaved);
}

} // namespace
