//===- GpuArgs.h - What GPU kernels ask of their arguments ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPU kernels move 16 bytes at a time where rows allow it, and a GPU traps on a
// misaligned address. The rules are checked here, before a launch, for every
// launcher of GPU kernels.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_GPUARGS_H
#define PAGODA_GPUARGS_H

#include "pagoda/kernel_abi.h"

namespace pagoda {

/// Throws InvalidArgument, with the field, unless \p args suits \p kernel:
///  - rows of q and k whose head_dim is a multiple of 8, and of v alike, begin
///    at multiples of 16 bytes: the base, and strides in multiples of 8
///    elements;
///  - o with an even v_head_dim: a base at a multiple of 4 bytes, even strides;
///  - partial_o and partial_ml, where given: multiples of 8 bytes.
/// Rows of other head dims need no alignment beyond their elements'.
void checkGpuArgs(const pagoda_kernel_info &kernel,
                  const pagoda_attention_args &args);

/// The same for rows of the caches and of new tokens.
void checkGpuArgs(const pagoda_kernel_info &kernel,
                  const pagoda_append_args &args);
void checkGpuArgs(const pagoda_kernel_info &kernel,
                  const pagoda_copy_args &args);

} // namespace pagoda

#endif // PAGODA_GPUARGS_H
