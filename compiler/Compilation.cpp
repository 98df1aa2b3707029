//===- Compilation.cpp - One machine's kernels, phase by phase ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs passes with their diagnostics collected, and reads back what lowering
// says about each kernel.
//
//===----------------------------------------------------------------------===//

#include "compiler/Compilation.h"
#include "compiler/emit/Object.h"
#include "compiler/emit/Ptx.h"
#include "compiler/import/BuildAttention.h"
#include "compiler/import/Mods.h"
#include "compiler/tiling/SelectTiles.h"
#include "dialect/Dialect.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pagoda;

Error Compilation::collect(function_ref<bool()> body) {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(
      context.get(), [&](mlir::Diagnostic &diagnostic) {
        if (!text.empty())
          text += "\n";
        raw_string_ostream stream(text);
        stream << diagnosticPrefix(diagnostic) << diagnostic;
      });
  if (body())
    return Error::success();
  return createStringError(text.empty() ? "compilation failed" : text);
}

bool pagoda::convertsType(const Machine &machine, DType type) {
  if (machine.kind == TargetKind::Nvidia)
    return type == DType::F16 || type == DType::BF16;
  switch (type) {
  case DType::F32:
  case DType::BF16: // half an f32: integer operations do
    return true;
  case DType::F16:
    return machine.cpuFeatures &
           (PAGODA_CPU_F16C | PAGODA_CPU_AVX512F | PAGODA_CPU_NEON);
  default:
    return false;
  }
}

/// Code for a CPU must not fall back on a library for conversions.
static Error checkTypes(const Machine &machine, const AttentionSpec &spec) {
  if (machine.kind == TargetKind::Nvidia)
    return Error::success(); // lowering says what it takes
  for (DType type : {spec.qType, spec.kvType})
    if (!convertsType(machine, type))
      return createStringError(spec.name + ": " + machine.name +
                               " has no instructions for " + nameOf(type) +
                               ", expected f32 or bf16");
  return Error::success();
}

Error Compilation::runTo(Phase last) {
  if (Error error = build())
    return error;
  for (Phase phase : {Phase::Attention, Phase::Tiled, Phase::Fragments,
                      Phase::Target, Phase::Llvm}) {
    if (phase > last)
      break;
    if (phase == Phase::Fragments && machine.kind != TargetKind::Nvidia)
      continue;
    if (Error error = run(phase))
      return error;
  }
  return Error::success();
}

const std::vector<Schedule> *
Compilation::settledFor(const AttentionSpec &spec) const {
  for (const KernelSchedules &settled : options.settled)
    if (settled.machine == machine.name && settled.spec == spec.name)
      return &settled.schedules;
  return nullptr;
}

Expected<TileCandidate> Compilation::tileOf(const AttentionSpec &spec,
                                            Variant variant, int64_t tokens) {
  if (tokens == 1)
    if (const std::vector<Schedule> *settled = settledFor(spec))
      return evaluate((*settled)[variant == Variant::Decode], machine, spec);
  return selectTile(machine, spec, variant, options.schedule, tokens);
}

Expected<std::vector<Schedule>>
Compilation::schedulesFor(const AttentionSpec &spec) {
  std::vector<Schedule> schedules;
  auto add = [&](Variant variant, int64_t tokens) -> Error {
    Expected<TileCandidate> tile = tileOf(spec, variant, tokens);
    if (!tile)
      return createStringError(spec.name + " " + nameOf(variant) + ": " +
                               toString(tile.takeError()));
    schedules.push_back(tile->schedule);
    return Error::success();
  };
  if (const std::vector<Schedule> *settled = settledFor(spec))
    schedules = *settled;
  else
    for (Variant variant : {Variant::Prefill, Variant::Decode})
      if (Error error = add(variant, 1))
        return error;
  if (options.decodeTokens > 1 && machine.kind == TargetKind::Cpu)
    if (Error error = add(Variant::Decode, options.decodeTokens))
      return error;
  return schedules;
}

/// Gives the attention of function @name its schedules.
static void setSchedules(mlir::ModuleOp module, StringRef name,
                         ArrayRef<Schedule> schedules) {
  SmallVector<mlir::Attribute> attributes;
  for (const Schedule &schedule : schedules)
    attributes.push_back(toAttr(module.getContext(), schedule));
  module.lookupSymbol(name)->walk([&](AttentionOp op) {
    op.setSchedulesAttr(mlir::ArrayAttr::get(module.getContext(), attributes));
  });
}

/// Specification -> attention IR.
Error Compilation::build() {
  // Kernels that write the cache convert without the instructions.
  for (const AttentionSpec &spec : specs)
    if (!options.cacheOnly)
      if (Error error = checkTypes(machine, spec))
        return error;
  return timed(timings, "build", [&] {
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
    context->loadAllAvailableDialects();
    std::optional<Mods> mods;
    auto parse = [&] {
      mlir::FailureOr<Mods> parsed =
          parseMods(context.get(), options.mods, options.modsFile);
      if (succeeded(parsed))
        mods = std::move(*parsed);
      return succeeded(parsed);
    };
    if (!options.mods.empty())
      if (Error error = collect(parse))
        return error;
    if (mods) {
      hash = mods->hash;
      auxTensors = mods->aux;
    }
    for (const AttentionSpec &spec : specs) {
      std::string name = options.name + suffix.str();
      if (specs.size() > 1 && !spec.name.empty())
        name += "_" + spec.name;
      for (char &letter : name)
        if (!isAlnum(letter))
          letter = '_';
      while (is_contained(names, name))
        name += "_";
      names.push_back(name);
      if (!options.cacheOnly) {
        buildAttention(*module, spec, name, mods ? &*mods : nullptr);
        Expected<std::vector<Schedule>> given = schedulesFor(spec);
        if (!given)
          return given.takeError();
        setSchedules(*module, name, *given);
      }
      if (!hasNarrowCache(spec))
        buildAppend(*module, spec, name + "_append");
      buildCopy(*module, spec, name + "_copy");
    }
    return collect([&] { return succeeded(mlir::verify(*module)); });
  });
}

Error Compilation::run(Phase phase) {
  static constexpr StringLiteral names[] = {"attention", "tiled", "fragments",
                                            "target", "llvm"};
  return timed(timings, names[int(phase)], [&] {
    mlir::PassManager passes(context.get(), mlir::ModuleOp::getOperationName());
    if (phase == Phase::Llvm && options.emulate)
      buildEmulatedLlvm(passes);
    else
      buildPhase(passes, phase, machine, options.schedule);
    // What a phase makes is verified, not what each pass does: that would take
    // a tenth of all the time. pagoda-opt verifies after each.
    passes.enableVerifier(false);
    return collect([&] {
      return succeeded(passes.run(*module)) && succeeded(mlir::verify(*module));
    });
  });
}

/// LLVM dialect -> LLVM IR, without the library table.
Expected<std::unique_ptr<Module>>
Compilation::translate(LLVMContext &llvmContext, TargetMachine &target) {
  return timed(timings, "translate", [&] {
    if (machine.kind == TargetKind::Nvidia && !options.emulate)
      return translateDevice(*module, llvmContext, target);
    return pagoda::translate(*module, llvmContext, target,
                             options.emulate ? Machine::host() : machine,
                             /*table=*/false);
  });
}

/// How the tile was chosen: what select-tiles computed, once more.
void Compilation::explain(KernelSummary &summary, const AttentionSpec &spec) {
  if (summary.role == "append") {
    summary.reason =
        spec.rotaryDim
            ? formatv("one token at a time, {0} rope on {1} of {2} dims",
                      spec.ropeInterleaved ? "interleaved" : "neox",
                      spec.rotaryDim, spec.headDim)
                  .str()
            : "one token at a time, no rope";
    return;
  }
  if (summary.role == "copy") {
    summary.reason = "one block at a time";
    return;
  }
  bool decode = StringRef(summary.role).starts_with("decode");
  if (summary.role != "prefill" && !decode) {
    summary.reason = "one query row at a time";
    return;
  }
  bool several = decode && summary.role != "decode";
  Expected<TileCandidate> tile =
      tileOf(spec, decode ? Variant::Decode : Variant::Prefill,
             several ? options.decodeTokens : 1);
  if (!tile)
    return consumeError(tile.takeError());
  summary.reason = tile->reason();
  summary.tile = std::move(*tile);
}

std::vector<KernelSummary> Compilation::summaries() {
  std::vector<KernelSummary> result;
  for (const KernelDescription &kernel : descriptions()) {
    KernelSummary summary;
    summary.name = kernel.symbol;
    summary.target = machine.name;
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
      explain(summary, spec);
    }
    result.push_back(std::move(summary));
  }
  return result;
}

std::string Compilation::text() {
  std::string result;
  raw_string_ostream stream(result);
  module->print(stream);
  return result;
}
