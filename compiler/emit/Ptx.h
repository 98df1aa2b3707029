//===- Ptx.h - NVVM to PTX, and PTX to a cubin ------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX comes from LLVM's code generator in process (Object.h's optimize and
// emitCode with the target machine of an NVIDIA chip); here is the translation
// before it, and what ptxas says about the result where ptxas is installed.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_EMIT_PTX_H
#define PAGODA_COMPILER_EMIT_PTX_H

#include "compiler/Driver.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pagoda {

/// Translates the gpu.module of a module in the LLVM dialect. Inline assembly
/// becomes convergent, which MLIR has no way to say.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateDevice(mlir::ModuleOp module, llvm::LLVMContext &context,
                llvm::TargetMachine &target);

struct Cubin {
  std::string image;
  std::vector<KernelResources> kernels; ///< in the order of ptxas' report
};

/// Path of ptxas: on PATH, else /usr/local/cuda/bin; none if CUDA is not there.
std::optional<std::string> findPtxas();

/// Assembles `ptx` for `chip` ("sm_80") with `ptxas`. An error carries what
/// ptxas printed.
llvm::Expected<Cubin> assemblePtx(llvm::StringRef ptxas, llvm::StringRef ptx,
                                  llvm::StringRef chip);

/// Reads the report of `ptxas -v`.
std::vector<KernelResources> parsePtxasReport(llvm::StringRef report);

} // namespace pagoda

#endif // PAGODA_COMPILER_EMIT_PTX_H
