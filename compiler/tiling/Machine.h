//===- Machine.h - What the compiler knows about a machine -----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A machine description: instruction set, registers, cache sizes, cores. Read
// from the host at run time or looked up by name, so that kernels for a machine
// that is not at hand can be emitted. Everything downstream asks this struct
// and never a chip's name.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_MACHINE_H
#define PAGODA_COMPILER_TILING_MACHINE_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda {

enum class TargetKind { Cpu, Nvidia };

struct Machine {
  std::string name; ///< "host", "x86-64-v3", "x86-64-v4", "sm_80", ...
  TargetKind kind = TargetKind::Cpu;

  /// LLVM's words for the target: triple, CPU and feature string.
  std::string triple;
  std::string cpu;
  std::string features;

  // CPU.
  int64_t vectorBits = 256; ///< of one vector register
  int64_t vectorRegisters = 16;
  uint64_t cpuFeatures = 0; ///< pagoda_cpu_feature bits that kernels may use
  int64_t l1Bytes = 32 << 10;
  int64_t l1Ways = 8; ///< lines of a set
  int64_t l2Bytes = 512 << 10;
  int64_t l3Bytes = 16 << 20; ///< of a GPU: what all multiprocessors share
  int64_t cores = 1;          ///< of a GPU: its multiprocessors, in one product

  // NVIDIA.
  int64_t sharedBytes = 0; ///< per block
  int64_t registersPerThread = 0;
  // What a multiprocessor holds at once.
  int64_t multiprocessorRegisters = 0;
  int64_t multiprocessorShared = 0; ///< bytes
  int64_t multiprocessorThreads = 0;
  int64_t multiprocessorBlocks = 0;

  // What a core, or a multiprocessor, can do in a cycle at most. For estimates
  // of what binds; tiles are not chosen by them.
  double flopsPerCycle = 0;       ///< f32 on a CPU, 16-bit matrices on a GPU
  double loadsPerCycle = 0;       ///< vector loads from L1 (CPU)
  double nearBytesPerCycle = 0;   ///< reads from L2, or from shared memory
  double memoryBytesPerCycle = 0; ///< its share of the memory bandwidth

  /// f32 elements in a vector register.
  int64_t lanesF32() const { return vectorBits / 32; }

  /// Whether one instruction adds the products of pairs of bf16 to an f32.
  bool addsPairProducts() const;

  /// This machine, read at run time.
  static Machine host();
  /// By name: "host", "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512),
  /// "avx512-bf16", "neon", "sm_80". An unknown name is an error that lists the
  /// known ones.
  static llvm::Expected<Machine> named(llvm::StringRef name);
  static std::vector<std::string> knownNames();
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_MACHINE_H
