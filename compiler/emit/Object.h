//===- Object.h - LLVM dialect to object code -------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_EMIT_OBJECT_H
#define PAGODA_COMPILER_EMIT_OBJECT_H

#include "compiler/tiling/Machine.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace pagoda {

/// A code generator for `machine`; an error if LLVM was built without it.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Machine &machine);

/// Translates a module in the LLVM dialect. Functions are marked for
/// `machine`'s CPU, features and vector width, so that modules for several
/// machines of one architecture can be linked. With `table`, the library table
/// is added.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::LLVMContext &context,
          llvm::TargetMachine &target, const Machine &machine,
          bool table = true);

/// Runs those of LLVM's optimizations that kernels gain from.
void optimize(llvm::Module &module, llvm::TargetMachine &target);

/// Object code or assembly text.
llvm::Expected<std::string>
emitCode(llvm::Module &module, llvm::TargetMachine &target, bool assembly);

} // namespace pagoda

#endif // PAGODA_COMPILER_EMIT_OBJECT_H
