//===- LowerTiles.h - Tiled level to CPU code -------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_LOWERTILES_H
#define PAGODA_COMPILER_TARGET_CPU_LOWERTILES_H

#include "dialect/Dialect.h"

namespace pagoda {

/// Replaces `kernel`, whose tiles have CPU layouts, by an llvm.func of type
/// pagoda_kernel_fn that carries its description. A kernel that a CPU cannot
/// run is a diagnostic.
mlir::LogicalResult lowerCpuTiles(KernelOp kernel);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_LOWERTILES_H
