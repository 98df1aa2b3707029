//===- CpuLauncher.h - Runs kernels on the CPU ------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hands the items of a plan to the threads of a pool and then joins partial
// states. Owns the threads' scratch and the partial states; plans nothing.
// Results depend on the plan and not on the number of threads that run it.
//
// Threads: run() may be called from any thread; calls on one launcher, and on
// launchers that share a pool, run one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CPULAUNCHER_H
#define PAGODA_CPULAUNCHER_H

#include "pagoda/AttentionPlan.h"
#include "pagoda/Kernel.h"
#include "pagoda/ThreadPool.h"

#include <memory>

namespace pagoda {

class CpuLauncher {
public:
  /// \p pool must outlive the launcher.
  explicit CpuLauncher(ThreadPool &pool);
  ~CpuLauncher();
  CpuLauncher(const CpuLauncher &) = delete;
  CpuLauncher &operator=(const CpuLauncher &) = delete;

  /// Runs the attention of one layer. \p args holds tensors, tables and
  /// scalars; the plan's fields are filled in here, and partial_o and
  /// partial_ml where they are null. \p merge may be null when the plan has no
  /// merges. Errors, before anything runs: InvalidArgument (a pointer, stride
  /// or scalar that the kernels cannot take; another table than a cascade
  /// plan was built from), Mismatch (\p merge belongs to other kernels; kernels
  /// of a GPU).
  void run(const AttentionPlan &plan, const pagoda_kernel_info *merge,
           pagoda_attention_args args);

  /// Runs an append kernel for \p tokens tokens. The slots of one call must
  /// differ. Without rope_cos a kernel with a rotary_dim writes keys as they
  /// are. Errors, before anything runs: InvalidArgument (a pointer or stride
  /// that the kernel cannot take, tables for a kernel that does not rotate).
  void append(const pagoda_kernel_info &kernel, const pagoda_append_args &args,
              int64_t tokens);

  /// Runs a copy kernel for \p copies copies.
  void copy(const pagoda_kernel_info &kernel, const pagoda_copy_args &args,
            int64_t copies);

  ThreadPool &pool() const;

private:
  struct Impl;
  std::unique_ptr<Impl> P;
};

/// Throws InvalidArgument unless the strides of \p view keep the kernel's
/// heads, tokens and blocks, of rows of \p dim elements, apart and are in the
/// order of the kernel's layout: heads within tokens for nhd, tokens within
/// heads for hnd. \p what names the view in the message.
void checkView(const pagoda_kernel_info &kernel, const pagoda_kv_view &view,
               int32_t dim, const char *what);

} // namespace pagoda

#endif // PAGODA_CPULAUNCHER_H
