//===- CaseImage.h - One launch as a file -----------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case, planned and with its reference, as plain memory: launches, the
// argument struct, what its pointers point to, and what must be in the outputs
// afterwards. Whoever runs it needs to know nothing of attention. Cases that
// differ in kernel and plan alone share the rest, in a file of its own.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_CASEIMAGE_H
#define PAGODA_TESTS_DEVICE_CASEIMAGE_H

#include "runtime/include/pagoda/kernel_abi.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::device {

struct KernelLaunch {
  std::string kernel; ///< name in the cubin
  int32_t threads = 0, sharedBytes = 0;
  int64_t blocks = 0;
};

/// Memory that a pointer of the arguments names.
struct ImageBuffer {
  uint32_t field = 0;  ///< byte offset of the pointer in the struct
  uint64_t offset = 0; ///< of what the pointer names, in `bytes`
  std::vector<uint8_t> bytes;
  /// The bytes are repeated, the last time in part, up to this; 0: they are
  /// all.
  uint64_t size = 0;

  uint64_t total() const { return size ? size : bytes.size(); }
};

/// What an output buffer must hold afterwards, element by element: a bound of 0
/// asks for the value as it is, padding and guards included.
struct Expectation {
  uint32_t buffer = 0; ///< index
  int32_t dtype = PAGODA_F32;
  std::vector<float> values, bounds;
  std::vector<uint64_t> at = {}; ///< which elements; empty: all
};

struct CaseImage {
  std::string name;
  std::string cubin; ///< file beside this one
  /// File beside this one with the buffers and expectations that this case
  /// shares with others; empty: it stands alone.
  std::string base;
  std::string note; ///< JSON that a report takes as it is
  std::vector<KernelLaunch> launches;
  pagoda_attention_args args{}; ///< pointers are null
  std::vector<ImageBuffer> buffers;
  std::vector<Expectation> expectations;

  /// Throw std::runtime_error with the path.
  void write(const std::string &path) const;
  static CaseImage read(const std::string &path);
};

/// The first element of `bytes` that is not as expected; empty: all are.
std::string compare(const Expectation &expected,
                    const std::vector<uint8_t> &bytes);

/// The largest |difference| / bound among the elements with a bound.
double worstRatio(const Expectation &expected,
                  const std::vector<uint8_t> &bytes);

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_CASEIMAGE_H
