//===- RankTiles.cpp - The search space of tiles and its ranking ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enumerates the schedules worth trying for a machine and a specification,
// drops the illegal ones and sorts the rest by the cost that SramFit.cpp
// counts.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/SramFit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace llvm;
using namespace pagoda;

constexpr size_t mostCandidates = 32;

/// Register blocks worth trying: rows broadcast, vectors.
constexpr std::pair<int64_t, int64_t> queryBlocks[] = {{4, 4}, {8, 3}, {6, 4},
                                                       {4, 3}, {6, 2}, {4, 2}};

/// Lanes are queries: for decode a q tile of `tokens` tokens, for prefill those
/// of whole panels.
static void addQueries(std::vector<Schedule> &space, const Machine &machine,
                       const AttentionSpec &spec, Variant variant,
                       int64_t tokens) {
  constexpr int64_t mostRows = 512, keys[] = {32, 48, 64, 96, 128};
  for (auto [rows, vectors] : queryBlocks) {
    int64_t panel = vectors * machine.lanesF32();
    bool decode = variant == Variant::Decode;
    int64_t least = spec.group() * tokens;
    if (!decode)
      least = alignTo(least, panel);
    int64_t most = decode ? least : std::max(least, mostRows);
    for (int64_t qTile = least; qTile <= most; qTile += panel)
      for (int64_t kvTile : keys)
        for (int64_t pack : {0, 1, 2}) {
          if (pack == 2 && !machine.addsPairProducts())
            continue;
          Schedule s;
          s.qTile = qTile;
          s.kvTile = kvTile;
          s.blockRows = rows;
          s.blockVectors = vectors;
          s.prefetch = 1;
          s.pack = pack;
          space.push_back(s);
        }
  }
}

/// Keys per tile that suit a block: the block itself where it has 16 to 64
/// slots, a multiple of a smaller one, 64 of a larger one.
static int64_t blockKeys(int64_t block) {
  constexpr int64_t least = 16, most = 64;
  return std::min(block * int64_t(divideCeil(least, block)), most);
}

/// Lanes are the head dim: heads of a block together.
static void addHeadDim(std::vector<Schedule> &space, const AttentionSpec &spec,
                       int64_t tokens) {
  int64_t block = blockKeys(spec.blockSize);
  SmallVector<int64_t> keys = {block, 2 * block, 4, 8, 16, 32, 64, 128, 256};
  llvm::sort(keys);
  keys.erase(llvm::unique(keys), keys.end());
  // All rows that meet a key, or some.
  SmallVector<int64_t> blocks = {spec.group() * tokens, 4, 2, 1};
  llvm::sort(blocks, std::greater<>());
  blocks.erase(llvm::unique(blocks), blocks.end());
  for (int64_t heads = spec.kvHeads; heads >= 1; --heads) {
    if (spec.kvHeads % heads != 0)
      continue;
    for (int64_t kvTile : keys)
      for (int64_t rows : blocks)
        for (int64_t vectors : {8, 4, 2, 1})
          for (auto [stages, prefetch] :
               {std::pair{2, 1}, {2, 2}, {2, 3}, {2, 4}, {1, 1}}) {
            // With one stage there are no passes: all rows' sums are registers.
            if (stages == 1 && rows > 4)
              continue;
            // Only tokens of several heads are walked side by side.
            if (prefetch == 4 && (spec.layout == KvLayout::HND || heads == 1))
              continue;
            Schedule s;
            s.lanes = Schedule::Lanes::HeadDim;
            s.qTile = spec.group() * tokens;
            s.kvTile = kvTile;
            s.heads = heads;
            s.blockRows = rows;
            s.blockVectors = vectors;
            s.prefetch = prefetch;
            s.stages = stages;
            space.push_back(s);
          }
  }
}

/// NVIDIA: one warp per 16 rows, four warps or as many as a token needs.
static void addNvidia(std::vector<Schedule> &space, const AttentionSpec &spec) {
  int64_t least = alignTo(std::max<int64_t>(spec.group(), 64), 64);
  for (int64_t qTile : {least, 2 * least})
    for (int64_t stages : {2, 1})
      for (int64_t kvTile = 16; kvTile <= 256; kvTile += 16) {
        Schedule s;
        s.qTile = qTile;
        s.kvTile = kvTile;
        s.stages = stages;
        s.warps = qTile / 16;
        space.push_back(s);
      }
}

/// Every schedule of the search space, legal or not.
static std::vector<Schedule> searchSpace(const Machine &machine,
                                         const AttentionSpec &spec,
                                         Variant variant, int64_t tokens) {
  std::vector<Schedule> space;
  if (machine.kind == TargetKind::Nvidia)
    addNvidia(space, spec);
  else if (variant == Variant::Prefill ||
           spec.group() * tokens > 2 * machine.lanesF32())
    // More rows than two vectors are worth the lanes (bench/results/cpu.md).
    addQueries(space, machine, spec, variant, tokens);
  else
    addHeadDim(space, spec, tokens);
  for (Schedule &s : space)
    s.order = variant == Variant::Prefill ? Schedule::Order::QOuter
                                          : Schedule::Order::SplitKv;
  return space;
}

std::vector<TileCandidate> pagoda::rankTiles(const Machine &machine,
                                             const AttentionSpec &spec,
                                             Variant variant, int64_t tokens) {
  // Of equal ones: more heads (longer walks), then smaller tiles (more items).
  auto key = [](double cost, const Schedule &s) {
    return std::tuple(std::llround(cost * 1e6), -s.heads, s.qTile, s.kvTile,
                      -s.blockRows, -s.blockVectors, s.stages, s.pack,
                      s.prefetch);
  };
  using Keyed = std::pair<decltype(key(0, Schedule())), Schedule>;
  std::vector<Keyed> legal;
  for (const Schedule &s : searchSpace(machine, spec, variant, tokens))
    if (!errorToBool(checkSchedule(s, machine, spec)))
      legal.emplace_back(key(evaluate(s, machine, spec, false).cost, s), s);
  llvm::sort(legal, llvm::less_first());
  if (legal.size() > mostCandidates)
    legal.resize(mostCandidates);
  std::vector<TileCandidate> candidates;
  for (const Keyed &keyed : legal)
    candidates.push_back(evaluate(keyed.second, machine, spec));
  return candidates;
}

/// Where the overrides of a teaching order start from: the register block and
/// query tile of the best schedule with lanes = queries, nothing packed or
/// fetched ahead. `naive` and `gather` work on many keys at once: that they
/// need the room is their point.
static Schedule teachingSchedule(const Machine &machine,
                                 const AttentionSpec &spec, Variant variant,
                                 Schedule::Order order) {
  constexpr int64_t wholeKeys = 1024;
  std::vector<Schedule> space;
  addQueries(space, machine, spec, variant, /*tokens=*/1);
  auto cost = [&](const Schedule &s) {
    bool legal = !errorToBool(checkSchedule(s, machine, spec));
    return std::pair(!legal, evaluate(s, machine, spec, false).cost);
  };
  Schedule best =
      *llvm::min_element(space, [&](const Schedule &a, const Schedule &b) {
        return cost(a) < cost(b);
      });
  best.order = order;
  best.pack = best.prefetch = 0;
  if (order != Schedule::Order::KvOuter)
    best.kvTile = int64_t(alignTo(wholeKeys, best.blockRows));
  return best;
}

Expected<TileCandidate> pagoda::selectTile(const Machine &machine,
                                           const AttentionSpec &spec,
                                           Variant variant,
                                           ArrayRef<std::string> overrides,
                                           int64_t tokens) {
  if (spec.kvHeads < 1 || spec.qHeads < 1 || spec.qHeads % spec.kvHeads != 0)
    return createStringError(
        "query heads must be a multiple of kv heads, got " +
        Twine(spec.qHeads) + " and " + Twine(spec.kvHeads));
  Schedule wanted;
  if (Error error = applyOverrides(wanted, machine, variant, overrides))
    return error;
  if (machine.kind == TargetKind::Cpu && isTeachingOrder(wanted.order)) {
    Schedule schedule = teachingSchedule(machine, spec, variant, wanted.order);
    if (Error error = applyOverrides(schedule, machine, variant, overrides))
      return error;
    if (Error error = checkSchedule(schedule, machine, spec))
      return error;
    return evaluate(schedule, machine, spec);
  }
  std::vector<TileCandidate> ranked = rankTiles(machine, spec, variant, tokens);
  // With no legal tile, the first of the space says which limit it breaks.
  Schedule schedule = ranked.empty()
                          ? searchSpace(machine, spec, variant, tokens).front()
                          : ranked.front().schedule;
  if (Error error = applyOverrides(schedule, machine, variant, overrides))
    return error;
  // Values across lanes are never walked by columns.
  if (schedule.lanes == Schedule::Lanes::HeadDim)
    schedule.pack = 0;
  if (Error error = checkSchedule(schedule, machine, spec))
    return error;
  return evaluate(schedule, machine, spec);
}
