//===- ConversionsTest.cpp - Block tables as other systems write them ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Round trips between the three notations and the inputs that must be refused.
//
//===----------------------------------------------------------------------===//

#include "pagoda/Conversions.h"
#include "TestErrors.h"

#include <gtest/gtest.h>
#include <random>

using namespace pagoda;
using namespace pagoda::test;
using Ids = std::vector<int32_t>;

TEST(Conversions, WorkedByHand) {
  // Lengths 5, 0, 4 and 1 in blocks of 4; an entry past the length is ignored,
  // as is a block that was allocated ahead of its first token.
  Ids table = {7, 2, 99, -1, -1, -1, 3, 5, -1, 0, -1, -1};
  Ids lens = {5, 0, 4, 1};
  PageList list = toPageList(table, 3, lens, 4, 8);
  EXPECT_EQ(list.indptr, (Ids{0, 2, 2, 3, 4}));
  EXPECT_EQ(list.indices, (Ids{7, 2, 3, 0}));
  EXPECT_EQ(list.lastPageLen, (Ids{1, 0, 4, 1}));
  EXPECT_EQ(toSlotMapping(table, 3, lens, 4, 8),
            (std::vector<int64_t>{28, 29, 30, 31, 8, 12, 13, 14, 15, 0}));
}

TEST(Conversions, RoundTrips) {
  std::mt19937 random(5);
  for (int round = 0; round != 100; ++round) {
    int32_t blockSize = 1 + static_cast<int32_t>(random() % 9);
    Ids lens(random() % 6);
    int64_t stride = 0;
    for (int32_t &length : lens) {
      length = static_cast<int32_t>(random() % 40);
      stride = std::max<int64_t>(stride, (length + blockSize - 1) / blockSize);
    }
    Ids table(lens.size() * stride, -1);
    for (size_t s = 0; s != lens.size(); ++s)
      for (int64_t i = 0; i * blockSize < lens[s]; ++i)
        table[s * stride + i] = static_cast<int32_t>(random() % 1000000);
    PageList list = toPageList(table, stride, lens, blockSize);
    BlockTable a = fromPageList(list.indptr, list.indices, list.lastPageLen,
                                blockSize, stride);
    EXPECT_EQ(a.blocks, table);
    EXPECT_EQ(a.seqLens, lens);
    BlockTable b = fromSlotMapping(
        toSlotMapping(table, stride, lens, blockSize), lens, blockSize);
    EXPECT_EQ(b.blocks, table);
    EXPECT_EQ(b.stride, stride);
  }
}

TEST(Conversions, RefusedByName) {
  auto refused = [](auto call, const char *part) {
    EXPECT_PAGODA_ERROR(call(), ErrorCode::InvalidArgument, part);
  };
  refused([] { (void)toPageList(Ids{1, 9}, 2, Ids{5}, 4, 8); },
          "block_table[1]: expected a block from 0 to 7, got 9");
  refused([] { (void)toSlotMapping(Ids{1, -1}, 2, Ids{5}, 4); },
          "block_table[1]: expected a block from 0, got -1");
  refused([] { (void)toPageList(Ids{1, 2}, 2, Ids{9}, 4); },
          "seq_lens[0]: expected at most 8 tokens");
  refused([] { (void)toPageList(Ids{1, 2}, 2, Ids{-1}, 4); },
          "seq_lens[0]: expected 0 or more, got -1");
  refused([] { (void)toPageList(Ids{1}, 2, Ids{1}, 4); }, "block_table");
  refused([] { (void)fromPageList(Ids{0, 2}, Ids{1}, Ids{1}, 4); },
          "kv_indices: expected 2 entries or more, got 1");
  refused([] { (void)fromPageList(Ids{0, 1}, Ids{1}, Ids{5}, 4); },
          "kv_last_page_len[0]: expected 1 to 4, got 5");
  refused([] { (void)fromPageList(Ids{0, 1}, Ids{1}, Ids{0}, 4); },
          "kv_last_page_len[0]");
  refused([] { (void)fromPageList(Ids{0, 2, 1}, Ids{1, 2}, Ids{1, 1}, 4); },
          "kv_indptr[2]");
  // Tokens of one block in two blocks: a layout of another block size.
  refused(
      [] { (void)fromSlotMapping(std::vector<int64_t>{8, 9, 20}, Ids{3}, 4); },
      "slot_mapping[2]: expected slot 10 for position 2");
  refused([] { (void)fromSlotMapping(std::vector<int64_t>{9, 10}, Ids{2}, 4); },
          "slot_mapping[0]: expected slot 8");
  refused([] { (void)fromSlotMapping(std::vector<int64_t>{8, -1}, Ids{2}, 4); },
          "slot_mapping[1]");
  refused([] { (void)fromSlotMapping(std::vector<int64_t>{8}, Ids{2}, 4); },
          "expected 2 slots as in seq_lens, got 1");
}
