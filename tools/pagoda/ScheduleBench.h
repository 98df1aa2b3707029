//===- ScheduleBench.h - Schedules measured side by side --------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of one specification and variant by many schedules, built in process,
// timed in pairs on one cache and compared with the f64 reference. Attention
// kernels write nothing but o, lse and partial states, so repeating a step
// changes no cache; kernels that write the cache are run only where a
// verification fills a pool of its own. Decides nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_SCHEDULEBENCH_H
#define PAGODA_TOOLS_PAGODA_SCHEDULEBENCH_H

#include "compiler/Driver.h"
#include "tools/pagoda/Workbench.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <memory>
#include <vector>

namespace pagoda {

/// Seconds that --budget gives: "90s", "5m" or "90". Errors, of --budget,
/// --threads and --target too: what does not fit a measurement on this machine.
llvm::Expected<double> checkMeasuring(llvm::StringRef budget, int64_t threads,
                                      const Machine &machine);

/// The name of the kernel that is built by the schedule at `index` of a
/// library's settled ones.
std::string settledName(const CompileOptions &options, size_t index);

class ScheduleBench {
public:
  /// Builds the kernel of `baseline`, the default, and a step for it. Errors:
  /// those of the compiler and of the runtime.
  static llvm::Expected<std::unique_ptr<ScheduleBench>>
  create(const AttentionSpec &spec, Variant variant, const Machine &machine,
         const Schedule &baseline, const StepShape &shape);

  /// Builds kernels, on all cores. False for each
  /// schedule that cannot be built. What is built already costs nothing.
  std::vector<bool> prepare(llvm::ArrayRef<Schedule> schedules);

  /// Seconds of the baseline over seconds of `schedule`, which is prepared, one
  /// step each, right after each other.
  double sample(const Schedule &schedule, bool baselineFirst);
  /// Seconds of one step: of CPU time if it runs on one thread.
  double time(const Schedule &schedule);
  /// The same of a step by code that is not ours.
  double time(const std::function<void(const reference::Problem &)> &attend);

  /// Every output element of a batch with chunked prompts, a shared prefix and
  /// decoding, and sampled rows of the step that is measured.
  reference::Comparison verify(const Schedule &schedule);
  /// The sampled rows alone.
  reference::Comparison checkSampled(const Schedule &schedule);

  /// Of the baseline and of `schedule`, so far.
  double baselineSeconds() const;
  double seconds(const Schedule &schedule) const;

  Workbench &bench() { return *workbench; }

private:
  struct Kernel {
    std::shared_ptr<JitLibrary> code; ///< null: cannot be built
    KernelSet set;
    std::vector<double> seconds;
  };

  ScheduleBench(const AttentionSpec &spec, Variant variant,
                const Machine &machine, const Schedule &baseline)
      : spec(spec), variant(variant), machine(machine), baseline(baseline) {}
  /// Kernels of `schedules`, in one library.
  llvm::Expected<std::vector<Kernel>>
  build(llvm::ArrayRef<Schedule> schedules) const;
  Kernel &at(const Schedule &schedule) {
    return kernels.find(schedule.str())->second;
  }

  AttentionSpec spec;
  Variant variant;
  Machine machine;
  Schedule baseline;
  llvm::StringMap<Kernel> kernels; ///< by the schedule's text
  /// Plans the next step; seconds that `run` takes.
  double timeStep(const std::function<void()> &run);
  std::unique_ptr<Workbench> workbench;
  int64_t step = 0;
};

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_SCHEDULEBENCH_H
