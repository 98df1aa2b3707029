//===- Claims.cpp - What ptxas made of what kernels claim -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/unit/target/nvidia/Claims.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace pagoda;

std::string test::brokenClaim(const KernelSummary &kernel) {
  const KernelResources &taken = *kernel.resources;
  if (taken.spillStores || taken.spillLoads || taken.stackBytes)
    return formatv("spills {0} bytes and loads {1}, with {2} bytes of stack",
                   taken.spillStores, taken.spillLoads, taken.stackBytes);
  int64_t blocks = 1;
  if (kernel.tile && kernel.tile->claim) {
    const RegisterClaim &claim = *kernel.tile->claim;
    blocks = claim.blocks;
    if (taken.registers > claim.registers)
      return formatv("takes {0} registers, claims {1}", taken.registers,
                     claim.registers);
  }
  if (taken.blocks < blocks)
    return formatv("leaves room for {0} blocks, claims {1}", taken.blocks,
                   blocks);
  return "";
}

std::string test::heldToNeed(const Artifact &artifact, int64_t below) {
  std::string ptx = artifact.ptx;
  for (const KernelSummary &kernel : artifact.kernels) {
    if (!kernel.tile || !kernel.tile->claim)
      continue;
    const RegisterClaim &claim = *kernel.tile->claim;
    // A kernel that needs more than a thread can have claims all of these.
    int64_t held = std::min(claim.need, claim.registers) - below;
    size_t entry = ptx.find(".entry " + kernel.name + "(");
    ptx.insert(ptx.find(".minnctapersm", entry),
               formatv(".maxnreg {0}\n", held));
  }
  return ptx;
}
