//===- MutatedKernels.cpp - NVIDIA kernels with a fault -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler's front door has no place to change IR, so its phases are run
// here.
//
//===----------------------------------------------------------------------===//

#include "MutatedKernels.h"

#include "compiler/Pipeline.h"
#include "compiler/emit/Object.h"
#include "compiler/import/BuildAttention.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace pagoda::conformance {

struct MutatedKernels::Code {
  std::unique_ptr<orc::LLJIT> jit;
};

MutatedKernels::MutatedKernels(Mutation mutation)
    : EmulatorBackend(cantFail(Machine::named("sm_80"))),
      mutation(std::move(mutation)), code(std::make_unique<Code>()) {}

MutatedKernels::~MutatedKernels() = default;

Expected<const pagoda_library_info *> MutatedKernels::kernels(const Case &c) {
  CompileOptions options = optionsOf(c);
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  buildAttention(*module, c.spec, "attention");
  mlir::PassManager toTarget(&context), toLlvm(&context);
  for (Phase phase :
       {Phase::Attention, Phase::Tiled, Phase::Fragments, Phase::Target})
    buildPhase(toTarget, phase, options.machine, options.schedule);
  buildEmulatedLlvm(toLlvm);
  if (failed(toTarget.run(*module)))
    return createStringError("lowering failed");
  mutation(*module);
  if (failed(toLlvm.run(*module)))
    return createStringError("emulation failed");

  Machine host = Machine::host();
  LLVMContext llvmContext;
  auto target = createTargetMachine(host);
  if (!target)
    return target.takeError();
  auto translated = translate(*module, llvmContext, **target, host);
  if (!translated)
    return translated.takeError();
  optimize(**translated, **target);
  auto object = emitCode(**translated, **target, /*assembly=*/false);
  if (!object)
    return object.takeError();
  auto created = orc::LLJITBuilder().create();
  if (!created)
    return created.takeError();
  code->jit = std::move(*created);
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      code->jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  code->jit->getMainJITDylib().addGenerator(std::move(*process));
  if (llvm::Error error = code->jit->addObjectFile(
          MemoryBuffer::getMemBufferCopy(*object, "mutated")))
    return std::move(error);
  auto symbol = code->jit->lookup(PAGODA_LIBRARY_SYMBOL);
  if (!symbol)
    return symbol.takeError();
  return symbol->toPtr<const pagoda_library_info *>();
}

} // namespace pagoda::conformance
