//===- Rope.h - Rotary position embedding parameters ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model does to q and k before attention: the rotary embedding of one
// kind of layer, in one shape for every spelling that config.json files use,
// and the frequencies that follow from it. Rotating is not done here.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_ROPE_H
#define PAGODA_COMPILER_IMPORT_ROPE_H

#include "llvm/Support/JSON.h"

#include <cstdint>
#include <vector>

namespace pagoda {

/// How the frequencies theta^(-2i/rotary_dim) are changed for long contexts.
enum class RopeKind {
  None,     ///< no rotation at all
  Default,  ///< plain frequencies
  Linear,   ///< positions divided by `factor`
  Dynamic,  ///< theta grows with the sequence once it passes the trained length
  Yarn,     ///< ramp between plain and divided frequencies, see ropeFrequencies
  LongRope, ///< one divisor per frequency, for short and for long sequences
  Llama3,   ///< divided below one wavelength, plain above another
  Proportional ///< those of the whole head, all but the first few of them 0
};

/// The name that config.json uses, for example "longrope"; "none" for None.
llvm::StringRef ropeKindName(RopeKind kind);

struct RopeConfig {
  RopeKind kind = RopeKind::None;
  double theta = 10000;
  int64_t rotaryDim = 0;    ///< dims of a head that rotate, even; 0: none
  int64_t rotaryOffset = 0; ///< the first of them; not 0 for MLA, which rotates
                            ///< the last dims of a head
  bool interleaved = false; ///< pairs are (2i, 2i+1); else (i, i + rotaryDim/2)

  double factor = 1;               ///< how far the context is stretched
  int64_t originalMaxPosition = 0; ///< trained length before stretching
  /// cos and sin are multiplied by this (so q.k by its square).
  double attentionFactor = 1;
  double betaFast = 32, betaSlow = 1;           ///< Yarn: ramp, in turns
  bool truncate = true;                         ///< Yarn: ramp ends are whole
  double lowFreqFactor = 1, highFreqFactor = 4; ///< Llama3
  std::vector<double> shortFactor, longFactor;  ///< LongRope, rotaryDim / 2
  double rotatedFraction = 1;    ///< Proportional: of the frequencies, not 0
  std::vector<int64_t> sections; ///< multi-axis positions: frequencies per axis
  bool sectionsInterleaved = false; ///< axes take turns, frequency by frequency

  bool operator==(const RopeConfig &) const = default;
};

/// The rotaryDim / 2 angular frequencies (radians a position) in use for a
/// sequence of `length` tokens. Only Dynamic and LongRope depend on `length`.
/// Empty for RopeKind::None.
std::vector<double> ropeFrequencies(const RopeConfig &rope, int64_t length);

llvm::json::Value toJson(const RopeConfig &rope);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_ROPE_H
