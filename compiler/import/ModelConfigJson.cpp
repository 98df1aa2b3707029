//===- ModelConfigJson.cpp - What a ModelConfig answers, and its JSON -----===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Specs in both forms, sizes, and the JSON form that `--json` prints.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelConfig.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <tuple>

using namespace llvm;

namespace pagoda {
namespace {

template <typename T> json::Value orNull(const std::optional<T> &value) {
  return value ? json::Value(*value) : json::Value(nullptr);
}

json::Object specJson(const AttentionSpec &spec) {
  json::Object object{{"name", spec.name},
                      {"q_heads", spec.qHeads},
                      {"kv_heads", spec.kvHeads},
                      {"head_dim_k", spec.headDim},
                      {"head_dim_v", spec.vHeadDim},
                      {"gqa_ratio", spec.group()},
                      {"block_size", spec.blockSize},
                      {"layout", spec.layout == KvLayout::HND ? "hnd" : "nhd"},
                      {"q_dtype", nameOf(spec.qType)},
                      {"kv_dtype", nameOf(spec.kvType)},
                      {"softmax_scale", spec.scale},
                      {"causal", spec.causal},
                      {"window", orNull(spec.window)},
                      {"chunk", orNull(spec.chunk)},
                      {"softcap", orNull(spec.softcap)},
                      {"sinks", spec.sinks}};
  if (!spec.alibiSlopes.empty())
    object["alibi_slopes"] = json::Array(spec.alibiSlopes);
  return object;
}

json::Object kindJson(const LayerKind &kind) {
  json::Object object{{"name", kind.name},
                      {"layers", json::Array(kind.layers)},
                      {"kv_cache", kind.hasKvCache}};
  if (kind.hasKvCache) {
    object["q_heads"] = kind.qHeads;
    object["kv_heads"] = kind.kvHeads;
    object["spec"] = specJson(kind.spec);
    object["rope"] = toJson(kind.rope);
  }
  return object;
}

json::Object mlaJson(const MlaConfig &mla) {
  return json::Object{{"kv_lora_rank", mla.kvLoraRank},
                      {"q_lora_rank", mla.qLoraRank},
                      {"qk_nope_head_dim", mla.qkNopeHeadDim},
                      {"qk_rope_head_dim", mla.qkRopeHeadDim},
                      {"v_head_dim", mla.vHeadDim},
                      {"cache_row", mla.cacheRow()}};
}

} // namespace

bool sameKernel(const AttentionSpec &a, const AttentionSpec &b) {
  auto key = [](const AttentionSpec &s) {
    return std::tie(s.qHeads, s.kvHeads, s.headDim, s.vHeadDim, s.blockSize,
                    s.layout, s.qType, s.kvType, s.causal, s.window, s.chunk,
                    s.softcap, s.sinks, s.alibiSlopes, s.scale, s.rotaryDim,
                    s.ropeInterleaved);
  };
  return key(a) == key(b);
}

std::vector<AttentionSpec> ModelConfig::specs() const {
  std::vector<AttentionSpec> out;
  for (const LayerKind &kind : kinds)
    if (kind.hasKvCache && none_of(out, [&](const AttentionSpec &spec) {
          return sameKernel(spec, kind.spec);
        }))
      out.push_back(kind.spec);
  return out;
}

std::vector<const LayerKind *>
ModelConfig::kindsServedBy(StringRef specName) const {
  auto named = find_if(
      kinds, [&](const LayerKind &kind) { return kind.name == specName; });
  std::vector<const LayerKind *> served;
  for (const LayerKind &kind : kinds)
    if (named != kinds.end() && kind.hasKvCache &&
        sameKernel(kind.spec, named->spec))
      served.push_back(&kind);
  return served;
}

AttentionSpec ModelConfig::latentSpec(const LayerKind &kind) const {
  assert(mla && kind.hasKvCache && "only layers of latent attention");
  AttentionSpec spec = kind.spec;
  spec.name += "_latent";
  spec.kvHeads = 1;
  spec.headDim = mla->cacheRow();
  spec.vHeadDim = mla->kvLoraRank;
  return spec;
}

const LayerKind &ModelConfig::kindOf(int64_t index) const {
  for (const LayerKind &kind : kinds)
    if (binary_search(kind.layers, index))
      return kind;
  llvm_unreachable("a layer that the model does not have");
}

int64_t ModelConfig::kvElementsPerToken(bool latent) const {
  int64_t elements = 0;
  for (const LayerKind &kind : kinds) {
    if (!kind.hasKvCache)
      continue;
    const AttentionSpec &spec = kind.spec;
    int64_t perLayer = latent && mla
                           ? mla->cacheRow()
                           : spec.kvHeads * (spec.headDim + spec.vHeadDim);
    for (int64_t layer : kind.layers)
      if (kvSource[layer] == layer)
        elements += perLayer;
  }
  return elements;
}

json::Value ModelConfig::toJson() const {
  json::Object counts;
  const LayerKind *first = nullptr;
  json::Value window = nullptr, chunk = nullptr, softcap = nullptr;
  bool sinks = false;
  json::Array kindList, specList, defaultList;
  for (const LayerKind &kind : kinds) {
    counts[kind.name] = static_cast<int64_t>(kind.layers.size());
    kindList.push_back(kindJson(kind));
    if (!kind.hasKvCache)
      continue;
    if (!first)
      first = &kind;
    if (kind.spec.window)
      window = *kind.spec.window;
    if (kind.spec.chunk)
      chunk = *kind.spec.chunk;
    if (kind.spec.softcap)
      softcap = *kind.spec.softcap;
    sinks |= kind.spec.sinks;
  }
  for (const AttentionSpec &spec : specs())
    specList.push_back(specJson(spec));
  for (const DefaultTaken &taken : defaults)
    defaultList.push_back(json::Object{{"field", taken.field},
                                       {"value", taken.value},
                                       {"reason", taken.reason}});

  json::Object object{{"file", fileName},
                      {"model_type", modelType},
                      {"family", family},
                      {"section", section},
                      {"layers", layers},
                      {"layer_kinds", std::move(counts)},
                      {"kinds", std::move(kindList)},
                      {"dtype", nameOf(dtype)},
                      {"max_length", maxLength},
                      {"tensor_parallel", tensorParallel},
                      {"tensor_parallel_rank", tensorParallelRank},
                      {"kv_replicas", kvReplicas},
                      {"kv_source", json::Array(kvSource)},
                      {"no_rope_layers", json::Array(noRopeLayers)},
                      {"specs", std::move(specList)},
                      {"defaults", std::move(defaultList)},
                      {"notes", json::Array(notes)}};
  if (!first)
    return object;
  object["q_heads"] = first->qHeads;
  object["kv_heads"] = first->kvHeads;
  object["head_dim_k"] = first->spec.headDim;
  object["head_dim_v"] = first->spec.vHeadDim;
  object["gqa_ratio"] = first->qHeads / first->kvHeads;
  object["softmax_scale"] = scale;
  object["scale_rule"] = scaleRule;
  object["scale_by_layer"] = scaleByLayer;
  object["window"] = std::move(window);
  object["chunk"] = std::move(chunk);
  object["softcap"] = std::move(softcap);
  object["alibi"] = !alibiSlopes.empty();
  if (!alibiSlopes.empty())
    object["alibi_slopes"] = json::Array(alibiSlopes);
  object["attention_sink"] =
      sinks ? json::Value("one learned logit per q head in every layer "
                          "(weights, not config)")
            : json::Value(nullptr);
  if (mla) {
    object["mla"] = mlaJson(*mla);
    object["mla_cache_row"] = mla->cacheRow();
  }
  return object;
}

} // namespace pagoda
