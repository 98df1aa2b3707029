//===- Object.cpp - LLVM dialect to object code ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last steps for a CPU: translation to LLVM IR, LLVM's optimizer and code
// generator. What files come of it is Emit.cpp's business.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Object.h"
#include "compiler/target/KernelAbi.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace pagoda;

// Passes in LLVM's textual form. The kernels come vectorised, blocked and free
// of calls: most of LLVM's own pipeline would look for what cannot happen.

/// For a CPU, MLIR has folded and hoisted, and the code generator reduces
/// addresses: more passes than these make code of the same speed.
static constexpr StringLiteral cpuPasses =
    "function(early-cse,loop(loop-rotate),simplifycfg)";

/// For a GPU, a fragment is many scalar instructions, to be cleaned, and
/// registers are what counts.
static constexpr StringLiteral gpuPasses =
    "function(early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-simplifycfg,licm<allowspeculation>,loop-rotate),"
    "simplifycfg,loop(indvars,loop-deletion),"
    "loop-mssa(licm<allowspeculation>),early-cse<memssa>,"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

static void initializeTargets() {
  static bool once = [] {
    InitializeAllTargetInfos();
    InitializeAllTargets();
    InitializeAllTargetMCs();
    InitializeAllAsmPrinters();
    InitializeAllAsmParsers();
    return true;
  }();
  (void)once;
}

Expected<std::unique_ptr<TargetMachine>>
pagoda::createTargetMachine(const Machine &machine) {
  initializeTargets();
  Triple triple(machine.triple);
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("target %s: %s", machine.name.c_str(),
                             error.c_str());
  // All that x86 code generation leaves out at the lower level is a scheduler
  // after register allocation. Out of order, kernels are as fast without.
  std::unique_ptr<TargetMachine> result(target->createTargetMachine(
      triple, machine.cpu, machine.features, TargetOptions(), Reloc::PIC_,
      std::nullopt,
      triple.isX86() ? CodeGenOptLevel::Less : CodeGenOptLevel::Default));
  if (!result)
    return createStringError("target %s: no code generator for %s",
                             machine.name.c_str(), machine.triple.c_str());
  return result;
}

Expected<std::unique_ptr<Module>>
pagoda::translate(mlir::ModuleOp module, LLVMContext &context,
                  TargetMachine &target, const Machine &machine, bool table) {
  std::unique_ptr<Module> result =
      mlir::translateModuleToLLVMIR(module, context, "pagoda");
  if (!result)
    return createStringError("translation to LLVM IR failed");
  result->setDataLayout(target.createDataLayout());
  result->setTargetTriple(target.getTargetTriple());
  std::string width = std::to_string(machine.vectorBits);
  for (Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.cpu);
    function.addFnAttr("target-features", machine.features);
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr(Attribute::NoUnwind);
  }
  if (table)
    addLibraryTable(*result, descriptionsOf(module));
  return result;
}

void pagoda::optimize(Module &module, TargetMachine &target) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graph;
  ModuleAnalysisManager modules;
  PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  ModulePassManager passes;
  bool gpu = target.getTargetTriple().isNVPTX();
  if (Error error =
          builder.parsePassPipeline(passes, gpu ? gpuPasses : cpuPasses))
    report_fatal_error(std::move(error)); // a typo above, found by any test
  passes.run(module, modules);
}

Expected<std::string> pagoda::emitCode(Module &module, TargetMachine &target,
                                       bool assembly) {
  SmallString<0> buffer;
  raw_svector_ostream stream(buffer);
  {
    legacy::PassManager passes;
    if (target.addPassesToEmitFile(passes, stream, nullptr,
                                   assembly ? CodeGenFileType::AssemblyFile
                                            : CodeGenFileType::ObjectFile))
      return createStringError("the target cannot emit this kind of file");
    passes.run(module);
  } // the stream is complete only once the pass manager is gone
  return std::string(buffer.str());
}
