//===- Case.h - One row of the conformance table ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A conformance case: a kernel's specification, a batch, what the tensors hold
// and how the work is planned. Plain data; it names no backend. The table is in
// Table.cpp, memory is made from a case in Data.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_CASE_H
#define PAGODA_TESTS_CONFORMANCE_CASE_H

#include "compiler/import/AttentionSpec.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pagoda::conformance {

/// What the valid elements of q, k and v hold.
enum class Values {
  Normal,    ///< independent standard normal
  OneHot,    ///< v of token t is 1 at t mod v_head_dim: a lost token has a name
  HeadIndex, ///< v is its KV head's index: a wrong head map reads as an integer
  LowScores, ///< every score is -10: a padded zero score would dominate
  LastLanes, ///< q and k are 0 but for the last 3 dims: a dropped lane shows
  Tiny,      ///< v is about the type's smallest normal number: what is flushed
             ///< to zero on the way shows
  Peaks,     ///< one key in 8 has scores 64 times as large: a weight that is
             ///< not relative to the largest score overflows
};

/// What every other element holds: unused blocks, tails, padding.
enum class Poison { NaN, Infinity };

/// One sequence of the batch; its queries are its last `q` positions.
struct Length {
  int64_t q;
  int64_t kv;
};

struct Case {
  std::string name; ///< unique; a regular expression over names selects cases
  AttentionSpec spec;
  std::vector<Length> lengths;
  Values values = Values::Normal;
  Poison poison = Poison::NaN;
  uint64_t seed = 1; ///< of values, tables and padding

  /// Extra elements between rows of q and o, and between token rows (nhd) or
  /// blocks (hnd) of V. K stays dense, so that V addressed with K's strides
  /// shows.
  int64_t padding = 0;
  /// 0: the runtime plans. Otherwise each sequence's keys are cut into this
  /// many equal splits, empty ones included, and merged.
  int64_t splits = 0;
  /// With splits: which attention kernel of the library runs everything,
  /// modulo their number. -1: the smallest that holds the rows.
  int kernel = -1;
  int threads = 1;
  /// Overrides of the compiler's schedule, "key=value".
  std::vector<std::string> schedule;
  /// Mask and score functions; what they mean is the test's to say, in the
  /// data's problem. Empty: none.
  std::string mods;
};

/// "14/2 heads, 64/64 dims, block 16 hnd, f32, causal, {3:5 1:17}, ...".
std::string describe(const Case &c);

/// Two cases of the same key can share one compiled library.
std::string kernelKey(const Case &c);

/// Gives the cases of f32 elements of `type`.
void retype(std::vector<Case> &cases, DType type);

/// A case of f32, 4/2 heads, head dim 64, block 16, hnd, causal.
Case makeCase(std::string name, std::vector<Length> lengths);

/// The fixed table.
std::vector<Case> fixedCases();

/// Case `index` of the random sweep with `seed`: any product of shapes,
/// lengths, layouts, values, plans. The same arguments give the same case.
/// Four in a row share one specification, so that compilation does not dwarf
/// execution.
Case randomCase(uint64_t seed, uint64_t index);

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_CASE_H
