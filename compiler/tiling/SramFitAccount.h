//===- SramFitAccount.h - One candidate being counted -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the countings of CPU and NVIDIA kernels share: a candidate's levels,
// steps and cost as they come together. Every constant is explained, with its
// measurement, in compiler/tiling/README.md.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_SRAMFITACCOUNT_H
#define PAGODA_COMPILER_TILING_SRAMFITACCOUNT_H

#include "compiler/tiling/SramFit.h"

#include <algorithm>

namespace pagoda {

inline constexpr int64_t f32Bytes = 4;
// Shares of a cache that tiles may take: the rest is for streams and tables.
inline constexpr double l1Share = 0.7, l2Share = 0.9;
// Sequence length at which work beyond the diagonal is judged.
inline constexpr double referenceLength = 2048;

/// Collects a candidate's levels, steps and cost.
class Account {
public:
  Account(const Schedule &schedule, const AttentionSpec &spec, bool explain)
      : spec(spec), s(candidate.schedule), explain(explain) {
    candidate.schedule = schedule;
    candidate.cost = 1;
  }

  TileCandidate candidate;
  const AttentionSpec &spec;
  const Schedule &s;
  const bool explain;

  using Inputs = llvm::SmallVector<std::pair<llvm::StringRef, double>, 6>;

  double step(llvm::StringRef name, llvm::StringRef formula, Inputs inputs,
              double result, llvm::StringRef unit = "") {
    if (explain)
      candidate.steps.push_back(
          {name, formula, std::move(inputs), result, unit});
    return result;
  }

  /// A step whose result adds to the cost.
  void cost(llvm::StringRef name, llvm::StringRef formula, Inputs inputs,
            double result) {
    candidate.cost += step(name, formula, std::move(inputs), result);
  }

  /// A level, and the step that sums its parts up.
  const LevelUse &level(LevelUse use) {
    Inputs inputs;
    for (auto [what, count] : use.parts)
      inputs.push_back({what, double(count)});
    inputs.push_back({"budget", double(use.budget)});
    step(use.level, "sum of what is resident <= budget", std::move(inputs),
         double(use.total()), use.unit);
    candidate.levels.push_back(std::move(use));
    return candidate.levels.back();
  }

  // A panel that does not stay in L1, for each time the share that it takes;
  // being over the L2 share by as much as the share.
  static constexpr double l1Miss = 0.02, l2Miss = 0.5;

  void l1(llvm::SmallVector<std::pair<llvm::StringRef, int64_t>, 6> parts,
          const Machine &machine) {
    const LevelUse &use = level(
        {"L1", "B", std::move(parts), int64_t(machine.l1Bytes * l1Share)});
    double times = double(use.total()) / double(use.budget);
    cost("L1 overflow", "0.02 * total / budget if over the budget", {},
         use.fits() ? 0 : l1Miss * times);
  }

  void l2(llvm::SmallVector<std::pair<llvm::StringRef, int64_t>, 6> parts,
          const Machine &machine) {
    const LevelUse &use = level(
        {"L2", "B", std::move(parts), int64_t(machine.l2Bytes * l2Share)});
    double over = double(use.total()) / double(use.budget) - 1;
    cost("L2 overflow", "0.5 * (total / budget - 1), at least 0", {},
         l2Miss * std::max(0.0, over));
  }

  void registerBlock(const Machine &machine) {
    if (s.lanes == Schedule::Lanes::HeadDim && s.stages == 2) {
      int64_t rows =
          rowsOfPass(s.blockRows, s.streams(), machine.vectorRegisters,
                     fetchesRows(s.prefetch));
      level({"registers",
             "",
             {{"scores and weights of a pass", 2 * s.streams() * rows},
              {"elements and factors", 8}},
             machine.vectorRegisters,
             /*hard=*/true});
      return;
    }
    level({"registers",
           "",
           {{"accumulators", s.blockRows * s.blockVectors},
            {"vectors", s.blockVectors},
            {"broadcast", 1}},
           machine.vectorRegisters,
           /*hard=*/true});
  }

  double loadsPerFma() const {
    return 1.0 / double(s.blockRows) + 1.0 / double(s.blockVectors);
  }

  int64_t tokens() const {
    return std::max<int64_t>(1, s.qTile / std::max<int64_t>(1, spec.group()));
  }
  /// Bytes of one key and its value in the cache.
  int64_t kvBytes() const {
    return (spec.headDim + spec.vHeadDim) * byteSize(spec.kvType);
  }
  /// Bytes of one row of Q and O in f32.
  int64_t rowBytes() const { return (spec.headDim + spec.vHeadDim) * f32Bytes; }

  /// Pairs that are computed and no query sees, per visible pair: rows are
  /// computed in runs of `tokens`, keys in runs of `keys`; where a window
  /// begins, in whole tiles. A sequence's first rows see its beginning still.
  void beyondDiagonal(int64_t tokens, int64_t keys) {
    double share = spec.window ? double(*spec.window) / referenceLength : 1;
    if (share < 1) {
      double beyond =
          double(tokens + keys) + (1 - share) * double(tokens + s.kvTile);
      double seen = double(*spec.window) * (1 - share / 2);
      cost("keys beyond diagonal and window",
           "(tokens + keys + late * (tokens + kv_tile)) / (2 * seen)",
           {{"tokens", double(tokens)},
            {"keys", double(keys)},
            {"late", 1 - share},
            {"kv_tile", double(s.kvTile)},
            {"seen", seen}},
           beyond / (2 * seen));
    } else if (spec.causal)
      cost("keys beyond the diagonal", "(tokens + keys) / length",
           {{"tokens", double(tokens)},
            {"keys", double(keys)},
            {"length", referenceLength}},
           double(tokens + keys) / referenceLength);
    else
      cost("keys beyond the end", "keys / 2 / length",
           {{"keys", double(keys)}, {"length", referenceLength}},
           double(keys) / 2 / referenceLength);
  }

  void stateUpdate(double keys) {
    cost("state update", "keys / kv_tile",
         {{"keys", keys}, {"kv_tile", double(s.kvTile)}},
         keys / double(s.kvTile));
  }

  void paper(int64_t elements) {
    PaperTiles tiles = paperTiles(elements, spec.headDim);
    step("the paper's Bc", "ceil(M / 4d)",
         {{"M", double(elements)}, {"d", double(spec.headDim)}},
         double(tiles.bc), "keys");
    step("the paper's Br", "min(Bc, d)",
         {{"Bc", double(tiles.bc)}, {"d", double(spec.headDim)}},
         double(tiles.br), "rows");
  }

  TileCandidate finish() {
    step("cost", "1 + the terms above", {}, candidate.cost);
    return std::move(candidate);
  }
};

/// The counting of NVIDIA kernels (SramFitNvidia.cpp).
TileCandidate evaluateNvidia(const Schedule &schedule, const Machine &machine,
                             const AttentionSpec &spec, bool explain);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_SRAMFITACCOUNT_H
