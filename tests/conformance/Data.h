//===- Data.h - Memory for a conformance case -------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of a case, laid out to catch what goes wrong in paged kernels:
// pools full of NaN or infinity but for the valid tokens, shuffled block
// tables with entries past the end, outputs full of a sentinel, memory that
// ends at an unmapped page. What a backend does with them is its business.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_DATA_H
#define PAGODA_TESTS_CONFORMANCE_DATA_H

#include "tests/conformance/Case.h"
#include "tests/reference/Attention.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace pagoda::conformance {

/// Zeroed memory between two unmapped pages, its last byte next to the second:
/// a read or write past the end faults, one before the start does so within a
/// page. Committed only where touched.
class GuardedBuffer {
public:
  explicit GuardedBuffer(size_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  template <typename T> T *as() const { return reinterpret_cast<T *>(start); }
  void *data() const { return start; }
  size_t size() const { return bytes; }

private:
  std::byte *mapping = nullptr;
  size_t mapped = 0;
  std::byte *start = nullptr;
  size_t bytes;
};

/// The value of every output element that no kernel wrote.
inline constexpr float Sentinel = 7e7f;
/// Sentinel elements before and after o and lse.
inline constexpr int64_t GuardElements = 64;

class CaseData {
public:
  explicit CaseData(const Case &c);

  /// Arguments without a plan: items, maps, partials and merges are null.
  pagoda_attention_args args{};
  /// What the oracle needs; refers to `args`.
  reference::Problem problem;

  /// Fills o and lse with the sentinel again.
  void resetOutputs();
  /// The first sentinel that was overwritten between or around the rows of o
  /// and lse, or the first input that was changed; empty: none.
  std::string damage() const;

  int64_t rows() const { return totalRows; }
  std::vector<int32_t> qLens() const;
  std::vector<int32_t> kvLens() const;

  /// Row t of K or V, head h of sequence s, for tests that set their own.
  float *keyRow(int64_t s, int64_t t, int64_t h);
  float *valueRow(int64_t s, int64_t t, int64_t h);
  float *queryRow(int64_t s, int64_t t, int64_t h);
  const float *outputRow(int64_t s, int64_t t, int64_t h) const;
  const float *lseSlot(int64_t s, int64_t t, int64_t h) const;
  float lseOf(int64_t s, int64_t t, int64_t h) const {
    return *lseSlot(s, t, h);
  }
  /// Calls `body` with start and bytes of q, k, v, o, lse and the block table,
  /// padding and guard zones included.
  void
  forEachTensor(const std::function<void(const void *, size_t)> &body) const;
  /// Takes the inputs as they are now for what damage() compares with.
  void sealInputs();

private:
  int64_t offsetOf(const pagoda_kv_view &view, int64_t s, int64_t t,
                   int64_t h) const;
  void makeTables(uint64_t seed);
  void writeValues();
  void letGo();
  uint64_t inputHash() const;

  Case c;
  int64_t totalRows = 0;
  int64_t physicalBlocks = 0;
  std::unique_ptr<GuardedBuffer> q, k, v, o, lse, table, sinks, prefixes;
  uint64_t sealed = 0;
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_DATA_H
