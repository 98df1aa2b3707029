//===- BenchRows.h - What pagoda bench measures -----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row is one kernel on one step: its times beside the machine's own limit,
// which is sampled in turn with it, so that what the machine loses to others
// hits both. Output is checked in every row.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_BENCHROWS_H
#define PAGODA_TOOLS_PAGODA_BENCHROWS_H

#include "bench/peers/SgemmAttention.h"
#include "compiler/tune/Statistics.h"
#include "tools/pagoda/KernelLimits.h"
#include "tools/pagoda/ScheduleBench.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pagoda {

struct BenchRow {
  std::string kernel;    ///< "full_attention prefill"
  std::string spec;      ///< shapes and features, for a person
  std::string step;      ///< StepShape::str(), or what is written
  std::string dtype;     ///< of q and, if another, of the cache
  std::string variant;   ///< "default", "tuned", a loop order, or a peer
  std::string schedule;  ///< empty for kernels without one; a peer's version
  std::string limit;     ///< "512-bit FMA", "bf16 pairs", ... or "read"
  double flops = 0;      ///< of a step, on visible pairs
  double bytes = 0;      ///< that a step has to move at least: K and V
  double modelBytes = 0; ///< that the cost model says it moves; 0: not asked
  std::vector<double> seconds; ///< one a step
  /// Share of the limit beside each step.
  std::vector<double> shares;
  /// Times of the first row over times of this, in pairs, for rows beside a
  /// first one: the median with its interval of 99%, and the quartiles.
  std::optional<Interval> speedup, quarters;
  std::string wrong; ///< the worst output element, if it is out of bounds
  bool peer = false; ///< not our code

  double gflops() const { return flops / median(seconds) / 1e9; }
  double gbs() const { return bytes / median(seconds) / 1e9; }
};

/// Samples `rows` in turn, in rising and falling order, and their limits before
/// each turn, one for all rows that name the same, for about `seconds`.
/// `run(i)` returns the seconds of a step of row i, `limit(i)` the machine's
/// flops or bytes a second; `work` is those of a step.
void sampleRows(std::vector<BenchRow> &rows, double seconds, double work,
                const std::function<double(size_t)> &limit,
                const std::function<double(size_t)> &run);

/// What binds a step of `variant`, as this machine gives it now to the threads
/// of `bench`, by their clock: for prefill flops a second by `arithmetic`, for
/// decode bytes a second that are read from its pool.
double limitNow(Variant variant, limits::Arithmetic arithmetic,
                const Workbench &bench);

/// The row of a step whose kernel multiplies by `arithmetic`, without what is
/// measured.
BenchRow emptyRow(const AttentionSpec &spec, Variant variant,
                  limits::Arithmetic arithmetic, const Workbench &bench);

/// A schedule and what to call it; the first one is the default.
struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

/// One row for each schedule and for each peer, in turns, for about `seconds`.
/// A peer is held against the limit of the first schedule.
/// A peer that cannot do the step, or does it wrong, has no row but a line
/// among the missing. Errors: those of the compiler; those of the runtime are
/// thrown.
llvm::Expected<std::vector<BenchRow>>
benchAttention(const AttentionSpec &spec, Variant variant,
               const Machine &machine, const StepShape &shape,
               llvm::ArrayRef<NamedSchedule> schedules, double seconds,
               peers::Peers *peers = nullptr);

/// Kernels that write the cache, those of `roles`: append, `tokens` new tokens
/// through a slot mapping, and copy, as many tokens' blocks. Each works on a
/// pool of its own and writes the same values each time, so that repeating it
/// changes nothing; afterwards the whole pool is compared with what it must
/// hold.
llvm::Expected<std::vector<BenchRow>>
benchCacheWrites(const AttentionSpec &spec, const Machine &machine,
                 llvm::ArrayRef<int32_t> roles, int64_t tokens, int threads,
                 double seconds);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_BENCHROWS_H
