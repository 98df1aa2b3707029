//===- DeviceModule.cpp - Where GPU kernels are put -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/DeviceModule.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace pagoda;

gpu::GPUModuleOp pagoda::deviceModule(ModuleOp module, StringRef chip) {
  auto existing = module.getOps<gpu::GPUModuleOp>();
  if (!existing.empty())
    return *existing.begin();
  OpBuilder builder(module.getBodyRegion());
  // A chip in the attribute makes the verifier check what its ops need.
  Attribute target = NVVM::NVVMTargetAttr::get(
      module.getContext(), /*optLevel=*/3, "nvptx64-nvidia-cuda", chip);
  auto result = gpu::GPUModuleOp::create(builder, module.getLoc(),
                                         "pagoda_kernels", {target});
  builder.setInsertionPointToStart(result.getBody());
  constexpr unsigned sharedSpace = 3;
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/false,
                         LLVM::Linkage::External, sharedSymbol, Attribute(),
                         /*alignment=*/128, sharedSpace);
  return result;
}

LLVM::LLVMFuncOp pagoda::createGpuKernel(ImplicitLocOpBuilder &b,
                                         StringRef name, int64_t threads,
                                         int64_t bytes, int64_t blocks) {
  MLIRContext *context = b.getContext();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(context), {LLVM::LLVMPointerType::get(context)});
  auto function = LLVM::LLVMFuncOp::create(b, name, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(threads)}));
  // Without this ptxas makes its own guess, and spills a few registers where
  // that lets one more block onto a multiprocessor.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(int32_t(blocks)));
  // The struct itself is the parameter: a launch copies it, a captured graph
  // keeps it.
  auto array = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
  function.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(array));
  function.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(8));
  function.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(),
                      b.getUnitAttr());
  return function;
}
