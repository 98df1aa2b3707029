//===- HardInputsTest.cpp - What engines do on a bad day ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Extremes that are legal (nothing, one, all) and calls that are not: each is
// an answer or a named error, and nothing is lost.
//
//===----------------------------------------------------------------------===//

#include "PrefixTesting.h"
#include "TestErrors.h"
#include "pagoda/pagoda.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>

using namespace pagoda;
using namespace pagoda::test;

TEST(HardInputs, NothingIsLegal) {
  BlockManager blocks(4);
  EXPECT_TRUE(blocks.allocate(std::span<int32_t>{}));
  blocks.share(std::span<const int32_t>{});
  blocks.release(std::span<const int32_t>{});
  Cached c(4);
  EXPECT_EQ(c.lookup({}), 0);
  SeqId empty = c.kv.add();
  EXPECT_TRUE(c.kv.attachPrefix(empty, c.cache, c.hit));
  EXPECT_TRUE(c.kv.append(empty, 0));
  c.kv.storePrefix(empty, c.cache, {});
  SeqId child = c.kv.fork(empty);
  SeqId grandchild = c.kv.fork(child, 0);
  EXPECT_EQ(c.kv.length(grandchild), 0);
  c.kv.truncate(child, 0);
  EXPECT_EQ(c.kv.releaseWindow(child), 0);
  c.kv.preempt(child);
  EXPECT_TRUE(c.kv.resume(child));
  c.kv.slotMapping(child, 0, {});
  // An empty fork writes into blocks of its own.
  ASSERT_TRUE(c.kv.append(child, 5));
  ASSERT_TRUE(c.kv.append(grandchild, 5));
  EXPECT_TRUE(c.kv.pendingCopies().empty());
  for (SeqId seq : {empty, child, grandchild})
    EXPECT_TRUE(c.kv.remove(seq));
  EXPECT_EQ(c.blocks.numFree(), 4);
}

TEST(HardInputs, ForksOfForksCopyOnceEach) {
  BlockManager blocks(16);
  PagedKVOptions options;
  options.blockSize = 4;
  PagedKV kv(blocks, options);
  std::vector<SeqId> seqs = {kv.add()};
  ASSERT_TRUE(kv.append(seqs[0], 6));
  for (int i = 0; i != 5; ++i)
    seqs.push_back(kv.fork(seqs.back()));
  EXPECT_EQ(blocks.refs(kv.table(seqs[0])[1]), 6u);
  for (SeqId seq : seqs)
    ASSERT_TRUE(kv.append(seq, 1));
  // The last one to write finds no other reader.
  EXPECT_EQ(kv.pendingCopies().size(), 5u);
  kv.copiesDone();
  EXPECT_EQ(16 - blocks.numFree(), 1 + 6);
  // All the way back, and on: the first block is still everybody's.
  for (SeqId seq : seqs)
    kv.truncate(seq, 0);
  EXPECT_EQ(blocks.numFree(), 16);
  for (SeqId seq : seqs)
    ASSERT_TRUE(kv.append(seq, 9 - 4 * (seq != seqs[0])));
  for (SeqId seq : seqs)
    kv.remove(seq);
  EXPECT_EQ(blocks.numFree(), 16);
}

TEST(HardInputs, WindowsSmallerThanABlock) {
  for (int32_t window : {1, 2, 3, 4, 5})
    for (int32_t blockSize : {1, 4, 16}) {
      BlockManager blocks(64);
      PagedKVOptions options;
      options.blockSize = blockSize;
      options.maxTokens = 400;
      options.groups = {{window, 0}};
      PagedKV kv(blocks, options);
      SeqId seq = kv.add();
      for (int32_t length = 1; length <= 300; ++length) {
        ASSERT_TRUE(kv.append(seq, 1));
        auto table = kv.table(seq);
        // The query at length - 1 sees the last `window` keys.
        for (int32_t key = std::max(0, length - window); key != length; ++key)
          ASSERT_GE(table[key / blockSize], 0) << key << " of " << length;
        kv.releaseWindow(seq);
      }
      int32_t held = 64 - blocks.numFree();
      EXPECT_LE(held, (window + blockSize - 2) / blockSize + 1);
      // A query at 101 would see the key before it.
      if (window > 1)
        EXPECT_PAGODA_ERROR(kv.truncate(seq, 101), ErrorCode::InvalidArgument,
                            "which its window has let go");
      kv.remove(seq);
      EXPECT_EQ(blocks.numFree(), 64);
    }
}

TEST(HardInputs, PinsUnderPressure) {
  Cached c(6);
  c.runAndEnd(tokens(0, 12));
  PrefixHit pinned;
  ASSERT_EQ(c.cache.lookup(tokens(0, 13), {}, pinned), 12);
  ASSERT_TRUE(c.cache.pin(pinned));
  // Three blocks are left; prompts of three go through them, larger ones do
  // not.
  for (int32_t p = 1; p != 50; ++p)
    c.runAndEnd(tokens(1000 * p, 12), {}, p % 4);
  SeqId seq = c.kv.add();
  EXPECT_FALSE(c.kv.append(seq, 13));
  EXPECT_TRUE(c.kv.append(seq, 12));
  EXPECT_FALSE(c.kv.append(seq, 1));
  EXPECT_EQ(c.lookup(tokens(0, 13)), 12);
  c.cache.unpin(pinned);
  EXPECT_TRUE(c.kv.append(seq, 12));
  EXPECT_EQ(c.lookup(tokens(0, 13)), 0);
  EXPECT_PAGODA_ERROR(c.cache.unpin(pinned), ErrorCode::InvalidArgument,
                      "expected a hit that is pinned");
  EXPECT_FALSE(c.cache.pin(pinned));
}

TEST(HardInputs, FourBitHashes) {
  PrefixCacheOptions options;
  options.hash = [](const Hash128 &parent, std::span<const int32_t> tokens,
                    std::string_view extra, uint64_t seed) {
    Hash128 hash = PrefixCache::blockHash(parent, tokens, extra, seed);
    return Hash128{hash.low & 15, 0};
  };
  Cached c(200, options);
  for (int32_t p = 0; p != 90; ++p)
    c.runAndEnd({p, 1, 2, 3, p % 7, 5, 6, 7, 8});
  for (int32_t p = 0; p != 90; ++p) {
    EXPECT_EQ(c.lookup({p, 1, 2, 3, p % 7, 5, 6, 7, 8}), 8) << p;
    EXPECT_EQ(c.lookup({p, 1, 2, 3, p % 7 + 1, 5, 6, 7, 8}), 4) << p;
    EXPECT_EQ(c.lookup({p + 90, 1, 2, 3, p % 7, 5, 6, 7, 8}), 0) << p;
  }
}

//===----------------------------------------------------------------------===//
// Through the C API
//===----------------------------------------------------------------------===//

TEST(HardInputs, NonsenseThroughTheCApiIsNamed) {
  auto expect = [](pagoda_status got, pagoda_status status, const char *part) {
    EXPECT_EQ(got, status) << pagoda_last_error();
    EXPECT_NE(std::string(pagoda_last_error()).find(part), std::string::npos)
        << pagoda_last_error();
  };
  pagoda_blocks *blocks = nullptr;
  ASSERT_EQ(pagoda_blocks_create(8, &blocks), PAGODA_OK);
  pagoda_kv_options options = {};
  pagoda_kv *kv = nullptr;
  expect(pagoda_kv_create(blocks, &options, &kv), PAGODA_INVALID_ARGUMENT,
         "block_size: expected 1 or more, got 0");
  options.block_size = 4;
  options.max_sequences = 2;
  options.max_tokens = 20;
  pagoda_table_group group = {-4, 0};
  options.num_groups = 1;
  options.groups = &group;
  expect(pagoda_kv_create(blocks, &options, &kv), PAGODA_INVALID_ARGUMENT,
         "window: expected 0 or more, got -4");
  options.num_groups = -1;
  EXPECT_EQ(pagoda_kv_create(blocks, &options, &kv), PAGODA_INVALID_ARGUMENT);
  options.num_groups = 0;
  ASSERT_EQ(pagoda_kv_create(blocks, &options, &kv), PAGODA_OK);
  int64_t seq = 0, other = 0, third = 0;
  ASSERT_EQ(pagoda_kv_add(kv, &seq), PAGODA_OK);
  ASSERT_EQ(pagoda_kv_append(kv, seq, 5), PAGODA_OK);
  for (int64_t id : {int64_t(-1), std::numeric_limits<int64_t>::min(),
                     std::numeric_limits<int64_t>::max(), seq + 1,
                     seq + (int64_t(1) << 31)}) {
    expect(pagoda_kv_append(kv, id, 1), PAGODA_UNKNOWN_SEQUENCE,
           std::to_string(id).c_str());
    EXPECT_EQ(pagoda_kv_remove(kv, id), PAGODA_UNKNOWN);
    EXPECT_EQ(pagoda_kv_fork(kv, id, 0, &other), PAGODA_UNKNOWN_SEQUENCE);
    EXPECT_EQ(pagoda_kv_truncate(kv, id, 0), PAGODA_UNKNOWN_SEQUENCE);
    EXPECT_EQ(pagoda_kv_preempt(kv, id), PAGODA_UNKNOWN_SEQUENCE);
    EXPECT_EQ(pagoda_kv_resume(kv, id), PAGODA_UNKNOWN_SEQUENCE);
  }
  expect(pagoda_kv_append(kv, seq, -1), PAGODA_INVALID_ARGUMENT, "got -1");
  expect(pagoda_kv_append(kv, seq, INT32_MAX), PAGODA_TOO_LONG, "at most 20");
  expect(pagoda_kv_append(kv, seq, 16), PAGODA_TOO_LONG, "got 21");
  expect(pagoda_kv_truncate(kv, seq, 6), PAGODA_INVALID_ARGUMENT, "got 6");
  expect(pagoda_kv_truncate(kv, seq, -1), PAGODA_INVALID_ARGUMENT, "got -1");
  expect(pagoda_kv_fork(kv, seq, 6, &other), PAGODA_INVALID_ARGUMENT, "got 6");
  expect(pagoda_kv_release_window(kv, seq, 6, nullptr), PAGODA_INVALID_ARGUMENT,
         "got 6");
  int64_t slots[4];
  expect(pagoda_kv_slot_mapping(kv, seq, 0, INT32_MAX, 4, slots),
         PAGODA_INVALID_ARGUMENT, "got 2147483647");
  expect(pagoda_kv_slot_mapping(kv, seq, 0, -1, 1, slots),
         PAGODA_INVALID_ARGUMENT, "got -1");
  expect(pagoda_kv_slot_mapping(kv, seq, 1, 0, 1, slots),
         PAGODA_INVALID_ARGUMENT, "table group");
  expect(pagoda_kv_resume(kv, seq), PAGODA_INVALID_ARGUMENT, "running");
  ASSERT_EQ(pagoda_kv_fork(kv, seq, 0, &other), PAGODA_OK);
  EXPECT_EQ(pagoda_kv_add(kv, &third), PAGODA_OUT_OF_SEQUENCES);

  pagoda_prefix_options cached = {};
  pagoda_prefix *prefix = nullptr;
  expect(pagoda_prefix_create(blocks, &cached, &prefix),
         PAGODA_INVALID_ARGUMENT, "block_size");
  cached.block_size = 4;
  cached.event_capacity = -5;
  expect(pagoda_prefix_create(blocks, &cached, &prefix),
         PAGODA_INVALID_ARGUMENT, "event_capacity: expected 1");
  cached.event_capacity = 0;
  ASSERT_EQ(pagoda_prefix_create(blocks, &cached, &prefix), PAGODA_OK);
  pagoda_hit *hit = nullptr;
  ASSERT_EQ(pagoda_hit_create(&hit), PAGODA_OK);
  int32_t text[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  pagoda_extra_key key = {2, 0, nullptr, 3};
  expect(pagoda_prefix_lookup(prefix, text, 8, &key, 1, hit, nullptr),
         PAGODA_INVALID_ARGUMENT, "keys: bytes: expected a pointer");
  key = {2, -1, "abc", 3};
  expect(pagoda_prefix_store(prefix, kv, seq, text, 5, &key, 1, 0),
         PAGODA_INVALID_ARGUMENT, "position");
  expect(pagoda_prefix_store(prefix, kv, seq, text, 6, nullptr, 0, 0),
         PAGODA_INVALID_ARGUMENT, "at most the sequence's length 5");
  expect(pagoda_prefix_store(prefix, kv, seq, text, 5, nullptr, 0, 4),
         PAGODA_INVALID_ARGUMENT, "priority");
  expect(pagoda_prefix_lookup(prefix, nullptr, 8, nullptr, 0, hit, nullptr),
         PAGODA_INVALID_ARGUMENT, "expected a pointer");
  expect(pagoda_prefix_lookup(prefix, text, -8, nullptr, 0, hit, nullptr),
         PAGODA_INVALID_ARGUMENT, "got -8");
  EXPECT_EQ(pagoda_prefix_lookup(prefix, nullptr, 0, nullptr, 0, hit, nullptr),
            PAGODA_OK);
  expect(pagoda_prefix_unpin(prefix, nullptr), PAGODA_INVALID_ARGUMENT,
         "expected a pointer");
  // Nothing of all this has taken a block.
  EXPECT_EQ(pagoda_blocks_free(blocks), 6);
  pagoda_hit_destroy(hit);
  pagoda_prefix_destroy(prefix);
  pagoda_kv_destroy(kv);
  EXPECT_EQ(pagoda_blocks_free(blocks), 8);
  pagoda_blocks_destroy(blocks);
}
