//===- ManualPlan.h - A plan made by hand, any number of splits -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts a batch into work items without the runtime's planner: one kernel for
// everything, keys cut into equal splits wherever they fall, so that kernels
// see splits that are empty, shorter than a tile, or begin inside a block.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_MANUALPLAN_H
#define PAGODA_TESTS_CONFORMANCE_MANUALPLAN_H

#include "tests/reference/Attention.h"

#include <vector>

namespace pagoda::conformance {

struct ManualPlan {
  std::vector<pagoda_work_item> items;
  std::vector<pagoda_merge_item> merges;
  std::vector<int32_t> mergeSlots;
  std::vector<int32_t> rowMap, rowPos, rowSeq;
  std::vector<float> partialO, partialMl; ///< full of NaN

  /// Splits each sequence of `problem` into `splits` (1 or more) runs of keys,
  /// for the kernel `info`.
  ManualPlan(const reference::Problem &problem, const pagoda_kernel_info &info,
             int64_t splits);

  /// Points `args` at this plan, which must outlive it.
  void attach(pagoda_attention_args &args);
};

/// Runs indices 0 .. count - 1 of `kernel` on `threads` threads, two at
/// a time, each thread with scratch that is full of NaN before each call.
void runKernel(const pagoda_kernel_info &kernel, const void *args,
               int64_t count, int threads);

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_MANUALPLAN_H
