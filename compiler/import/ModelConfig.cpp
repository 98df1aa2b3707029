//===- ModelConfig.cpp - A model's attention, from its config.json --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of an import: text, the object that describes the language model,
// its family, then one question after the other to the family's rules, and the
// division among ranks at the end.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelConfig.h"

#include "compiler/import/Families.h"
#include "compiler/import/JsonText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <cassert>
#include <cmath>

using namespace llvm;

namespace pagoda {
namespace {

/// The object that describes the language model, and its type.
struct LanguageModel {
  const json::Object *object = nullptr;
  std::string section; ///< its key path; empty: the whole file
  std::string modelType;
};

const StringRef sectionKeys[] = {"text_config", "llm_config", "language_config",
                                 "thinker_config"};

std::string typeOf(ConfigReader &reader) {
  const json::Value *type = reader.find("model_type");
  if (type && type->kind() == json::Value::String)
    return type->getAsString()->str();
  reader.failExpected("model_type", "a string");
  return "";
}

void refuseOtherModels(ConfigReader &reader, const std::string &type) {
  StringRef reason = refusalOf(type);
  if (!reason.empty())
    reader.fail("model_type", quoteJson(type) + " is " + reason);
  if (reader.boolean("is_encoder_decoder", false))
    reader.failExpected("is_encoder_decoder",
                        "false, a decoder with causal self-attention");
  // transformers drops the causal mask for any class; embedders are such.
  if (!reader.boolean("is_causal", true))
    reader.failExpected("is_causal",
                        "true, a decoder with causal self-attention");
  // Newer files say which tokens it holds for; "vision" leaves text causal.
  if (const json::Value *value = reader.find("use_bidirectional_attention"))
    if (*value == json::Value(true) || *value == json::Value("all"))
      reader.failExpected("use_bidirectional_attention",
                          "false, a decoder with causal self-attention");
}

/// Published objects have a few dozen keys. Each look-up of an absent key
/// compares all of them.
void boundKeys(const json::Object &object, StringRef section, ImportLog &log) {
  if (object.size() > 4096)
    log.fail(section,
             "has " + Twine(object.size()) + " keys, expected at most 4096");
}

LanguageModel findLanguageModel(const json::Object &root, ImportLog &log) {
  LanguageModel found{&root, "", ""};
  boundKeys(root, "", log);
  ConfigReader reader(root, "", nullptr, "", log);
  found.modelType = typeOf(reader);
  refuseOtherModels(reader, found.modelType);
  while (log.fault.empty()) {
    const json::Object *inner = nullptr;
    StringRef key;
    for (StringRef candidate : sectionKeys)
      if (!inner && (inner = found.object->getObject(candidate)))
        key = candidate;
    if (!inner) {
      if (StringRef type = wrappedModelType(found.modelType);
          !type.empty() && !findFamily(found.modelType))
        ConfigReader(*found.object, found.section, nullptr, "", log)
            .failExpected("text_config", "the language model of " +
                                             quoteJson(found.modelType));
      return found;
    }
    if (found.modelType == "paligemma")
      log.note("image and prompt attend in both directions: they need a "
               "prefix-LM mask");
    StringRef fallback = wrappedModelType(found.modelType);
    found.object = inner;
    found.section =
        found.section.empty() ? key.str() : found.section + "." + key.str();
    boundKeys(*inner, found.section, log);
    ConfigReader innerReader(*inner, found.section, nullptr, "", log);
    if (!inner->get("model_type") && key == "thinker_config")
      continue;
    if (!inner->get("model_type") && !fallback.empty()) {
      innerReader.tookDefault("model_type", fallback,
                              "absent; default of " + found.modelType);
      found.modelType = fallback.str();
    } else {
      found.modelType = typeOf(innerReader);
    }
    refuseOtherModels(innerReader, found.modelType);
  }
  return found;
}

const Family *requireFamily(const LanguageModel &language, ImportLog &log) {
  if (const Family *family = findFamily(language.modelType))
    return family;
  std::vector<StringRef> known = knownModelTypes();
  StringRef nearest = nearestSpelling(language.modelType, known);
  ConfigReader reader(*language.object, language.section, nullptr, "", log);
  reader.fail("model_type",
              "unknown " + quoteJson(language.modelType) + ", " +
                  (nearest.empty() ? "expected one of the " +
                                         Twine(known.size()) + " known types"
                                   : "did you mean \"" + nearest + "\""));
  return nullptr;
}

DType readDType(ConfigReader &section, ConfigReader &root) {
  const char *key = "torch_dtype";
  ConfigReader &source = section.has(key) ? section : root;
  std::optional<std::string> name = source.maybeString(key);
  StringRef text = name ? StringRef(*name) : "auto";
  text.consume_front("torch.");
  if (text == "float32" || text == "float")
    return DType::F32;
  if (text == "float16" || text == "half")
    return DType::F16;
  if (text == "bfloat16")
    return DType::BF16;
  if (text != "auto")
    source.failExpected(key, "float32, float16 or bfloat16");
  else
    section.tookDefault(key, "float32",
                        name ? "\"auto\"; the weights decide"
                             : "absent; the weights decide");
  return DType::F32;
}

int64_t readMaxLength(ImportContext &c) {
  // Where both are there, model_max_length is what the model was stretched to.
  if (c.config.has("model_max_length"))
    return c.config.integer("model_max_length", positionRange);
  return positionLimit(c);
}

int64_t readWindow(ImportContext &c) {
  for (StringRef key :
       {"sliding_window", "attention_window_size", "window_size"})
    if (auto window = c.config.maybeInteger(key, positionRange))
      return *window;
  c.config.failExpected("sliding_window",
                        "an integer, since some layers have a window");
  return 1;
}

AttentionSpec buildSpec(ImportContext &c, StringRef type,
                        const LayerShape &shape) {
  AttentionSpec spec;
  spec.qHeads = shape.qHeads;
  spec.kvHeads = shape.kvHeads;
  spec.headDim = shape.headDim;
  spec.vHeadDim = shape.vHeadDim;
  spec.qType = spec.kvType = c.model.dtype;
  if (type == "sliding_attention")
    spec.window = readWindow(c);
  if (type == "chunked_attention")
    spec.chunk = c.config.integer("attention_chunk_size", positionRange);
  ConfigReader capped = c.family.heads == attnConfigHeads
                            ? c.config.subObject("attn_config")
                            : c.config;
  spec.softcap = capped.maybeNumber("attn_logit_softcapping", 0);
  spec.sinks = c.family.sinks;
  return spec;
}

void checkShape(ImportContext &c, const LayerShape &shape) {
  if (!c.config.failed() && shape.qHeads % shape.kvHeads)
    c.config.fail("num_key_value_heads",
                  "is " + Twine(shape.kvHeads) +
                      ", expected a divisor of num_attention_heads " +
                      Twine(shape.qHeads));
}

/// Legal numbers can still make a scale that is none.
void checkNumbers(ImportContext &c, const LayerKind &kind) {
  auto isPositiveFloat = [](double number) {
    float narrow = static_cast<float>(number);
    return std::isfinite(narrow) && narrow > 0;
  };
  for (auto [name, number] :
       {std::pair("the softmax scale " + c.model.scaleRule, kind.spec.scale),
        std::pair(std::string("the base of the rotation"), kind.rope.theta),
        std::pair(std::string("the attention factor of the rotation"),
                  kind.rope.attentionFactor)})
    if (!isPositiveFloat(number))
      c.config.importLog().fail(c.model.section,
                                name + " is " + quoteJson(number) +
                                    ", expected a positive number in the "
                                    "range of f32");
}

/// Groups the layers by kind, and by shape where layers of one kind differ.
void buildKinds(ImportContext &c, ArrayRef<std::string> types) {
  std::vector<LayerShape> shapes; // beside model.kinds
  for (int64_t layer = 0; layer < c.model.layers; ++layer) {
    const std::string &type = types[layer];
    std::optional<bool> hasKvCache = layerTypeHasKvCache(type);
    if (!hasKvCache) {
      std::vector<StringRef> known;
      for (const KnownLayerType &each : knownLayerTypes())
        known.push_back(each.name);
      StringRef nearest = nearestSpelling(type, known);
      std::string expected =
          nearest.empty() ? "one of " + join(known, ", ") : nearest.str();
      c.config.fail("layer_types", "layer " + Twine(layer) + " is " +
                                       quoteJson(type) + ", expected " +
                                       expected);
      return;
    }
    LayerShape shape;
    if (*hasKvCache) {
      shape = c.family.heads(c, type, layer);
      checkShape(c, shape);
      if (c.config.failed())
        return;
    }
    size_t k = 0;
    while (k < shapes.size() &&
           !(c.model.kinds[k].name == type && shapes[k] == shape))
      ++k;
    if (k == shapes.size()) {
      LayerKind kind;
      kind.name = type;
      kind.hasKvCache = *hasKvCache;
      c.model.kinds.push_back(std::move(kind));
      shapes.push_back(shape);
    }
    c.model.kinds[k].layers.push_back(layer);
  }
  std::vector<std::string> names;
  for (const LayerKind &kind : c.model.kinds)
    names.push_back(kind.name);
  for (auto [kind, shape] : zip(c.model.kinds, shapes)) {
    if (!kind.hasKvCache)
      continue;
    if (count(names, kind.name) > 1)
      kind.name += "/" + std::to_string(shape.qHeads) + "x" +
                   std::to_string(shape.kvHeads) + "x" +
                   std::to_string(shape.headDim);
    kind.qHeads = shape.qHeads;
    kind.kvHeads = shape.kvHeads;
    if (c.model.alibiSlopes.empty())
      c.model.alibiSlopes = modelAlibiSlopes(c, shape);
    StringRef type = types[kind.layers.front()];
    kind.spec = buildSpec(c, type, shape);
    kind.spec.name = kind.name;
    kind.spec.scale = c.family.scale(c, shape);
    kind.spec.alibiSlopes = c.model.alibiSlopes;
    kind.rope = c.family.rope(c, type, shape);
    checkNumbers(c, kind);
    if (c.model.scale == 0)
      c.model.scale = kind.spec.scale;
  }
}

/// Kinds none of whose layers rotate have no rotation; other layers that do not
/// rotate are listed.
void applyUnrotatedLayers(ImportContext &c) {
  std::vector<int64_t> unrotated = unrotatedLayers(c);
  if (unrotated.empty())
    return;
  for (LayerKind &kind : c.model.kinds) {
    if (kind.rope.kind == RopeKind::None)
      continue;
    std::vector<int64_t> still;
    for (int64_t layer : kind.layers)
      if (binary_search(unrotated, layer))
        still.push_back(layer);
    if (still.size() == kind.layers.size())
      kind.rope = RopeConfig();
    else
      append_range(c.model.noRopeLayers, still);
  }
  sort(c.model.noRopeLayers);
}

/// What append kernels must do. Dims that rotate at the end of a head are those
/// of latent attention: one row for all heads, which a model rotates before it
/// is spread over them.
void describeRotations(ImportContext &c) {
  for (LayerKind &kind : c.model.kinds) {
    kind.spec.rotaryDim = kind.rope.rotaryOffset ? 0 : kind.rope.rotaryDim;
    kind.spec.ropeInterleaved = kind.spec.rotaryDim && kind.rope.interleaved;
  }
}

/// Every rank gets an equal share of the query heads, and of the KV heads where
/// there are enough; else each KV head is held by several ranks.
void divideAmongRanks(ImportContext &c, const ImportOptions &options) {
  int64_t ranks = options.tensorParallel;
  c.model.tensorParallel = ranks;
  c.model.tensorParallelRank = options.tensorParallelRank;
  for (LayerKind &kind : c.model.kinds) {
    if (!kind.hasKvCache || ranks == 1)
      continue;
    AttentionSpec &spec = kind.spec;
    if (spec.qHeads % ranks)
      c.config.fail("num_attention_heads", "is " + Twine(spec.qHeads) +
                                               ", expected a multiple of " +
                                               Twine(ranks) + " ranks");
    else if (spec.kvHeads % ranks && ranks % spec.kvHeads)
      c.config.fail("num_key_value_heads",
                    "is " + Twine(spec.kvHeads) +
                        ", expected a multiple or a divisor of " +
                        Twine(ranks) + " ranks");
    if (c.config.failed())
      return;
    c.model.kvReplicas = std::max(c.model.kvReplicas, ranks / spec.kvHeads);
    spec.qHeads /= ranks;
    spec.kvHeads = std::max<int64_t>(1, spec.kvHeads / ranks);
    if (!spec.alibiSlopes.empty()) {
      auto first =
          spec.alibiSlopes.begin() + options.tensorParallelRank * spec.qHeads;
      spec.alibiSlopes = std::vector<float>(first, first + spec.qHeads);
    }
  }
}

/// Of long sequences, some files let a query see a part of the keys. That is a
/// choice of the engine: others attend to all of them.
void noteSparseAttention(ImportContext &c) {
  ImportLog &log = c.config.importLog();
  StringRef key = "dual_chunk_attention_config";
  if (auto chunks = c.config.maybeObject(key)) {
    int64_t chunk = chunks->integer("chunk_size", positionRange);
    int64_t local = chunks->integer("local_size", {0, chunk});
    log.note(key + " is left out: sequences of more than " +
             Twine(chunk - local) + " keys see all of them");
  }
  key = "sparse_config";
  if (auto sparse = c.config.maybeObject(key); sparse && !sparse->raw().empty())
    log.note(
        key + " is left out: sequences of more than " +
        Twine(sparse->maybeInteger("dense_len", positionRange).value_or(8192)) +
        " keys see all of them");
}

void addNotes(ImportContext &c) {
  ImportLog &log = c.config.importLog();
  noteSparseAttention(c);
  if (!c.family.note.empty())
    log.note(c.family.note);
  for (const LayerKind &kind : c.model.kinds)
    if (kind.hasKvCache && kind.spec.window && c.model.maxLength &&
        *kind.spec.window >= c.model.maxLength)
      log.note("the window of " + Twine(*kind.spec.window) +
               " covers the longest sequence: it never masks a key");
  if (c.model.mla)
    log.note("latent attention: one cached row of " +
             Twine(c.model.mla->cacheRow()) +
             " elements a token, or expanded heads");
}

void importLanguageModel(ImportContext &c, ConfigReader &root,
                         const ImportOptions &options) {
  ModelConfig &model = c.model;
  // nemotron_h may leave the count to the list of layers.
  const json::Array *list = c.config.raw().getArray("layers_block_type");
  model.layers = list && !list->empty() && !c.config.find("num_hidden_layers")
                     ? std::min<int64_t>(list->size(), layerRange.max)
                     : c.config.coreInteger("num_hidden_layers", layerRange);
  if (c.config.failed())
    return;
  std::vector<std::string> types = c.family.layerTypes(c);
  if (c.config.failed())
    return;
  assert(static_cast<int64_t>(types.size()) == model.layers);
  model.dtype = readDType(c.config, root);
  model.maxLength = readMaxLength(c);
  if (any_of(types, [](const std::string &type) {
        return layerTypeHasKvCache(type).value_or(false);
      }))
    c.config.coreInteger("hidden_size", widthRange);
  buildKinds(c, types);
  if (c.config.failed())
    return;
  model.kvSource = sharedKvSources(c, types);
  applyUnrotatedLayers(c);
  describeRotations(c);
  divideAmongRanks(c, options);
  if (!c.config.failed())
    addNotes(c);
}

} // namespace

Expected<ModelConfig> parseModelConfig(StringRef text, StringRef fileName,
                                       const ImportOptions &options) {
  ImportLog log;
  log.fileName = fileName.str();
  if (options.tensorParallel < 1 || options.tensorParallel > headRange.max ||
      options.tensorParallelRank < 0 ||
      options.tensorParallelRank >= options.tensorParallel)
    return createStringError(
        "tensor parallelism: rank " + Twine(options.tensorParallelRank) +
        " of " + Twine(options.tensorParallel) +
        ", expected a rank below 1 to " + Twine(headRange.max) + " ranks");
  if (text.size() > static_cast<size_t>(maxConfigBytes))
    return createStringError(fileName + ": has " + Twine(text.size()) +
                             " bytes, expected at most " +
                             Twine(maxConfigBytes));
  Expected<json::Value> value = parseJsonText(text, fileName);
  if (!value)
    return value.takeError();
  ModelConfig model;
  model.fileName = fileName.str();
  if (const json::Object *root = value->getAsObject()) {
    LanguageModel language = findLanguageModel(*root, log);
    const Family *family =
        log.fault.empty() ? requireFamily(language, log) : nullptr;
    if (family) {
      model.modelType = language.modelType;
      model.family = family->name.str();
      model.section = language.section;
      json::Value defaults = cantFail(json::parse(family->defaults));
      ConfigReader rootReader(*root, "", nullptr, "", log);
      ConfigReader reader(*language.object, language.section,
                          defaults.getAsObject(), language.modelType, log);
      ImportContext context{reader, *family, model};
      importLanguageModel(context, rootReader, options);
    }
  } else {
    log.fail("", "is " + describeJson(*value) + ", expected an object");
  }
  if (!log.fault.empty())
    return createStringError(log.fault);
  model.defaults = std::move(log.defaults);
  model.notes = std::move(log.notes);
  return model;
}

Expected<ModelConfig> loadModelConfig(StringRef path,
                                      const ImportOptions &options) {
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status))
    return createStringError(path + ": " + error.message());
  if (sys::fs::is_directory(status))
    return createStringError(path + ": is a directory, expected a file");
  // Before reading: memory is not spent on what is no config.json.
  if (status.getSize() > static_cast<uint64_t>(maxConfigBytes))
    return createStringError(path + ": has " + Twine(status.getSize()) +
                             " bytes, expected at most " +
                             Twine(maxConfigBytes));
  // Pipes and devices have no size: as much as is legal, and a byte more.
  Expected<sys::fs::file_t> file = sys::fs::openNativeFileForRead(path);
  if (!file)
    return createStringError(path + ": " + toString(file.takeError()));
  auto close = llvm::scope_exit([&] { sys::fs::closeFile(*file); });
  std::string text;
  char chunk[1 << 14];
  while (true) {
    Expected<size_t> count = sys::fs::readNativeFile(*file, chunk);
    if (!count)
      return createStringError(path + ": " + toString(count.takeError()));
    if (*count == 0)
      return parseModelConfig(text, path, options);
    text.append(chunk, *count);
    if (text.size() > static_cast<size_t>(maxConfigBytes))
      return createStringError(path + ": has more than " +
                               Twine(maxConfigBytes) +
                               " bytes, expected a config.json");
  }
}

} // namespace pagoda
