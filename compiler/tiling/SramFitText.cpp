//===- SramFitText.cpp - A derivation in words ----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lines that explain and manifests print of what SramFit.cpp counted.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/SramFit.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;
using namespace pagoda;

/// Whole numbers without a point, others with four digits.
static std::string number(double value) {
  std::string text;
  raw_string_ostream stream(text);
  if (value == std::floor(value))
    stream << int64_t(value);
  else
    stream << format("%.4f", value);
  return text;
}

std::string Step::str() const {
  std::string text = (name + ": " + formula + " = " + number(result)).str();
  if (!unit.empty())
    text += (" " + unit).str();
  ListSeparator comma;
  for (auto [what, value] : inputs) {
    StringRef separator = comma;
    text += (Twine(separator.empty() ? " (" : separator) + what + " " +
             number(value))
                .str();
  }
  return inputs.empty() ? text : text + ")";
}

std::string TileCandidate::reason() const {
  std::string text = ("q_tile " + Twine(schedule.qTile) + ", kv_tile " +
                      Twine(schedule.kvTile))
                         .str();
  ListSeparator comma;
  for (const LevelUse &level : levels) {
    StringRef separator = comma;
    text += (Twine(separator.empty() ? ": " : separator) + level.level + " " +
             Twine(level.total()) + " of " + Twine(level.budget) +
             (level.unit.empty() ? "" : " ") + level.unit +
             (level.fits() ? "" : " (over)"))
                .str();
  }
  return text;
}
