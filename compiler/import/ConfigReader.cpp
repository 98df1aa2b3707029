//===- ConfigReader.cpp - Typed look-ups in a config.json -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spellings, type checks, defaults and the wording of diagnostics.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ConfigReader.h"

#include "compiler/import/JsonText.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace llvm;

namespace pagoda {
namespace {

// Keys with one meaning and several names; the first is the one that rules use.
const StringRef spellings[][7] = {
    {"num_hidden_layers", "n_layer", "n_layers", "num_layers",
     "num_transformer_layers"},
    {"num_attention_heads", "n_head", "n_heads", "num_heads",
     "attention_heads"},
    {"hidden_size", "n_embd", "d_model", "n_embed", "model_dim"},
    {"num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads",
     "num_query_groups"},
    {"rope_theta", "rotary_emb_base", "rope_base", "rotary_base",
     "rope_freq_constant"},
    {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent"},
    {"torch_dtype", "dtype"},
    {"sliding_window_pattern", "_sliding_window_pattern",
     "global_attn_every_n_layers"},
};

// Other keys that are read here or often stand beside them: none of these is a
// misspelling of another.
const StringRef otherKeys[] = {
    "head_dim",
    "kv_channels",
    "attention_head_dim",
    "global_head_dim",
    "num_global_key_value_heads",
    "layers_block_type",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "model_max_length",
    "n_ctx",
    "v_head_dim",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "qk_head_dim",
    "kv_lora_rank",
    "q_lora_rank",
    "o_lora_rank",
    "sliding_window",
    "sliding_window_size",
    "use_sliding_window",
    "max_window_layers",
    "rope_scaling",
    "rope_parameters",
    "rope_local_base_freq",
    "rope_local_theta",
    "layer_types",
    "mlp_layer_types",
    "attn_layer_period",
    "attn_layer_offset",
    "expert_layer_period",
    "expert_layer_offset",
    "attn_layer_indices",
    "block_types",
    "no_rope_layers",
    "no_rope_layer_interval",
    "rotary_dim",
    "num_layers_to_keep",
    "n_heads_in_group",
    "n_experts",
    "model_type",
    "architectures",
    "num_expert_layers",
    "num_experts",
    "attention_multiplier",
    "attention_chunk_size",
    "original_max_position_embeddings",
};

ArrayRef<StringRef> spellingsOf(const StringRef &key) {
  for (const auto &row : spellings)
    if (row[0] == key)
      return ArrayRef(row).take_while([](StringRef s) { return !s.empty(); });
  return ArrayRef(key);
}

bool isKnownKey(StringRef key) {
  return is_contained(otherKeys, key) ||
         any_of(spellings,
                [&](const auto &row) { return is_contained(row, key); });
}

/// Whether somebody who wrote `written` meant `meant`. Short keys are too close
/// to each other to tell.
bool looksLike(StringRef written, StringRef meant) {
  unsigned limit = meant.size() >= 12 ? 2 : meant.size() >= 8 ? 1 : 0;
  return limit && written.edit_distance(meant, true, limit) <= limit;
}

std::string inRange(IntRange range) {
  return ("an integer from " + Twine(range.min) + " to " + Twine(range.max))
      .str();
}

std::string aboveText(double above) {
  if (std::isinf(above))
    return "a finite number";
  return "a finite number above " + describeJson(json::Value(above));
}

std::optional<int64_t> asInteger(const json::Value &value, IntRange range) {
  std::optional<int64_t> integer = value.getAsInteger();
  if (!integer || *integer < range.min || *integer > range.max)
    return std::nullopt;
  return integer;
}

std::optional<double> asNumber(const json::Value &value, double above) {
  std::optional<double> number = value.getAsNumber();
  if (!number || !std::isfinite(*number) || !(*number > above))
    return std::nullopt;
  return number;
}

} // namespace

void ImportLog::fail(StringRef field, const Twine &what) {
  if (!fault.empty())
    return;
  fault = fileName;
  if (!field.empty())
    fault += (": " + field).str();
  fault += (": " + what).str();
  // Keys and names of files may hold anything; a diagnostic is one line.
  for (char &c : fault)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      c = '?';
}

void ImportLog::note(const Twine &text) {
  std::string line = text.str();
  if (!is_contained(notes, line))
    notes.push_back(std::move(line));
}

StringRef nearestSpelling(StringRef word, ArrayRef<StringRef> known) {
  StringRef best;
  unsigned bestDistance =
      std::min<unsigned>(std::max<size_t>(2, word.size() / 3),
                         word.size() / 2) +
      1;
  for (StringRef candidate : known) {
    unsigned distance = word.edit_distance(candidate, true, bestDistance);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string ConfigReader::fieldName(StringRef key) const {
  return path.empty() ? key.str() : path + "." + key.str();
}

const json::Value *ConfigReader::find(StringRef key) {
  const json::Value *found = nullptr;
  StringRef foundAs;
  for (StringRef spelling : spellingsOf(key)) {
    const json::Value *value = object->get(spelling);
    if (!value)
      continue;
    // A null beside a value says nothing.
    if (!found || found->kind() == json::Value::Null) {
      found = value;
      foundAs = spelling;
    } else if (value->kind() != json::Value::Null && *value != *found) {
      log->fail(fieldName(spelling),
                "is " + describeJson(*value) + ", but " + foundAs + " is " +
                    describeJson(*found) + ", expected one value for both");
    }
  }
  if (found || !log->absent.insert(fieldName(key)).second)
    return found;
  for (const auto &entry : *object) {
    StringRef written = entry.first;
    if (isKnownKey(written))
      continue;
    for (StringRef spelling : spellingsOf(key))
      if (written != spelling && looksLike(written, spelling)) {
        log->fail(fieldName(written),
                  "unknown key, did you mean \"" + spelling + "\"");
        return nullptr;
      }
  }
  return nullptr;
}

const json::Value *ConfigReader::findOrDefault(StringRef key) {
  if (const json::Value *value = find(key))
    return value;
  if (!classDefaults)
    return nullptr;
  const json::Value *value = classDefaults->get(key);
  if (value && value->kind() != json::Value::Null)
    tookDefault(key, *value, "absent; default of " + className);
  return value;
}

bool ConfigReader::has(StringRef key) {
  const json::Value *value = find(key);
  return value && value->kind() != json::Value::Null;
}

void ConfigReader::tookDefault(StringRef field, const json::Value &value,
                               const Twine &reason) {
  std::string name = fieldName(field);
  if (any_of(log->defaults,
             [&](const DefaultTaken &d) { return d.field == name; }))
    return;
  log->defaults.push_back({std::move(name), quoteJson(value), reason.str()});
}

void ConfigReader::fail(StringRef key, const Twine &what) {
  StringRef written = key;
  for (StringRef spelling : spellingsOf(key))
    if (const json::Value *value = object->get(spelling)) {
      written = spelling;
      if (value->kind() != json::Value::Null)
        break;
    }
  log->fail(fieldName(written), what);
}

void ConfigReader::failExpected(StringRef key, const Twine &expected) {
  const json::Value *value = find(key);
  std::string found = value ? "is " + describeJson(*value) : "missing";
  fail(key, found + ", expected " + expected);
}

const json::Value *ConfigReader::required(StringRef key,
                                          const Twine &expected) {
  const json::Value *value = findOrDefault(key);
  if (!value || value->kind() == json::Value::Null) {
    failExpected(key, expected);
    return nullptr;
  }
  return value;
}

int64_t ConfigReader::integer(StringRef key, IntRange range) {
  if (const json::Value *value = required(key, inRange(range))) {
    if (std::optional<int64_t> integer = asInteger(*value, range))
      return *integer;
    failExpected(key, inRange(range));
  }
  return range.min;
}

int64_t ConfigReader::coreInteger(StringRef key, IntRange range) {
  if (!nested() && !find(key)) {
    failExpected(key, inRange(range));
    return range.min;
  }
  return integer(key, range);
}

double ConfigReader::number(StringRef key, double above) {
  if (const json::Value *value = required(key, aboveText(above))) {
    if (std::optional<double> number = asNumber(*value, above))
      return *number;
    failExpected(key, aboveText(above));
  }
  return 1;
}

std::optional<int64_t> ConfigReader::maybeInteger(StringRef key,
                                                  IntRange range) {
  const json::Value *value = findOrDefault(key);
  if (!value || value->kind() == json::Value::Null)
    return std::nullopt;
  std::optional<int64_t> integer = asInteger(*value, range);
  if (!integer)
    failExpected(key, inRange(range) + " or null");
  return integer;
}

std::optional<double> ConfigReader::maybeNumber(StringRef key, double above) {
  const json::Value *value = findOrDefault(key);
  if (!value || value->kind() == json::Value::Null)
    return std::nullopt;
  std::optional<double> number = asNumber(*value, above);
  if (!number)
    failExpected(key, aboveText(above) + " or null");
  return number;
}

std::optional<std::string> ConfigReader::maybeString(StringRef key) {
  const json::Value *value = findOrDefault(key);
  if (!value || value->kind() == json::Value::Null)
    return std::nullopt;
  std::optional<StringRef> string = value->getAsString();
  if (!string) {
    failExpected(key, "a string or null");
    return std::nullopt;
  }
  return string->str();
}

std::optional<bool> ConfigReader::maybeBool(StringRef key) {
  const json::Value *value = findOrDefault(key);
  if (!value || value->kind() == json::Value::Null)
    return std::nullopt;
  std::optional<bool> boolean = value->getAsBoolean();
  if (!boolean)
    failExpected(key, "true, false or null");
  return boolean;
}

bool ConfigReader::boolean(StringRef key, bool fallback) {
  return maybeBool(key).value_or(fallback);
}

template <typename T, typename Convert>
std::optional<std::vector<T>> ConfigReader::maybeArray(StringRef key,
                                                       const Twine &expected,
                                                       Convert convert) {
  const json::Value *value = findOrDefault(key);
  if (!value || value->kind() == json::Value::Null)
    return std::nullopt;
  const json::Array *array = value->getAsArray();
  if (!array) {
    failExpected(key, "an array");
    return std::nullopt;
  }
  if (array->empty())
    return std::nullopt;
  std::vector<T> out;
  for (const auto &[index, element] : enumerate(*array)) {
    std::optional<T> converted = convert(element);
    if (!converted) {
      fail(key, "element " + Twine(index) + " is " + describeJson(element) +
                    ", expected " + expected);
      return std::nullopt;
    }
    out.push_back(std::move(*converted));
  }
  return out;
}

std::optional<std::vector<int64_t>>
ConfigReader::maybeIntegers(StringRef key, IntRange range) {
  return maybeArray<int64_t>(key, inRange(range), [&](const json::Value &v) {
    return asInteger(v, range);
  });
}

std::optional<std::vector<double>> ConfigReader::maybeNumbers(StringRef key,
                                                              double above) {
  return maybeArray<double>(key, aboveText(above), [&](const json::Value &v) {
    return asNumber(v, above);
  });
}

std::optional<std::vector<std::string>>
ConfigReader::maybeStrings(StringRef key) {
  return maybeArray<std::string>(key, "a string", [](const json::Value &v) {
    std::optional<StringRef> string = v.getAsString();
    return string ? std::optional(string->str()) : std::nullopt;
  });
}

std::optional<ConfigReader> ConfigReader::asObject(StringRef key,
                                                   const json::Value *value) {
  if (!value || value->kind() == json::Value::Null)
    return std::nullopt;
  const json::Object *child = value->getAsObject();
  if (!child) {
    failExpected(key, "an object or null");
    return std::nullopt;
  }
  return ConfigReader(*child, fieldName(key), nullptr, className, *log);
}

std::optional<ConfigReader> ConfigReader::maybeObject(StringRef key) {
  return asObject(key, findOrDefault(key));
}

ConfigReader ConfigReader::subObject(StringRef key) {
  static const json::Object empty;
  const json::Object *defaults =
      classDefaults ? classDefaults->getObject(key) : nullptr;
  std::optional<ConfigReader> child = asObject(key, find(key));
  return ConfigReader(child ? child->raw() : empty, fieldName(key), defaults,
                      className, *log);
}

} // namespace pagoda
