//===- CheckKernel.h - What the CPU lowering can take -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of the tiled level can be written down in more ways than a lowering
// to fixed scratch slots can follow. Kernels that TileAttention builds pass;
// for others this says what is in the way, so that LowerTiles need not ask.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_CHECKKERNEL_H
#define PAGODA_COMPILER_TARGET_CPU_CHECKKERNEL_H

#include "dialect/Dialect.h"

namespace pagoda {

/// Fails, with a diagnostic at the op at fault, unless
///  - the target is a CPU, and the schedule within its registers;
///  - elements are f32, f16 or bf16;
///  - the kernel holds one `for_items` (attention) or `for_merges` (merge),
///  with
///    each op that a state is made by and one store, and scalar ops;
///  - each `kv_loop` holds each op of a step of the online softmax once, and
///    hands the state of the one before it on;
///  - tiles have the sizes of schedule and cache;
///  - regions hold elementwise arith and math on scalars.
llvm::LogicalResult checkCpuKernel(KernelOp kernel);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_CHECKKERNEL_H
