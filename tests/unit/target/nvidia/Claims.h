//===- Claims.h - What ptxas made of what kernels claim ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel claims registers and resident blocks (compiler/tiling/Occupancy.h),
// and says how many registers it needs. Both are held against ptxas.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_TARGET_NVIDIA_CLAIMS_H
#define PAGODA_TESTS_UNIT_TARGET_NVIDIA_CLAIMS_H

#include "compiler/Driver.h"

#include <string>

namespace pagoda::test {

/// What is wrong with the resources of an assembled kernel, "" if nothing: it
/// spills, has a stack, finds no room on a multiprocessor, takes more registers
/// than it claims, or leaves room for fewer blocks.
std::string brokenClaim(const KernelSummary &kernel);

/// The PTX of `artifact`, each kernel that claims registers held to `below`
/// less than those that it needs (`.maxnreg`).
std::string heldToNeed(const Artifact &artifact, int64_t below = 0);

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_TARGET_NVIDIA_CLAIMS_H
