//===- Occupancy.cpp - Blocks of a kernel on a multiprocessor -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers are handed out to whole warps, in units; of shared memory the
// system keeps some of each block.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/Occupancy.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace pagoda;

constexpr int64_t lanes = 32;          // threads of a warp
constexpr int64_t registerUnit = 256;  // registers of a warp come in these
constexpr int64_t warpUnit = 4;        // warps among which registers are shared
constexpr int64_t systemShared = 1024; // bytes of each block

int64_t ResidentBlocks::total() const {
  return std::min({byRegisters, bySharedMemory, byThreads, bySlots});
}

ResidentBlocks pagoda::residentBlocks(const Machine &machine, int64_t registers,
                                      int64_t threads, int64_t sharedBytes) {
  auto ofWarp =
      int64_t(alignTo(std::max<int64_t>(registers, 1) * lanes, registerUnit));
  int64_t warps =
      int64_t(alignDown(machine.multiprocessorRegisters / ofWarp, warpUnit));
  return {warps / (threads / lanes),
          machine.multiprocessorShared / (sharedBytes + systemShared),
          machine.multiprocessorThreads / threads,
          machine.multiprocessorBlocks};
}

int64_t pagoda::mostRegisters(const Machine &machine, int64_t blocks,
                              int64_t threads) {
  auto warps = int64_t(alignTo(blocks * threads / lanes, warpUnit));
  auto ofWarp =
      int64_t(alignDown(machine.multiprocessorRegisters / warps, registerUnit));
  return std::min(ofWarp / lanes, machine.registersPerThread);
}

RegisterClaim pagoda::claimRegisters(const Machine &machine, int64_t need,
                                     int64_t threads, int64_t sharedBytes) {
  int64_t held = std::min(need, machine.registersPerThread);
  int64_t blocks = std::max<int64_t>(
      1, residentBlocks(machine, held, threads, sharedBytes).total());
  return {need, blocks, mostRegisters(machine, blocks, threads)};
}
