//===- Conversions.cpp - Block tables as other systems write them ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Conversions.h. Every conversion passes through one check of ids and one
// of lengths, so that the messages are the same.
//
//===----------------------------------------------------------------------===//

#include "pagoda/Conversions.h"

#include <algorithm>
#include <string>

using namespace pagoda;

[[noreturn]] static void bad(const std::string &text) {
  throw Error(ErrorCode::InvalidArgument, text);
}

static std::string at(const char *field, int64_t index) {
  return std::string(field) + "[" + std::to_string(index) + "]";
}

static void checkBlock(const char *field, int64_t index, int64_t block,
                       int32_t numBlocks) {
  if (block < 0 || (numBlocks >= 0 && block >= numBlocks) || block > INT32_MAX)
    bad(at(field, index) + ": expected a block from 0" +
        (numBlocks >= 0 ? " to " + std::to_string(numBlocks - 1) : "") +
        ", got " + std::to_string(block));
}

static int64_t blocksFor(int64_t tokens, int32_t blockSize) {
  return (tokens + blockSize - 1) / blockSize;
}

/// Checks the lengths; returns the blocks of the longest sequence.
static int64_t checkLengths(std::span<const int32_t> seqLens, int32_t blockSize,
                            int64_t stride) {
  if (blockSize < 1)
    bad("block_size: expected 1 or more, got " + std::to_string(blockSize));
  int64_t longest = 0;
  for (size_t s = 0; s != seqLens.size(); ++s) {
    if (seqLens[s] < 0)
      bad(at("seq_lens", s) + ": expected 0 or more, got " +
          std::to_string(seqLens[s]));
    longest = std::max(longest, blocksFor(seqLens[s], blockSize));
    if (stride && blocksFor(seqLens[s], blockSize) > stride)
      bad(at("seq_lens", s) + ": expected at most " +
          std::to_string(stride * blockSize) + " tokens in a row of " +
          std::to_string(stride) + " blocks, got " +
          std::to_string(seqLens[s]));
  }
  return longest;
}

static void checkTable(std::span<const int32_t> table, int64_t stride,
                       std::span<const int32_t> seqLens, int32_t blockSize) {
  if (stride < 0)
    bad("block_table_stride: expected 0 or more, got " +
        std::to_string(stride));
  if (int64_t(table.size()) < int64_t(seqLens.size()) * stride)
    bad("block_table: expected " + std::to_string(seqLens.size()) +
        " rows of " + std::to_string(stride) + " entries, got " +
        std::to_string(table.size()) + " entries");
  int64_t longest = checkLengths(seqLens, blockSize, stride);
  if (longest > stride)
    bad("block_table_stride: expected " + std::to_string(longest) +
        " or more, got " + std::to_string(stride));
}

static BlockTable emptyTable(std::vector<int32_t> seqLens, int32_t blockSize,
                             int64_t stride) {
  int64_t longest = checkLengths(seqLens, blockSize, stride);
  BlockTable table;
  table.blockSize = blockSize;
  table.stride = stride ? stride : longest;
  table.blocks.assign(seqLens.size() * table.stride, -1);
  table.seqLens = std::move(seqLens);
  return table;
}

PageList pagoda::toPageList(std::span<const int32_t> table, int64_t stride,
                            std::span<const int32_t> seqLens, int32_t blockSize,
                            int32_t numBlocks) {
  checkTable(table, stride, seqLens, blockSize);
  PageList list;
  list.indptr.push_back(0);
  for (size_t s = 0; s != seqLens.size(); ++s) {
    // The length decides how many blocks count, not what the row holds.
    int64_t blocks = blocksFor(seqLens[s], blockSize);
    for (int64_t i = 0; i != blocks; ++i) {
      int64_t index = int64_t(s) * stride + i;
      checkBlock("block_table", index, table[index], numBlocks);
      list.indices.push_back(table[index]);
    }
    list.indptr.push_back(static_cast<int32_t>(list.indices.size()));
    list.lastPageLen.push_back(
        blocks ? static_cast<int32_t>(seqLens[s] - (blocks - 1) * blockSize)
               : 0);
  }
  return list;
}

BlockTable pagoda::fromPageList(std::span<const int32_t> indptr,
                                std::span<const int32_t> indices,
                                std::span<const int32_t> lastPageLen,
                                int32_t blockSize, int64_t stride,
                                int32_t numBlocks) {
  if (indptr.size() != lastPageLen.size() + 1 || indptr[0] != 0)
    bad("kv_indptr: expected " + std::to_string(lastPageLen.size() + 1) +
        " entries from 0, got " + std::to_string(indptr.size()) + " entries" +
        (indptr.empty() ? "" : " from " + std::to_string(indptr[0])));
  if (indptr.back() > int64_t(indices.size()))
    bad("kv_indices: expected " + std::to_string(indptr.back()) +
        " entries or more, got " + std::to_string(indices.size()));
  if (blockSize < 1)
    bad("block_size: expected 1 or more, got " + std::to_string(blockSize));
  std::vector<int32_t> seqLens;
  for (size_t s = 0; s != lastPageLen.size(); ++s) {
    int64_t pages = int64_t(indptr[s + 1]) - indptr[s];
    if (pages < 0)
      bad(at("kv_indptr", s + 1) + ": expected " + std::to_string(indptr[s]) +
          " or more, got " + std::to_string(indptr[s + 1]));
    int32_t last = lastPageLen[s];
    if (last < (pages ? 1 : 0) || last > (pages ? blockSize : 0))
      bad(at("kv_last_page_len", s) + ": expected " +
          (pages ? "1 to " + std::to_string(blockSize) : "0") + ", got " +
          std::to_string(last));
    seqLens.push_back(
        pages ? static_cast<int32_t>((pages - 1) * blockSize + last) : 0);
  }
  BlockTable table = emptyTable(std::move(seqLens), blockSize, stride);
  for (size_t s = 0; s != lastPageLen.size(); ++s)
    for (int32_t i = indptr[s]; i != indptr[s + 1]; ++i) {
      checkBlock("kv_indices", i, indices[i], numBlocks);
      table.blocks[s * table.stride + (i - indptr[s])] = indices[i];
    }
  return table;
}

std::vector<int64_t> pagoda::toSlotMapping(std::span<const int32_t> table,
                                           int64_t stride,
                                           std::span<const int32_t> seqLens,
                                           int32_t blockSize,
                                           int32_t numBlocks) {
  checkTable(table, stride, seqLens, blockSize);
  std::vector<int64_t> slots;
  for (size_t s = 0; s != seqLens.size(); ++s)
    for (int32_t p = 0; p != seqLens[s]; ++p) {
      int64_t index = int64_t(s) * stride + p / blockSize;
      checkBlock("block_table", index, table[index], numBlocks);
      slots.push_back(int64_t(table[index]) * blockSize + p % blockSize);
    }
  return slots;
}

BlockTable pagoda::fromSlotMapping(std::span<const int64_t> slots,
                                   std::span<const int32_t> seqLens,
                                   int32_t blockSize, int64_t stride,
                                   int32_t numBlocks) {
  BlockTable table =
      emptyTable({seqLens.begin(), seqLens.end()}, blockSize, stride);
  int64_t total = 0;
  for (int32_t length : seqLens)
    total += length;
  if (total != int64_t(slots.size()))
    bad("slot_mapping: expected " + std::to_string(total) +
        " slots as in seq_lens, got " + std::to_string(slots.size()));
  int64_t n = 0;
  for (size_t s = 0; s != seqLens.size(); ++s)
    for (int32_t p = 0; p != seqLens[s]; ++p, ++n) {
      int64_t slot = slots[n];
      int64_t block = slot < 0 ? -1 : slot / blockSize;
      checkBlock("slot_mapping", n, block, numBlocks);
      int32_t &entry = table.blocks[s * table.stride + p / blockSize];
      int64_t expected = p % blockSize == 0
                             ? block * blockSize
                             : int64_t(entry) * blockSize + p % blockSize;
      if (slot != expected)
        bad(at("slot_mapping", n) + ": expected slot " +
            std::to_string(expected) + " for position " + std::to_string(p) +
            " in blocks of " + std::to_string(blockSize) + ", got " +
            std::to_string(slot));
      entry = static_cast<int32_t>(block);
    }
  return table;
}
