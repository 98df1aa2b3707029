//===- Statistics.h - When a difference is one ------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times on a shared machine have outliers and no known distribution, so medians
// are what is compared, and their confidence intervals come from order
// statistics, which assume no distribution. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TUNE_STATISTICS_H
#define PAGODA_COMPILER_TUNE_STATISTICS_H

#include <cstdint>
#include <vector>

namespace pagoda {

/// A median and where it may lie.
struct Interval {
  double median = 1;
  double low = 1;
  double high = 1;
};

/// The middle value, or the mean of the two middle ones. `values` is not empty.
double median(std::vector<double> values);

/// The median of what `values` are independent samples of, with a probability
/// of at least `confidence` between low and high: both are samples, the k-th
/// from below and from above, with the largest k for which a binomial variable
/// of n trials and p = 1/2 is below k with a probability of at most
/// (1 - confidence) / 2. With too few samples for that (7 or fewer for 0.99)
/// low is -infinity and high infinity. `values` is not empty.
Interval medianInterval(std::vector<double> values, double confidence);

/// The median of b over the median of a, for samples that are not paired, with
/// an interval by resampling both 2000 times (percentile bootstrap, seeded).
/// Neither is empty; values are positive.
Interval ratioOfMedians(const std::vector<double> &a,
                        const std::vector<double> &b, double confidence);

/// The median and, as low and high, the quartiles. `values` is not empty.
Interval quartiles(std::vector<double> values);

/// Half the distance between the quartiles over the median: 0.02 is 2%.
double spread(std::vector<double> values);

} // namespace pagoda

#endif // PAGODA_COMPILER_TUNE_STATISTICS_H
