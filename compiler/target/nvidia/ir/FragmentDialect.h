//===- FragmentDialect.h - The pagoda_nv dialect's C++ face -----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_IR_FRAGMENTDIALECT_H
#define PAGODA_COMPILER_TARGET_NVIDIA_IR_FRAGMENTDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/target/nvidia/ir/FragmentDialect.h.inc"
#include "compiler/target/nvidia/ir/FragmentEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/target/nvidia/ir/FragmentAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/target/nvidia/ir/FragmentTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/target/nvidia/ir/FragmentOps.h.inc"

#endif // PAGODA_COMPILER_TARGET_NVIDIA_IR_FRAGMENTDIALECT_H
