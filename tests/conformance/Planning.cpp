//===- Planning.cpp - The kernel and the plan of a case -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Planning.h"

#include <algorithm>

namespace pagoda::conformance {

const pagoda_kernel_info *kernelFor(const KernelSet &set, int64_t rows) {
  for (const pagoda_kernel_info *kernel : set.attention)
    if (kernel->max_rows >= rows)
      return kernel;
  return set.attention.back();
}

const pagoda_kernel_info &kernelOf(const KernelSet &set, const Case &c) {
  if (c.kernel >= 0)
    return *set.attention[size_t(c.kernel) % set.attention.size()];
  int64_t longest = 0;
  for (const Length &length : c.lengths)
    longest = std::max(longest, length.q);
  return *kernelFor(set, longest);
}

AttentionPlan planOf(const KernelSet &set, const CaseData &data, int threads) {
  PlanOptions options;
  options.threads = threads;
  options.window = data.args.window;
  options.chunk = data.args.chunk;
  AttentionPlan plan(set.attention, options);
  std::vector<int32_t> qLens = data.qLens(), kvLens = data.kvLens();
  BatchShape batch;
  batch.qLens = qLens;
  batch.kvLens = kvLens;
  plan.build(batch);
  return plan;
}

} // namespace pagoda::conformance
