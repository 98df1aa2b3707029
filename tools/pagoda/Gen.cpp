//===- Gen.cpp - pagoda gen -----------------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the kernels of a model and a machine and writes them out, or prints
// one level on the way.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"
#include "tools/pagoda/Commands.h"
#include "tools/pagoda/Report.h"
#include "tools/pagoda/SpecOptions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace pagoda {

cl::SubCommand &genCommand() {
  static cl::SubCommand command(
      "gen", "Generate the kernels of a model for a machine: object file, "
             "shared library, C header, manifest");
  return command;
}

namespace {

cl::opt<std::string> outputOpt("o", cl::desc("Directory to write to"),
                               cl::value_desc("dir"), cl::sub(genCommand()),
                               cl::cat(optionCategory()));
cl::opt<std::string> nameOpt("name",
                             cl::desc("Base name of the files and prefix of "
                                      "the kernels' names"),
                             cl::init("attention"), cl::sub(genCommand()),
                             cl::cat(optionCategory()));
cl::opt<std::string>
    emitOpt("emit",
            cl::desc("Print one level to standard output and write no files: "
                     "attention, tiled, target, llvm, asm or ptx"),
            cl::value_desc("level"), cl::sub(genCommand()),
            cl::cat(optionCategory()));
cl::opt<bool> timingOpt("timing", cl::desc("Print the time of each phase"),
                        cl::sub(genCommand()), cl::cat(optionCategory()));
cl::opt<bool> jsonOpt("json", cl::desc("Report as JSON"), cl::sub(genCommand()),
                      cl::cat(optionCategory()));
cl::opt<bool> verboseOpt("v",
                         cl::desc("Print schedules, and the defaults that the "
                                  "config left open"),
                         cl::sub(genCommand()), cl::cat(optionCategory()));

/// The name must do as a C identifier: the header declares it.
llvm::Error checkName() {
  StringRef name = nameOpt;
  if (name.empty() || isDigit(name[0]) ||
      !all_of(name, [](char c) { return isAlnum(c) || c == '_'; }))
    return createStringError("--name '" + name + "': expected a C identifier");
  return llvm::Error::success();
}

void printText(const Specification &specification, const Artifact &artifact) {
  raw_ostream &os = outs();
  if (specification.model)
    os << specification.model->modelType << ", " << specification.model->layers
       << " layers\n";
  for (size_t i = 0; i < specification.specs.size(); ++i) {
    os << specification.specs[i].name << ": "
       << describe(specification.specs[i]);
    if (specification.model)
      os << "; " << specification.layers[i] << " layers";
    os << '\n';
  }
  os << "machine: " << specification.compile.machine.name << "\n\n";
  printKernels(os, artifact.kernels);
  if (verboseOpt) {
    os << '\n';
    for (const KernelSummary &kernel : artifact.kernels)
      os << kernel.name << ": " << kernel.schedule << '\n';
    if (specification.model)
      for (const DefaultTaken &taken : specification.model->defaults)
        os << "default: " << taken.field << " = " << taken.value << " ("
           << taken.reason << ")\n";
  }
  if (timingOpt) {
    os << '\n';
    printTimings(os, artifact.timings);
  }
  os << "\nwritten to " << outputOpt << '\n';
}

void printJson(const Specification &specification, const Artifact &artifact) {
  json::Array specs;
  for (const AttentionSpec &spec : specification.specs)
    specs.push_back(toJson(spec));
  json::Object report{{"machine", specification.compile.machine.name},
                      {"specs", std::move(specs)},
                      {"kernels", toJson(artifact.kernels)},
                      {"timings", toJson(artifact.timings)},
                      {"output", outputOpt.getValue()}};
  if (specification.model)
    report["model"] = specification.model->toJson();
  outs() << formatv("{0:2}\n", json::Value(std::move(report)));
}

} // namespace

llvm::Error gen() {
  if (llvm::Error error = checkName())
    return error;
  if (emitOpt.getNumOccurrences() == 0 && outputOpt.empty())
    return createStringError("nothing to do: give -o DIR, or --emit=LEVEL");
  if (emitOpt.getNumOccurrences() != 0 && !outputOpt.empty())
    return createStringError("--emit prints and -o writes: give one of them");

  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  specification->compile.name = nameOpt;

  if (emitOpt.getNumOccurrences()) {
    Expected<Stage> stage = parseStage(emitOpt);
    if (!stage)
      return stage.takeError();
    Expected<std::string> text =
        printStage(specification->specs, specification->compile, *stage);
    if (!text)
      return text.takeError();
    outs() << *text;
    return llvm::Error::success();
  }

  Expected<Artifact> artifact =
      compile(specification->specs, specification->compile);
  if (!artifact)
    return artifact.takeError();
  if (std::error_code code = sys::fs::create_directories(outputOpt))
    return createStringError("-o " + outputOpt + ": " + code.message());
  if (llvm::Error error =
          emitArtifact(*artifact, specification->specs, outputOpt, nameOpt))
    return error;
  if (jsonOpt)
    printJson(*specification, *artifact);
  else
    printText(*specification, *artifact);
  return llvm::Error::success();
}

} // namespace pagoda
