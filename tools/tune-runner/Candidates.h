//===- Candidates.h - Exported candidates, measured -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs what `pagoda tune --export` wrote: for each kernel NAME.base, the
// tensors and the outputs that are expected, and NAME.000.case, NAME.001.case,
// ..., one candidate each, the default first. All are verified; those that are
// right are timed in pairs with the default. Decides nothing: that is the
// importer's. No LLVM here, and of a device only what the interface says, so
// that a test can put the emulator in its place.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_TUNERUNNER_CANDIDATES_H
#define PAGODA_TOOLS_TUNERUNNER_CANDIDATES_H

#include "tests/device/CaseImage.h"

#include <cstddef>
#include <functional>
#include <string>

namespace pagoda::device {

/// What measuring takes of a device. Every function may throw; that is the
/// fault of the candidate at hand.
class MeasuredDevice {
public:
  virtual ~MeasuredDevice() = default;
  virtual std::string name() const = 0;
  virtual int capability() const = 0; ///< 90 for 9.0
  virtual void *allocate(size_t bytes) = 0;
  virtual void release(void *memory) = 0;
  virtual void upload(void *to, const void *from, size_t bytes) = 0;
  virtual void download(void *to, const void *from, size_t bytes) = 0;
  /// A kernel of a cubin or of PTX. Returns a number for it.
  virtual size_t load(const std::string &path, const KernelLaunch &kernel) = 0;
  /// Launches and waits.
  virtual void run(size_t kernel, int64_t blocks,
                   const pagoda_attention_args &args) = 0;
  /// Seconds of one of `times` launches.
  virtual double time(size_t kernel, int64_t blocks,
                      const pagoda_attention_args &args, int times) = 0;
};

/// Times of a candidate and of the default right before or after it.
constexpr int samplesOfEach = 31;

/// Measures all candidates of `folder` and returns the results as JSON.
/// `progress` gets a line for each candidate that was verified and for each
/// kernel that was timed. Throws std::runtime_error: nothing in the folder, or
/// a file that cannot be read.
std::string
measureCandidates(const std::string &folder, MeasuredDevice &device,
                  const std::function<void(const std::string &)> &progress);

} // namespace pagoda::device

#endif // PAGODA_TOOLS_TUNERUNNER_CANDIDATES_H
