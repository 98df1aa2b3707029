//===- LowerTiles.h - Tiled level to fragments, Ampere style ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERTILES_H
#define PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERTILES_H

#include "mlir/IR/BuiltinOps.h"

namespace pagoda {

/// Replaces the pagoda.kernels of `module`, whose tiles carry layouts, by a
/// gpu.module of the same kernels as llvm.funcs with pagoda_nv ops. A kernel
/// that the Ampere path cannot do is an error on it.
mlir::LogicalResult lowerNvidiaTiles(mlir::ModuleOp module);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERTILES_H
