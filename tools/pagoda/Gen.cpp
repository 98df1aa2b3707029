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
#include "tools/pagoda/Describe.h"
#include "tools/pagoda/Records.h"
#include "tools/pagoda/Report.h"
#include "tools/pagoda/SpecOptions.h"

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
cl::opt<std::string>
    emitOpt("emit",
            cl::desc("Print one level to standard output and write no files: "
                     "attention, tiled, fragments, target, llvm, asm or ptx"),
            cl::value_desc("level"), cl::sub(genCommand()),
            cl::cat(optionCategory()));
cl::opt<bool> timingOpt("timing", cl::desc("Print the time of each phase"),
                        cl::sub(genCommand()), cl::cat(optionCategory()));
cl::opt<bool>
    jsonOpt("json",
            cl::desc("Print the manifest; without -o nothing is written"),
            cl::sub(genCommand()), cl::cat(optionCategory()));
cl::opt<bool> verboseOpt("v",
                         cl::desc("Print the kernels, their schedules, and "
                                  "each default that was taken and why"),
                         cl::sub(genCommand()), cl::cat(optionCategory()));

void printDefaults(raw_ostream &os, const Specification &specification) {
  for (const std::string &note : specification.notes)
    os << "note: " << note << '\n';
  if (!specification.model)
    return;
  for (const DefaultTaken &taken : specification.model->defaults)
    os << "default: " << taken.field << " = " << taken.value << " ("
       << taken.reason << ")\n";
}

/// What ptxas says.
void printResources(raw_ostream &os,
                    const std::vector<KernelSummary> &kernels) {
  Table table({"kernel", ">registers", ">spilled", ">shared",
               ">blocks a multiprocessor"});
  for (const KernelSummary &kernel : kernels)
    if (const auto &resources = kernel.resources)
      table.row({kernel.name, std::to_string(resources->registers),
                 bytesText(double(resources->spillStores)),
                 bytesText(double(kernel.info.shared_bytes)),
                 std::to_string(resources->blocks)});
  table.print(os);
  os << '\n';
}

void printText(const Specification &specification, const Artifact &artifact) {
  raw_ostream &os = outs();
  if (specification.model)
    os << specification.model->modelType << ", " << specification.model->layers
       << " layers\n";
  for (const AttentionSpec &spec : specification.specs) {
    os << spec.name << ": " << describe(spec);
    if (specification.model)
      os << "; " << describeLayers(*specification.model, spec.name);
    os << '\n';
    for (const std::string &line : describeValues(
             spec, specification.model ? &*specification.model : nullptr))
      os << "  " << line << '\n';
  }
  os << "target: " << artifact.target << "\n\n";
  printKernels(os, artifact.kernels);
  os << '\n';
  printSchedules(os, artifact.kernels);
  os << '\n';
  if (!artifact.cubin.empty())
    printResources(os, artifact.kernels);
  printDefaults(os, specification);
  os << "written to " << outputOpt << '\n';
}

} // namespace

llvm::Error gen() {
  if (emitOpt.getNumOccurrences() == 0 && outputOpt.empty() && !jsonOpt)
    return createStringError(
        "nothing to do: give -o DIR, --json, or --emit=LEVEL");
  if (emitOpt.getNumOccurrences() != 0 && !outputOpt.empty())
    return createStringError("--emit prints and -o writes: give one of them");

  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  if (llvm::Error error = useRecords(*specification))
    return error;
  const CompileOptions &options = specification->compile;

  if (emitOpt.getNumOccurrences()) {
    Expected<Stage> stage = parseStage(emitOpt);
    if (!stage)
      return stage.takeError();
    return withRecords(*specification, [&](const Specification &s) {
      Expected<std::string> text = printStage(s.specs, s.compile, *stage);
      if (text)
        outs() << *text;
      return text.takeError();
    });
  }

  std::optional<Artifact> artifact;
  auto attempt = [&](const Specification &s) {
    Expected<Artifact> made = compile(s.specs, s.compile);
    if (made)
      artifact = std::move(*made);
    return made.takeError();
  };
  if (llvm::Error error = withRecords(*specification, attempt))
    return error;
  if (llvm::Error error = assemble(*artifact, options.machine))
    return error;
  Provenance provenance = provenanceOf(*specification);
  if (!outputOpt.empty())
    if (llvm::Error error =
            emitArtifact(*artifact, provenance, outputOpt, options.name))
      return error;
  if (verboseOpt && !jsonOpt)
    printText(*specification, *artifact);
  if (jsonOpt)
    outs() << formatv("{0:2}\n", manifest(*artifact, provenance));
  else if (timingOpt)
    printTimings(outs(), artifact->timings);
  return llvm::Error::success();
}

} // namespace pagoda
