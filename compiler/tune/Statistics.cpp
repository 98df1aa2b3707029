//===- Statistics.cpp - When a difference is one --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Medians, quartiles and their intervals.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace pagoda;

/// The value at fraction `f` of sorted `values`, between neighbours linearly.
static double quantile(const std::vector<double> &values, double f) {
  double at = f * double(values.size() - 1);
  size_t below = size_t(at);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - double(below)) * (values[above] - values[below]);
}

double pagoda::median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Interval pagoda::quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25),
          quantile(values, 0.75)};
}

double pagoda::spread(std::vector<double> values) {
  Interval q = quartiles(std::move(values));
  return (q.high - q.low) / 2 / q.median;
}

Interval pagoda::medianInterval(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  // P(X < k) for X ~ Binomial(n, 1/2), by rising k. In logarithms: 2^-n is
  // below the smallest number for n of some thousands.
  double tail = (1 - confidence) / 2, below = 0;
  size_t k = 0;
  for (double logTerm = -double(n) * std::log(2.0); k < n / 2; ++k) {
    below += std::exp(logTerm);
    if (below > tail)
      break;
    logTerm += std::log(double(n - k)) - std::log(double(k + 1));
  }
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (k == 0)
    return {quantile(values, 0.5), -infinite, infinite};
  return {quantile(values, 0.5), values[k - 1], values[n - k]};
}

Interval pagoda::ratioOfMedians(const std::vector<double> &a,
                                const std::vector<double> &b,
                                double confidence) {
  constexpr int resamples = 2000;
  std::mt19937_64 random(1);
  auto drawMedian = [&](const std::vector<double> &values) {
    std::uniform_int_distribution<size_t> index(0, values.size() - 1);
    std::vector<double> drawn(values.size());
    for (double &value : drawn)
      value = values[index(random)];
    return median(std::move(drawn));
  };
  std::vector<double> ratios(resamples);
  for (double &ratio : ratios)
    ratio = drawMedian(b) / drawMedian(a);
  std::sort(ratios.begin(), ratios.end());
  double tail = (1 - confidence) / 2;
  return {median(b) / median(a), quantile(ratios, tail),
          quantile(ratios, 1 - tail)};
}
