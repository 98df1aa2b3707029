//===- StatisticsTest.cpp - When a difference is one ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Statistics.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace pagoda;

TEST(Statistics, Median) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Statistics, Spread) {
  // Quartiles 1.5 and 4.5 about 3.
  EXPECT_DOUBLE_EQ(spread({0, 1, 2, 3, 4, 5, 6}), 0.5);
  EXPECT_EQ(spread({2, 2, 2}), 0);
}

TEST(Statistics, Quartiles) {
  Interval q = quartiles({6, 0, 1, 2, 3, 4, 5});
  EXPECT_EQ(q.low, 1.5);
  EXPECT_EQ(q.median, 3);
  EXPECT_EQ(q.high, 4.5);
}

// Ranks as tables of the sign test have them.
TEST(Statistics, IntervalRanks) {
  auto ranks = [](size_t n, double confidence) {
    std::vector<double> values;
    for (size_t i = 1; i <= n; ++i)
      values.push_back(double(i));
    Interval interval = medianInterval(values, confidence);
    return std::pair(interval.low, interval.high);
  };
  EXPECT_EQ(ranks(6, 0.95), std::pair(1.0, 6.0));
  EXPECT_EQ(ranks(20, 0.95), std::pair(6.0, 15.0));
  EXPECT_EQ(ranks(8, 0.99), std::pair(1.0, 8.0));
  EXPECT_EQ(ranks(40, 0.99), std::pair(12.0, 29.0));
  EXPECT_EQ(ranks(100, 0.99), std::pair(37.0, 64.0));
}

TEST(Statistics, TooFewSamplesProveNothing) {
  Interval interval = medianInterval({2, 2, 2, 2, 2, 2, 2}, 0.99);
  EXPECT_EQ(interval.median, 2);
  EXPECT_EQ(interval.low, -INFINITY);
  EXPECT_EQ(interval.high, INFINITY);
}

// Whatever the distribution: here heavy-tailed and skewed, median 1.
TEST(Statistics, IntervalCoversTheMedian) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(0, 1.5);
  int covered = 0;
  constexpr int repeats = 2000;
  for (int i = 0; i < repeats; ++i) {
    std::vector<double> values(25);
    for (double &value : values)
      value = draw(random);
    Interval interval = medianInterval(values, 0.99);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(covered, 0.985 * repeats);
}

TEST(Statistics, LargeSamplesDoNotUnderflow) {
  std::vector<double> values(20001);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = double(i);
  Interval interval = medianInterval(values, 0.99);
  // The normal approximation: 2.576 * sqrt(n) / 2 ranks to each side.
  EXPECT_NEAR(interval.low, 10000 - 182, 3);
  EXPECT_NEAR(interval.high, 10000 + 182, 3);
}

TEST(Statistics, RatioOfMedians) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<double> a(40), b(40), same(40);
  for (double &value : a)
    value = 1 + noise(random);
  for (double &value : b)
    value = 1.2 * (1 + noise(random));
  for (double &value : same)
    value = 1 + noise(random);
  Interval slower = ratioOfMedians(a, b, 0.99);
  EXPECT_NEAR(slower.median, 1.2, 0.05);
  EXPECT_GT(slower.low, 1);
  Interval equal = ratioOfMedians(a, same, 0.99);
  EXPECT_LT(equal.low, 1);
  EXPECT_GT(equal.high, 1);
}
