//===- TileAttention.h - Attention level to tiled level ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_TILEATTENTION_H
#define PAGODA_COMPILER_TILING_TILEATTENTION_H

#include "compiler/tiling/Machine.h"
#include "dialect/Dialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace pagoda {

/// Replaces each function with a pagoda.attention by its kernels. Needs
/// schedules and expanded features.
mlir::LogicalResult tileAttention(mlir::ModuleOp module,
                                  const Machine &machine);

/// The part of `machine` that the IR carries.
TargetAttr targetOf(mlir::MLIRContext *context, const Machine &machine);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_TILEATTENTION_H
