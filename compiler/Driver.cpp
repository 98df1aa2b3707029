//===- Driver.cpp - From a specification to artifacts ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the phases one after the other. Each arrow of the path is one function
// of class Compilation: build, run(phase), translate, emit.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"
#include "compiler/Pipeline.h"
#include "compiler/emit/Object.h"
#include "compiler/emit/Ptx.h"
#include "compiler/import/BuildAttention.h"
#include "compiler/target/KernelAbi.h"
#include "compiler/tiling/SramFit.h"
#include "dialect/Dialect.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace llvm;
using namespace pagoda;

Expected<Stage> pagoda::parseStage(StringRef text) {
  static constexpr std::pair<StringLiteral, Stage> stages[] = {
      {"attention", Stage::Attention},
      {"tiled", Stage::Tiled},
      {"target", Stage::Target},
      {"llvm", Stage::Llvm},
      {"asm", Stage::Asm},
      {"ptx", Stage::Ptx}};
  for (auto [name, stage] : stages)
    if (text == name)
      return stage;
  return createStringError("unknown stage '" + text +
                           "', expected attention, tiled, target, llvm, asm "
                           "or ptx");
}

namespace {

/// One compilation: the IR as it goes through the phases, with timings.
class Compilation {
public:
  Compilation(const std::vector<AttentionSpec> &specs,
              const CompileOptions &options)
      : specs(specs), options(options),
        codeMachine(options.emulate ? Machine::host() : options.machine),
        context(createContext()) {}

  Error build();
  Error run(Phase phase);
  Error translate();
  Expected<std::string> emit(bool assembly);
  std::vector<KernelSummary> summaries();
  std::string reasonFor(const AttentionSpec &spec, StringRef role);
  std::string text();

  PhaseTimings timings;

private:
  static std::unique_ptr<mlir::MLIRContext> createContext() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    // One compilation is one thread's work: no pool.
    return std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
  }
  auto timed(std::string name) {
    auto start = std::chrono::steady_clock::now();
    return scope_exit([this, name, start] {
      std::chrono::duration<double, std::milli> elapsed =
          std::chrono::steady_clock::now() - start;
      timings.emplace_back(name, elapsed.count());
    });
  }
  /// Runs `body` with diagnostics collected into the error.
  Error collect(function_ref<bool()> body);

  const std::vector<AttentionSpec> &specs;
  const CompileOptions &options;
  const Machine codeMachine;      ///< that the code runs on
  std::vector<std::string> names; ///< of the specs' functions
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<TargetMachine> target;
  LLVMContext llvmContext;
  std::unique_ptr<Module> llvmModule;
};

} // namespace

Error Compilation::collect(function_ref<bool()> body) {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(
      context.get(), [&](mlir::Diagnostic &diagnostic) {
        if (!text.empty())
          text += "\n";
        raw_string_ostream stream(text);
        if (auto name = dyn_cast<mlir::NameLoc>(diagnostic.getLocation()))
          stream << name.getName().strref() << ": ";
        stream << diagnostic;
      });
  if (body())
    return Error::success();
  return createStringError(text.empty() ? "compilation failed" : text);
}

/// Specification -> attention IR.
Error Compilation::build() {
  auto timer = timed("build");
  module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
  context->loadAllAvailableDialects();
  for (const AttentionSpec &spec : specs) {
    std::string name = specs.size() == 1 || spec.name.empty()
                           ? options.name
                           : options.name + "_" + spec.name;
    for (char &letter : name)
      if (!isAlnum(letter))
        letter = '_';
    while (is_contained(names, name))
      name += "_";
    names.push_back(name);
    if (!options.cacheOnly)
      buildAttention(*module, spec, name);
    if (options.machine.kind != TargetKind::Cpu)
      continue;
    if (!hasNarrowCache(spec))
      buildAppend(*module, spec, name + "_append");
    buildCopy(*module, spec, name + "_copy");
  }
  return collect([&] { return succeeded(mlir::verify(*module)); });
}

Error Compilation::run(Phase phase) {
  static constexpr StringLiteral names[] = {"attention", "tiled", "target",
                                            "llvm"};
  auto timer = timed(names[int(phase)].str());
  mlir::PassManager passes(context.get(), mlir::ModuleOp::getOperationName());
  if (phase == Phase::Llvm && options.emulate)
    buildEmulatedLlvm(passes);
  else
    buildPhase(passes, phase, options.machine, options.schedule);
  return collect([&] { return succeeded(passes.run(*module)); });
}

Error Compilation::translate() {
  Expected<std::unique_ptr<TargetMachine>> machine =
      createTargetMachine(codeMachine);
  if (!machine)
    return machine.takeError();
  target = std::move(*machine);
  {
    auto timer = timed("translate");
    Expected<std::unique_ptr<Module>> translated =
        codeMachine.kind == TargetKind::Nvidia
            ? translateDevice(*module, llvmContext, *target)
            : pagoda::translate(*module, llvmContext, *target, codeMachine);
    if (!translated)
      return translated.takeError();
    llvmModule = std::move(*translated);
  }
  // Emulated kernels spend their time in the emulator; what counts is that they
  // are there soon.
  if (options.emulate) {
    target->setOptLevel(CodeGenOptLevel::None);
    return Error::success();
  }
  auto timer = timed("optimize");
  optimize(*llvmModule, *target);
  return Error::success();
}

Expected<std::string> Compilation::emit(bool assembly) {
  auto timer = timed("codegen");
  return emitCode(*llvmModule, *target, assembly);
}

/// Why the kernel has the tile it has: what select-tiles computed, once more.
std::string Compilation::reasonFor(const AttentionSpec &spec, StringRef role) {
  if (role == "append" && spec.rotaryDim)
    return formatv("one token at a time, {0} rope on {1} of {2} dims",
                   spec.ropeInterleaved ? "interleaved" : "neox",
                   spec.rotaryDim, spec.headDim);
  if (role == "append")
    return "one token at a time, no rope";
  if (role == "copy")
    return "one block at a time";
  if (role != "prefill" && role != "decode")
    return "one query row at a time";
  Expected<TileCandidate> tile = selectTile(
      options.machine, spec,
      role == "prefill" ? Variant::Prefill : Variant::Decode, options.schedule);
  if (tile)
    return tile->reason();
  consumeError(tile.takeError());
  return "";
}

std::vector<KernelSummary> Compilation::summaries() {
  std::vector<KernelSummary> result;
  for (const KernelDescription &kernel : descriptionsOf(*module)) {
    KernelSummary summary;
    summary.name = kernel.symbol;
    StringRef name(kernel.symbol);
    summary.role = name.substr(name.rfind('_') + 1).str();
    summary.schedule = kernel.schedule;
    summary.kvTile = kernel.info.kv_tile;
    summary.qTile = kernel.info.max_rows * kernel.info.q_heads /
                    std::max(kernel.info.kv_heads, 1);
    summary.scratchBytes = kernel.info.scratch_bytes;
    summary.info = kernel.info;
    // A kernel's name is its function's and what it does.
    StringRef function = name.substr(0, name.rfind('_'));
    for (auto [spec, built] : zip(specs, names)) {
      if (function != built)
        continue;
      summary.spec = spec.name;
      summary.reason = reasonFor(spec, summary.role);
    }
    result.push_back(std::move(summary));
  }
  return result;
}

std::string Compilation::text() {
  std::string result;
  raw_string_ostream stream(result);
  if (llvmModule)
    stream << *llvmModule;
  else
    module->print(stream);
  return result;
}

Expected<Artifact> pagoda::compile(const std::vector<AttentionSpec> &specs,
                                   const CompileOptions &options) {
  bool nvidia = options.machine.kind == TargetKind::Nvidia;
  if (options.emulate && !nvidia)
    return createStringError("the emulator runs kernels of nvidia targets, "
                             "got " +
                             options.machine.name);
  Compilation compilation(specs, options);
  if (Error error = compilation.build())
    return error;
  for (Phase phase :
       {Phase::Attention, Phase::Tiled, Phase::Target, Phase::Llvm})
    if (Error error = compilation.run(phase))
      return error;
  if (Error error = compilation.translate())
    return error;
  bool ptx = nvidia && !options.emulate;
  Expected<std::string> code = compilation.emit(/*assembly=*/ptx);
  if (!code)
    return code.takeError();
  Artifact artifact;
  artifact.target = options.machine.name;
  (ptx ? artifact.ptx : artifact.object) = std::move(*code);
  artifact.kernels = compilation.summaries();
  artifact.timings = compilation.timings;
  return artifact;
}

Expected<std::string>
pagoda::printStage(const std::vector<AttentionSpec> &specs,
                   const CompileOptions &options, Stage stage) {
  bool nvidia = options.machine.kind == TargetKind::Nvidia;
  if (stage == (nvidia ? Stage::Asm : Stage::Ptx))
    return createStringError("stage " + Twine(nvidia ? "asm" : "ptx") +
                             " does not exist for " + options.machine.name +
                             ", expected " + (nvidia ? "ptx" : "asm"));
  Compilation compilation(specs, options);
  if (Error error = compilation.build())
    return error;
  for (auto [phase, last] : {std::pair(Phase::Attention, Stage::Attention),
                             {Phase::Tiled, Stage::Tiled},
                             {Phase::Target, Stage::Target},
                             {Phase::Llvm, Stage::Ptx}}) {
    if (Error error = compilation.run(phase))
      return error;
    if (stage == last && stage != Stage::Ptx)
      return compilation.text();
  }
  if (Error error = compilation.translate())
    return error;
  if (stage == Stage::Llvm)
    return compilation.text();
  return compilation.emit(/*assembly=*/true);
}
