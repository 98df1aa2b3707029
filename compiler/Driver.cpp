//===- Driver.cpp - From a specification to artifacts ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles for each machine of a library, links what comes of it into one
// module and makes an artifact of that.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"
#include "compiler/Compilation.h"
#include "compiler/emit/Object.h"

#include "llvm/Linker/Linker.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace pagoda;

Expected<Stage> pagoda::parseStage(StringRef text) {
  static constexpr std::pair<StringLiteral, Stage> stages[] = {
      {"attention", Stage::Attention},
      {"tiled", Stage::Tiled},
      {"fragments", Stage::Fragments},
      {"target", Stage::Target},
      {"llvm", Stage::Llvm},
      {"asm", Stage::Asm},
      {"ptx", Stage::Ptx}};
  for (auto [name, stage] : stages)
    if (text == name)
      return stage;
  return createStringError("unknown stage '" + text +
                           "', expected attention, tiled, fragments, target, "
                           "llvm, asm or ptx");
}

namespace {

/// Machines of one library, each with its compilation.
class Library {
public:
  static Expected<Library> create(const std::vector<AttentionSpec> &specs,
                                  const CompileOptions &options,
                                  PhaseTimings &timings);
  Error runTo(Phase last);
  /// Object code, or the text of an assembly language.
  Expected<std::string> emit(bool assembly);
  /// LLVM IR as it is before code generation.
  Expected<std::string> llvmText();
  Artifact describe();

private:
  explicit Library(const CompileOptions &options, PhaseTimings &timings)
      : options(&options), timings(&timings),
        context(std::make_unique<LLVMContext>()) {}
  /// Translates, links and optimizes.
  Error translate();

  const CompileOptions *options;
  PhaseTimings *timings;
  std::unique_ptr<LLVMContext> context;
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<std::string> suffixes;
  std::unique_ptr<TargetMachine> target;
  std::unique_ptr<Module> module;
};

} // namespace

Error pagoda::checkTargets(const CompileOptions &options) {
  const Machine &first = options.machine;
  if (options.emulate && first.kind != TargetKind::Nvidia)
    return createStringError("the emulator runs kernels of nvidia targets, "
                             "got " +
                             first.name);
  for (const Machine &machine : options.variants) {
    if (machine.name == first.name)
      return createStringError("target " + machine.name + " is named twice");
    if (machine.kind != TargetKind::Cpu || first.kind != TargetKind::Cpu ||
        Triple(machine.triple).getArch() != Triple(first.triple).getArch())
      return createStringError("targets " + first.name + " and " +
                               machine.name +
                               " cannot share a library, expected CPUs of one "
                               "architecture");
  }
  return Error::success();
}

Expected<Library> Library::create(const std::vector<AttentionSpec> &specs,
                                  const CompileOptions &options,
                                  PhaseTimings &timings) {
  if (Error error = checkTargets(options))
    return error;
  Library library(options, timings);
  std::vector<const Machine *> machines = {&options.machine};
  for (const Machine &machine : options.variants)
    machines.push_back(&machine);
  for (const Machine *machine : machines)
    library.suffixes.push_back(machines.size() > 1 ? "_" + machine->name : "");
  for (auto [machine, suffix] : zip(machines, library.suffixes))
    library.compilations.push_back(std::make_unique<Compilation>(
        specs, options, *machine, suffix, timings));
  return library;
}

Error Library::runTo(Phase last) {
  for (auto &compilation : compilations)
    if (Error error = compilation->runTo(last))
      return error;
  return Error::success();
}

Error Library::translate() {
  bool emulate = options->emulate;
  Expected<std::unique_ptr<TargetMachine>> machine =
      createTargetMachine(emulate ? Machine::host() : options->machine);
  if (!machine)
    return machine.takeError();
  target = std::move(*machine);
  std::vector<KernelDescription> kernels;
  for (auto &compilation : compilations) {
    Expected<std::unique_ptr<Module>> part =
        compilation->translate(*context, *target);
    if (!part)
      return part.takeError();
    append_range(kernels, compilation->descriptions());
    if (!module)
      module = std::move(*part);
    else if (Linker::linkModules(*module, std::move(*part)))
      return createStringError("variants of kernels cannot be linked");
  }
  if (options->machine.kind == TargetKind::Cpu || emulate)
    addLibraryTable(*module, kernels);
  // Emulated kernels spend their time in the emulator; what counts is that they
  // are there soon.
  if (emulate)
    target->setOptLevel(CodeGenOptLevel::None);
  else
    timed(*timings, "optimize", [&] { optimize(*module, *target); });
  return Error::success();
}

Expected<std::string> Library::emit(bool assembly) {
  if (Error error = translate())
    return error;
  return timed(*timings, "codegen",
               [&] { return emitCode(*module, *target, assembly); });
}

Expected<std::string> Library::llvmText() {
  if (Error error = translate())
    return error;
  std::string result;
  raw_string_ostream(result) << *module;
  return result;
}

Artifact Library::describe() {
  Artifact artifact;
  artifact.target = options->machine.name;
  for (const Machine &machine : options->variants)
    artifact.target += "," + machine.name;
  for (auto &compilation : compilations) {
    append_range(artifact.kernels, compilation->summaries());
    artifact.modsHash = compilation->modsHash();
    artifact.aux = compilation->aux();
  }
  artifact.timings = *timings;
  return artifact;
}

Expected<Artifact> pagoda::describe(const std::vector<AttentionSpec> &specs,
                                    const CompileOptions &options) {
  PhaseTimings timings;
  Expected<Library> library = Library::create(specs, options, timings);
  if (!library)
    return library.takeError();
  if (Error error = library->runTo(Phase::Target))
    return error;
  return library->describe();
}

Expected<Artifact> pagoda::compile(const std::vector<AttentionSpec> &specs,
                                   const CompileOptions &options) {
  PhaseTimings timings;
  Expected<Library> library = Library::create(specs, options, timings);
  if (!library)
    return library.takeError();
  if (Error error = library->runTo(Phase::Llvm))
    return error;
  bool ptx = options.machine.kind == TargetKind::Nvidia && !options.emulate;
  Expected<std::string> code = library->emit(/*assembly=*/ptx);
  if (!code)
    return code.takeError();
  Artifact artifact = library->describe();
  (ptx ? artifact.ptx : artifact.object) = std::move(*code);
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
  if (!nvidia && stage == Stage::Fragments)
    return createStringError("stage fragments does not exist for " +
                             options.machine.name + ", expected target");
  PhaseTimings timings;
  if (stage <= Stage::Target) {
    static_assert(int(Stage::Target) == int(Phase::Target));
    Compilation compilation(specs, options, options.machine, "", timings);
    if (Error error = compilation.runTo(Phase(stage)))
      return error;
    return compilation.text();
  }
  Expected<Library> library = Library::create(specs, options, timings);
  if (!library)
    return library.takeError();
  if (Error error = library->runTo(Phase::Llvm))
    return error;
  return stage == Stage::Llvm ? library->llvmText()
                              : library->emit(/*assembly=*/true);
}
