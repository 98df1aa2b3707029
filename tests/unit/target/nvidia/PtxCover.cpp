//===- PtxCover.cpp - Kernels through ptxas, as a table -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assembles kernels for the targets that are named on the command line and
// prints what ptxas says of each, beside what it claims, as Markdown. The
// kernels are a cover of head dims, groups, block sizes and features, or, after
// --configs, those of every config.json in a folder. With --need attention
// kernels are assembled once more, held to the registers that they need. Exit
// codes: 0, 1 (something did not assemble, spills, or breaks its claim), 77 (no
// ptxas).
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"
#include "compiler/emit/Ptx.h"
#include "compiler/import/ModelConfig.h"
#include "tests/unit/target/nvidia/Claims.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>
#include <set>
#include <string>

using namespace llvm;
using namespace pagoda;

namespace {

struct Kernels {
  std::string name;
  std::vector<AttentionSpec> specs;
};

AttentionSpec shape(int64_t qHeads, int64_t kvHeads, int64_t headDim,
                    int64_t vHeadDim, DType type) {
  AttentionSpec spec;
  spec.qHeads = qHeads;
  spec.kvHeads = kvHeads;
  spec.headDim = headDim;
  spec.vHeadDim = vHeadDim;
  spec.qType = spec.kvType = type;
  spec.scale = 1 / std::sqrt(double(headDim));
  return spec;
}

/// Ten specifications of four kernels each: attention, merge, append, copy.
std::vector<Kernels> cover() {
  std::vector<Kernels> result;
  auto add = [&](std::string name, AttentionSpec spec) {
    result.push_back({std::move(name), {std::move(spec)}});
  };
  add("d 64", shape(16, 8, 64, 64, DType::F16));
  AttentionSpec window = shape(64, 8, 64, 64, DType::BF16);
  window.window = 128;
  window.sinks = true;
  add("d 64, window, sinks", window);
  add("d 80", shape(32, 32, 80, 80, DType::F16));
  add("d 128", shape(32, 8, 128, 128, DType::BF16));
  AttentionSpec softcap = shape(16, 8, 128, 128, DType::F16);
  softcap.softcap = 30;
  softcap.layout = KvLayout::NHD;
  softcap.blockSize = 24;
  add("d 128, soft cap, nhd, block 24", softcap);
  AttentionSpec alibi = shape(16, 16, 128, 128, DType::BF16);
  alibi.alibiSlopes.assign(16, 0.5f);
  add("d 128, alibi", alibi);
  AttentionSpec chunk = shape(40, 8, 128, 128, DType::BF16);
  chunk.chunk = 8192;
  add("d 128, chunk, group 5", chunk);
  add("d 192, v 128", shape(16, 16, 192, 128, DType::BF16));
  AttentionSpec rope = shape(8, 4, 256, 256, DType::BF16);
  rope.rotaryDim = 256;
  add("d 256", rope);
  add("d 17, v 33, group 71", shape(71, 1, 17, 33, DType::F16));
  return result;
}

Expected<std::vector<Kernels>> configs(StringRef folder) {
  std::vector<std::string> paths;
  std::error_code code;
  for (sys::fs::directory_iterator file(folder, code), end;
       file != end && !code; file.increment(code))
    if (sys::path::extension(file->path()) == ".json")
      paths.push_back(file->path());
  if (code)
    return createStringError(folder + ": " + code.message());
  llvm::sort(paths);
  std::vector<Kernels> result;
  for (const std::string &path : paths) {
    Expected<ModelConfig> model = loadModelConfig(path, {});
    if (!model)
      return model.takeError();
    std::vector<AttentionSpec> specs = model->specs();
    for (AttentionSpec &spec : specs)
      spec.qType = spec.kvType =
          model->dtype == DType::F16 ? DType::F16 : DType::BF16;
    if (!specs.empty())
      result.push_back({sys::path::stem(path).str(), std::move(specs)});
  }
  return result;
}

void complain(const Kernels &kernels, const Machine &machine,
              const Twine &what) {
  outs() << formatv("| {0} | {1} | {2} | | | | | |\n", kernels.name,
                    machine.name, what.str());
}

/// Whether the kernels of `artifact` do with the registers that they need: with
/// so many or a few less, because ptxas may use one more to arrange a kernel in
/// a way that spills one.
bool meetsNeed(const Kernels &kernels, const Artifact &artifact,
               const Machine &machine) {
  constexpr int64_t step = 4, fewest = 32;
  std::set<std::string> spilling;
  for (const KernelSummary &kernel : artifact.kernels)
    if (kernel.tile && kernel.tile->claim)
      spilling.insert(kernel.name);
  for (int64_t below = 0; below <= fewest && !spilling.empty(); below += step) {
    std::string ptx = test::heldToNeed(artifact, below);
    Expected<Cubin> cubin = assemblePtx(*findPtxas(), ptx, machine.name);
    if (!cubin) {
      complain(kernels, machine, toString(cubin.takeError()));
      return false;
    }
    for (const KernelResources &held : cubin->kernels)
      if (!held.spillStores && !held.spillLoads && !held.stackBytes)
        spilling.erase(held.name);
  }
  for (const std::string &name : spilling)
    complain(kernels, machine, name + " spills when held to what it needs");
  return spilling.empty();
}

/// Prints the rows of one library; whether all is well. `seen` says which
/// library had the same PTX for this machine: models share shapes.
bool report(const Kernels &kernels, const Machine &machine, bool need,
            std::map<std::string, std::string> &seen) {
  CompileOptions options;
  options.machine = machine;
  Expected<Artifact> artifact = compile(kernels.specs, options);
  if (!artifact) {
    complain(kernels, machine, toString(artifact.takeError()));
    return false;
  }
  auto [before, isNew] = seen.try_emplace(artifact->ptx, kernels.name);
  if (!isNew) {
    complain(kernels, machine, "as " + before->second);
    return true;
  }
  if (llvm::Error error = assemble(*artifact, machine)) {
    complain(kernels, machine, toString(std::move(error)));
    return false;
  }
  bool good = true;
  for (const KernelSummary &kernel : artifact->kernels) {
    const KernelResources &resources = *kernel.resources;
    std::string claim, broken = test::brokenClaim(kernel);
    if (kernel.tile && kernel.tile->claim)
      claim = formatv("{0} / {1}", kernel.tile->claim->registers,
                      kernel.tile->claim->blocks);
    good &= broken.empty();
    outs() << formatv("| {0} | {1} | {2} | {3} | {4} | {5} | {6} | {7} |\n",
                      kernels.name, machine.name, kernel.name,
                      resources.registers, kernel.info.shared_bytes,
                      resources.blocks, claim, broken);
  }
  if (need)
    good &= meetsNeed(kernels, *artifact, machine);
  outs().flush();
  return good;
}

} // namespace

int main(int argc, char **argv) {
  if (!findPtxas()) {
    outs() << "skipped: ptxas is not on the path or in /usr/local/cuda/bin\n";
    return 77;
  }
  ExitOnError exitOnError("pagoda-ptx-cover: ");
  std::vector<Kernels> all = cover();
  std::vector<Machine> machines;
  bool need = false;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--configs" && i + 1 < argc)
      all = exitOnError(configs(argv[++i]));
    else if (argument == "--need")
      need = true;
    else
      machines.push_back(exitOnError(Machine::named(argument)));
  }
  if (machines.empty())
    exitOnError(createStringError("expected targets, such as sm_80"));
  outs() << "| kernels | target | kernel | registers | shared bytes | blocks a "
            "multiprocessor | claimed registers / blocks | broken |\n"
            "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n";
  bool good = true;
  for (const Machine &machine : machines) {
    std::map<std::string, std::string> seen;
    for (const Kernels &kernels : all)
      good &= report(kernels, machine, need, seen);
  }
  return good ? 0 : 1;
}
