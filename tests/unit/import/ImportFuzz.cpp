//===- ImportFuzz.cpp - Damaged config files never crash the importer -----===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fuzz target in libFuzzer's form, and a driver for any compiler: it mutates
// the config files of a folder from a seed, so that a failure comes back by its
// number.
//
//   pagoda-import-fuzz FOLDER SEED COUNT    COUNT inputs, from seed SEED
//   pagoda-import-fuzz FILE...              each file as one input
//
// Whatever goes in, out comes one line that names the file, or a model that
// holds together; everything else aborts.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"
#include "compiler/import/ModelConfig.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

using namespace llvm;
using namespace pagoda;

namespace {

void require(bool condition, const char *what) {
  if (condition)
    return;
  errs() << "violated: " << what << "\n";
  std::abort();
}

void checkKind(const ModelConfig &model, const LayerKind &kind) {
  if (!kind.hasKvCache)
    return;
  const AttentionSpec &spec = kind.spec;
  require(spec.kvHeads >= 1 && spec.qHeads >= 1 &&
              spec.qHeads % spec.kvHeads == 0,
          "heads of a rank fit together");
  require(spec.headDim >= 1 && spec.vHeadDim >= 1, "head dims are positive");
  require(std::isfinite(spec.scale) && spec.scale > 0, "the scale is positive");
  require(!spec.window || *spec.window >= 1, "a window holds a key");
  require(!spec.chunk || *spec.chunk >= 1, "a chunk holds a key");
  require(spec.alibiSlopes.empty() ||
              static_cast<int64_t>(spec.alibiSlopes.size()) == spec.qHeads,
          "one slope per query head");
  const RopeConfig &rope = kind.rope;
  require(rope.rotaryDim % 2 == 0 &&
              rope.rotaryOffset + rope.rotaryDim <= spec.headDim,
          "the rotated dims lie in the head");
  for (int64_t length : {int64_t(1), int64_t(1) << 20})
    require(static_cast<int64_t>(ropeFrequencies(rope, length).size()) ==
                rope.rotaryDim / 2,
            "one frequency per pair");
  if (model.mla)
    require(model.latentSpec(kind).vHeadDim <= model.latentSpec(kind).headDim,
            "the latent is part of its row");
}

void checkModel(const ModelConfig &model) {
  int64_t layers = 0;
  for (const LayerKind &kind : model.kinds) {
    layers += kind.layers.size();
    checkKind(model, kind);
  }
  require(layers == model.layers, "each layer is of one kind");
  require(static_cast<int64_t>(model.kvSource.size()) == model.layers,
          "each layer has a source of K and V");
  for (int64_t source : model.kvSource)
    require(source < 0 || model.kvSource[source] == source,
            "a source holds its own cache");
  require(model.kvElementsPerToken() >= 0, "sizes do not overflow");
  std::string text;
  raw_string_ostream(text) << model.toJson();
  Expected<json::Value> parsed = json::parse(text);
  require(bool(parsed), "the JSON form can be read");
}

void checkMessage(StringRef message) {
  require(message.starts_with("config.json: "), "the file is named");
  require(message.size() > StringRef("config.json: ").size(),
          "a fault is said");
  require(!message.contains('\n'), "a diagnostic is one line");
  require(message.size() < 2000, "a diagnostic is short");
  require(json::isUTF8(message), "a diagnostic is text");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  for (ImportOptions options : {ImportOptions{1, 0}, ImportOptions{4, 3}}) {
    Expected<ModelConfig> model =
        parseModelConfig(text, "config.json", options);
    if (model)
      checkModel(*model);
    else
      checkMessage(toString(model.takeError()));
  }
  return 0;
}

#ifndef PAGODA_LIBFUZZER
namespace {

using Random = std::mt19937_64;

size_t below(Random &random, size_t limit) { return random() % limit; }

/// Values that have caught somebody out.
json::Value nastyValue(Random &random) {
  static const double reals[] = {0.5, -0.5, 1e-300, 1e300, 3.999999, 1e9};
  static const int64_t integers[] = {0,
                                     -1,
                                     1,
                                     2,
                                     3,
                                     7,
                                     64,
                                     96,
                                     1 << 20,
                                     4096,
                                     10000,
                                     2147483647,
                                     int64_t(1) << 40,
                                     INT64_MAX,
                                     INT64_MIN};
  static const char *const strings[] = {
      "",     "null",    "32",     "full_attention", "sliding_attention",
      "yarn", "linear",  "llama3", "longrope",       "LLLG",
      "M*-E", "mamba",   "rope",   "default",        "float16",
      "\n",   "\xC3\xA9"};
  switch (below(random, 9)) {
  case 0:
    return nullptr;
  case 1:
    return below(random, 2) == 0;
  case 2:
    return reals[below(random, std::size(reals))];
  case 3:
  case 4:
    return integers[below(random, std::size(integers))];
  case 5:
    return strings[below(random, std::size(strings))];
  case 6: {
    json::Array array;
    for (size_t i = below(random, 40); i > 0; --i)
      array.push_back(integers[below(random, 5)]);
    return array;
  }
  case 7: {
    json::Array array;
    for (size_t i = below(random, 40); i > 0; --i)
      array.push_back(strings[below(random, std::size(strings))]);
    return array;
  }
  default:
    return json::Object{{"rope_type", strings[4 + below(random, 3)]},
                        {"factor", 2.0}};
  }
}

/// All objects inside `value`, itself included.
void collectObjects(json::Value &value, std::vector<json::Object *> &out) {
  if (json::Object *object = value.getAsObject()) {
    out.push_back(object);
    for (auto &entry : *object)
      collectObjects(entry.second, out);
  } else if (json::Array *array = value.getAsArray()) {
    for (json::Value &element : *array)
      collectObjects(element, out);
  }
}

void mutateValue(json::Value &root, const json::Value &other, Random &random) {
  std::vector<json::Object *> objects;
  collectObjects(root, objects);
  if (objects.empty())
    return;
  json::Object &object = *objects[below(random, objects.size())];
  std::vector<std::string> keys;
  for (auto &entry : object)
    keys.push_back(StringRef(entry.first).str());
  std::sort(keys.begin(), keys.end()); // the map's own order may change
  std::string key = keys.empty() ? "x" : keys[below(random, keys.size())];
  switch (below(random, 6)) {
  case 0:
    object.erase(key);
    break;
  case 1: {
    json::Value value = object.get(key) ? *object.get(key) : nullptr;
    object.erase(key);
    key.insert(below(random, key.size() + 1), 1, 'q');
    object[key] = std::move(value);
    break;
  }
  case 2: {
    std::vector<StringRef> types = knownModelTypes();
    object["model_type"] = types[below(random, types.size())];
    break;
  }
  case 3: // a field of another model
    if (const json::Object *source = other.getAsObject(); !source->empty()) {
      std::vector<StringRef> names;
      for (auto &entry : *source)
        names.push_back(entry.first);
      std::sort(names.begin(), names.end());
      StringRef name = names[below(random, names.size())];
      object[name] = *source->get(name);
    }
    break;
  default:
    object[key] = nastyValue(random);
    break;
  }
}

void mutateBytes(std::string &text, Random &random) {
  static const char *const tokens[] = {"NaN",   "Infinity", "{",    "}", "[",
                                       "]",     "\"",       ",",    ":", "-",
                                       "1e999", "\\u0",     "\xFF", "0"};
  size_t at = below(random, text.size() + 1);
  switch (below(random, 4)) {
  case 0:
    text.insert(at, tokens[below(random, std::size(tokens))]);
    break;
  case 1:
    text.erase(at, 1 + below(random, 8));
    break;
  case 2:
    if (at < text.size())
      text[at] ^= 1 << below(random, 8);
    break;
  default:
    text.resize(at);
    break;
  }
}

std::vector<json::Value> readFolder(StringRef folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error))
    paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  std::vector<json::Value> corpus;
  for (const std::string &path : paths)
    if (auto buffer = MemoryBuffer::getFile(path)) {
      Expected<json::Value> value = json::parse((*buffer)->getBuffer());
      if (value)
        corpus.push_back(std::move(*value));
      else
        consumeError(value.takeError());
    }
  return corpus;
}

int fuzzFolder(StringRef folder, uint64_t seed, uint64_t count) {
  std::vector<json::Value> corpus = readFolder(folder);
  if (corpus.empty()) {
    errs() << folder << ": no config files\n";
    return 1;
  }
  uint64_t imported = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Random random(seed + i);
    json::Value value = corpus[below(random, corpus.size())];
    const json::Value &other = corpus[below(random, corpus.size())];
    for (size_t n = 1 + below(random, 4); n > 0; --n)
      mutateValue(value, other, random);
    std::string text;
    raw_string_ostream(text) << value;
    if (below(random, 4) == 0)
      mutateBytes(text, random);
    // A crash must leave its input behind.
    if (const char *path = std::getenv("PAGODA_FUZZ_INPUT")) {
      std::error_code error;
      raw_fd_ostream(path, error) << text;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()),
                           text.size());
    Expected<ModelConfig> model = parseModelConfig(text, "config.json");
    imported += bool(model);
    if (!model)
      consumeError(model.takeError());
  }
  outs() << count << " inputs from seed " << seed << ", " << imported
         << " of them imported\n";
  // All or none would mean that the mutations test nothing.
  return imported > count / 20 && imported < count - count / 20 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t seed, count;
  if (argc == 4 && !StringRef(argv[2]).getAsInteger(10, seed) &&
      !StringRef(argv[3]).getAsInteger(10, count))
    return fuzzFolder(argv[1], seed, count);
  for (int i = 1; i < argc; ++i) {
    auto buffer = MemoryBuffer::getFile(argv[i]);
    if (!buffer) {
      errs() << argv[i] << ": " << buffer.getError().message() << "\n";
      return 1;
    }
    StringRef text = (*buffer)->getBuffer();
    LLVMFuzzerTestOneInput(text.bytes_begin(), text.size());
  }
  return 0;
}
#endif
