//===- Schedule.h - Every choice of how a kernel runs -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// #pagoda.schedule as plain data, for code that knows no MLIR: the SRAM-fit
// formula, the tuner and the tools. Its text form, overrides of single fields
// as a user gives them, and the check against a machine.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_SCHEDULE_H
#define PAGODA_COMPILER_TILING_SCHEDULE_H

#include "compiler/import/AttentionSpec.h"
#include "compiler/tiling/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace pagoda {

/// Rows of a register block that pass over keys and values together, with lanes
/// = head_dim and two stages: so few that a score and a weight of each row for
/// each of `streams` keys and values stay in `registers`. Where nothing fetches
/// rows, at most half of them, since a first pass waits for memory and those
/// after it fetch.
inline int64_t rowsOfPass(int64_t blockRows, int64_t streams, int64_t registers,
                          bool fetched) {
  constexpr int64_t others = 8; // elements and what is multiplied by them
  int64_t fit = std::max<int64_t>(1, (registers - others) / (2 * streams));
  if (!fetched)
    return std::min(fit, (blockRows + 1) / 2);
  int64_t passes = (blockRows + fit - 1) / fit;
  return (blockRows + passes - 1) / passes;
}

/// With two stages, how far ahead of each walk rows are fetched.
inline constexpr int64_t fetchedAheadBytes = 2048;

/// With two stages, whether `prefetch` says that the rows that a walk comes to
/// are fetched, that those of a whole tile are, in the order in which they lie,
/// and that the values of a tile come before the keys of the next one instead
/// of beside them.
inline bool fetchesRows(int64_t prefetch) { return prefetch > 1; }
inline bool fetchesTiles(int64_t prefetch) { return prefetch == 3; }
inline bool walksApart(int64_t prefetch) { return prefetch == 4; }
inline constexpr int64_t mostPrefetchOfTwoStages = 4;

/// What a kernel is for: many queries of a sequence at once, or one.
enum class Variant { Prefill, Decode };

/// "prefill" or "decode".
llvm::StringRef nameOf(Variant variant);

/// The fields of #pagoda.schedule (dialect/Attributes.td says what each means);
/// the enumerators have the values of pagoda::LoopOrder and pagoda::Lanes.
struct Schedule {
  enum class Order { Naive, Gather, KvOuter, QOuter, SplitKv };
  enum class Lanes { Queries, HeadDim };

  Order order = Order::QOuter;
  Lanes lanes = Lanes::Queries;
  int64_t qTile = 1;        ///< packed query rows per item
  int64_t kvTile = 1;       ///< keys per iteration
  int64_t heads = 1;        ///< KV heads per item
  int64_t blockRows = 1;    ///< register block: broadcast rows (CPU)
  int64_t blockVectors = 1; ///< register block: vectors (CPU)
  int64_t prefetch = 0;     ///< tiles ahead that are fetched (CPU)
  int64_t pack = 0;         ///< V copied: 1 as f32, 2 as bf16 pairs (CPU)
  int64_t stages = 1;       ///< depth of the KV pipeline
  int64_t warps = 1;        ///< per block (GPU)

  /// Keys, and values, half a tile apart, that two stages walk side by side.
  int64_t streams() const {
    return lanes == Lanes::HeadDim && stages == 2 && kvTile % 2 == 0 ? 2 : 1;
  }

  bool operator==(const Schedule &) const = default;

  /// "order=q_outer,lanes=queries,q_tile=96,..."; applyOverrides reads it back.
  std::string str() const;
};

/// Whether machines of a kind read the field `key`.
bool isRead(llvm::StringRef key, TargetKind kind);

/// The orders that show how attention got fast; q_outer and split_kv are what
/// came of it.
inline bool isTeachingOrder(Schedule::Order order) {
  return order < Schedule::Order::QOuter;
}

/// Sets fields from `overrides`: each is "key=value", several joined by commas,
/// or the same with "prefill." or "decode." before the key, which then holds
/// for that variant only. Keys and values are those of #pagoda.schedule.
/// Errors: a key that does not exist or that the machine's kind does not read,
/// a value that is not a number or not the name of an order or of lanes.
llvm::Error applyOverrides(Schedule &schedule, const Machine &machine,
                           Variant variant,
                           llvm::ArrayRef<std::string> overrides);

/// Whether kernels of `spec` can be built by `schedule` for `machine` at all;
/// cache shares are advice and never refused. The constraints M1 to M10 are
/// listed in compiler/tiling/README.md; an error names field, expected and
/// actual value.
llvm::Error checkSchedule(const Schedule &schedule, const Machine &machine,
                          const AttentionSpec &spec);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_SCHEDULE_H
