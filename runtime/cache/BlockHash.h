//===- BlockHash.h - The hash and the comparison of one block ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lookup and storing do for every block, inline: a prompt of 50,000 tokens
// does it 3,000 times.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CACHE_BLOCKHASH_H
#define PAGODA_CACHE_BLOCKHASH_H

#include "pagoda/PrefixCache.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pagoda {

inline Hash128 hashBlock(const Hash128 &parent, const int32_t *tokens,
                         size_t count, std::string_view extra, uint64_t seed) {
  // The tokens' own hash does not wait for the parent's, so the chain that has
  // to be followed one after the other is only the short second hash.
  // A constant length lets the compiler drop the choice among lengths.
  XXH128_hash_t own =
      count == 16
          ? XXH3_128bits_withSeed(tokens, 16 * sizeof(int32_t), seed)
          : XXH3_128bits_withSeed(tokens, count * sizeof(int32_t), seed);
  uint64_t link[6] = {parent.low, parent.high, own.low64, own.high64};
  XXH128_hash_t all;
  if (extra.empty()) {
    all = XXH3_128bits_withSeed(link, 4 * sizeof(uint64_t), seed);
  } else {
    XXH128_hash_t more =
        XXH3_128bits_withSeed(extra.data(), extra.size(), seed);
    link[4] = more.low64;
    link[5] = more.high64;
    all = XXH3_128bits_withSeed(link, sizeof(link), seed);
  }
  return {all.low64, all.high64};
}

inline Hash128 PrefixCache::hashOf(const Hash128 &parent, const int32_t *tokens,
                                   std::string_view extra) const {
  if (Hash) [[unlikely]]
    return Hash(parent, {tokens, size_t(BlockSize)}, extra, Seed);
  return hashBlock(parent, tokens, BlockSize, extra, Seed);
}

inline bool sameTokens(const int32_t *a, const int32_t *b, size_t count) {
  // Of a constant length this is a few vector instructions and no call.
  if (count == 16)
    return std::memcmp(a, b, 16 * sizeof(int32_t)) == 0;
  return std::memcmp(a, b, count * sizeof(int32_t)) == 0;
}

inline bool PrefixCache::isNode(int32_t node, int32_t parent,
                                const int32_t *tokens,
                                std::string_view extra) const {
  return Nodes[node].parent == parent &&
         sameTokens(NodeTokens.data() + size_t(node) * BlockSize, tokens,
                    BlockSize) &&
         (Extras.empty() ? extra.empty() : Extras[node] == extra);
}

} // namespace pagoda

#endif // PAGODA_CACHE_BLOCKHASH_H
