//===- Pipeline.cpp - Phases and the passes of each -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipeline.h"
#include "compiler/Passes.h"
#include "compiler/target/nvidia/ir/FragmentDialect.h"
#include "dialect/Dialect.h"
#include "runtime/include/pagoda/kernel_abi.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace pagoda;

void pagoda::registerDialects(DialectRegistry &registry) {
  registry
      .insert<PagodaDialect, arith::ArithDialect, cf::ControlFlowDialect,
              func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect,
              math::MathDialect, nv::NvDialect, NVVM::NVVMDialect,
              scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
}

static void buildCpuTarget(OpPassManager &passes, const Machine &machine) {
  CpuLowerCacheOptions options;
  options.machine = machine.name;
  passes.addPass(createCpuLowerCache(options));
  passes.addPass(createCpuAssignLayouts());
  passes.addPass(createCpuLowerTiles());
  CpuExpandMathOptions math;
  math.scalef = machine.cpuFeatures & PAGODA_CPU_AVX512F;
  passes.addPass(createCpuExpandMath(math));
  // Control flow is structured here: there are no blocks to merge or remove,
  // and to look for them takes a quarter of this phase.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  passes.addPass(createCanonicalizerPass(config));
  passes.addPass(createCSEPass());
}

/// One walk for all dialects; each by a pass of its own takes twice as long.
static void convertToLlvm(OpPassManager &passes,
                          ArrayRef<std::string> dialects) {
  passes.addPass(createSCFToControlFlowPass());
  ConvertToLLVMPassOptions options;
  options.filterDialects.assign(dialects.begin(), dialects.end());
  passes.addPass(createConvertToLLVMPass(options));
  passes.addPass(createReconcileUnrealizedCastsPass());
}

static void buildCpuLlvm(OpPassManager &passes) {
  passes.addPass(createLoopInvariantCodeMotionPass());
  convertToLlvm(passes, {"arith", "cf", "math", "vector"});
}

static void buildFragments(OpPassManager &passes) {
  passes.addPass(createNvidiaAssignLayouts());
  passes.addPass(createNvidiaLowerTiles());
  // While an op is still a whole step: what follows is ten times as many.
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

static void buildNvidiaTarget(OpPassManager &passes, const Machine &machine) {
  passes.addPass(createNvidiaLowerFragments());
  NvidiaLowerCacheOptions options;
  options.machine = machine.name;
  passes.addPass(createNvidiaLowerCache(options));
  passes.addPass(createNvidiaExpandMath());
  passes.addPass(createCSEPass());
}

static void buildNvidiaLlvm(OpPassManager &passes) {
  convertToLlvm(passes, {"arith", "cf", "math", "nvvm"});
}

void pagoda::buildEmulatedLlvm(OpPassManager &passes) {
  passes.addPass(createNvidiaEmulate());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

void pagoda::buildPhase(OpPassManager &passes, Phase phase,
                        const Machine &machine,
                        ArrayRef<std::string> scheduleOverrides) {
  bool nvidia = machine.kind == TargetKind::Nvidia;
  switch (phase) {
  case Phase::Attention: {
    passes.addPass(createExpandFeatures());
    SelectTilesOptions options;
    options.machine = machine.name;
    options.overrides.assign(scheduleOverrides.begin(),
                             scheduleOverrides.end());
    passes.addPass(createSelectTiles(options));
    return;
  }
  case Phase::Tiled: {
    TileAttentionOptions options;
    options.machine = machine.name;
    passes.addPass(createTileAttention(options));
    return;
  }
  case Phase::Fragments:
    return nvidia ? buildFragments(passes) : void();
  case Phase::Target:
    return nvidia ? buildNvidiaTarget(passes, machine)
                  : buildCpuTarget(passes, machine);
  case Phase::Llvm:
    return nvidia ? buildNvidiaLlvm(passes) : buildCpuLlvm(passes);
  }
}
