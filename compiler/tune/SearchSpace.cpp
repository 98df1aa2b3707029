//===- SearchSpace.cpp - Schedules that may be faster ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps in single fields, and a grid of all fields.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/SearchSpace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

using namespace llvm;
using namespace pagoda;

namespace {

/// Costs more than this many times the default: not worth a measurement.
constexpr double hopeless = 1.5;
/// Candidates whose neighbourhood belongs to the space.
constexpr size_t centres = 4;

/// Register blocks with lanes = queries: rows broadcast, vectors.
constexpr std::pair<int64_t, int64_t> queryBlocks[] = {
    {4, 4}, {8, 3}, {6, 4}, {4, 3}, {6, 2}, {4, 2},
    {8, 2}, {8, 1}, {2, 4}, {2, 6}, {3, 4}, {12, 1}};

/// Collects legal schedules, each once.
class Collector {
public:
  Collector(const Machine &machine, const AttentionSpec &spec)
      : machine(machine), spec(spec) {}

  void add(const Schedule &schedule) {
    if (!is_contained(found, schedule) &&
        !errorToBool(checkSchedule(schedule, machine, spec)))
      found.push_back(schedule);
  }
  std::vector<Schedule> take() { return std::move(found); }

private:
  const Machine &machine;
  const AttentionSpec &spec;
  std::vector<Schedule> found;
};

} // namespace

static bool lanesAreQueries(const Schedule &schedule) {
  return schedule.lanes == Schedule::Lanes::Queries;
}

/// The smallest q_tile of a register block of `vectors` that holds a token.
static int64_t leastRows(const Machine &machine, const AttentionSpec &spec,
                         int64_t vectors) {
  return int64_t(alignTo(spec.group(), vectors * machine.lanesF32()));
}

/// The schedule with other lanes, its other fields where such kernels have
/// them.
static Schedule withQueries(Schedule s, const Machine &machine,
                            const AttentionSpec &spec) {
  s.lanes = Schedule::Lanes::Queries;
  s.heads = 1;
  s.blockRows = 4;
  s.blockVectors = 1;
  s.qTile = leastRows(machine, spec, 1);
  s.kvTile = int64_t(alignTo(std::max<int64_t>(s.kvTile, 32), 4));
  s.prefetch = s.pack = s.stages = 1;
  return s;
}

static Schedule withHeadDim(Schedule s, const AttentionSpec &spec) {
  s.lanes = Schedule::Lanes::HeadDim;
  s.heads = spec.kvHeads;
  s.blockRows = std::min<int64_t>(2, spec.group());
  s.blockVectors = 2;
  s.qTile = spec.group();
  s.kvTile = std::clamp<int64_t>(2 * spec.blockSize, 32, 128);
  s.prefetch = 1;
  s.stages = 2;
  s.pack = 0;
  return s;
}

static void addNvidiaSteps(Collector &space, const Schedule &schedule) {
  auto with = [&](auto change) {
    Schedule s = schedule;
    change(s);
    space.add(s);
  };
  for (int64_t step : {-32, -16, 16, 32})
    with([&](Schedule &s) { s.kvTile += step; });
  for (int64_t stages : {1, 2, 3, 4})
    with([&](Schedule &s) { s.stages = stages; });
  for (int64_t warps : {schedule.warps / 2, schedule.warps * 2})
    with([&](Schedule &s) {
      s.warps = warps;
      s.qTile = 16 * warps;
    });
}

std::vector<Schedule> pagoda::neighbours(const Schedule &schedule,
                                         const Machine &machine,
                                         const AttentionSpec &spec,
                                         Variant variant) {
  Collector space(machine, spec);
  if (machine.kind == TargetKind::Nvidia) {
    addNvidiaSteps(space, schedule);
    return space.take();
  }
  auto with = [&](auto change) {
    Schedule s = schedule;
    change(s);
    if (!(s == schedule))
      space.add(s);
  };
  if (lanesAreQueries(schedule)) {
    int64_t panel = schedule.blockVectors * machine.lanesF32();
    for (int64_t step : {-2 * panel, -panel, panel, 2 * panel,
                         -schedule.qTile / 2, schedule.qTile})
      with([&](Schedule &s) {
        s.qTile = std::max(leastRows(machine, spec, s.blockVectors),
                           (schedule.qTile + step) / panel * panel);
      });
    for (int64_t keys : {schedule.kvTile / 2, schedule.kvTile - 16,
                         schedule.kvTile + 16, schedule.kvTile * 2})
      with([&](Schedule &s) { s.kvTile = keys / s.blockRows * s.blockRows; });
    for (auto [rows, vectors] : queryBlocks)
      with([&](Schedule &s) {
        s.blockRows = rows;
        s.blockVectors = vectors;
        s.qTile = std::max(leastRows(machine, spec, vectors),
                           s.qTile / (vectors * machine.lanesF32()) * vectors *
                               machine.lanesF32());
        s.kvTile = int64_t(alignTo(s.kvTile, rows));
      });
    for (int64_t pack : {0, 1, 2})
      with([&](Schedule &s) { s.pack = pack; });
    with([](Schedule &s) { s.prefetch = !s.prefetch; });
    if (variant == Variant::Decode)
      space.add(withHeadDim(schedule, spec));
    return space.take();
  }
  for (int64_t heads = 1; heads <= spec.kvHeads; ++heads)
    if (spec.kvHeads % heads == 0 &&
        (heads * 4 >= schedule.heads && heads <= schedule.heads * 4))
      with([&](Schedule &s) { s.heads = heads; });
  for (int64_t keys : {schedule.kvTile / 2, schedule.kvTile * 2,
                       schedule.kvTile * 4, spec.blockSize})
    with([&](Schedule &s) { s.kvTile = std::clamp<int64_t>(keys, 1, 256); });
  for (int64_t rows : {1, 2, 4})
    with([&](Schedule &s) { s.blockRows = rows; });
  for (int64_t vectors : {1, 2, 4})
    with([&](Schedule &s) { s.blockVectors = vectors; });
  with([](Schedule &s) { s.stages = 3 - s.stages; });
  for (int64_t step : {-2, -1, 1, 2})
    with([&](Schedule &s) {
      s.prefetch = std::max<int64_t>(0, s.prefetch + step);
    });
  if (variant == Variant::Decode)
    space.add(withQueries(schedule, machine, spec));
  return space.take();
}

/// How unlike two schedules are: doublings in all fields, 2 for each choice
/// without an order.
static double distance(const Schedule &a, const Schedule &b) {
  auto doublings = [](int64_t x, int64_t y) {
    return std::abs(std::log2(double(x + 1) / double(y + 1)));
  };
  return doublings(a.qTile, b.qTile) + doublings(a.kvTile, b.kvTile) +
         doublings(a.heads, b.heads) + doublings(a.blockRows, b.blockRows) +
         doublings(a.blockVectors, b.blockVectors) +
         doublings(a.prefetch, b.prefetch) + doublings(a.stages, b.stages) +
         doublings(a.warps, b.warps) + 2 * (a.pack != b.pack) +
         2 * (a.lanes != b.lanes);
}

std::vector<Schedule> pagoda::tuningSpace(const Machine &machine,
                                          const AttentionSpec &spec,
                                          Variant variant, size_t most) {
  std::vector<TileCandidate> ranked = rankTiles(machine, spec, variant);
  if (ranked.empty() || most == 0)
    return {};
  Collector collector(machine, spec);
  for (const TileCandidate &candidate : ranked)
    collector.add(candidate.schedule);
  for (const TileCandidate &candidate : ArrayRef(ranked).take_front(centres))
    for (const Schedule &near :
         neighbours(candidate.schedule, machine, spec, variant))
      collector.add(near);

  double worst = hopeless * ranked.front().cost;
  std::vector<std::pair<double, Schedule>> open;
  std::vector<Schedule> space = {ranked.front().schedule};
  for (const Schedule &schedule : collector.take()) {
    double cost = evaluate(schedule, machine, spec, false).cost;
    if (!(schedule == space.front()) && cost <= worst)
      open.emplace_back(cost, schedule);
  }
  // A schedule next to one that is taken must be this much cheaper to come
  // before one a doubling away.
  constexpr double likeness = 0.1;
  std::vector<double> nearest(open.size(), 1);
  while (space.size() < most && !open.empty()) {
    size_t best = 0;
    double bestScore = INFINITY;
    for (size_t i = 0; i < open.size(); ++i) {
      nearest[i] = std::min(nearest[i], distance(open[i].second, space.back()));
      double score = open[i].first - likeness * nearest[i];
      if (score < bestScore) {
        bestScore = score;
        best = i;
      }
    }
    space.push_back(open[best].second);
    open.erase(open.begin() + ptrdiff_t(best));
    nearest.erase(nearest.begin() + ptrdiff_t(best));
  }
  return space;
}

/// Draws one value of a list.
template <size_t N>
static int64_t pick(std::mt19937_64 &random, const std::array<int64_t, N> &of) {
  return of[random() % N];
}

/// One schedule, legal or not.
static Schedule draw(std::mt19937_64 &random, const Machine &machine,
                     const AttentionSpec &spec, Variant variant) {
  Schedule s;
  s.order = variant == Variant::Prefill ? Schedule::Order::QOuter
                                        : Schedule::Order::SplitKv;
  if (machine.kind == TargetKind::Nvidia) {
    s.warps = pick<4>(random, {1, 2, 4, 8});
    s.qTile = 16 * s.warps;
    s.kvTile = 16 * int64_t(1 + random() % 16);
    s.stages = pick<4>(random, {1, 2, 3, 4});
    return s;
  }
  if (variant == Variant::Prefill || random() % 2) {
    auto [rows, vectors] = queryBlocks[random() % std::size(queryBlocks)];
    int64_t panel = vectors * machine.lanesF32();
    s.blockRows = rows;
    s.blockVectors = vectors;
    s.qTile = leastRows(machine, spec, vectors) +
              panel * int64_t(variant == Variant::Prefill
                                  ? random() % (512 / panel + 1)
                                  : random() % 2);
    s.kvTile = int64_t(
        alignTo(pick<9>(random, {8, 16, 32, 48, 64, 96, 128, 192, 256}), rows));
    s.prefetch = int64_t(random() % 2);
    s.pack = int64_t(random() % 2);
    if (s.pack && machine.addsPairProducts())
      s.pack += int64_t(random() % 2);
    return s;
  }
  SmallVector<int64_t> divisors;
  for (int64_t heads = 1; heads <= spec.kvHeads; ++heads)
    if (spec.kvHeads % heads == 0)
      divisors.push_back(heads);
  s.lanes = Schedule::Lanes::HeadDim;
  s.heads = divisors[random() % divisors.size()];
  s.qTile = spec.group();
  s.kvTile = pick<6>(random, {8, 16, 32, 64, 128, 256});
  s.blockRows = pick<3>(random, {1, 2, 4});
  s.blockVectors = pick<4>(random, {1, 2, 4, 8});
  s.prefetch = int64_t(random() % 3);
  s.stages = 1 + int64_t(random() % 2);
  return s;
}

std::vector<Schedule> pagoda::sampleSchedules(const Machine &machine,
                                              const AttentionSpec &spec,
                                              Variant variant, size_t count,
                                              uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Schedule> result;
  // Draws that are illegal or there already are drawn again, to a limit.
  for (size_t tries = 0; result.size() < count && tries < 64 * count; ++tries) {
    Schedule schedule = draw(random, machine, spec, variant);
    if (!is_contained(result, schedule) &&
        !errorToBool(checkSchedule(schedule, machine, spec)))
      result.push_back(schedule);
  }
  return result;
}
