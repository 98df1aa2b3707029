//===- NamedScoresTest.cpp - Known faults of scores -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What takes part in a softmax and how: padding (A10, H4), soft caps, ALiBi and
// sinks (D), long sums. As in NamedTest.cpp, values that can be worked out by
// hand are compared with them, everything with the oracle.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"
#include "tests/conformance/NamedFixture.h"

#include <cmath>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

using Scores = NamedTest;

/// Where all scores are equal, row 0 of a query that sees all keys is the mean
/// of all values, unless padding takes part.
void checkMean(const Case &c, CaseData &data) {
  int64_t length = c.lengths[0].kv;
  double mean = 0;
  for (int64_t t = 0; t < length; ++t)
    mean += data.valueRow(0, t, 0)[7] / double(length);
  EXPECT_NEAR(data.outputRow(0, 0, 0)[7], mean, 1e-5) << describe(c);
}

TEST_F(Scores, A10_TilesLargerThanAPage) {
  // Scores of -10; a padded zero would count e^10 times as much.
  for (int64_t block : {16, 32})
    for (int64_t length : {16, 33})
      for (int kernel : {0, 1}) {
        Case c = makeCase("A10", {{1, length}, {length, length}});
        c.spec.blockSize = block;
        c.values = Values::LowScores;
        c.splits = 1;
        c.kernel = kernel;
        CaseData data(c);
        check(c, data);
        checkMean(c, data);
      }
}

TEST_F(Scores, H4_LengthsThatDoNotFillATile) {
  // Scores of -5, by half of a query of ones.
  for (int64_t length : {31, 32, 33})
    for (int kernel : {0, 1}) {
      Case c = makeCase("H4", {{1, length}, {3, length}});
      c.schedule = {"kv_tile=32"};
      c.values = Values::LowScores;
      c.splits = 1;
      c.kernel = kernel;
      CaseData data(c);
      for (int64_t s = 0; s < 2; ++s)
        for (int64_t t = 0; t < c.lengths[s].q; ++t)
          for (int64_t h = 0; h < 4; ++h)
            std::fill_n(data.queryRow(s, t, h), 64, 0.5f);
      data.sealInputs();
      check(c, data);
      checkMean(c, data);
      EXPECT_NEAR(data.lseOf(0, 0, 0), -5 + std::log(double(length)), 1e-5);
    }
}

TEST_F(Scores, SumsOfManyEqualTerms) {
  // Equal terms added to one accumulator all round the same way: without sums
  // by tiles the error grows with the number of keys. Each shape with the
  // schedule that it gets, and with either number of stages.
  struct {
    int64_t heads, headDim;
  } const shapes[] = {{1, 16}, {2, 128}};
  for (auto [heads, headDim] : shapes)
    for (const char *schedule : {"", "decode.stages=1", "decode.stages=2"})
      for (int kernel : {0, 1}) {
        Case c = makeCase("equal terms", {{2, 6000}});
        c.spec.qHeads = c.spec.kvHeads = heads;
        c.spec.headDim = c.spec.vHeadDim = headDim;
        if (*schedule)
          c.schedule = {schedule};
        c.splits = 1;
        c.kernel = kernel;
        CaseData data(c);
        for (int64_t h = 0; h < heads; ++h) {
          for (int64_t t = 0; t < 2; ++t)
            std::fill_n(data.queryRow(0, t, h), headDim, 0.0f);
          for (int64_t t = 0; t < 6000; ++t)
            for (int64_t d = 0; d < headDim; ++d)
              data.valueRow(0, t, h)[d] = 0.1f + 0.013f * float(d);
        }
        data.sealInputs();
        check(c, data);
      }
}

TEST_F(Scores, SumOfManyEqualWeights) {
  // The same of the weights: a first score of 0.5 and then zeros makes them
  // numbers that a sum has to round.
  constexpr int64_t keys = 100000, dims = 32;
  for (const char *schedule : {"", "decode.stages=2,decode.kv_tile=16"}) {
    Case c = makeCase("equal weights", {{1, keys}});
    c.spec.qHeads = c.spec.kvHeads = 1;
    c.spec.headDim = c.spec.vHeadDim = dims;
    c.spec.scale = 1;
    if (*schedule)
      c.schedule = {schedule};
    c.splits = 1;
    c.kernel = 0;
    CaseData data(c);
    std::fill_n(data.queryRow(0, 0, 0), dims, 0.0f);
    data.queryRow(0, 0, 0)[0] = 1;
    for (int64_t t = 0; t < keys; ++t)
      for (int64_t d = 0; d < dims; ++d) {
        data.keyRow(0, t, 0)[d] = t == 0 ? 0.5f : 0.0f;
        data.valueRow(0, t, 0)[d] = 0.1f + 0.013f * float(d);
      }
    data.sealInputs();
    check(c, data);
  }
}

TEST_F(Scores, D1_SoftcapBeforeTheMask) {
  for (int kernel : {0, 1}) {
    Case c = makeCase("D1", {{2, 2}}); // query 0 sees one key
    c.spec.softcap = 50;
    c.spec.scale = 1;
    c.splits = 1;
    c.kernel = kernel;
    CaseData data(c);
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t h = 0; h < 4; ++h)
        std::fill_n(data.queryRow(0, t, h), 64, 1.0f);
      for (int64_t h = 0; h < 2; ++h) {
        std::fill_n(data.keyRow(0, t, h), 64, 100.0f / 64);
        std::fill_n(data.valueRow(0, t, h), 64, float(t));
      }
    }
    data.sealInputs();
    check(c, data);
    for (int64_t h = 0; h < 4; ++h) {
      EXPECT_EQ(data.outputRow(0, 0, h)[0], 0);
      EXPECT_NEAR(data.lseOf(0, 0, h), 50 * std::tanh(2.0), 1e-4);
    }
  }
}

TEST_F(Scores, D3_AlibiSlopesOfAnyHeadCount) {
  // Known slopes of the released models: a power of two, and three that are
  // none.
  struct {
    int64_t heads, head;
    double log2Slope;
  } const known[] = {{8, 0, -1},    {8, 1, -2},         {8, 7, -8},
                     {12, 0, -1},   {12, 7, -8},        {12, 8, -0.5},
                     {12, 9, -1.5}, {12, 11, -3.5},     {40, 0, -0.25},
                     {40, 31, -8},  {40, 32, -0.125},   {40, 39, -1.875},
                     {112, 63, -8}, {112, 64, -0.0625}, {112, 111, -5.9375}};
  for (int64_t heads : {8, 12, 40, 112})
    for (int kernel : {0, 1}) {
      Case c = makeCase("D3", {{1, 70}, {3, 9}});
      c.spec.qHeads = heads;
      c.spec.kvHeads = heads / 4;
      c.spec.headDim = c.spec.vHeadDim = 16;
      c.spec.blockSize = heads == 8 ? 16 : 3;
      c.spec.alibiSlopes = alibiSlopes(heads);
      c.splits = 1;
      c.kernel = kernel;
      CaseData data(c);
      for (int64_t s = 0; s < 2; ++s)
        for (int64_t t = 0; t < c.lengths[s].kv; ++t)
          for (int64_t h = 0; h < c.spec.kvHeads; ++h)
            std::fill_n(data.keyRow(s, t, h), 16, 0.0f);
      data.sealInputs();
      check(c, data);
      // All that is left of the score at distance n is -n * slope, 0 at the
      // query itself: the weights are a geometric series.
      for (auto [of, head, log2Slope] : known)
        if (of == heads) {
          double slope = std::exp2(log2Slope);
          double sum = (1 - std::exp(-70 * slope)) / (1 - std::exp(-slope));
          EXPECT_NEAR(data.lseOf(0, 0, head), std::log(sum), 1e-5)
              << "head " << head << " of " << heads;
        }
    }
}

TEST_F(Scores, D4_SinkCountsOnce) {
  for (float sink : {0.0f, 80.0f, -std::numeric_limits<float>::infinity()})
    for (int64_t splits : {0, 1, 3})
      for (int kernel : {0, 1}) {
        Case c = makeCase("D4", {{1, 3}});
        c.spec.sinks = true;
        c.splits = splits;
        c.kernel = kernel;
        CaseData data(c);
        std::vector<float> sinks(4, sink);
        data.args.sinks = sinks.data();
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t t = 0; t < 3; ++t) {
            std::fill_n(data.keyRow(0, t, h), 64, 0.0f);
            std::fill_n(data.valueRow(0, t, h), 64, 1.0f);
          }
        data.sealInputs();
        check(c, data);
        double expected = 3 / (3 + std::exp(double(sink)));
        for (int64_t h = 0; h < 4; ++h)
          EXPECT_NEAR(data.outputRow(0, 0, h)[0], expected, 1e-6) << sink;
      }
}

} // namespace
