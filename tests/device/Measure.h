//===- Measure.h - What a GPU can do, and what kernels make of it -*- C++ -*-=//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_MEASURE_H
#define PAGODA_TESTS_DEVICE_MEASURE_H

#include "pagoda/CudaDevice.h"

#include <filesystem>
#include <string>
#include <vector>

namespace pagoda::device {

/// Medians of several runs.
struct Limits {
  double copyBytes = 0; ///< bytes a second, read and written
  double productsF16 = 0, productsBf16 = 0; ///< flop a second of mma.sync
};

/// By the kernels limit_... of `code`, a file; `copyBytes` is what is
/// copied, more than the caches hold.
Limits measureLimits(CudaDevice &device, const std::filesystem::path &code,
                     int64_t copyBytes, int64_t productRounds);

/// Attention of one layer at a size that engines meet, through the runtime: a
/// line of workloads.txt.
struct Workload {
  std::string name, library; ///< library: a file beside the list
  int64_t sequences = 0, qLen = 0, kvLen = 0;
};
std::vector<Workload> readWorkloads(const std::filesystem::path &list);

struct WorkloadResult {
  Workload workload;
  int32_t qHeads = 0, kvHeads = 0, headDim = 0, dtype = 0;
  std::string fault;       ///< empty: the sampled rows are as the oracle says
  double milliseconds = 0; ///< median
  double flop = 0;         ///< of visible pairs
  double bytes = 0;        ///< q, o, and each key and value once
};

WorkloadResult runWorkload(CudaDevice &device, const Workload &workload,
                           const std::filesystem::path &folder);

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_MEASURE_H
