//===- Dialect.h - The pagoda dialect's C++ face ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_DIALECT_H
#define PAGODA_DIALECT_DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/PagodaDialect.h.inc"
#include "dialect/PagodaEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/PagodaAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/PagodaTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/PagodaOps.h.inc"

#endif // PAGODA_DIALECT_DIALECT_H
