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

/// XXH3 of the parent's hash, the tokens and the keys, one after the other.
Hash128 hashAnyBlock(const Hash128 &parent, const int32_t *tokens, size_t count,
                     std::string_view extra, uint64_t seed);

/// The same; the usual block size without keys at once. Inlined, the chain from
/// one block's hash to the next stays in registers.
[[gnu::always_inline]] inline Hash128
hashBlock(const Hash128 &parent, const int32_t *tokens, size_t count,
          std::string_view extra, uint64_t seed) {
  if (count != 16 || !extra.empty())
    return hashAnyBlock(parent, tokens, count, extra, seed);
  // Of a constant length this is a few moves and no choice among lengths.
  struct {
    Hash128 parent;
    int32_t tokens[16];
  } input;
  input.parent = parent;
  std::memcpy(input.tokens, tokens, sizeof(input.tokens));
  XXH128_hash_t all = XXH3_128bits_withSeed(&input, sizeof(input), seed);
  return {all.low64, all.high64};
}

[[gnu::always_inline]] inline Hash128
PrefixCache::hashOf(const Hash128 &parent, const int32_t *tokens,
                    std::string_view extra) const {
  if (Hash) [[unlikely]]
    return Hash(parent, {tokens, size_t(BlockSize)}, extra, Seed);
  return hashBlock(parent, tokens, BlockSize, extra, Seed);
}

[[gnu::always_inline]] inline bool sameTokens(const int32_t *a,
                                              const int32_t *b, size_t count) {
  if (count != 16)
    return std::memcmp(a, b, count * sizeof(int32_t)) == 0;
  // Of a constant length this is a few vector instructions and no call.
  int32_t differing = 0;
  for (int i = 0; i != 16; ++i)
    differing |= a[i] ^ b[i];
  return differing == 0;
}

[[gnu::always_inline]] inline bool
PrefixCache::isNode(int32_t node, int32_t parent, const int32_t *tokens,
                    std::string_view extra) const {
  return Nodes[node].parent == parent &&
         sameTokens(NodeTokens.data() + size_t(node) * BlockSize, tokens,
                    BlockSize) &&
         (Extras.empty() ? extra.empty() : Extras[node] == extra);
}

[[gnu::always_inline]] inline int32_t
PrefixCache::find(const Hash128 &hash, int32_t parent, const int32_t *tokens,
                  std::string_view extra) const {
  int32_t node = bucket(hash);
  while (node >= 0 &&
         !(Nodes[node].hash == hash && isNode(node, parent, tokens, extra)))
    node = Nodes[node].next;
  return node;
}

} // namespace pagoda

#endif // PAGODA_CACHE_BLOCKHASH_H
