//===- CudaLauncher.h - Runs plans on an NVIDIA GPU -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is two calls: upload() puts the plan into memory that the launcher
// owns on the device, run() launches the kernels of one layer. Grids, pointers
// and argument structs of run() do not depend on the plan, so that a CUDA graph
// may capture run() once, all layers of it, and serve every later step:
//
//   launcher.reserve(largest);                 // once
//   graph = device.capture(stream, [&] { for each layer: launcher.run(...) });
//   each step: launcher.upload(plan, stream); device.launchGraph(graph,
//   stream);
//
// Variants of a kernel whose segments a plan does not have are launched all the
// same and find nothing to do.
//
// Threads: one at a time. Work in different streams is the caller's to order.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CUDALAUNCHER_H
#define PAGODA_CUDALAUNCHER_H

#include "pagoda/AttentionPlan.h"
#include "pagoda/CudaDevice.h"
#include "pagoda/Kernel.h"

#include <memory>

namespace pagoda {

class CudaLauncher {
public:
  /// Loads the kernels \p set of \p image; the three must outlive the launcher.
  /// Errors: InvalidArgument (a set without attention kernels, an image without
  /// code), std::runtime_error with the driver's words.
  CudaLauncher(CudaDevice &device, const KernelSet &set,
               const pagoda_device_image &image);
  ~CudaLauncher();
  CudaLauncher(const CudaLauncher &) = delete;

  /// Blocks that the device runs at once: what PlanOptions::threads should be.
  int threads() const;

  /// Makes room for plans of up to \p most. Where it must grow, it waits for
  /// the device, and graphs captured before name memory that is gone.
  void reserve(const PlanExtents &most);
  const PlanExtents &room() const;

  /// Copies \p plan, which was built for kernels of the set, to the device, in
  /// the order of \p stream. The plan may change once this returns. Errors:
  /// InvalidArgument (more than there is room for), Mismatch (other kernels).
  void upload(const AttentionPlan &plan, CudaStream stream = nullptr);

  /// Attention of one layer by the plan that was uploaded last, or, in a graph,
  /// by the one that will have been. \p args holds tensors, tables and scalars,
  /// with pointers to device memory; the plan's fields are filled in here.
  /// Errors, before anything runs: InvalidArgument.
  void run(pagoda_attention_args args, CudaStream stream = nullptr);

  /// Runs the append kernel for \p tokens tokens, or the copy kernel for
  /// \p copies copies: a block for each, so that a graph takes an upper bound
  /// and negative slots or ids. Errors: InvalidArgument.
  void append(const pagoda_append_args &args, int64_t tokens,
              CudaStream stream = nullptr);
  void copy(const pagoda_copy_args &args, int64_t copies,
            CudaStream stream = nullptr);

private:
  struct Impl;
  std::unique_ptr<Impl> P;
};

} // namespace pagoda

#endif // PAGODA_CUDALAUNCHER_H
