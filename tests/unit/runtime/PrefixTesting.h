//===- PrefixTesting.h - A prefix cache with sequences over it - -*- C++
//-*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tests of PrefixCache have in common.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_RUNTIME_PREFIXTESTING_H
#define PAGODA_TESTS_UNIT_RUNTIME_PREFIXTESTING_H

#include "pagoda/PagedKV.h"
#include "pagoda/PrefixCache.h"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace pagoda::test {

using Ids = std::vector<int32_t>;

inline Hash128 constantHash(const Hash128 &, std::span<const int32_t>,
                            std::string_view, uint64_t) {
  return {42, 42};
}

/// A cache with sequences over it, and the token lists of the sequences.
struct Cached {
  explicit Cached(int32_t numBlocks, PrefixCacheOptions options = {},
                  int32_t blockSize = 4)
      : blocks(numBlocks), cache(blocks, with(options, blockSize)),
        kv(blocks, kvOptions(options, blockSize)) {}
  ~Cached() { EXPECT_EQ(cache.checkInvariants(), ""); }

  static PrefixCacheOptions with(PrefixCacheOptions options,
                                 int32_t blockSize) {
    options.blockSize = blockSize;
    return options;
  }
  static PagedKVOptions kvOptions(const PrefixCacheOptions &options,
                                  int32_t blockSize) {
    PagedKVOptions result;
    result.blockSize = blockSize;
    result.maxSequences = 64;
    result.maxTokens = 4096;
    result.groups = options.groups;
    return result;
  }

  /// Admits a prompt: hit first, then blocks, then everything stored.
  SeqId run(const Ids &prompt, std::vector<ExtraKey> keys = {},
            int32_t priority = 0) {
    SeqId seq = kv.add();
    cache.lookup(prompt, keys, hit);
    EXPECT_TRUE(kv.attachPrefix(seq, cache, hit));
    hitTokens = hit.tokens;
    if (!kv.append(seq, static_cast<int32_t>(prompt.size()) - hit.tokens)) {
      kv.remove(seq);
      return NoSequence;
    }
    kv.storePrefix(seq, cache, prompt, keys, priority);
    return seq;
  }
  void runAndEnd(const Ids &prompt, std::vector<ExtraKey> keys = {},
                 int32_t priority = 0) {
    kv.remove(run(prompt, keys, priority));
  }
  int32_t lookup(const Ids &prompt, std::vector<ExtraKey> keys = {}) {
    return cache.lookup(prompt, keys, hit);
  }
  Ids table(SeqId seq, int32_t group = 0) const {
    return {kv.table(seq, group).begin(), kv.table(seq, group).end()};
  }

  BlockManager blocks;
  PrefixCache cache;
  PagedKV kv;
  PrefixHit hit;
  int32_t hitTokens = -1;
};

inline Ids tokens(int32_t first, int32_t count) {
  Ids result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}
inline Ids operator+(Ids a, const Ids &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_RUNTIME_PREFIXTESTING_H
