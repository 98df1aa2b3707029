//===- LayerRules.cpp - Which kind each layer is --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules that name the kind of every layer, and those that depend on its
// place: rotation left out, K and V shared with another layer.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"
#include "compiler/import/JsonText.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace pagoda {
namespace {

using LayerTypes = std::vector<std::string>;

const char *const full = "full_attention";
const char *const sliding = "sliding_attention";
const char *const linear = "linear_attention";

/// One name per layer, by its index.
template <typename NameOf> LayerTypes namedBy(ImportContext &c, NameOf nameOf) {
  LayerTypes types;
  for (int64_t i = 0; i < c.model.layers; ++i)
    types.push_back(nameOf(i));
  return types;
}

/// A list with one entry per layer under `key`, if the file has one.
std::optional<LayerTypes> listedUnder(ImportContext &c, StringRef key) {
  std::optional<LayerTypes> types = c.config.maybeStrings(key);
  if (types && static_cast<int64_t>(types->size()) != c.model.layers)
    c.config.fail(key, "has " + Twine(types->size()) + " elements, expected " +
                           Twine(c.model.layers) + " as in num_hidden_layers");
  return types;
}

std::optional<LayerTypes> listedTypes(ImportContext &c) {
  return listedUnder(c, "layer_types");
}

bool hasWindow(ImportContext &c) {
  return c.config.maybeInteger("sliding_window", positionRange).has_value();
}

/// Of classes that have windows only when they are told.
bool usesWindow(ImportContext &c) {
  return c.config.boolean("use_sliding_window", false) && hasWindow(c);
}

int64_t maxWindowLayers(ImportContext &c) {
  return c.config.integer("max_window_layers", {0, layerRange.max});
}

LayerTypes allWindowed(ImportContext &c, bool window) {
  return namedBy(c, [&](int64_t) { return window ? sliding : full; });
}

LayerTypes windowFromMaxLayers(ImportContext &c, bool window) {
  int64_t first = window ? maxWindowLayers(c) : c.model.layers;
  return namedBy(c, [&](int64_t i) { return i >= first ? sliding : full; });
}

/// A period of layers, 1 or more.
int64_t period(ImportContext &c, StringRef key) {
  return c.config.integer(key, layerRange);
}

/// exaone4 writes its pattern in letters, L for a window and G for all keys.
LayerTypes lettered(ImportContext &c, StringRef pattern) {
  if (pattern.empty() || !all_of(pattern, [](char letter) {
        return letter == 'L' || letter == 'G';
      })) {
    c.config.failExpected("sliding_window_pattern",
                          "letters L (window) and G (all keys)");
    return {};
  }
  return namedBy(c, [&](int64_t i) {
    return pattern[i % pattern.size()] == 'L' ? sliding : full;
  });
}

} // namespace

std::optional<bool> layerTypeHasKvCache(StringRef type) {
  for (const KnownLayerType &known : knownLayerTypes())
    if (known.name == type)
      return known.hasKvCache;
  return std::nullopt;
}

ArrayRef<KnownLayerType> knownLayerTypes() {
  static const KnownLayerType known[] = {
      {"full_attention", true},
      {"sliding_attention", true},
      {"chunked_attention", true},
      {"attention", true},
      {"hybrid", true},
      {"linear_attention", false},
      {"mamba", false},
      {"conv", false},
      {"recurrent", false},
      {"mlp", false},
      {"moe", false},
      {"no_attention", false},
      {"cross_attention", false},
  };
  return known;
}

LayerTypes fullLayers(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  if (c.config.has("sliding_window"))
    c.config.importLog().note("sliding_window is ignored: layers of " +
                              c.model.modelType + " see all keys");
  return namedBy(c, [](int64_t) { return full; });
}

LayerTypes windowedLayers(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  return allWindowed(c, hasWindow(c));
}

LayerTypes windowedIfUsed(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  return allWindowed(c, usesWindow(c));
}

LayerTypes windowFromMaxWindowLayers(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  return windowFromMaxLayers(c, hasWindow(c));
}

LayerTypes windowFromMaxWindowLayersIfUsed(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  return windowFromMaxLayers(c, usesWindow(c));
}

LayerTypes evenLayersWindowedIfUsed(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  int64_t end = usesWindow(c) ? maxWindowLayers(c) : 0;
  return namedBy(
      c, [&](int64_t i) { return i % 2 == 0 && i < end ? sliding : full; });
}

LayerTypes windowedWhereUnrotated(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  bool window = usesWindow(c);
  std::vector<int64_t> unrotated = unrotatedLayers(c);
  return namedBy(c, [&](int64_t i) {
    return window && is_contained(unrotated, i) ? sliding : full;
  });
}

LayerTypes everyNthLayerFull(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  if (!c.config.maybeInteger("sliding_window", positionRange)) {
    c.config.importLog().note(
        "sliding_window is null: all layers see all keys");
    return namedBy(c, [](int64_t) { return full; });
  }
  const json::Value *pattern = c.config.find("sliding_window_pattern");
  if (pattern && pattern->kind() == json::Value::String)
    return lettered(c, *pattern->getAsString());
  int64_t n = period(c, "sliding_window_pattern");
  return namedBy(c, [&](int64_t i) { return (i + 1) % n ? sliding : full; });
}

LayerTypes firstOfEveryNLayersFull(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  int64_t n = period(c, "sliding_window_pattern");
  return namedBy(c, [&](int64_t i) { return i % n ? sliding : full; });
}

LayerTypes chunkedWhereRotated(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  bool chunked =
      c.config.maybeInteger("attention_chunk_size", positionRange).has_value();
  std::vector<int64_t> unrotated = unrotatedLayers(c);
  return namedBy(c, [&](int64_t i) {
    return chunked && !is_contained(unrotated, i) ? "chunked_attention" : full;
  });
}

LayerTypes linearUnlessNth(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  int64_t n = period(c, "full_attention_interval");
  return namedBy(c, [&](int64_t i) { return (i + 1) % n ? linear : full; });
}

LayerTypes attentionTypeList(ImportContext &c) {
  // A window counts in all layers that attend, however they are listed.
  const char *attends = hasWindow(c) ? sliding : full;
  if (std::optional<LayerTypes> types = listedTypes(c)) {
    llvm::replace(*types, full, attends);
    return *types;
  }
  if (auto list = c.config.maybeIntegers("attn_type_list", {0, 1})) {
    if (static_cast<int64_t>(list->size()) != c.model.layers)
      c.config.fail("attn_type_list", "has " + Twine(list->size()) +
                                          " elements, expected " +
                                          Twine(c.model.layers));
    list->resize(c.model.layers);
    return namedBy(c, [&](int64_t i) { return (*list)[i] ? attends : linear; });
  }
  c.config.tookDefault("layer_types", "alternating",
                       "absent; attention first in " + c.model.modelType);
  return namedBy(c, [&](int64_t i) { return i % 2 ? linear : attends; });
}

LayerTypes mambaUnlessPeriod(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedUnder(c, "layers_block_type"))
    return *types;
  int64_t n = period(c, "attn_layer_period");
  int64_t offset = c.config.integer("attn_layer_offset", {0, n - 1});
  return namedBy(
      c, [&](int64_t i) { return i % n == offset ? "attention" : "mamba"; });
}

LayerTypes mambaUnlessListed(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  std::vector<int64_t> attention =
      c.config.maybeIntegers("attn_layer_indices", {0, c.model.layers - 1})
          .value_or(std::vector<int64_t>());
  return namedBy(c, [&](int64_t i) {
    return is_contained(attention, i) ? "attention" : "mamba";
  });
}

LayerTypes mambaUnlessNamed(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  if (std::optional<LayerTypes> types = listedUnder(c, "layers_block_type"))
    return *types;
  if (auto hybrid =
          c.config.maybeIntegers("hybrid_layer_ids", {0, c.model.layers - 1}))
    return namedBy(c, [&](int64_t i) {
      return is_contained(*hybrid, i) ? "hybrid" : "mamba";
    });
  c.config.failExpected("layer_types", "the kind of each layer");
  return {};
}

LayerTypes convUnlessListed(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  auto attention =
      c.config.maybeIntegers("full_attn_idxs", {0, c.model.layers - 1});
  return namedBy(c, [&](int64_t i) {
    return !attention || is_contained(*attention, i) ? full : "conv";
  });
}

LayerTypes hybridPattern(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedUnder(c, "layers_block_type"))
    return *types;
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  std::optional<std::string> pattern =
      c.config.maybeString("hybrid_override_pattern");
  const char *letters = "M (mamba), * (attention), - (mlp) and E (moe)";
  if (!pattern) {
    c.config.failExpected("hybrid_override_pattern",
                          Twine("one letter per layer, of ") + letters);
    return {};
  }
  if (static_cast<int64_t>(pattern->size()) != c.model.layers)
    c.config.fail("hybrid_override_pattern",
                  "has " + Twine(pattern->size()) + " letters, expected " +
                      Twine(c.model.layers) + " as in num_hidden_layers");
  LayerTypes types;
  for (char letter : *pattern) {
    const char *type = letter == 'M'   ? "mamba"
                       : letter == '*' ? "attention"
                       : letter == '-' ? "mlp"
                       : letter == 'E' ? "moe"
                                       : nullptr;
    if (!type) {
      c.config.failExpected("hybrid_override_pattern", letters);
      return {};
    }
    types.push_back(type);
  }
  return types;
}

LayerTypes recurrentBlocks(ImportContext &c) {
  std::optional<LayerTypes> blocks = c.config.maybeStrings("block_types");
  if (!blocks) {
    c.config.failExpected("block_types", "a pattern of layer kinds");
    return {};
  }
  return namedBy(c, [&](int64_t i) {
    const std::string &block = (*blocks)[i % blocks->size()];
    return block == "attention" ? std::string(sliding) : block;
  });
}

LayerTypes gptNeoLayers(ImportContext &c) {
  // [[["global", "local"], 12]]: each list of names is repeated that often.
  const json::Value *value = c.config.find("attention_types");
  LayerTypes types;
  const char *expected = "pairs of a list of \"global\" and \"local\" and a "
                         "count, one name per layer in all";
  const json::Array *groups = value ? value->getAsArray() : nullptr;
  bool legal = groups;
  for (size_t g = 0; legal && g < groups->size(); ++g) {
    const json::Array *pair = (*groups)[g].getAsArray();
    const json::Array *names =
        pair && pair->size() == 2 ? (*pair)[0].getAsArray() : nullptr;
    std::optional<int64_t> count =
        names ? (*pair)[1].getAsInteger() : std::nullopt;
    legal = count && *count >= 1 && *count <= c.model.layers;
    for (int64_t repeat = 0; legal && repeat < *count; ++repeat)
      for (const json::Value &name : *names) {
        std::optional<StringRef> text = name.getAsString();
        legal &= text && (*text == "global" || *text == "local") &&
                 static_cast<int64_t>(types.size()) < c.model.layers;
        if (legal)
          types.push_back(*text == "local" ? sliding : full);
      }
  }
  if (!legal || static_cast<int64_t>(types.size()) != c.model.layers)
    c.config.failExpected("attention_types", expected);
  return types;
}

LayerTypes crossAttentionLayers(ImportContext &c) {
  auto cross =
      c.config.maybeIntegers("cross_attention_layers", {0, c.model.layers - 1});
  return namedBy(c, [&](int64_t i) {
    return cross && is_contained(*cross, i) ? "cross_attention" : full;
  });
}

LayerTypes kimiLinearLayers(ImportContext &c) {
  if (std::optional<LayerTypes> types = listedTypes(c))
    return *types;
  ConfigReader kda = c.config.subObject("linear_attn_config");
  // Counted from 1 in these files.
  auto listed = kda.maybeIntegers("full_attn_layers", {1, c.model.layers});
  if (!listed)
    kda.failExpected("full_attn_layers", "the attention layers, from 1");
  return namedBy(c, [&](int64_t i) {
    return listed && is_contained(*listed, i + 1) ? full : linear;
  });
}

/// A key of a block of nemotron-nas that makes its attention another one: a
/// window with sinks, chunks, or a mixer in its place. Released models have
/// null there.
static StringRef otherAttention(const json::Object &attention) {
  for (StringRef key : {"window_length", "num_sink_tokens", "llama4", "mamba"})
    if (const json::Value *value = attention.get(key))
      if (value->kind() != json::Value::Null)
        return key;
  return "";
}

LayerTypes blockConfigLayers(ImportContext &c) {
  const json::Value *value = c.config.find("block_configs");
  const json::Array *blocks = value ? value->getAsArray() : nullptr;
  if (!blocks || static_cast<int64_t>(blocks->size()) != c.model.layers) {
    c.config.failExpected("block_configs", "an array of " +
                                               Twine(c.model.layers) +
                                               " objects, one per layer");
    return {};
  }
  return namedBy(c, [&](int64_t i) {
    const json::Object *block = (*blocks)[i].getAsObject();
    const json::Object *attention =
        block ? block->getObject("attention") : nullptr;
    if (!attention)
      c.config.fail("block_configs",
                    "element " + Twine(i) + " has no object \"attention\"");
    else if (StringRef key = otherAttention(*attention); !key.empty())
      c.config.fail("block_configs",
                    "element " + Twine(i) + " has attention." + key + " " +
                        describeJson(*attention->get(key)) + ", expected null");
    else if (attention->getBoolean("no_op").value_or(false))
      return "no_attention";
    else if (attention->getBoolean("replace_with_linear").value_or(false))
      return "mlp";
    return full;
  });
}

LayerTypes mambaOnly(ImportContext &c) {
  return namedBy(c, [](int64_t) { return "mamba"; });
}

LayerTypes hybridOnly(ImportContext &c) {
  return namedBy(c, [](int64_t) { return "hybrid"; });
}

std::vector<int64_t> unrotatedLayers(ImportContext &c) {
  std::vector<int64_t> unrotated;
  if (auto rotates = c.config.maybeIntegers("no_rope_layers", {0, 1})) {
    // In spite of its name, 1 stands for a layer that rotates.
    if (static_cast<int64_t>(rotates->size()) != c.model.layers)
      c.config.fail("no_rope_layers",
                    "has " + Twine(rotates->size()) + " elements, expected " +
                        Twine(c.model.layers) + " as in num_hidden_layers");
    rotates->resize(c.model.layers, 1);
    for (int64_t i = 0; i < c.model.layers; ++i)
      if (!(*rotates)[i])
        unrotated.push_back(i);
  } else if (auto interval =
                 c.config.maybeInteger("no_rope_layer_interval", layerRange)) {
    for (int64_t i = *interval - 1; i < c.model.layers; i += *interval)
      unrotated.push_back(i);
  }
  return unrotated;
}

std::vector<int64_t> sharedKvSources(ImportContext &c,
                                     ArrayRef<std::string> types) {
  std::vector<int64_t> source;
  for (int64_t i = 0; i < c.model.layers; ++i)
    source.push_back(layerTypeHasKvCache(types[i]).value_or(false) ? i : -1);
  // gemma3n and gemma4: the last layers read the cache of the last layer of
  // their kind before them. All of them sharing, as in draft models, means that
  // none does.
  if (auto shared =
          c.config.maybeInteger("num_kv_shared_layers", {0, c.model.layers});
      shared && *shared < c.model.layers) {
    int64_t first = c.model.layers - *shared;
    for (int64_t i = first; i < c.model.layers; ++i) {
      int64_t from = first - 1;
      while (from >= 0 && types[from] != types[i])
        --from;
      if (from < 0)
        c.config.fail("num_kv_shared_layers",
                      "is " + Twine(*shared) +
                          ", but no earlier layer is of "
                          "kind " +
                          types[i] + " as layer " + Twine(i) + " is");
      source[i] = from;
    }
  }
  // Cross-layer attention of hunyuan: groups of layers share their first cache.
  if (c.config.boolean("use_cla", false)) {
    int64_t group = period(c, "cla_share_factor");
    for (int64_t i = 0; i < c.model.layers; ++i)
      source[i] = i - i % group;
  }
  return source;
}

} // namespace pagoda
