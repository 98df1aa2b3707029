//===- Rope.cpp - Rotary position embedding parameters --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frequencies of every kind of rotary embedding, in f64, and its JSON form.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace llvm;

namespace pagoda {

StringRef ropeKindName(RopeKind kind) {
  switch (kind) {
  case RopeKind::None:
    return "none";
  case RopeKind::Default:
    return "default";
  case RopeKind::Linear:
    return "linear";
  case RopeKind::Dynamic:
    return "dynamic";
  case RopeKind::Yarn:
    return "yarn";
  case RopeKind::LongRope:
    return "longrope";
  case RopeKind::Llama3:
    return "llama3";
  case RopeKind::Proportional:
    return "proportional";
  }
  llvm_unreachable("all kinds are above");
}

namespace {

/// Peng et al., "YaRN", 2023: frequencies that turn more than betaFast times in
/// the trained length stay, those that turn less than betaSlow times are
/// divided, with a linear ramp over the index between.
void scaleYarn(const RopeConfig &rope, std::vector<double> &frequencies) {
  double dim = rope.rotaryDim;
  auto indexWithTurns = [&](double turns) {
    return dim *
           std::log(rope.originalMaxPosition / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = indexWithTurns(rope.betaFast);
  double high = indexWithTurns(rope.betaSlow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high)
    high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double divided = std::clamp((i - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= (1 - divided) + divided / rope.factor;
  }
}

/// Grattafiori et al., "The Llama 3 Herd of Models", 2024, as released: a ramp
/// in the number of turns instead of the index.
void scaleLlama3(const RopeConfig &rope, std::vector<double> &frequencies) {
  for (double &frequency : frequencies) {
    double turns =
        rope.originalMaxPosition * frequency / (2 * std::numbers::pi);
    double plain = std::clamp((turns - rope.lowFreqFactor) /
                                  (rope.highFreqFactor - rope.lowFreqFactor),
                              0.0, 1.0);
    // Equal factors leave no ramp: a step.
    if (rope.highFreqFactor == rope.lowFreqFactor)
      plain = turns > rope.highFreqFactor ? 1 : 0;
    frequency *= plain + (1 - plain) / rope.factor;
  }
}

} // namespace

std::vector<double> ropeFrequencies(const RopeConfig &rope, int64_t length) {
  if (rope.kind == RopeKind::None)
    return {};
  double dim = rope.rotaryDim;
  double theta = rope.theta;
  if (rope.kind == RopeKind::Dynamic && rope.rotaryDim > 2 &&
      length > rope.originalMaxPosition)
    theta *= std::pow(rope.factor * length / rope.originalMaxPosition -
                          (rope.factor - 1),
                      dim / (dim - 2));
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rope.rotaryDim / 2; ++i)
    frequencies.push_back(std::pow(theta, -2 * i / dim));

  switch (rope.kind) {
  case RopeKind::None:
  case RopeKind::Default:
  case RopeKind::Dynamic:
    break;
  case RopeKind::Linear:
    for (double &frequency : frequencies)
      frequency /= rope.factor;
    break;
  case RopeKind::Yarn:
    scaleYarn(rope, frequencies);
    break;
  case RopeKind::LongRope: {
    const std::vector<double> &divisors =
        length > rope.originalMaxPosition ? rope.longFactor : rope.shortFactor;
    for (size_t i = 0; i < frequencies.size(); ++i)
      frequencies[i] /= divisors[i];
    break;
  }
  case RopeKind::Llama3:
    scaleLlama3(rope, frequencies);
    break;
  case RopeKind::Proportional:
    for (size_t i = 0; i < frequencies.size(); ++i)
      frequencies[i] = i < size_t(rope.rotatedFraction * dim / 2)
                           ? frequencies[i] / rope.factor
                           : 0;
    break;
  }
  return frequencies;
}

json::Value toJson(const RopeConfig &rope) {
  json::Object object{{"type", ropeKindName(rope.kind)}};
  if (rope.kind == RopeKind::None)
    return object;
  object["theta"] = rope.theta;
  object["rotary_dim"] = rope.rotaryDim;
  object["rotary_offset"] = rope.rotaryOffset;
  object["interleaved"] = rope.interleaved;
  if (!rope.sections.empty())
    object["sections"] = json::Array(rope.sections);
  if (rope.sectionsInterleaved)
    object["sections_interleaved"] = true;
  if (rope.kind == RopeKind::Default)
    return object;
  object["factor"] = rope.factor;
  if (rope.kind != RopeKind::Linear && rope.kind != RopeKind::Proportional)
    object["original_max_position"] = rope.originalMaxPosition;
  switch (rope.kind) {
  case RopeKind::Yarn:
    object["attention_factor"] = rope.attentionFactor;
    object["beta_fast"] = rope.betaFast;
    object["beta_slow"] = rope.betaSlow;
    object["truncate"] = rope.truncate;
    break;
  case RopeKind::LongRope:
    object["attention_factor"] = rope.attentionFactor;
    object["short_factor"] = json::Array(rope.shortFactor);
    object["long_factor"] = json::Array(rope.longFactor);
    break;
  case RopeKind::Llama3:
    object["low_freq_factor"] = rope.lowFreqFactor;
    object["high_freq_factor"] = rope.highFreqFactor;
    break;
  case RopeKind::Proportional:
    object["rotated_fraction"] = rope.rotatedFraction;
    break;
  default:
    break;
  }
  return object;
}

} // namespace pagoda
