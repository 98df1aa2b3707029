//===- KernelLimits.cpp - The peak that a kernel is held against ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads features and schedules, and measures.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/KernelLimits.h"

#include "pagoda/KvPool.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace pagoda {

limits::Arithmetic arithmeticOf(uint64_t cpuFeatures, bool pairs) {
  if (pairs && (cpuFeatures & PAGODA_CPU_AVX512_BF16))
    return limits::Arithmetic::Bf16Pairs;
  if (cpuFeatures & PAGODA_CPU_AVX512F)
    return limits::Arithmetic::Fma512;
  return cpuFeatures & PAGODA_CPU_AVX2 ? limits::Arithmetic::Fma256
                                       : limits::Arithmetic::Fma128;
}

limits::Arithmetic arithmeticOf(uint64_t cpuFeatures,
                                const Schedule &schedule) {
  return arithmeticOf(cpuFeatures, schedule.pack == 2);
}

limits::Arithmetic arithmeticOf(const pagoda_kernel_info &kernel) {
  // The schedule's text is that of its attribute.
  return arithmeticOf(kernel.cpu_features,
                      llvm::StringRef(kernel.schedule).contains("pack = 2"));
}

const pagoda_kernel_info &kernelFor(const KernelSet &kernels, int64_t queries) {
  auto fits = [&](const pagoda_kernel_info *kernel) {
    return kernel->max_rows >= queries;
  };
  auto found = llvm::find_if(kernels.attention, fits);
  return found == kernels.attention.end() ? *kernels.attention.back() : **found;
}

MachineLimits measureLimits(const std::set<limits::Arithmetic> &arithmetic,
                            int threads) {
  // Larger than any last-level cache that this will meet soon, and in 2 MB
  // pages like the pools of a workload.
  KvFormat format;
  format.kvHeads = 1;
  format.headDim = format.vHeadDim = 1024;
  format.blockSize = 16;
  KvPool buffer(format, 2048);
  std::fill_n(static_cast<char *>(buffer.data()), buffer.bytes(), char(1));
  MachineLimits result;
  for (limits::Arithmetic each : arithmetic)
    result.gflops[each] = limits::peak(each, threads, 0.1);
  result.gbs =
      limits::readBandwidth(buffer.data(), buffer.bytes(), threads, 0.15);
  return result;
}

} // namespace pagoda
