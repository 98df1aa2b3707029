//===- FakeKernels.h - Plain kernels for tests of the runtime ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention, merge, append and copy kernels that do what kernel_abi.h says in
// the plainest way, f32, causal and optionally windowed. They let the runtime's
// tests run plans without the compiler. Not fast, and no oracle: results are
// compared with Reference.h.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_RUNTIME_FAKEKERNELS_H
#define PAGODA_TESTS_UNIT_RUNTIME_FAKEKERNELS_H

#include "pagoda/Kernel.h"

#include <deque>
#include <string>
#include <vector>

namespace pagoda::test {

struct FakeSpec {
  int32_t qHeads = 4;
  int32_t kvHeads = 2;
  int32_t headDim = 8;
  int32_t vHeadDim = 8;
  int32_t blockSize = 4;
  int32_t layout = PAGODA_HND;
  uint32_t features = PAGODA_FEATURE_CAUSAL;
  /// max_rows of the attention kernels, one kernel each.
  std::vector<int32_t> maxRows = {1, 8};
  int32_t headsPerItem = 2;
  int32_t kvTile = 8;
};

/// A library in memory.
class FakeLibrary {
public:
  explicit FakeLibrary(const FakeSpec &spec);
  const pagoda_library_info *info() const { return &Info; }
  pagoda_kernel_info &kernel(size_t i) { return Kernels[i]; }
  KernelSpec spec() const { return KernelSpec::of(Kernels.front()); }

private:
  std::deque<std::string> Names;
  std::vector<pagoda_kernel_info> Kernels;
  pagoda_library_info Info = {};
};

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_RUNTIME_FAKEKERNELS_H
