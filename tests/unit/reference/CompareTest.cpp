//===- CompareTest.cpp - The error bound accepts and rejects --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bound is worth something when honest f32 arithmetic passes it and every
// small mistake fails it: a lost key, a NaN, a wrong lse, a wrong row.
//
//===----------------------------------------------------------------------===//

#include "tests/reference/Compare.h"
#include "tests/unit/reference/SmallProblem.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace pagoda::reference;

namespace {

/// Plain attention in f32, in the order of the definition: what an honest
/// kernel without tricks computes. `from` > 0 loses the first keys.
void attendF32(SmallProblem &p, int64_t from = 0) {
  const Sequence &s = p.sequences[0];
  for (int64_t t = 0; t < s.qLen; ++t) {
    std::vector<float> scores;
    int64_t last = s.kvLen - s.qLen + t;
    const float *q = p.q.data() + t * p.shape.headDim;
    for (int64_t j = from; j <= last; ++j) {
      float dot = 0;
      for (int64_t d = 0; d < p.shape.headDim; ++d)
        dot += q[d] * p.keyRow(j, 0)[d];
      scores.push_back(dot * p.storage.scale);
    }
    float m = *std::max_element(scores.begin(), scores.end()), l = 0;
    std::vector<float> o(p.shape.vHeadDim);
    for (int64_t j = from; j <= last; ++j) {
      float w = std::exp(scores[j - from] - m);
      l += w;
      for (int64_t d = 0; d < p.shape.vHeadDim; ++d)
        o[d] += w * p.valueRow(j, 0)[d];
    }
    for (int64_t d = 0; d < p.shape.vHeadDim; ++d)
      p.o[t * p.shape.vHeadDim + d] = o[d] / l;
    p.lse[t] = m + std::log(l);
  }
}

std::unique_ptr<SmallProblem> randomProblem(int64_t qLen, int64_t kvLen,
                                            double sigma, bool positiveValues) {
  auto p = std::make_unique<SmallProblem>(
      Shape{1, 1, 64, 32, 16, 0, 0, PAGODA_FEATURE_CAUSAL}, qLen, kvLen);
  std::mt19937 rng(unsigned(kvLen * 7 + qLen));
  std::normal_distribution<float> normal(0, float(sigma));
  std::uniform_real_distribution<float> uniform(0, 1);
  p->storage.scale = 0.125f;
  for (float &x : p->q)
    x = normal(rng);
  for (int64_t t = 0; t < kvLen; ++t) {
    for (int64_t d = 0; d < 64; ++d)
      p->keyRow(t, 0)[d] = normal(rng);
    for (int64_t d = 0; d < 32; ++d)
      p->valueRow(t, 0)[d] = positiveValues ? uniform(rng) : normal(rng);
  }
  return p;
}

TEST(Compare, HonestF32Passes) {
  for (double sigma : {0.0, 1.0, 5.0})
    for (bool positive : {false, true})
      for (int64_t kvLen : {1, 33, 500, 20000}) {
        auto p =
            randomProblem(std::min<int64_t>(kvLen, 4), kvLen, sigma, positive);
        if (sigma == 0) // equal weights: the longest sums
          std::fill(p->q.begin(), p->q.end(), 0);
        attendF32(*p);
        Comparison c = compare(*p);
        EXPECT_TRUE(c.ok())
            << c.worst.text() << " sigma " << sigma << " kv " << kvLen;
        EXPECT_EQ(c.elements, int64_t(p->o.size() + p->lse.size()));
        // Not so wide that it says nothing. (One key alone is exact.)
        if (kvLen > 1) {
          EXPECT_GT(c.worst.ratio(), 0.01) << " sigma " << sigma;
        }
      }
}

TEST(Compare, EqualProductsInOneAccumulatorPass) {
  // Every partial sum of a score rounds the same way: the worst that honest
  // arithmetic does to it.
  double worst = 0;
  for (int64_t dim : {16, 139, 256})
    for (float k : {-1.1f, 1.3f, 0.7f}) {
      SmallProblem p({1, 1, dim, 4, 16, 0, 0, PAGODA_FEATURE_CAUSAL}, 1, 20);
      std::fill(p.q.begin(), p.q.end(), 1.0f);
      for (int64_t t = 0; t < 20; ++t) {
        std::fill_n(p.keyRow(t, 0), dim, k * float(t + 1) / 20);
        std::fill_n(p.valueRow(t, 0), 4, float(t));
      }
      attendF32(p);
      Comparison c = compare(p);
      EXPECT_TRUE(c.ok()) << c.worst.text() << " dim " << dim;
      worst = std::max(worst, c.worst.ratio());
    }
  EXPECT_GT(worst, 0.1);
}

TEST(Compare, OneLostKeyOfManyFails) {
  for (int64_t kvLen : {17, 500, 4000}) {
    auto p = randomProblem(1, kvLen, 1.0, false);
    attendF32(*p, 1);
    Comparison c = compare(*p);
    EXPECT_FALSE(c.ok()) << "kv " << kvLen << ": " << c.worst.text();
  }
}

TEST(Compare, NaNAndSentinelFail) {
  auto p = randomProblem(2, 20, 1.0, false);
  attendF32(*p);
  ASSERT_TRUE(compare(*p).ok());
  p->o[37] = NAN;
  Comparison c = compare(*p);
  EXPECT_EQ(c.failures, 1);
  EXPECT_EQ(c.worst.token, 1);
  EXPECT_EQ(c.worst.dim, 5);
  p->o[37] = 7e7f;
  EXPECT_EQ(compare(*p).failures, 1);
  attendF32(*p);
  p->lse[1] = NAN;
  EXPECT_EQ(compare(*p).failures, 1);
}

TEST(Compare, EmptyRowMustBeExact) {
  auto p = randomProblem(3, 2, 1.0, false);
  p->sequences[0].qLen = 2;
  attendF32(*p);
  // Three queries on two keys: the first sees none. Shift the two results.
  std::copy_backward(p->o.begin(), p->o.begin() + 64, p->o.end());
  std::copy_backward(p->lse.begin(), p->lse.begin() + 2, p->lse.end());
  p->sequences[0].qLen = 3;
  std::copy_backward(p->q.begin(), p->q.begin() + 128, p->q.end());
  std::fill(p->o.begin(), p->o.begin() + 32, 0.0f);
  p->lse[0] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare(*p).ok()) << compare(*p).worst.text();
  p->o[3] = 1e-30f;
  EXPECT_EQ(compare(*p).failures, 1);
  p->o[3] = 0;
  p->lse[0] = -1e30f;
  EXPECT_EQ(compare(*p).failures, 1);
}

TEST(Compare, ThreadsAndFilterAgree) {
  auto p = randomProblem(9, 40, 1.0, false);
  attendF32(*p);
  Comparison one = compare(*p, 1), four = compare(*p, 4);
  EXPECT_EQ(one.elements, four.elements);
  EXPECT_EQ(one.worst.ratio(), four.worst.ratio());
  Comparison third = compare(
      *p, 1, [](int64_t, int64_t token, int64_t) { return token == 3; });
  EXPECT_EQ(third.elements, 33);
}

} // namespace
