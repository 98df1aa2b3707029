//===- DeviceExport.h - Candidates for a GPU elsewhere ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the candidates of a kernel and writes them out with all that a
// machine with a GPU needs to verify and time them: tensors, each candidate's
// plan, and the outputs that are expected, in the format of tests/device. What
// comes back is read by compiler/tune/DeviceResults.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_DEVICEEXPORT_H
#define PAGODA_TOOLS_PAGODA_DEVICEEXPORT_H

#include "compiler/Driver.h"
#include "compiler/tune/DeviceResults.h"
#include "tools/pagoda/Workbench.h"

#include <functional>

namespace pagoda {

struct DeviceExportOptions {
  std::string folder; ///< exists
  size_t candidates = 64;
  int threads = 1; ///< to compile on
  /// Output rows of the step that are compared with the reference.
  int64_t rows = 64;
  std::function<void(const std::string &)> progress = [](const std::string &) {
  };
};

/// A candidate as it was written.
struct ExportedCandidate {
  std::string schedule;
  std::string file;   ///< of its code
  std::string kernel; ///< its name there
};

struct ExportedContest {
  std::string name; ///< "full_attention decode"
  DeviceExport exported;
  std::vector<ExportedCandidate> candidates; ///< the default first
  size_t unbuilt = 0; ///< left out, as they cannot be compiled
  bool assembled = false;
};

/// Writes the candidates of one kernel for `machine`, an NVIDIA one, tuned on a
/// step of `shape`. Errors: those of the compiler for the default schedule, of
/// the runtime, and of files.
llvm::Expected<ExportedContest>
exportContest(const AttentionSpec &spec, Variant variant,
              const Machine &machine, const StepShape &shape,
              const DeviceExportOptions &options);

/// What manifest.json holds of a kernel.
llvm::json::Object toJson(const ExportedContest &contest);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_DEVICEEXPORT_H
