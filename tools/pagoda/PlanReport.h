//===- PlanReport.h - What a load takes of memory ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers of `pagoda plan`, for a person and as JSON. The arithmetic is the
// runtime's (MemoryPlan); the pools are replayed by it, too (PoolSimulation).
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_PLANREPORT_H
#define PAGODA_TOOLS_PAGODA_PLANREPORT_H

#include "pagoda/MemoryPlan.h"
#include "pagoda/PoolSimulation.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagoda {

/// The sequences whose memory is planned, in order.
struct PlanLoad {
  std::vector<SequenceLoad> sequences;
  int32_t sharedPrefix = 0;
  int32_t maxLength = 0;
  /// Contiguous memory is reserved for max_length tokens, or for exactly those
  /// of each sequence.
  bool reserveMax = true;

  int32_t longest() const;
  int64_t count() const;
  /// Tokens that contiguous memory reserves for a sequence of `tokens`.
  int32_t reserve(int32_t tokens) const {
    return reserveMax ? maxLength : tokens;
  }
};

/// One kind of layer, three ways.
struct KindPlan {
  std::string name;
  CacheLayers layers;
  bool chunks = false; ///< queries see chunks, which `layers` has as a window
  MemoryPlan contiguous, apart, shared; ///< paged without and with sharing
};

/// The whole score matrix of the longest sequence, one head, f32.
struct ScoreMatrix {
  int64_t tokens = 0;
  int64_t elements = 0;
  int64_t qTile = 0, kvTile = 0; ///< what tiled attention keeps; 0: unknown
};

struct MemoryReport {
  std::string title;
  PlanLoad load;
  std::vector<KindPlan> kinds;
  /// Layers that keep nothing, by what they are.
  std::vector<std::pair<std::string, int64_t>> without;
  std::optional<int64_t> memory; ///< bytes to fill with sequences
  ScoreMatrix scores;
};

/// Plans `report.load` for the layers in `report.kinds`. Throws what MemoryPlan
/// throws.
void planKinds(MemoryReport &report);

void printReport(llvm::raw_ostream &os, const MemoryReport &report);
llvm::json::Object toJson(const MemoryReport &report);

/// What to replay on one pool.
struct Replay {
  PoolOptions pool;
  std::vector<int32_t> ended;  ///< sequences that end, from 0, in order
  std::optional<int32_t> next; ///< tokens of a request after that
};

/// A pool after the replay.
struct ReplayedPool {
  std::string title;
  int32_t blockSize = 0;
  std::vector<PoolSimulation::Cell> cells;
  int32_t freeBlocks = 0;
  int32_t largestHole = 0; ///< blocks that one request can have
  int64_t refused = 0;     ///< sequences without room
  std::optional<bool> nextFits;
};

ReplayedPool replay(const PlanLoad &load, const Replay &what,
                    const std::string &title);

/// Free blocks, holes, who found no room: one line a pool.
void printPools(llvm::raw_ostream &os, const std::vector<ReplayedPool> &pools,
                std::optional<int32_t> next);
/// One character a block, 64 a line, with a legend; lines that repeat are
/// counted. Colours where `os` shows them.
void drawPools(llvm::raw_ostream &os, const std::vector<ReplayedPool> &pools);
llvm::json::Array toJson(const std::vector<ReplayedPool> &pools);

/// "24.5 MiB": powers of 1024, three significant digits.
std::string memoryText(int64_t bytes);
/// "1,234,567".
std::string countText(int64_t count);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_PLANREPORT_H
