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
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pagoda {

/// XXH3 of the parent's hash, the tokens and the keys, one after the other.
inline Hash128 hashBlock(const Hash128 &parent, const int32_t *tokens,
                         size_t count, std::string_view extra, uint64_t seed) {
  struct {
    Hash128 parent;
    int32_t tokens[256];
  } input;
  XXH128_hash_t all;
  if (count == 16 && extra.empty()) {
    // Of a constant length this is a few moves and no choice among lengths.
    input.parent = parent;
    std::memcpy(input.tokens, tokens, 16 * sizeof(int32_t));
    all = XXH3_128bits_withSeed(&input, sizeof(Hash128) + 16 * sizeof(int32_t),
                                seed);
  } else if (count <= std::size(input.tokens) && extra.empty()) {
    input.parent = parent;
    std::memcpy(input.tokens, tokens, count * sizeof(int32_t));
    all = XXH3_128bits_withSeed(
        &input, sizeof(Hash128) + count * sizeof(int32_t), seed);
  } else {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset_withSeed(&state, seed);
    XXH3_128bits_update(&state, &parent, sizeof(parent));
    XXH3_128bits_update(&state, tokens, count * sizeof(int32_t));
    XXH3_128bits_update(&state, extra.data(), extra.size());
    all = XXH3_128bits_digest(&state);
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
