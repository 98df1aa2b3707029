//===- Manifest.cpp - What a caller needs to know, as JSON ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"

using namespace llvm;
using namespace pagoda;

static StringRef nameOf(DType type) {
  static constexpr StringLiteral names[] = {"f32",    "f16",    "bf16",
                                            "f8e4m3", "f8e5m2", "i8"};
  return names[int(type)];
}

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

static json::Value toJson(const AttentionSpec &spec) {
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
      {"arguments", arguments(spec)},
  };
}

static json::Value toJson(const KernelSummary &kernel) {
  const pagoda_kernel_info &info = kernel.info;
  if (info.role == PAGODA_ROLE_APPEND || info.role == PAGODA_ROLE_COPY) {
    json::Object object{{"name", kernel.name},
                        {"spec", kernel.spec},
                        {"role", kernel.role},
                        {"cpu_features", int64_t(info.cpu_features)},
                        {"scratch_bytes", info.scratch_bytes}};
    if (info.role == PAGODA_ROLE_COPY)
      return object;
    object["rope"] = !info.rotary_dim        ? "none"
                     : info.rope_interleaved ? "interleaved"
                                             : "neox";
    object["rotary_dim"] = info.rotary_dim;
    return object;
  }
  return json::Object{
      {"name", kernel.name},
      {"spec", kernel.spec},
      {"role", kernel.role},
      {"schedule", kernel.schedule},
      {"reason", kernel.reason},
      {"features", int64_t(info.features)},
      {"cpu_features", int64_t(info.cpu_features)},
      {"max_rows", info.max_rows},
      {"heads_per_item", info.heads_per_item},
      {"kv_tile", info.kv_tile},
      {"scratch_bytes", info.scratch_bytes},
      {"threads", info.threads},
      {"shared_bytes", info.shared_bytes},
  };
}

json::Value pagoda::manifest(const Artifact &artifact,
                             ArrayRef<AttentionSpec> specs) {
  json::Array specList, kernelList;
  for (const AttentionSpec &spec : specs)
    specList.push_back(toJson(spec));
  for (const KernelSummary &kernel : artifact.kernels)
    kernelList.push_back(toJson(kernel));
  return json::Object{{"abi_version", int64_t(PAGODA_ABI_VERSION)},
                      {"target", artifact.target},
                      {"specs", std::move(specList)},
                      {"kernels", std::move(kernelList)}};
}
