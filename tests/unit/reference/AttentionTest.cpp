//===- AttentionTest.cpp - The oracle against closed forms ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that can be worked out by hand: which keys are seen, how a score is
// made, which head reads which, and what an empty row gives.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/reference/SmallProblem.h"
#include "gtest/gtest.h"

#include <limits>

using namespace pagoda::reference;

namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();

Shape small(uint32_t features) { return {1, 1, 1, 1, 2, 0, 0, features}; }

/// One head, head dim 1, q = 1 and k = 0: every visible key weighs the same.
/// v[t] = 2^t, so that a sum of values names the keys.
std::unique_ptr<SmallProblem> powers(uint32_t features, int64_t qLen,
                                     int64_t kvLen) {
  auto p = std::make_unique<SmallProblem>(small(features), qLen, kvLen);
  p->q.assign(qLen, 1);
  for (int64_t t = 0; t < kvLen; ++t) {
    *p->keyRow(t, 0) = 0;
    *p->valueRow(t, 0) = std::ldexp(1.0f, int(t));
  }
  return p;
}

/// The keys that `token` sees, as a bit set; checks keys and lse on the way.
int64_t seenBy(const Problem &problem, int64_t token) {
  Row row;
  attendRow(problem, 0, token, 0, row);
  if (row.keys == 0) {
    EXPECT_EQ(row.o[0], 0);
    EXPECT_EQ(row.lse, -Infinity);
    return 0;
  }
  EXPECT_NEAR(row.lse, std::log(double(row.keys)), 1e-12);
  return int64_t(std::lround(row.o[0] * double(row.keys)));
}

TEST(Attention, NonCausalSeesAll) {
  auto p = powers(0, 2, 5);
  EXPECT_EQ(seenBy(*p, 0), 0b11111);
  EXPECT_EQ(seenBy(*p, 1), 0b11111);
}

TEST(Attention, CausalIsAlignedAtTheEnd) {
  auto p = powers(PAGODA_FEATURE_CAUSAL, 3, 5);
  EXPECT_EQ(seenBy(*p, 0), 0b00111);
  EXPECT_EQ(seenBy(*p, 1), 0b01111);
  EXPECT_EQ(seenBy(*p, 2), 0b11111);
}

TEST(Attention, MoreQueriesThanKeys) {
  auto p = powers(PAGODA_FEATURE_CAUSAL, 4, 2);
  EXPECT_EQ(seenBy(*p, 0), 0);
  EXPECT_EQ(seenBy(*p, 1), 0);
  EXPECT_EQ(seenBy(*p, 2), 0b01);
  EXPECT_EQ(seenBy(*p, 3), 0b11);
}

TEST(Attention, NoKeysAtAll) {
  auto p = powers(0, 1, 0);
  EXPECT_EQ(seenBy(*p, 0), 0);
}

TEST(Attention, WindowCountsItself) {
  auto p = powers(PAGODA_FEATURE_CAUSAL | PAGODA_FEATURE_WINDOW, 2, 10);
  p->storage.window = 4;
  EXPECT_EQ(seenBy(*p, 1), 0b1111000000);
  EXPECT_EQ(seenBy(*p, 0), 0b0111100000);
  p->storage.window = 1;
  EXPECT_EQ(seenBy(*p, 1), 0b1000000000);
}

TEST(Attention, Chunk) {
  auto p = powers(PAGODA_FEATURE_CAUSAL | PAGODA_FEATURE_CHUNK, 8, 8);
  p->storage.chunk = 3;
  EXPECT_EQ(seenBy(*p, 2), 0b00000111);
  EXPECT_EQ(seenBy(*p, 3), 0b00001000);
  EXPECT_EQ(seenBy(*p, 7), 0b11000000);
}

TEST(Attention, PrefixLm) {
  auto p = powers(PAGODA_FEATURE_CAUSAL | PAGODA_FEATURE_PREFIX_LM, 6, 6);
  int32_t prefix = 3;
  p->storage.prefix_lens = &prefix;
  EXPECT_EQ(seenBy(*p, 0), 0b000111);
  EXPECT_EQ(seenBy(*p, 3), 0b001111);
}

TEST(Attention, SoftcapThenAlibi) {
  auto p = powers(PAGODA_FEATURE_SOFTCAP | PAGODA_FEATURE_ALIBI, 1, 2);
  float slope = 0.25f;
  p->storage.alibi_slopes = &slope;
  p->storage.softcap = 50;
  p->storage.scale = 0.5f;
  *p->keyRow(0, 0) = 200; // scaled score 100
  *p->keyRow(1, 0) = 100; // scaled score 50
  double s0 = 50 * std::tanh(2.0) - 0.25, s1 = 50 * std::tanh(1.0);
  Row row;
  attendRow(*p, 0, 0, 0, row);
  EXPECT_NEAR(row.lse, std::log(std::exp(s0) + std::exp(s1)), 1e-12);
  double p1 = 1 / (1 + std::exp(s0 - s1));
  EXPECT_NEAR(row.o[0], (1 - p1) * 1 + p1 * 2, 1e-12);
  EXPECT_NEAR(row.condition, 100.25, 1e-12);
}

TEST(Attention, SinkTakesWeightAndHasNoValue) {
  auto p = powers(PAGODA_FEATURE_SINKS, 1, 3);
  float sink = 0;
  p->storage.sinks = &sink;
  Row row;
  attendRow(*p, 0, 0, 0, row);
  EXPECT_NEAR(row.o[0], 7.0 / 4, 1e-12);
  EXPECT_NEAR(row.lse, std::log(4.0), 1e-12);
  sink = -std::numeric_limits<float>::infinity();
  attendRow(*p, 0, 0, 0, row);
  EXPECT_NEAR(row.o[0], 7.0 / 3, 1e-12);
}

TEST(Attention, HeadsShareKeysInGroups) {
  for (auto [qHeads, kvHeads] : {std::pair{14, 2}, {9, 3}, {5, 5}, {71, 1}}) {
    SmallProblem p({qHeads, kvHeads, 1, 1, 2, 0, 0, 0}, 1, 3);
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t h = 0; h < kvHeads; ++h) {
        *p.keyRow(t, h) = 0;
        *p.valueRow(t, h) = float(h);
      }
    for (int64_t head = 0; head < qHeads; ++head) {
      Row row;
      attendRow(p, 0, 0, head, row);
      EXPECT_NEAR(row.o[0], double(head / (qHeads / kvHeads)), 1e-12);
    }
  }
}

TEST(Attention, EightBitScales) {
  auto p = powers(0, 1, 2);
  p->shape.kvType = PAGODA_I8;
  std::vector<int8_t> k(64, 2), v(64, 1);
  p->storage.k.base = k.data();
  p->storage.v.base = v.data();
  float kScale = 0.5f, vScale = 3;
  p->storage.k_scale = {&kScale, 0, 0, 0};
  p->storage.v_scale = {&vScale, 0, 0, 0};
  Row row;
  attendRow(*p, 0, 0, 0, row);
  EXPECT_NEAR(row.o[0], 3, 1e-12);
  EXPECT_NEAR(row.lse, 1 + std::log(2.0), 1e-12);
}

TEST(Attention, SecondSequenceReadsItsOwnRows) {
  auto p = powers(PAGODA_FEATURE_CAUSAL, 2, 4);
  // The same table row, cut to two tokens, for the second row of q.
  p->sequences = {{0, 1, 4, 0}, {1, 1, 2, 0}};
  p->q = {1, 1};
  Row row;
  attendRow(*p, 1, 0, 0, row);
  EXPECT_EQ(row.keys, 2);
  EXPECT_NEAR(row.o[0], 1.5, 1e-12);
}

} // namespace
