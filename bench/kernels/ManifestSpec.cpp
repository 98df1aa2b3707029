//===- ManifestSpec.cpp - What a generated library was made for -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inverse of compiler/emit/Manifest.cpp, as far as a specification goes.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/ManifestSpec.h"
#include "tools/pagoda/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace pagoda {

// JSON's mappers find these by the type's namespace.

static bool fromJSON(const json::Value &value, DType &type, json::Path path) {
  for (DType known : {DType::F32, DType::F16, DType::BF16})
    if (value.getAsString() == StringRef(nameOf(known))) {
      type = known;
      return true;
    }
  path.report("expected f32, f16 or bf16");
  return false;
}

static bool fromJSON(const json::Value &value, KvLayout &layout,
                     json::Path path) {
  std::optional<StringRef> text = value.getAsString();
  if (text != "nhd" && text != "hnd") {
    path.report("expected nhd or hnd");
    return false;
  }
  layout = text == "nhd" ? KvLayout::NHD : KvLayout::HND;
  return true;
}

/// The run-time values; sets those of a specification.
struct Arguments {
  AttentionSpec &spec;
};

static bool fromJSON(const json::Value &value, Arguments &arguments,
                     json::Path path) {
  AttentionSpec &spec = arguments.spec;
  std::vector<double> slopes;
  json::ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("scale", spec.scale) ||
      !mapper.map("window", spec.window) || !mapper.map("chunk", spec.chunk) ||
      !mapper.map("softcap", spec.softcap) ||
      !mapper.mapOptional("alibi_slopes", slopes))
    return false;
  spec.alibiSlopes.assign(slopes.begin(), slopes.end());
  return true;
}

static bool fromJSON(const json::Value &value, AttentionSpec &spec,
                     json::Path path) {
  Arguments arguments{spec};
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("name", spec.name) &&
         mapper.map("q_heads", spec.qHeads) &&
         mapper.map("kv_heads", spec.kvHeads) &&
         mapper.map("head_dim", spec.headDim) &&
         mapper.map("v_head_dim", spec.vHeadDim) &&
         mapper.map("block_size", spec.blockSize) &&
         mapper.map("layout", spec.layout) && mapper.map("dtype", spec.qType) &&
         mapper.map("kv_dtype", spec.kvType) &&
         mapper.map("causal", spec.causal) &&
         mapper.map("rotary_dim", spec.rotaryDim) &&
         mapper.map("rope_interleaved", spec.ropeInterleaved) &&
         mapper.map("sinks", spec.sinks) &&
         mapper.map("prefix_lm", spec.prefixLm) &&
         mapper.map("arguments", arguments);
}

std::string manifestPath(StringRef library) {
  StringRef name = sys::path::stem(library);
  name.consume_front("lib");
  SmallString<128> path = sys::path::parent_path(library);
  sys::path::append(path, name + ".json");
  return path.str().str();
}

Expected<std::vector<AttentionSpec>> readManifestSpecs(StringRef path) {
  Expected<json::Value> value = readJson(path);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  const json::Value *list = object ? object->get("specs") : nullptr;
  if (!list)
    return createStringError(path + ": expected an object with specs, as gen "
                                    "writes beside a library");
  std::vector<AttentionSpec> specs;
  json::Path::Root root("specs");
  if (!fromJSON(*list, specs, root))
    return createStringError(path + ": " + toString(root.getError()));
  if (specs.empty())
    return createStringError(path + ": specs: expected one or more, got none");
  return specs;
}

} // namespace pagoda
