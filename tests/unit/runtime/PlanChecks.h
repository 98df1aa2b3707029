//===- PlanChecks.h - Is a plan complete and balanced --------- -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of plans as lists of work, shared by the tests of plans.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_RUNTIME_PLANCHECKS_H
#define PAGODA_TESTS_UNIT_RUNTIME_PLANCHECKS_H

#include "FakeKernels.h"
#include "pagoda/AttentionPlan.h"

#include <vector>

namespace pagoda::test {

using Ints = std::vector<int32_t>;

struct Kernels {
  explicit Kernels(const FakeSpec &spec = {})
      : fake(spec), library(KernelLibrary::wrap(fake.info())),
        set(library.select(fake.spec())) {}
  FakeLibrary fake;
  KernelLibrary library;
  KernelSet set;
};

/// Builds \p plan for sequences in table rows 0, 1, 2, ... and expects that it
/// covers (row, KV head, key) exactly once for every key that the row can see,
/// writes every row once, and joins exactly what it writes in parts. Returns
/// how many (item, key) visits there are.
int64_t build(AttentionPlan &plan, const Ints &qLens, const Ints &kvLens,
              const int32_t *tables = nullptr, int64_t stride = 0);

/// The time that the costs take when a free thread takes the next item.
int64_t makespan(const AttentionPlan &plan, int threads);
int64_t totalCost(const AttentionPlan &plan);

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_RUNTIME_PLANCHECKS_H
