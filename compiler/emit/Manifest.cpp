//===- Manifest.cpp - What a caller needs to know, as JSON ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace pagoda;

/// The run-time values that the model uses, by the names of kernel_abi.h.
static json::Object arguments(const AttentionSpec &spec) {
  json::Object result{{"scale", spec.scale}};
  if (spec.window)
    result["window"] = *spec.window;
  if (spec.chunk)
    result["chunk"] = *spec.chunk;
  if (spec.softcap)
    result["softcap"] = *spec.softcap;
  if (!spec.alibiSlopes.empty())
    result["alibi_slopes"] = json::Array(spec.alibiSlopes);
  return result;
}

/// The kinds of layers that a specification serves: which they are, and how
/// they rotate q and k.
static json::Array uses(const AttentionSpec &spec, const ModelConfig &model) {
  json::Array result;
  for (const LayerKind *kind : model.kindsServedBy(spec.name))
    result.push_back(json::Object{{"kind", kind->name},
                                  {"layers", json::Array(kind->layers)},
                                  {"rope", toJson(kind->rope)}});
  return result;
}

/// Which heads of the model the rank has whose values these are.
static json::Object rankJson(const AttentionSpec &spec,
                             const ModelConfig &model) {
  int64_t rank = model.tensorParallelRank, ranks = model.tensorParallel;
  const LayerKind &kind = *model.kindsServedBy(spec.name).front();
  return json::Object{{"rank", rank},
                      {"ranks", ranks},
                      {"first_q_head", rank * spec.qHeads},
                      {"first_kv_head", rank * kind.kvHeads / ranks}};
}

static json::Object specJson(const AttentionSpec &spec) {
  return json::Object{
      {"name", spec.name},
      {"q_heads", spec.qHeads},
      {"kv_heads", spec.kvHeads},
      {"head_dim", spec.headDim},
      {"v_head_dim", spec.vHeadDim},
      {"block_size", spec.blockSize},
      {"layout", spec.layout == KvLayout::NHD ? "nhd" : "hnd"},
      {"dtype", nameOf(spec.qType)},
      {"kv_dtype", nameOf(spec.kvType)},
      {"causal", spec.causal},
      {"rotary_dim", spec.rotaryDim},
      {"rope_interleaved", spec.ropeInterleaved},
      {"sinks", spec.sinks},
      {"prefix_lm", spec.prefixLm},
      {"arguments", arguments(spec)},
  };
}

/// How the tile was chosen: each step of the formula, and what each level of
/// memory holds.
static json::Object choiceJson(const TileCandidate &tile) {
  json::Array steps, levels;
  for (const Step &step : tile.steps) {
    json::Object inputs;
    for (auto [name, value] : step.inputs)
      inputs[name] = value;
    steps.push_back(json::Object{{"name", step.name},
                                 {"formula", step.formula},
                                 {"inputs", std::move(inputs)},
                                 {"result", step.result},
                                 {"unit", step.unit}});
  }
  for (const LevelUse &level : tile.levels) {
    json::Object parts;
    for (auto [name, amount] : level.parts)
      parts[name] = amount;
    levels.push_back(json::Object{{"level", level.level},
                                  {"unit", level.unit},
                                  {"parts", std::move(parts)},
                                  {"total", level.total()},
                                  {"budget", level.budget},
                                  {"hard", level.hard}});
  }
  json::Object result{{"cost", tile.cost},
                      {"levels", std::move(levels)},
                      {"steps", std::move(steps)}};
  if (const std::optional<RegisterClaim> &claim = tile.claim)
    result["claim"] =
        json::Object{{"registers_needed", claim->need},
                     {"registers", claim->registers},
                     {"blocks_per_multiprocessor", claim->blocks}};
  return result;
}

static json::Object resourcesJson(const KernelResources &resources) {
  return json::Object{{"registers", resources.registers},
                      {"spill_store_bytes", resources.spillStores},
                      {"spill_load_bytes", resources.spillLoads},
                      {"stack_bytes", resources.stackBytes},
                      {"static_shared_bytes", resources.sharedBytes},
                      {"blocks_per_multiprocessor", resources.blocks}};
}

static json::Object kernelJson(const KernelSummary &kernel) {
  const pagoda_kernel_info &info = kernel.info;
  if (info.role == PAGODA_ROLE_APPEND || info.role == PAGODA_ROLE_COPY) {
    json::Object object{{"name", kernel.name},
                        {"spec", kernel.spec},
                        {"role", kernel.role},
                        {"target", kernel.target},
                        {"cpu_features", int64_t(info.cpu_features)},
                        {"scratch_bytes", info.scratch_bytes}};
    if (info.threads > 1) // a GPU's
      object["threads"] = info.threads;
    if (kernel.resources)
      object["resources"] = resourcesJson(*kernel.resources);
    if (info.role == PAGODA_ROLE_COPY)
      return object;
    object["rope"] = !info.rotary_dim        ? "none"
                     : info.rope_interleaved ? "interleaved"
                                             : "neox";
    object["rotary_dim"] = info.rotary_dim;
    return object;
  }
  json::Object result{
      {"name", kernel.name},
      {"spec", kernel.spec},
      {"role", kernel.role},
      {"target", kernel.target},
      {"schedule", kernel.schedule},
      {"reason", kernel.reason},
      {"features", int64_t(info.features)},
      {"cpu_features", int64_t(info.cpu_features)},
      {"q_tile", kernel.qTile},
      {"max_rows", info.max_rows},
      {"heads_per_item", info.heads_per_item},
      {"kv_tile", info.kv_tile},
      {"scratch_bytes", info.scratch_bytes},
      {"threads", info.threads},
      {"shared_bytes", info.shared_bytes},
  };
  if (kernel.tile)
    result["choice"] = choiceJson(*kernel.tile);
  if (kernel.resources)
    result["resources"] = resourcesJson(*kernel.resources);
  return result;
}

json::Value pagoda::manifest(const Artifact &artifact,
                             const Provenance &provenance) {
  json::Array specs, kernels;
  for (const AttentionSpec &spec : provenance.specs) {
    json::Object object = specJson(spec);
    if (provenance.model) {
      object["used_by"] = uses(spec, *provenance.model);
      if (provenance.model->tensorParallel > 1)
        object["rank"] = rankJson(spec, *provenance.model);
    }
    specs.push_back(std::move(object));
  }
  for (const KernelSummary &kernel : artifact.kernels)
    kernels.push_back(kernelJson(kernel));
  json::Object result{{"abi_version", int64_t(PAGODA_ABI_VERSION)},
                      {"target", artifact.target},
                      {"specs", std::move(specs)},
                      {"kernels", std::move(kernels)},
                      {"notes", json::Array(provenance.notes)}};
  if (artifact.modsHash) {
    json::Array aux;
    for (const AuxTensor &tensor : artifact.aux)
      aux.push_back(json::Object{{"name", tensor.name},
                                 {"dtype", tensor.isFloat ? "f32" : "i32"},
                                 {"rank", tensor.rank}});
    result["mods"] = json::Object{{"hash", utohexstr(artifact.modsHash)},
                                  {"aux", std::move(aux)}};
  }
  if (provenance.model)
    result["model"] = provenance.model->toJson();
  return result;
}
