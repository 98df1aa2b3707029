//===- TunerTest.cpp - The search on synthetic machines -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules are numbered by kv_tile; a machine is a function of that number,
// with noise, and a clock that its measurements move.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Tuner.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <cmath>
#include <map>
#include <random>

using namespace pagoda;

namespace {

Schedule numbered(int64_t number) {
  Schedule schedule;
  schedule.kvTile = number;
  return schedule;
}

struct SyntheticMachine {
  /// Seconds of a step of schedule `number`; 1 is the default.
  std::function<double(int64_t)> seconds;
  double noise = 0.05; ///< of a sample, relative
  double prepareSeconds = 0.3;
  std::mt19937_64 random{1};
  double clock = 0;
  double stopAt = INFINITY;
  std::map<int64_t, size_t> saved; ///< samples by schedule
  std::vector<int64_t> wrong, unbuildable, verified;

  double time(int64_t number) {
    std::normal_distribution<double> draw(0, noise);
    double result = seconds(number) * std::exp(draw(random));
    if (random() % 20 == 0)
      result *= 3; // someone else had the machine
    clock += result;
    return result;
  }

  TuneCallbacks callbacks() {
    TuneCallbacks calls;
    calls.prepare = [&](llvm::ArrayRef<Schedule> schedules) {
      std::vector<bool> made;
      for (const Schedule &schedule : schedules) {
        clock += prepareSeconds;
        made.push_back(!llvm::is_contained(unbuildable, schedule.kvTile));
      }
      return made;
    };
    calls.sample = [&](const Schedule &schedule, bool) {
      double base = time(1);
      return base / time(schedule.kvTile);
    };
    calls.verify = [&](const Schedule &schedule) {
      clock += 0.5;
      verified.push_back(schedule.kvTile);
      return !llvm::is_contained(wrong, schedule.kvTile);
    };
    calls.neighbours = [&](const Schedule &schedule) {
      return std::vector{numbered(std::max<int64_t>(schedule.kvTile - 1, 1)),
                         numbered(schedule.kvTile + 1)};
    };
    calls.now = [&] { return clock; };
    calls.stopped = [&] { return clock >= stopAt; };
    calls.save = [&](const Schedule &schedule, llvm::ArrayRef<double> ratios) {
      saved[schedule.kvTile] += ratios.size();
    };
    return calls;
  }

  TuneResult tune(int64_t count, double seconds, std::vector<Trial> known = {},
                  int64_t step = 1) {
    std::vector<Schedule> space;
    for (int64_t i = 0; i < count; ++i)
      space.push_back(numbered(1 + i * step));
    TuneOptions options;
    options.seconds = seconds;
    options.verifySeconds = 0.5;
    return pagoda::tune(space, std::move(known), options, callbacks());
  }
};

} // namespace

TEST(Tuner, FindsTheFastest) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SyntheticMachine machine;
    machine.random.seed(seed);
    machine.seconds = [](int64_t n) {
      return 0.01 * (n == 17 ? 0.8 : 1 + 0.01 * double(n % 7));
    };
    TuneResult result = machine.tune(32, 30);
    EXPECT_FALSE(result.isDefault);
    EXPECT_EQ(result.schedule.kvTile, 17);
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.tried, 31u);
    EXPECT_NEAR(result.speedup.median, 1.25, 0.06);
    EXPECT_LE(machine.clock, 30);
  }
}

// Building and checking the default may have taken all the time there was.
TEST(Tuner, WithoutTimeNothingIsTried) {
  for (double seconds : {-5.0, 0.0, 0.1}) {
    SyntheticMachine machine;
    machine.seconds = [](int64_t) { return 0.01; };
    TuneResult result = machine.tune(32, seconds);
    EXPECT_TRUE(result.isDefault);
    EXPECT_FALSE(result.complete);
    EXPECT_LT(machine.clock, 2) << seconds << " s";
  }
}

// The best is between the schedules of the space, next to one that is good.
TEST(Tuner, LooksAroundTheLeader) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) {
    return 0.01 * (1 + std::abs(double(n) - 52) / 100);
  };
  TuneResult result = machine.tune(20, 60, {}, /*step=*/5);
  EXPECT_FALSE(result.isDefault);
  EXPECT_NEAR(double(result.schedule.kvTile), 52, 3);
}

// Nothing is faster: of many runs with 31 candidates each, hardly one may take
// noise for speed, at a confidence of 99%.
TEST(Tuner, NoiseIsNotSpeed) {
  int fooled = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SyntheticMachine machine;
    machine.random.seed(seed);
    machine.noise = 0.2;
    machine.seconds = [](int64_t) { return 0.02; };
    TuneResult result = machine.tune(32, 40);
    fooled += !result.isDefault;
    EXPECT_TRUE(result.isDefault || result.speedup.low > 1);
  }
  EXPECT_LE(fooled, 5);
}

TEST(Tuner, SlowerCandidatesLeaveTheDefault) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) { return n == 1 ? 0.01 : 0.012; };
  TuneResult result = machine.tune(16, 30);
  EXPECT_TRUE(result.isDefault);
  EXPECT_EQ(result.schedule.kvTile, 1);
  EXPECT_TRUE(result.complete);
}

TEST(Tuner, AWrongOneDoesNotWin) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) {
    return n == 5 ? 0.005 : n == 9 ? 0.007 : 0.01;
  };
  machine.wrong = {5};
  TuneResult result = machine.tune(16, 40);
  EXPECT_EQ(result.schedule.kvTile, 9);
  EXPECT_EQ(result.unverified, 1u);
  EXPECT_EQ(machine.verified, (std::vector<int64_t>{5, 9}));
}

TEST(Tuner, EveryWinnerWasVerified) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) { return n == 3 ? 0.006 : 0.01; };
  TuneResult result = machine.tune(8, 20);
  EXPECT_EQ(result.schedule.kvTile, 3);
  EXPECT_TRUE(llvm::is_contained(machine.verified, 3));
}

// CASES.md H3: all others are filtered out.
TEST(Tuner, NothingCanBeBuilt) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t) { return 0.01; };
  machine.unbuildable = {2, 3, 4, 5, 6, 7, 8};
  TuneResult result = machine.tune(8, 20);
  EXPECT_TRUE(result.isDefault);
  EXPECT_EQ(result.unbuilt, 7u);
  EXPECT_EQ(result.tried, 0u);
  EXPECT_TRUE(result.complete);
}

TEST(Tuner, ASpaceOfOne) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t) { return 0.01; };
  TuneResult result = machine.tune(1, 20);
  EXPECT_TRUE(result.isDefault);
  EXPECT_TRUE(result.complete);
}

TEST(Tuner, EndsInTime) {
  for (double budget : {0.5, 1.0, 3.0, 10.0, 30.0}) {
    SyntheticMachine machine;
    machine.seconds = [](int64_t n) { return n == 17 ? 0.04 : 0.05; };
    TuneResult result = machine.tune(64, budget);
    // A first sample and a first build have unknown lengths.
    EXPECT_LE(machine.clock, budget + 4 * 0.3 + 0.3) << budget;
    EXPECT_TRUE(result.isDefault || result.speedup.low > 1);
  }
}

TEST(Tuner, TooLittleTimeIsNotComplete) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) { return n == 2 ? 0.3 : 0.5; };
  TuneResult result = machine.tune(64, 4);
  EXPECT_TRUE(result.isDefault);
  EXPECT_FALSE(result.complete);
}

TEST(Tuner, StoppedKeepsWhatIsProven) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) { return n == 3 ? 0.006 : 0.01; };
  machine.stopAt = 8;
  TuneResult result = machine.tune(64, 60);
  EXPECT_EQ(result.schedule.kvTile, 3);
  EXPECT_FALSE(result.complete);
  EXPECT_LE(machine.clock, 8 + 5);
  EXPECT_TRUE(llvm::is_contained(machine.verified, 3));
}

// What is known is not measured again; what was added is saved.
TEST(Tuner, Resumes) {
  SyntheticMachine machine;
  machine.seconds = [](int64_t n) { return n == 3 ? 0.006 : 0.01; };
  std::vector<Trial> known;
  for (int64_t n = 2; n <= 32; ++n)
    if (n != 3)
      known.push_back({numbered(n), {0.9, 0.95, 0.99}});
  TuneResult result = machine.tune(32, 30, known);
  EXPECT_EQ(result.schedule.kvTile, 3);
  EXPECT_GE(machine.saved[3], 2u);
  size_t others = 0;
  for (auto [number, samples] : machine.saved)
    others += number != 3 && number != 4 ? samples : 0;
  SyntheticMachine fresh;
  fresh.seconds = machine.seconds;
  fresh.tune(32, 30);
  size_t othersFresh = 0;
  for (auto [number, samples] : fresh.saved)
    othersFresh += number != 3 && number != 4 ? samples : 0;
  EXPECT_LT(others + 50, othersFresh);
}
