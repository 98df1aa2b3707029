//===- Record.h - What tuning found, and for what ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A record says which schedule was the fastest for a key. The key holds all
// that can change the answer, as text in a fixed form: a record is for a key or
// it is not, nothing is nearly the same.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TUNE_RECORD_H
#define PAGODA_COMPILER_TUNE_RECORD_H

#include "compiler/tiling/Schedule.h"
#include "compiler/tune/Statistics.h"

#include <string>

namespace pagoda {

struct TuningKey {
  /// What kernels are compiled for and, for a CPU, the machine they ran on:
  /// model, features, cache sizes, cores.
  std::string machine;
  std::string toolchain; ///< versions of Pagoda, its kernel ABI and LLVM
  std::string spec;      ///< shapes, types, block size, layout, features
  std::string variant;   ///< "prefill" or "decode"
  /// What a step of it looks like: "rows>1" or, by the range that the KV length
  /// lies in, "rows=1 kv<=4096".
  std::string bucket;

  bool operator==(const TuningKey &) const = default;
  /// One line for a person.
  std::string str() const;
};

/// Tokens of a decoding sequence, where nobody says otherwise.
constexpr int64_t usualKvLen = 2048;

/// The key of `spec`'s kernels for `machine`, tuned on this host for sequences
/// of about `kvLen` tokens (decode; the ranges are powers of four). What an
/// attention kernel does not depend on (the softmax scale, which layers it
/// serves, the rotation of keys) is not in it.
TuningKey tuningKey(const Machine &machine, const AttentionSpec &spec,
                    Variant variant, int64_t kvLen = usualKvLen);

/// The largest KV length of a bucket; 0 where the bucket has none.
int64_t kvLenOf(llvm::StringRef bucket);

/// The specification that `text`, a key's spec, describes, as far as kernels
/// depend on it: the values of softcap and slopes are not in it.
llvm::Expected<AttentionSpec> parseKeySpec(llvm::StringRef text);

struct TuningRecord {
  TuningKey key;
  std::string schedule; ///< Schedule::str()
  std::string baseline; ///< the default that it was measured against
  /// Time of the default over that of the schedule; all 1 where the default
  /// stands.
  Interval speedup;
  int64_t samples = 0;   ///< pairs behind the interval
  double seconds = 0;    ///< median time of a step of the workload
  std::string workload;  ///< what was measured, for a person
  int64_t verified = 0;  ///< output elements compared with the reference
  double worstRatio = 0; ///< of error to bound among them, at most 1
  int64_t tried = 0;     ///< schedules measured
  bool complete = true;  ///< false: cut short; tuning again goes on
  int64_t tunedAt = 0;   ///< seconds since 1970
};

/// Reads Schedule::str() back: every field, in its order.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef text);

/// The schedule of a record, if it may be used for `spec` on `machine`: it was
/// verified, can be read, and passes checkSchedule. An error says what is wrong
/// with it.
llvm::Expected<Schedule> usableSchedule(const TuningRecord &record,
                                        const Machine &machine,
                                        const AttentionSpec &spec);

} // namespace pagoda

#endif // PAGODA_COMPILER_TUNE_RECORD_H
