//===- CacheFixture.h - Pools and tokens for append and copy ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pools of K and V with strides of their own, every element a NaN that names
// its place; new tokens with what the cache should hold of them, in f64. The
// rotation and its frequencies are written down here once more, as the papers
// and transformers have them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_CACHEFIXTURE_H
#define PAGODA_TESTS_CONFORMANCE_CACHEFIXTURE_H

#include "compiler/Driver.h"
#include "compiler/import/Rope.h"
#include "tests/conformance/Data.h"
#include "tools/pagoda/Engine.h"
#include "gtest/gtest.h"

#include <map>
#include <string>
#include <vector>

namespace pagoda::conformance {

/// Angular frequency of pair `i` in sequences of `length` tokens.
double referenceFrequency(const RopeConfig &rope, int64_t i, int64_t length);

/// New tokens, [count, kv_heads, dim] with `padding` elements (of NaN) after
/// each head, normal values.
struct NewTokens {
  NewTokens(const AttentionSpec &spec, int64_t count, int64_t padding);

  /// Tokens stand at `positions`: `k` becomes what the cache should hold.
  void rotate(const RopeConfig &rope, int64_t length,
              const std::vector<int32_t> &positions);
  /// Arguments without tables.
  pagoda_append_args args(const class CachePools &pools) const;

  AttentionSpec spec;
  int64_t count, padding;
  std::vector<double> k, v; ///< expected, [count, kv_heads, dim] dense
  std::vector<double>
      kScale; ///< beside k: what rounding errors are relative to
  std::vector<int64_t> slots; ///< all -1 at first
  std::vector<int32_t> positions;

private:
  std::vector<uint8_t> kInput, vInput;
};

class CachePools {
public:
  /// `blocks` blocks; V's rows are `padding` elements longer than its heads,
  /// K's blocks than their rows.
  CachePools(const AttentionSpec &spec, int64_t blocks, int64_t padding);

  pagoda_kv_view k() const { return views[0]; }
  pagoda_kv_view v() const { return views[1]; }
  pagoda_copy_args
  copyArgs(const std::vector<pagoda_block_copy> &copies) const {
    return {k(), v(), copies.data()};
  }

  /// Tokens with a slot in the pools are there, and all else is as it was.
  void expectWritten(const NewTokens &tokens) const;
  void expectCopied(const std::vector<pagoda_block_copy> &copies) const;

private:
  uint32_t bits(int part, int64_t index) const;
  uint32_t poison(int64_t index) const;
  int64_t offset(int part, int64_t block, int64_t head, int64_t slot) const;
  void expectUnchanged(int part, const std::vector<bool> &written) const;

  AttentionSpec spec;
  int64_t blocks;
  int64_t dims[2];
  pagoda_kv_view views[2];
  std::unique_ptr<GuardedBuffer> pools[2];
};

std::string describeCache(const AttentionSpec &spec);

class CacheTest : public testing::Test {
public:
  static AttentionSpec shape(int64_t heads, int64_t kDim, int64_t vDim,
                             int64_t block);
  /// The append and copy kernels of `spec`, compiled once.
  const KernelSet &kernels(const AttentionSpec &spec);
  CpuLauncher &launcher() { return cpu; }

private:
  struct Entry {
    std::unique_ptr<JitLibrary> code;
    KernelSet set;
  };
  static std::map<std::string, Entry> &libraries();
  ThreadPool pool{2};
  CpuLauncher cpu{pool};
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_CACHEFIXTURE_H
