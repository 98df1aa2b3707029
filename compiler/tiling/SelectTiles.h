//===- SelectTiles.h - Schedules for each pagoda.attention ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_SELECTTILES_H
#define PAGODA_COMPILER_TILING_SELECTTILES_H

#include "compiler/tiling/Schedule.h"
#include "dialect/Dialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace pagoda {

/// Gives each pagoda.attention of `module` without schedules those of prefill
/// and decode, in this order, by the SRAM-fit formula with `overrides` (see
/// applyOverrides). Schedules that are there are checked and kept; overrides do
/// not touch them. Errors are reported at the op.
mlir::LogicalResult selectTiles(mlir::ModuleOp module, const Machine &machine,
                                llvm::ArrayRef<std::string> overrides);

/// What `op` computes, as far as the choice of tiles depends on it. Fails with
/// a diagnostic on element types that no kernel takes.
mlir::FailureOr<AttentionSpec> specOf(AttentionOp op);

ScheduleAttr toAttr(mlir::MLIRContext *context, const Schedule &schedule);
Schedule fromAttr(ScheduleAttr attr);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_SELECTTILES_H
