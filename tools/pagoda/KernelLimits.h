//===- KernelLimits.h - The peak that a kernel is held against --*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which of the machine's peaks binds a kernel's products: that of the
// instruction that they are made of, which is not always the fastest that the
// machine has. And the limits of a whole run.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_KERNELLIMITS_H
#define PAGODA_TOOLS_PAGODA_KERNELLIMITS_H

#include "bench/kernels/Limits.h"
#include "compiler/tiling/Schedule.h"
#include "pagoda/Kernel.h"

#include <map>
#include <set>

namespace pagoda {

/// What code multiplies with that may use the instructions of `cpuFeatures`,
/// pagoda_cpu_feature bits; `pairs`: pairs of bf16 where there are such.
limits::Arithmetic arithmeticOf(uint64_t cpuFeatures, bool pairs);
/// What kernels by `schedule` multiply with if they may use the instructions of
/// `cpuFeatures`.
limits::Arithmetic arithmeticOf(uint64_t cpuFeatures, const Schedule &schedule);
/// The same of a kernel of a library.
limits::Arithmetic arithmeticOf(const pagoda_kernel_info &kernel);

/// The attention kernel that takes a sequence's step of `queries` tokens.
const pagoda_kernel_info &kernelFor(const KernelSet &kernels, int64_t queries);

/// What the machine can do at most.
struct MachineLimits {
  std::map<limits::Arithmetic, double> gflops;
  double gbs = 0; ///< read from memory
};

/// Measures the peaks of `arithmetic` and the reads of `threads` threads, a
/// quarter of a second altogether.
MachineLimits measureLimits(const std::set<limits::Arithmetic> &arithmetic,
                            int threads);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_KERNELLIMITS_H
