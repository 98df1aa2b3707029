//===- Planning.h - The kernel and the plan of a case -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all backends decide alike: which attention kernel a case that is split
// by hand takes, and the runtime's plan of a case that is not.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_PLANNING_H
#define PAGODA_TESTS_CONFORMANCE_PLANNING_H

#include "tests/conformance/Case.h"
#include "tests/conformance/Data.h"

#include "pagoda/AttentionPlan.h"
#include "pagoda/Kernel.h"

namespace pagoda::conformance {

/// Of `set`, the smallest attention kernel that holds `rows` query tokens, or
/// the largest there is.
const pagoda_kernel_info *kernelFor(const KernelSet &set, int64_t rows);

/// The kernel that `c` names, or that holds its longest sequence of queries.
const pagoda_kernel_info &kernelOf(const KernelSet &set, const Case &c);

/// The runtime's plan of a case for `threads` threads. Its errors are thrown.
AttentionPlan planOf(const KernelSet &set, const CaseData &data, int threads);

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_PLANNING_H
