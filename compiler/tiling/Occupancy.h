//===- Occupancy.h - Blocks of a kernel on a multiprocessor -----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many blocks of threads a multiprocessor holds at once, and how many
// registers a thread may take before there are fewer. Pure functions of a
// Machine: the formula claims by them, the report of ptxas is held against
// them. CUDA C++ programming guide, "Compute Capabilities".
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_OCCUPANCY_H
#define PAGODA_COMPILER_TILING_OCCUPANCY_H

#include "compiler/tiling/Machine.h"

namespace pagoda {

/// Blocks of `threads` threads, `registers` each, and `sharedBytes` of shared
/// memory that a multiprocessor holds by each of its limits.
struct ResidentBlocks {
  int64_t byRegisters, bySharedMemory, byThreads, bySlots;

  int64_t total() const;
};
ResidentBlocks residentBlocks(const Machine &machine, int64_t registers,
                              int64_t threads, int64_t sharedBytes);

/// The most registers that a thread may take while the registers of a
/// multiprocessor hold `blocks` blocks of `threads` threads.
int64_t mostRegisters(const Machine &machine, int64_t blocks, int64_t threads);

/// What a kernel claims of a multiprocessor: room for as many blocks as its
/// threads could be with the registers that they need, and then every register
/// that costs none of these blocks.
struct RegisterClaim {
  int64_t need = 0;      ///< registers a thread, to do without spills
  int64_t blocks = 0;    ///< at once; at least 1
  int64_t registers = 0; ///< a thread may take
};
RegisterClaim claimRegisters(const Machine &machine, int64_t need,
                             int64_t threads, int64_t sharedBytes);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_OCCUPANCY_H
