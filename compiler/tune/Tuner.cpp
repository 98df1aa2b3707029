//===- Tuner.cpp - The fastest of many schedules, in limited time ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three stretches of the time that is given: first looks at as many schedules
// as fit, halving until one leads (then the same for what lies around the
// leader), and the leader's confirmation.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Tuner.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;
using namespace pagoda;

namespace {

/// Shares of the time after which each stretch has to end.
constexpr double firstLooks = 0.45, halving = 0.6, aroundLooks = 0.7,
                 around = 0.78;
/// Samples of a first look; of each survivor in the first halving, doubled in
/// each later one.
constexpr size_t firstSamples = 2, halvingSamples = 3;
/// Of the confirmation: below the least no interval of 99% exists.
constexpr size_t leastConfirm = 9, mostConfirm = 101;

class Race {
public:
  Race(ArrayRef<Schedule> space, std::vector<Trial> known,
       const TuneOptions &options, const TuneCallbacks &callbacks)
      : standard(space.front()), known(std::move(known)), options(options),
        calls(callbacks), begin(callbacks.now()) {}

  TuneResult run(ArrayRef<Schedule> space);

private:
  double spent() const { return calls.now() - begin; }
  /// Whether the user has had enough, or something that takes `seconds` would
  /// not end before `share` of the time is gone.
  bool over(double share, double seconds = 0) const {
    return calls.stopped() || spent() + seconds >= share * options.seconds;
  }
  /// Prepares and looks at schedules until `share` of the time is gone.
  void look(ArrayRef<Schedule> schedules, double share);
  void measure(Trial &trial, size_t samples, double share);
  /// Halves the runners until one is left or the time is over.
  void halve(double share);
  void drop(size_t kept);
  void confirm();
  void report() const { calls.progress({result.tried, leader()}); }
  const Trial *leader() const;

  Schedule standard;
  std::vector<Trial> known;
  const TuneOptions &options;
  const TuneCallbacks &calls;
  double begin;
  double sampleSeconds = 0;  ///< of the slowest sample so far
  double prepareSeconds = 0; ///< of the slowest batch so far
  size_t turn = 0;           ///< which goes first alternates
  std::vector<Trial> runners;
  std::vector<Trial> losers;  ///< those that ran longest first
  std::vector<Schedule> seen; ///< prepared, whatever came of it
  TuneResult result;
};

} // namespace

/// What trials are ranked by; those without a sample come last.
static double score(const Trial &trial) {
  return trial.ratios.empty() ? 0 : median(trial.ratios);
}

static bool faster(const Trial &a, const Trial &b) {
  return score(a) > score(b);
}

const Trial *Race::leader() const {
  auto best = std::min_element(runners.begin(), runners.end(), faster);
  return best == runners.end() || score(*best) <= 1 ? nullptr : &*best;
}

void Race::measure(Trial &trial, size_t samples, double share) {
  std::vector<double> fresh;
  while (fresh.size() < samples && !over(share, sampleSeconds)) {
    double start = calls.now();
    fresh.push_back(calls.sample(trial.schedule, turn++ % 2));
    sampleSeconds = std::max(sampleSeconds, calls.now() - start);
  }
  if (fresh.empty())
    return;
  append_range(trial.ratios, fresh);
  calls.save(trial.schedule, fresh);
}

void Race::look(ArrayRef<Schedule> schedules, double share) {
  std::vector<Schedule> open;
  for (const Schedule &schedule : schedules)
    if (!(schedule == standard) && !is_contained(seen, schedule))
      open.push_back(schedule);
  for (size_t at = 0; at < open.size() && !over(share, prepareSeconds);
       at += options.batch) {
    ArrayRef<Schedule> batch =
        ArrayRef(open).slice(at).take_front(options.batch);
    append_range(seen, batch);
    double start = calls.now();
    std::vector<bool> made = calls.prepare(batch);
    prepareSeconds = std::max(prepareSeconds, calls.now() - start);
    for (auto [schedule, usable] : zip(batch, made)) {
      if (!usable) {
        ++result.unbuilt;
        continue;
      }
      Trial trial{schedule, {}};
      for (const Trial &earlier : known)
        if (earlier.schedule == schedule)
          trial.ratios = earlier.ratios;
      if (trial.ratios.size() < firstSamples)
        measure(trial, firstSamples - trial.ratios.size(), share);
      if (trial.ratios.empty())
        continue;
      ++result.tried;
      runners.push_back(std::move(trial));
      report();
    }
  }
}

/// All but the `kept` fastest become losers.
void Race::drop(size_t kept) {
  std::sort(runners.begin(), runners.end(), faster);
  kept = std::min(kept, runners.size());
  auto begin = runners.begin() + ptrdiff_t(kept);
  losers.insert(losers.begin(), begin, runners.end());
  runners.erase(begin, runners.end());
}

void Race::halve(double share) {
  for (size_t samples = halvingSamples; runners.size() > 1 && !over(share);
       samples *= 2) {
    drop((runners.size() + 1) / 2);
    // One sample each in turn, so that all meet the machine as it is.
    for (size_t i = 0; i < samples; ++i)
      for (Trial &trial : runners)
        measure(trial, 1, share);
    report();
  }
  std::sort(runners.begin(), runners.end(), faster);
}

void Race::confirm() {
  // The losers take part in case that the leaders are wrong.
  std::sort(runners.begin(), runners.end(), faster);
  append_range(runners, losers);
  for (const Trial &trial : runners) {
    if (score(trial) <= 1)
      continue;
    report();
    // The user waits: a short look has to do.
    double end = calls.stopped() ? spent() + 3 : options.seconds;
    double left = std::min(end, options.seconds) - spent();
    result.complete =
        left > options.verifySeconds + double(leastConfirm) * sampleSeconds;
    if (!result.complete)
      return;
    if (!calls.verify(trial.schedule)) {
      ++result.unverified;
      continue;
    }
    // Samples that made a trial the first are biased: it was the luckiest of
    // many. Others have to prove it, and one trial only: a second try would
    // double the chance of luck.
    end = std::min(end, options.seconds);
    std::vector<double> ratios;
    while (ratios.size() < mostConfirm && spent() + 2 * sampleSeconds < end) {
      double start = calls.now();
      ratios.push_back(calls.sample(trial.schedule, turn++ % 2));
      sampleSeconds = std::max(sampleSeconds, calls.now() - start);
    }
    result.complete = ratios.size() >= leastConfirm;
    if (!result.complete)
      return;
    result.leader = trial.schedule;
    result.leaderSpeedup = medianInterval(ratios, options.confidence);
    if (result.leaderSpeedup.low > 1) {
      result.schedule = trial.schedule;
      result.isDefault = false;
      result.speedup = result.leaderSpeedup;
    }
    result.samples = ratios.size();
    return;
  }
}

TuneResult Race::run(ArrayRef<Schedule> space) {
  result.schedule = result.leader = standard;
  look(space, firstLooks);
  halve(halving);
  if (!runners.empty()) {
    drop(2);
    look(calls.neighbours(runners.front().schedule), aroundLooks);
    halve(around);
  }
  if (result.tried == 0 && space.size() > 1)
    result.complete = result.unbuilt + 1 == space.size();
  else
    confirm();
  result.complete &= !calls.stopped();
  return result;
}

TuneResult pagoda::tune(ArrayRef<Schedule> space, std::vector<Trial> known,
                        const TuneOptions &options,
                        const TuneCallbacks &callbacks) {
  return Race(space, std::move(known), options, callbacks).run(space);
}
