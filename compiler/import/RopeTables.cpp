//===- RopeTables.cpp - cos and sin for append kernels --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/RopeTables.h"

#include <cmath>

namespace pagoda {

RopeTables ropeTables(const RopeConfig &rope, int64_t positions,
                      int64_t length) {
  std::vector<double> frequencies = ropeFrequencies(rope, length);
  RopeTables tables;
  tables.positions = positions;
  tables.pairs = int64_t(frequencies.size());
  tables.cos.reserve(positions * frequencies.size());
  tables.sin.reserve(positions * frequencies.size());
  for (int64_t position = 0; position < positions; ++position)
    for (double frequency : frequencies) {
      double angle = double(position) * frequency;
      tables.cos.push_back(float(rope.attentionFactor * std::cos(angle)));
      tables.sin.push_back(float(rope.attentionFactor * std::sin(angle)));
    }
  return tables;
}

} // namespace pagoda
