//===- Emulator.h - GPU kernels on the CPU, thread by thread ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a GPU kernel whose instructions were replaced by calls of the functions
// at the end of this header (the compiler does that). Every CUDA thread is a
// fiber; what threads do together (matrix products, shuffles, barriers) happens
// when the last of them arrives.
//
// The emulator is built to find mistakes, not to be fast:
//  - shared memory begins as NaN, and so does the target of an asynchronous
//  copy
//    until the copying thread has waited for it;
//  - the order in which threads run is random, by a seed;
//  - two threads that touch one place in shared memory, at least one writing,
//    without a barrier between them, are a fault, as are a read of what nobody
//    wrote, a misaligned or out-of-bounds access, and lanes of a warp that meet
//    in different instructions;
//  - when nobody can go on, the report says who waits where.
//
// It encodes a reading of the PTX ISA. Code generation, bank conflicts and
// timing are outside of it.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_RUNTIME_EMULATOR_EMULATOR_H
#define PAGODA_RUNTIME_EMULATOR_EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::emulator {

/// One CUDA thread of a kernel. `args` is the kernel's parameter struct.
using ThreadFunction = void (*)(const void *args);

/// A run of global memory that a kernel may touch.
struct GlobalBuffer {
  std::string name; ///< for reports
  const void *begin = nullptr;
  size_t bytes = 0;
  bool writable = false;
};

struct Launch {
  ThreadFunction kernel = nullptr;
  const void *args = nullptr;
  int gridSize = 1;    ///< blocks
  int threads = 32;    ///< per block, a multiple of 32, at most 1024
  int sharedBytes = 0; ///< dynamic shared memory of a block
  uint64_t seed = 1;   ///< of the order in which threads run
  int hostThreads = 1; ///< blocks are spread over that many
  /// Every access to global memory must lie in one of these. Empty: unchecked.
  std::vector<GlobalBuffer> buffers;
};

/// How many of each were executed, all blocks together; by warps, but copies
/// and global accesses by threads.
struct Statistics {
  uint64_t products = 0, matrixLoads = 0, shuffles = 0;
  uint64_t barriers = 0; ///< by blocks
  uint64_t copies = 0, globalAccesses = 0;
};

struct Result {
  /// The first fault, with block, thread and op; empty: none. A fault ends the
  /// launch, and what the kernel wrote until then stays.
  std::string fault;
  Statistics statistics;
  bool ok() const { return fault.empty(); }
};

/// Runs all blocks. Throws std::invalid_argument for a launch that no GPU
/// takes.
Result run(const Launch &launch);

} // namespace pagoda::emulator

//===----------------------------------------------------------------------===//
// What emulated kernels call. `op` numbers the instruction in the kernel, in
// the order of the compiler's NVVM-level text, for reports.
//===----------------------------------------------------------------------===//

extern "C" {
int32_t pagoda_emu_thread_id();
int32_t pagoda_emu_block_id();
int32_t pagoda_emu_grid_size();
void *pagoda_emu_shared();

void pagoda_emu_barrier(int32_t op);
/// shfl.sync.bfly over a whole warp.
int32_t pagoda_emu_shuffle_xor(int32_t value, int32_t mask, int32_t op);
/// ldmatrix.x`count` (1, 2 or 4): as many registers into `out`. Lanes 0 to 8
/// count - 1 name rows; what the others name is not looked at.
void pagoda_emu_load_matrices(const void *row, int32_t count, int32_t transpose,
                              uint32_t *out, int32_t op);
/// mma.m16n8k16 into f32: `in` is 4 registers of A, 2 of B, 4 of C.
void pagoda_emu_multiply(int32_t is_bf16, const uint32_t *in, float *out,
                         int32_t op);

/// cp.async of 16 bytes, of which the first `bytes` are copied.
void pagoda_emu_copy16(void *target, const void *source, int32_t bytes,
                       int32_t op);
void pagoda_emu_commit_copies();
void pagoda_emu_wait_copies(int32_t pending);

/// Announces a load or store of 16 bytes of shared memory.
void pagoda_emu_shared_access(const void *address, int32_t is_write,
                              int32_t op);
/// Announces a load or store of global memory.
void pagoda_emu_global(const void *address, int32_t bytes, int32_t is_write,
                       int32_t op);

float pagoda_emu_exp2(float x);
float pagoda_emu_log2(float x);
float pagoda_emu_reciprocal(float x);
/// f32 to bf16, to nearest even, in the low half.
int32_t pagoda_emu_round_bf16(float x);
}

#endif // PAGODA_RUNTIME_EMULATOR_EMULATOR_H
