//===- Tuner.h - The fastest of many schedules, in limited time -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Successive halving (Jamieson and Talwalkar, 2016) on paired measurements: a
// sample is the time of the default over that of a candidate, measured one
// right after the other, so that what else goes on at the machine hits both. A
// candidate wins only if it is verified and if samples that had no part in
// choosing it put the whole confidence interval of their median above 1.
//
// Knows nothing of kernels: what is measured, how and for how long is the
// caller's, by callbacks. With the same answers it does the same.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TUNE_TUNER_H
#define PAGODA_COMPILER_TUNE_TUNER_H

#include "compiler/tiling/Schedule.h"
#include "compiler/tune/Statistics.h"
#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <vector>

namespace pagoda {

/// A schedule and what is known of it.
struct Trial {
  Schedule schedule;
  /// Times of the default over times of this, greater than 1 is faster.
  std::vector<double> ratios;
};

struct TuneProgress {
  size_t tried = 0;            ///< schedules measured so far
  const Trial *best = nullptr; ///< so far; null: the default
};

/// What the tuner asks of its surroundings.
struct TuneCallbacks {
  /// Makes kernels of the schedules; false for each that cannot be made.
  std::function<std::vector<bool>(llvm::ArrayRef<Schedule>)> prepare;
  /// One sample; true: the default is to be measured first. Only of schedules
  /// that are prepared.
  std::function<double(const Schedule &, bool defaultFirst)> sample;
  /// Whether the kernel's output is right.
  std::function<bool(const Schedule &)> verify;
  /// The legal schedules around one.
  std::function<std::vector<Schedule>(const Schedule &)> neighbours;
  /// Seconds since some point in the past.
  std::function<double()> now;
  /// True once the user has had enough: what is known is brought to an end.
  std::function<bool()> stopped = [] { return false; };
  /// A trial has new samples: `ratios` are those alone.
  std::function<void(const Schedule &, llvm::ArrayRef<double> ratios)> save =
      [](const Schedule &, llvm::ArrayRef<double>) {};
  std::function<void(const TuneProgress &)> progress =
      [](const TuneProgress &) {};
};

struct TuneOptions {
  double seconds = 30; ///< from the call of tune() on
  double confidence = 0.99;
  size_t batch = 4; ///< schedules prepared together
  /// What one verification is expected to take; none is begun without the time.
  double verifySeconds = 0;
};

struct TuneResult {
  /// The winner, or the default where nothing was proven better.
  Schedule schedule;
  bool isDefault = true;
  /// Of the winner, from the samples of the confirmation alone.
  Interval speedup;
  size_t samples = 0; ///< of the confirmation
  /// The one that was confirmed or refuted, by the same samples: an estimate of
  /// how much the default leaves. The default and 1 where nothing led.
  Schedule leader;
  Interval leaderSpeedup;
  size_t tried = 0;      ///< schedules measured, without the default
  size_t unbuilt = 0;    ///< that could not be made
  size_t unverified = 0; ///< fast, and wrong
  /// False: the time was too short, or the user had enough, before a leader was
  /// confirmed or refuted. More time may then find more.
  bool complete = true;
};

/// Searches `space`, whose first schedule is the default: prepared by the
/// caller and right. `known` holds samples of earlier calls. Ends within
/// `options.seconds`: nothing is begun that is not expected to end by then.
TuneResult tune(llvm::ArrayRef<Schedule> space, std::vector<Trial> known,
                const TuneOptions &options, const TuneCallbacks &callbacks);

} // namespace pagoda

#endif // PAGODA_COMPILER_TUNE_TUNER_H
