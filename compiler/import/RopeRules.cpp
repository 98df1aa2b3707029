//===- RopeRules.cpp - Reading rotary embeddings from a config.json -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All spellings of the rotary parameters: rope_theta and its older names, a
// fraction or a count of rotated dims, rope_scaling, rope_parameters (flat or
// one object per kind of layer), and what single families do differently.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace llvm;

namespace pagoda {
namespace {

/// The objects that hold scaling parameters for one kind of layer.
struct ScalingSource {
  std::optional<ConfigReader> object;
  StringRef key;
  bool rotates = true; ///< false: the file says null for this kind
};

bool isPerLayerKind(const json::Object &object) {
  return any_of(object, [](const auto &entry) {
    return layerTypeHasKvCache(StringRef(entry.first)).has_value();
  });
}

ScalingSource scalingSource(ImportContext &c, StringRef type) {
  // What the file says goes before the class's default under the other key.
  ScalingSource source;
  source.key =
      c.config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  std::optional<ConfigReader> object = c.config.maybeObject(source.key);
  if (!object)
    object = c.config.maybeObject(source.key = "rope_parameters");
  if (!object || !isPerLayerKind(object->raw())) {
    source.object = object;
    return source;
  }
  if (!object->find(type))
    object->failExpected(type, "the rotation of these layers or null");
  source.rotates = object->has(type);
  source.object = object->maybeObject(type);
  return source;
}

/// Largest first index that rotates to the end of the head; odd counts have no
/// meaning.
int64_t rotatedDims(ImportContext &c, const ScalingSource &source,
                    int64_t headDim) {
  const char *key = "partial_rotary_factor";
  std::optional<ConfigReader> object = source.object;
  std::optional<double> fraction =
      object ? object->maybeNumber(key, 0) : std::nullopt;
  std::optional<int64_t> dims;
  if (!fraction && !c.config.has(key))
    dims = c.config.maybeInteger("rotary_dim", headDimRange);
  if (dims)
    key = "rotary_dim";
  else if (fraction || (fraction = c.config.maybeNumber(key, 0)))
    dims = *fraction <= 1 ? static_cast<int64_t>(headDim * *fraction) : -1;
  else
    dims = headDim;
  if (c.config.failed())
    return 2;
  if (*dims < 2 || *dims > headDim || *dims % 2) {
    if (c.config.has(key) || (object && object->has(key)))
      (c.config.has(key) ? c.config : *object)
          .failExpected(key, "an even number of rotated dims from 2 to the "
                             "head dim " +
                                 Twine(headDim));
    else
      c.config.fail("head_dim", "is " + Twine(headDim) +
                                    ", expected an even number to rotate");
    return 2;
  }
  return *dims;
}

double theta(ImportContext &c, const ScalingSource &source) {
  std::optional<ConfigReader> object = source.object;
  if (std::optional<double> value =
          object ? object->maybeNumber("rope_theta", 1) : std::nullopt)
    return *value;
  if (std::optional<double> value = c.config.maybeNumber("rope_theta", 1))
    return *value;
  c.config.tookDefault("rope_theta", 10000, "absent; the usual base");
  return 10000;
}

/// 0.1 m ln(s) + 1: how much longer contexts flatten attention (YaRN).
double yarnMscale(double factor, double mscale) {
  return factor > 1 ? 0.1 * mscale * std::log(factor) + 1 : 1;
}

int64_t trainedPositions(ImportContext &c, ConfigReader &scaling) {
  const char *key = "original_max_position_embeddings";
  if (auto positions = scaling.maybeInteger(key, positionRange))
    return *positions;
  if (auto positions = c.config.maybeInteger(key, positionRange))
    return *positions;
  int64_t limit = positionLimit(c);
  if (limit == 0)
    scaling.failExpected(key, "a number of positions");
  scaling.tookDefault(key, limit, "absent; max_position_embeddings");
  return std::max<int64_t>(limit, 1);
}

void readYarn(ImportContext &c, ConfigReader &scaling, RopeConfig &rope) {
  rope.kind = RopeKind::Yarn;
  rope.factor = scaling.number("factor", 0);
  rope.originalMaxPosition = trainedPositions(c, scaling);
  rope.betaFast = scaling.maybeNumber("beta_fast", 0).value_or(32);
  rope.betaSlow = scaling.maybeNumber("beta_slow", 0).value_or(1);
  rope.truncate = scaling.boolean("truncate", true);
  double mscale = scaling.maybeNumber("mscale", -1).value_or(0);
  double allDim = scaling.maybeNumber("mscale_all_dim", -1).value_or(0);
  rope.attentionFactor =
      mscale != 0 && allDim != 0
          ? yarnMscale(rope.factor, mscale) / yarnMscale(rope.factor, allDim)
          : yarnMscale(rope.factor, 1);
  if (auto factor = scaling.maybeNumber("attention_factor", 0))
    rope.attentionFactor = *factor;
}

std::vector<double> divisors(ConfigReader &scaling, StringRef key,
                             int64_t count) {
  std::vector<double> values =
      scaling.maybeNumbers(key, 0).value_or(std::vector<double>());
  if (static_cast<int64_t>(values.size()) != count)
    scaling.fail(key, "has " + Twine(values.size()) + " elements, expected " +
                          Twine(count) + ", half of the rotated dims");
  return values;
}

void readLongRope(ImportContext &c, ConfigReader &scaling, RopeConfig &rope) {
  rope.kind = RopeKind::LongRope;
  rope.shortFactor = divisors(scaling, "short_factor", rope.rotaryDim / 2);
  rope.longFactor = divisors(scaling, "long_factor", rope.rotaryDim / 2);
  rope.originalMaxPosition = trainedPositions(c, scaling);
  double stretch =
      static_cast<double>(positionLimit(c)) / rope.originalMaxPosition;
  rope.factor = scaling.maybeNumber("factor", 0).value_or(stretch);
  if (c.config.has("original_max_position_embeddings"))
    rope.factor = stretch; // the two lengths count, as in transformers
  if (rope.factor > 1 && rope.originalMaxPosition > 1)
    rope.attentionFactor = std::sqrt(
        1 + std::log(rope.factor) / std::log(rope.originalMaxPosition));
  if (auto factor = scaling.maybeNumber("attention_factor", 0))
    rope.attentionFactor = *factor;
  // phimoe gives the factor itself, once for short and once for long sequences.
  if (auto factor = scaling.maybeNumber("long_mscale", 0)) {
    rope.attentionFactor = *factor;
    if (scaling.maybeNumber("short_mscale", 0) != factor)
      c.config.importLog().note("short_mscale differs from long_mscale: the "
                                "attention factor is that of long sequences");
  }
}

void readDynamic(ImportContext &c, ConfigReader &scaling, RopeConfig &rope) {
  // hunyuan: a fixed stretch of the base, for all lengths.
  if (auto alpha = scaling.maybeNumber("alpha", 0);
      alpha && rope.rotaryDim > 2) {
    double dim = rope.rotaryDim;
    rope.theta *= std::pow(*alpha, dim / (dim - 2));
    return;
  }
  rope.kind = RopeKind::Dynamic;
  rope.factor = scaling.number("factor", 0);
  // Unlike the other kinds, this one stretches past the stated maximum.
  int64_t limit = positionLimit(c);
  rope.originalMaxPosition = limit ? limit : trainedPositions(c, scaling);
}

void readLlama3(ImportContext &c, ConfigReader &scaling, RopeConfig &rope) {
  rope.kind = RopeKind::Llama3;
  rope.factor = scaling.number("factor", 0);
  rope.lowFreqFactor = scaling.number("low_freq_factor", 0);
  rope.highFreqFactor = scaling.number("high_freq_factor", 0);
  rope.originalMaxPosition =
      scaling.integer("original_max_position_embeddings", positionRange);
  if (rope.highFreqFactor < rope.lowFreqFactor)
    scaling.failExpected("high_freq_factor", "low_freq_factor or more");
}

void readProportional(ConfigReader &scaling, RopeConfig &rope) {
  rope.kind = RopeKind::Proportional;
  rope.factor = scaling.maybeNumber("factor", 0).value_or(1);
  rope.rotatedFraction =
      scaling.maybeNumber("partial_rotary_factor", 0).value_or(1);
  if (rope.rotatedFraction > 1)
    scaling.failExpected("partial_rotary_factor", "a fraction of the head dim");
}

void readSections(ConfigReader &scaling, RopeConfig &rope) {
  auto sections = scaling.maybeIntegers("mrope_section", {0, headDimRange.max});
  if (!sections)
    return;
  int64_t sum = 0;
  for (int64_t section : *sections)
    sum += section;
  if (sum != rope.rotaryDim / 2)
    scaling.fail("mrope_section", "adds up to " + Twine(sum) + ", expected " +
                                      Twine(rope.rotaryDim / 2) +
                                      ", half of the rotated dims");
  rope.sections = *sections;
  rope.sectionsInterleaved = scaling.boolean("mrope_interleaved", false);
}

/// Files that hold both keys write names of one scaling, of different ages.
void checkOlderType(ConfigReader &scaling,
                    const std::optional<std::string> &type) {
  std::optional<std::string> older = scaling.maybeString("type");
  auto scales = [](StringRef name) {
    return name != "default" && name != "mrope";
  };
  auto sameAge = [](StringRef name) {
    return StringSwitch<StringRef>(name)
        .Case("su", "longrope")
        .Case("deepseek_yarn", "yarn")
        .Default(name);
  };
  if (type && older && scales(*type) && scales(*older) &&
      sameAge(*type) != sameAge(*older))
    scaling.fail("type", "is \"" + *older + "\", but rope_type is \"" + *type +
                             "\", expected one value for both");
}

void readScaling(ImportContext &c, ConfigReader &scaling, StringRef key,
                 RopeConfig &rope) {
  if (scaling.raw().empty())
    return;
  StringRef typeKey = scaling.has("rope_type") ? "rope_type" : "type";
  std::optional<std::string> type = scaling.maybeString(typeKey);
  if (typeKey == "rope_type")
    checkOlderType(scaling, type);
  readSections(scaling, rope);
  if (!type) {
    // Only the older key always names its type.
    if (key == "rope_scaling" && rope.sections.empty() &&
        !scaling.has("rope_theta"))
      scaling.failExpected("rope_type", "a kind of scaling");
    return;
  }
  if (*type == "default" || *type == "mrope")
    return;
  if (*type == "linear") {
    rope.kind = RopeKind::Linear;
    rope.factor = scaling.number("factor", 0);
  } else if (*type == "dynamic") {
    readDynamic(c, scaling, rope);
  } else if (*type == "yarn" || *type == "deepseek_yarn") {
    readYarn(c, scaling, rope);
  } else if (*type == "longrope" || *type == "su") {
    readLongRope(c, scaling, rope);
  } else if (*type == "llama3") {
    readLlama3(c, scaling, rope);
  } else if (*type == "proportional") {
    readProportional(scaling, rope);
  } else {
    const StringRef known[] = {"default",  "linear", "dynamic",      "yarn",
                               "longrope", "llama3", "proportional", "mrope"};
    StringRef nearest = nearestSpelling(*type, known);
    scaling.failExpected(
        typeKey, nearest.empty() ? "default, linear, dynamic, yarn, longrope, "
                                   "llama3, proportional or mrope"
                                 : ("\"" + nearest + "\"").str());
  }
}

/// The rotation of `dims` dims (0: as the file says) of a head.
RopeConfig rotation(ImportContext &c, StringRef type, int64_t headDim,
                    bool interleaved, bool wholeHead = false) {
  ScalingSource source = scalingSource(c, type);
  RopeConfig rope;
  if (!source.rotates)
    return rope;
  rope.kind = RopeKind::Default;
  rope.interleaved = interleaved;
  // Of a proportional rotation, the fraction is one of the frequencies.
  if (source.object &&
      source.object->maybeString("rope_type") == "proportional")
    wholeHead = headDim % 2 == 0;
  rope.rotaryDim = wholeHead ? headDim : rotatedDims(c, source, headDim);
  rope.theta = theta(c, source);
  if (source.object && !c.config.failed())
    readScaling(c, *source.object, source.key, rope);
  return rope;
}

/// The same without any stretching.
RopeConfig unscaledRotation(RopeConfig rope) {
  RopeConfig plain;
  if (rope.kind == RopeKind::None)
    return plain;
  plain.kind = RopeKind::Default;
  plain.theta = rope.theta;
  plain.rotaryDim = rope.rotaryDim;
  plain.interleaved = rope.interleaved;
  return plain;
}

/// A rotation of all dims by the base that an object under `key` names.
RopeConfig plainRotation(ImportContext &c, StringRef key, int64_t headDim,
                         double theta) {
  RopeConfig rope;
  rope.kind = RopeKind::Default;
  rope.theta = theta;
  rope.rotaryDim = headDim;
  if (headDim % 2)
    c.config.fail(key, "rotates heads of " + Twine(headDim) +
                           " dims, expected an even number");
  return rope;
}

bool perLayerKind(ImportContext &c) {
  std::optional<ConfigReader> object = c.config.maybeObject("rope_parameters");
  return object && isPerLayerKind(object->raw());
}

} // namespace

int64_t positionLimit(ImportContext &c) {
  for (StringRef key : {"max_position_embeddings", "n_positions", "max_seq_len",
                        "seq_length", "max_sequence_length"})
    if (c.config.has(key))
      return c.config.integer(key, positionRange);
  // The class's default, under the name that the class uses.
  return c.config.maybeInteger("max_position_embeddings", positionRange)
      .value_or(0);
}

RopeConfig noRope(ImportContext &, StringRef, const LayerShape &) { return {}; }

RopeConfig neoxRope(ImportContext &c, StringRef type, const LayerShape &heads) {
  return rotation(c, type, heads.headDim, false);
}

RopeConfig interleavedRope(ImportContext &c, StringRef type,
                           const LayerShape &heads) {
  return rotation(c, type, heads.headDim, true);
}

RopeConfig latentRope(ImportContext &c, StringRef type,
                      const LayerShape &heads) {
  if (!c.model.mla)
    return neoxRope(c, type, heads);
  if (c.model.mla->qkRopeHeadDim % 2)
    c.config.failExpected("qk_rope_head_dim", "an even number to rotate");
  RopeConfig rope = rotation(c, type, c.model.mla->qkRopeHeadDim,
                             c.config.boolean("rope_interleave", true), true);
  if (rope.kind != RopeKind::None)
    rope.rotaryOffset = c.model.mla->qkNopeHeadDim;
  return rope;
}

RopeConfig latentNeoxRope(ImportContext &c, StringRef type,
                          const LayerShape &heads) {
  RopeConfig rope = latentRope(c, type, heads);
  rope.interleaved = false;
  return rope;
}

RopeConfig localThetaRope(ImportContext &c, StringRef type,
                          const LayerShape &heads) {
  RopeConfig rope = neoxRope(c, type, heads);
  if (type != "sliding_attention" || perLayerKind(c))
    return rope;
  rope = unscaledRotation(rope);
  rope.theta = c.config.number("rope_local_base_freq", 1);
  return rope;
}

RopeConfig scaledFullRope(ImportContext &c, StringRef type,
                          const LayerShape &heads) {
  RopeConfig rope = neoxRope(c, type, heads);
  return type == "sliding_attention" && !perLayerKind(c)
             ? unscaledRotation(rope)
             : rope;
}

RopeConfig windowOnlyRope(ImportContext &c, StringRef type,
                          const LayerShape &heads) {
  return type == "sliding_attention" ? interleavedRope(c, type, heads)
                                     : RopeConfig();
}

RopeConfig windowOnlyNeoxRope(ImportContext &c, StringRef type,
                              const LayerShape &heads) {
  bool windows =
      c.config.maybeInteger("sliding_window", positionRange).has_value();
  return windows && type != "sliding_attention" ? RopeConfig()
                                                : neoxRope(c, type, heads);
}

RopeConfig chatGlmRope(ImportContext &c, StringRef type,
                       const LayerShape &heads) {
  RopeConfig rope = interleavedRope(c, type, heads);
  rope.theta *= c.config.maybeNumber("rope_ratio", 0).value_or(1);
  return rope;
}

RopeConfig positionTypeRope(ImportContext &c, StringRef type,
                            const LayerShape &heads) {
  std::optional<std::string> position =
      c.config.maybeString("position_embedding_type");
  if (position && *position != "rope" && *position != "nope")
    c.config.failExpected("position_embedding_type", "rope or nope");
  return position == "rope" ? neoxRope(c, type, heads) : RopeConfig();
}

RopeConfig attnConfigRope(ImportContext &c, StringRef,
                          const LayerShape &heads) {
  ConfigReader attention = c.config.subObject("attn_config");
  if (!attention.boolean("rope", false))
    return {};
  RopeConfig rope = plainRotation(c, "attn_config", heads.headDim,
                                  attention.number("rope_theta", 1));
  // Two implementations, each with an object of its own.
  std::string kind = attention.maybeString("rope_impl").value_or("dail");
  if (kind != "dail" && kind != "hf")
    attention.failExpected("rope_impl", "dail or hf");
  ConfigReader object = attention.subObject("rope_" + kind + "_config");
  std::optional<std::string> type = object.maybeString("type");
  if (kind == "dail" && type && *type != "original")
    object.failExpected("type", "original");
  if (kind == "hf" && type != "no_scaling" && !c.config.failed())
    readScaling(c, object, "rope_scaling", rope);
  return rope;
}

RopeConfig rotaryObjectRope(ImportContext &c, StringRef type,
                            const LayerShape &heads) {
  std::optional<ConfigReader> rotary = c.config.maybeObject("rotary");
  if (!rotary)
    return neoxRope(c, type, heads);
  RopeConfig rope =
      plainRotation(c, "rotary", heads.headDim, rotary->number("base", 1));
  std::optional<std::string> kind = rotary->maybeString("type");
  if (kind == "dynamic") {
    rope.kind = RopeKind::Dynamic;
    rope.factor = rotary->maybeNumber("scaling_factor", 0).value_or(1);
    rope.originalMaxPosition = positionLimit(c);
  } else if (kind != "origin") {
    rotary->failExpected("type", "origin or dynamic");
  }
  return rope;
}

RopeConfig unlessAlibiRope(ImportContext &c, StringRef type,
                           const LayerShape &heads) {
  return c.model.alibiSlopes.empty() ? neoxRope(c, type, heads) : RopeConfig();
}

RopeConfig ropeUnlessNull(ImportContext &c, StringRef type,
                          const LayerShape &heads) {
  std::optional<ConfigReader> object = c.config.maybeObject("rope_parameters");
  ConfigReader &source = object ? *object : c.config;
  bool null = source.find("rope_theta") && !source.has("rope_theta");
  return null ? RopeConfig() : neoxRope(c, type, heads);
}

RopeConfig memRope(ImportContext &c, StringRef type, const LayerShape &heads) {
  return c.config.boolean("use_mem_rope", false) ? neoxRope(c, type, heads)
                                                 : RopeConfig();
}

} // namespace pagoda
