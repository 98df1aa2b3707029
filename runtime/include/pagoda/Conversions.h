//===- Conversions.h - Block tables as other systems write them -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The three usual ways to say where the tokens of a batch lie:
//   block_table + seq_lens   [sequences, stride] of block ids, and lengths
//   kv_indptr, kv_indices, kv_last_page_len   block ids one after the other
//   slot_mapping   block * block_size + slot for each token
// and conversions between them. Each checks its input and names the element at
// fault (InvalidArgument). A table entry past the last token may hold anything.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CONVERSIONS_H
#define PAGODA_CONVERSIONS_H

#include "pagoda/Error.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda {

/// A batch's block table in memory of its own.
struct BlockTable {
  int32_t blockSize = 16;
  int64_t stride = 0;           ///< entries a row
  std::vector<int32_t> blocks;  ///< [sequences, stride], -1 past the last
  std::vector<int32_t> seqLens; ///< [sequences]
};

/// Pages of sequence s: indices[indptr[s] .. indptr[s + 1]); the last of them
/// holds lastPageLen[s] tokens, the others page_size. A sequence without pages
/// has a last page length of 0.
struct PageList {
  std::vector<int32_t> indptr;      ///< [sequences + 1]
  std::vector<int32_t> indices;     ///< [pages]
  std::vector<int32_t> lastPageLen; ///< [sequences]
};

/// \p table [seqLens.size(), stride]. \p numBlocks bounds the ids; -1: unknown.
PageList toPageList(std::span<const int32_t> table, int64_t stride,
                    std::span<const int32_t> seqLens, int32_t blockSize,
                    int32_t numBlocks = -1);

/// The reverse, with rows of \p stride entries (0: as long as the longest).
BlockTable fromPageList(std::span<const int32_t> indptr,
                        std::span<const int32_t> indices,
                        std::span<const int32_t> lastPageLen, int32_t blockSize,
                        int64_t stride = 0, int32_t numBlocks = -1);

/// Slots of every token of every sequence, one sequence after the other.
std::vector<int64_t> toSlotMapping(std::span<const int32_t> table,
                                   int64_t stride,
                                   std::span<const int32_t> seqLens,
                                   int32_t blockSize, int32_t numBlocks = -1);

/// The reverse. The slots of a sequence must run through whole blocks: slot
/// p % block_size for position p, and one block for the positions of a block.
/// Anything else is no paged layout of this block size and is refused.
BlockTable fromSlotMapping(std::span<const int64_t> slots,
                           std::span<const int32_t> seqLens, int32_t blockSize,
                           int64_t stride = 0, int32_t numBlocks = -1);

} // namespace pagoda

#endif // PAGODA_CONVERSIONS_H
