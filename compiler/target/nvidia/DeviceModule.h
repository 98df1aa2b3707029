//===- DeviceModule.h - Where GPU kernels are put ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gpu.module of a compilation, and the frame of a kernel in it.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_DEVICEMODULE_H
#define PAGODA_COMPILER_TARGET_NVIDIA_DEVICEMODULE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace pagoda {

/// The array of dynamic shared memory, whose size is the launch's to say.
inline constexpr llvm::StringLiteral sharedSymbol = "pagoda_shared";

/// The gpu.module of `module`, made for `chip` ("sm_80") when it is asked for
/// first, with the shared memory in it.
mlir::gpu::GPUModuleOp deviceModule(mlir::ModuleOp module,
                                    llvm::StringRef chip);

/// An empty kernel of `threads` threads at the builder's insertion point, of
/// which a multiprocessor is to hold `blocks` blocks: ptxas spills rather than
/// take the registers of one of them. Its one parameter is a struct of `bytes`
/// bytes, aligned to 8, by value.
mlir::LLVM::LLVMFuncOp createGpuKernel(mlir::ImplicitLocOpBuilder &b,
                                       llvm::StringRef name, int64_t threads,
                                       int64_t bytes, int64_t blocks = 1);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_DEVICEMODULE_H
