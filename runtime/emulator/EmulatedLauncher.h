//===- EmulatedLauncher.h - Runs plans on the emulator ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a launcher of a GPU does, on the emulator: a grid per segment of a plan,
// then one that joins partial states. Every buffer that kernels may touch is
// registered with its size, so that a stray access is reported.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_EMULATOR_EMULATEDLAUNCHER_H
#define PAGODA_EMULATOR_EMULATEDLAUNCHER_H

#include "Emulator.h"

#include "pagoda/AttentionPlan.h"
#include "pagoda/kernel_abi.h"

namespace pagoda {

/// How much there is of what pagoda_attention_args points to.
struct AttentionExtents {
  int64_t rows = 0;      ///< of q, o and lse
  int64_t sequences = 0; ///< of prefix_lens
  int64_t tableRows = 0; ///< of the block table
  int64_t blocks = 0;    ///< of each pool
};

/// How much there is of what pagoda_append_args points to.
struct AppendExtents {
  int64_t tokens = 0;
  int64_t blocks = 0;    ///< of each pool
  int64_t positions = 0; ///< of rope_cos and rope_sin
};

struct EmulatedDevice {
  /// Blocks of a grid at most: with fewer blocks than items each takes several.
  int multiprocessors = 4;
  int hostThreads = 1;
  uint64_t seed = 1; ///< of the order in which threads run
};

/// Everything in \p args that \p kernel may read or write.
std::vector<emulator::GlobalBuffer>
attentionBuffers(const pagoda_kernel_info &kernel,
                 const pagoda_attention_args &args,
                 const AttentionExtents &tensors, const PlanExtents &plan);

/// Runs an emulated attention or merge kernel for \p count items or merges,
/// with args.counts set for it. Throws std::runtime_error with the fault.
emulator::Statistics emulate(const pagoda_kernel_info &kernel,
                             pagoda_attention_args args, int64_t count,
                             const EmulatedDevice &device,
                             std::vector<emulator::GlobalBuffer> buffers);

class EmulatedLauncher {
public:
  explicit EmulatedLauncher(const EmulatedDevice &device) : device(device) {}

  /// Runs the attention of one layer, as CpuLauncher::run does. The kernels are
  /// emulated ones: their entry is emulator::ThreadFunction. Errors:
  /// InvalidArgument as checkGpuArgs says, std::runtime_error with what the
  /// emulator found.
  void run(const AttentionPlan &plan, const pagoda_kernel_info *merge,
           pagoda_attention_args args, const AttentionExtents &tensors);

  /// Runs an append or copy kernel: a block of threads for each token or copy.
  /// Errors as those of run().
  void append(const pagoda_kernel_info &kernel, const pagoda_append_args &args,
              const AppendExtents &extents);
  void copy(const pagoda_kernel_info &kernel, const pagoda_copy_args &args,
            int64_t copies, int64_t blocks);

private:
  EmulatedDevice device;
  std::vector<float> partialO, partialMl;
};

} // namespace pagoda

#endif // PAGODA_EMULATOR_EMULATEDLAUNCHER_H
