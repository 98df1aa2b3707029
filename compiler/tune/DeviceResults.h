//===- DeviceResults.h - Candidates measured elsewhere ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What goes out with the candidates of a kernel, and what becomes of the
// results that come back from the machine with the GPU: a record, or the reason
// why not. Results are believed no further than they can be checked: they must
// bring back what went out, be for what this version would make, and hold
// enough samples.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TUNE_DEVICERESULTS_H
#define PAGODA_COMPILER_TUNE_DEVICERESULTS_H

#include "compiler/tune/Record.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

#include <vector>

namespace pagoda {

/// A kernel whose candidates were written out.
struct DeviceExport {
  TuningKey key;
  std::string workload;               ///< for a person
  std::vector<std::string> schedules; ///< the default first
};

/// What results carry back: key, workload and a digest of all of `exported`.
llvm::json::Object toJson(const DeviceExport &exported);

struct DeviceRecords {
  std::vector<TuningRecord> records;
  /// A line for each candidate that had no part in the decision.
  std::vector<std::string> ignored;
};

/// Reads what the runner wrote. One third of a candidate's samples choose the
/// leader, the others confirm it, as in Tuner.h; a candidate whose output was
/// wrong, or that is not legal, is ignored. Errors, for which nothing of the
/// file is used: no results; not what was exported; a key other than this
/// version gives for the specification in it; a default that is another one or
/// was wrong; a GPU that the target is not for; too few samples; and where
/// `wanted` is not empty, a key that is not in it.
llvm::Expected<DeviceRecords>
readDeviceResults(llvm::StringRef text, llvm::ArrayRef<TuningKey> wanted = {});

} // namespace pagoda

#endif // PAGODA_COMPILER_TUNE_DEVICERESULTS_H
