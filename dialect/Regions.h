//===- Regions.h - Syntax and signatures of regions -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The regions of the attention level and of the tiled level have the same
// syntax and the same signatures; this is the one place that knows them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_REGIONS_H
#define PAGODA_DIALECT_REGIONS_H

#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Region.h"

namespace pagoda {

/// `{ ... }`, the directive `custom<ClosedRegion>`: a final pagoda.yield of
/// nothing may be left out. Values of the region that are used outside of it
/// are an error here and not in the verifier, and no use of them is left when
/// parsing fails: the parsers that TableGen generates would destroy the region
/// under its users.
mlir::ParseResult parseClosedRegion(mlir::OpAsmParser &parser,
                                    mlir::Region &region);
mlir::OptionalParseResult parseOptionalClosedRegion(mlir::OpAsmParser &parser,
                                                    mlir::Region &region);
void printClosedRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                       mlir::Region &region);
void printOptionalClosedRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                               mlir::Region &region);

/// (seq, head, q_pos, kv_pos), all i32.
llvm::SmallVector<mlir::Type> maskArguments(mlir::MLIRContext *context);

/// (seq, q_lo, q_hi), all i32.
llvm::SmallVector<mlir::Type> rangeArguments(mlir::MLIRContext *context);

/// (score : f32, seq, head, q_pos, kv_pos).
llvm::SmallVector<mlir::Type> scoreArguments(mlir::MLIRContext *context);

/// Checks that a non-empty `region` takes `arguments` and yields `results`.
mlir::LogicalResult verifyRegionSignature(mlir::Operation *op,
                                          mlir::Region &region,
                                          llvm::StringRef name,
                                          llvm::ArrayRef<mlir::Type> arguments,
                                          llvm::ArrayRef<mlir::Type> results);

} // namespace pagoda

#endif // PAGODA_DIALECT_REGIONS_H
