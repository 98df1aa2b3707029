//===- LaunchChecks.h - What kernels can be given ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checks of arguments that launchers of every kind make before anything
// runs. Each throws InvalidArgument with the field, what is expected and what
// came.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_LAUNCH_LAUNCHCHECKS_H
#define PAGODA_LAUNCH_LAUNCHCHECKS_H

#include "pagoda/AttentionPlan.h"

namespace pagoda {

/// Tensors, tables and scalars that attention kernels with the features of
/// \p kernel take, planned with \p options.
void checkLaunch(const pagoda_kernel_info &kernel, const PlanOptions &options,
                 const pagoda_attention_args &args);
/// The same of append and copy kernels, and their role.
void checkLaunch(const pagoda_kernel_info &kernel,
                 const pagoda_append_args &args, int64_t tokens);
void checkLaunch(const pagoda_kernel_info &kernel,
                 const pagoda_copy_args &args);

/// Whether the strides of q, o and lse keep \p rows rows and their heads apart.
void checkTensors(const pagoda_kernel_info &kernel, int64_t rows,
                  const pagoda_attention_args &args);

/// Whether \p kernel is a function of this process. Throws Mismatch.
void checkCpu(const pagoda_kernel_info &kernel);

/// Whether \p kernels are those that \p plan was made for. Throws Mismatch,
/// too.
void checkPlanned(const AttentionPlan &plan,
                  std::span<const pagoda_kernel_info *const> kernels);

/// Whether a row of the block table has entries for what \p plan reads, and
/// whether the table is the one that a cascade plan read.
void checkTable(const AttentionPlan &plan, const pagoda_attention_args &args);

/// Whether \p merge joins the states of \p plan. Throws Mismatch, too.
void checkMerge(const AttentionPlan &plan, const pagoda_kernel_info *merge);

} // namespace pagoda

#endif // PAGODA_LAUNCH_LAUNCHCHECKS_H
