//===- ExamplesTest.cpp - Worked examples of paged attention ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers that published explanations work out by hand, run through the
// runtime.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "TestErrors.h"
#include "pagoda/MemoryPlan.h"
#include "pagoda/PoolSimulation.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace pagoda;
using namespace pagoda::test;
using Ids = std::vector<int32_t>;

/// A pool whose next blocks are \p wanted: everything else is taken first.
static void handOutNext(BlockManager &blocks, const Ids &wanted) {
  Ids all(blocks.numFree());
  ASSERT_TRUE(blocks.allocate(all));
  Ids rest;
  for (int32_t block : all)
    if (std::find(wanted.begin(), wanted.end(), block) == wanted.end())
      rest.push_back(block);
  blocks.release(rest);
  blocks.release(wanted); // last first, so the first one is on top
}

TEST(Examples, block_table_lookup) {
  BlockManager blocks(6);
  handOutNext(blocks, {3, 1, 5});
  PagedKVOptions options;
  options.blockSize = 4;
  options.maxSequences = 1;
  options.maxTokens = 16;
  PagedKV kv(blocks, options);
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 10));
  EXPECT_EQ(Ids(kv.table(seq).begin(), kv.table(seq).end()), (Ids{3, 1, 5}));
  std::vector<int64_t> slots(10);
  kv.slotMapping(seq, 0, slots);
  EXPECT_EQ(slots[9], 5 * 4 + 1);
  for (int64_t t = 0; t != 10; ++t)
    EXPECT_EQ(slots[t] / 4, t < 4 ? 3 : t < 8 ? 1 : 5) << t;
  for (int32_t block : {0, 2, 4})
    EXPECT_EQ(blocks.refs(block), 0u);
  // Block 5 is not full: two more tokens take nothing, a third takes a block.
  ASSERT_TRUE(kv.append(seq, 2));
  EXPECT_EQ(blocks.numFree(), 3);
  ASSERT_TRUE(kv.append(seq, 1));
  EXPECT_EQ(blocks.numFree(), 2);
}

TEST(Examples, pool_of_a_28_layer_model) {
  KvFormat format;
  format.kvHeads = 8;
  format.headDim = format.vHeadDim = 128; // kv_dim 1024
  EXPECT_EQ(format.blockBytes(), 131072);
  BlockManager blocks(200);
  PagedKVOptions options;
  options.maxSequences = 1;
  options.maxTokens = 128;
  options.groups.assign(28, TableGroup{});
  PagedKV kv(blocks, options);
  SeqId seq = kv.add();
  ASSERT_TRUE(kv.append(seq, 100));
  int32_t used = blocks.numBlocks() - blocks.numFree();
  EXPECT_EQ(used, 196);
  EXPECT_EQ(kv.table(seq, 27).size(), 7u);
  EXPECT_EQ(used * format.blockBytes(), int64_t(24.5 * 1024 * 1024));
  EXPECT_EQ(kv.length(seq) - 6 * 16, 4);
  int32_t waste = 7 * 16 - kv.length(seq);
  EXPECT_EQ(waste, 12);
  EXPECT_LE(waste, kv.blockSize() - 1);
  SequenceLoad load{100};
  MemoryPlan plan = planPaged({format, 28, 28}, {&load, 1});
  EXPECT_EQ(plan.blocks, used);
  EXPECT_EQ(plan.bytes, used * format.blockBytes());
  EXPECT_EQ(plan.wastedSlots, waste);
}

TEST(Examples, element_offset) {
  KvFormat format;
  format.kvHeads = 2;
  format.headDim = format.vHeadDim = 8;
  format.blockSize = 4;
  format.layout = PAGODA_NHD;
  KvPool pool(format, 6);
  pagoda_kv_view view = pool.k();
  int64_t kvDim = 2 * 8;
  for (int64_t phys : {0, 1, 5})
    for (int64_t slot : {0, 1, 3})
      EXPECT_EQ(phys * view.block_stride + slot * view.token_stride,
                phys * 4 * kvDim + slot * kvDim);
  EXPECT_EQ(view.head_stride, 8);
  EXPECT_EQ(dtypeBytes(format.kType), 4);
  // No 32-bit arithmetic on the way.
  KvFormat large = format;
  large.kvHeads = 8;
  large.headDim = large.vHeadDim = 128;
  large.blockSize = 16;
  EXPECT_GT(int64_t(131072) * large.kBlockElements(), int64_t(INT32_MAX));
  EXPECT_EQ(KvPool::bytesNeeded(large, 262144, 1),
            size_t(262144) * 2 * 16 * 1024 * 4 + 4096);
}

TEST(Examples, copy_on_write) {
  EngineOptions o;
  o.numBlocks = 8;
  Engine engine(o);
  SeqId a = engine.add();
  ASSERT_TRUE(engine.append(a, 2));
  SeqId b = engine.fork(a, 2);
  int32_t old = engine.kv.table(a)[0];
  EXPECT_EQ(engine.blocks.refs(old), 2u);
  float before = engine.stored(a, 1);
  ASSERT_TRUE(engine.append(b, 1));
  int32_t fresh = engine.kv.table(b)[0];
  EXPECT_NE(fresh, old);
  EXPECT_EQ(engine.blocks.refs(fresh), 1u);
  EXPECT_EQ(engine.blocks.refs(old), 1u);
  EXPECT_EQ(engine.stored(a, 1), before);
  EXPECT_EQ(engine.stored(b, 1), before);
  EXPECT_LT(engine.step({{a, 2}, {b, 3}}), 1e-5);
  // Releasing a shared block never disturbs its other owners.
  SeqId c = engine.fork(a, 2);
  engine.remove(a);
  EXPECT_EQ(engine.stored(c, 1), before);
  EXPECT_LT(engine.step({{c, 1}, {b, 1}}), 1e-5);
}

TEST(Examples, waste_contiguous_vs_paged) {
  KvFormat format;
  format.kvHeads = 1;
  format.headDim = format.vHeadDim = 8;
  format.blockSize = 4;
  CacheLayers layer{format};
  std::vector<SequenceLoad> load = {{3}, {5}, {2}};
  MemoryPlan contiguous = planContiguous(layer, load, 8);
  EXPECT_EQ(contiguous.reservedSlots, 24);
  EXPECT_EQ(contiguous.wastedSlots, 14);
  EXPECT_NEAR(contiguous.waste(), 0.5833, 1e-4);
  MemoryPlan paged = planPaged(layer, load);
  EXPECT_EQ(paged.blocks, 4);
  EXPECT_EQ(paged.reservedSlots, 16);
  EXPECT_EQ(paged.wastedSlots, 6);
  EXPECT_EQ(paged.waste(), 0.375);

  // The paged side again, through real tables.
  BlockManager blocks(8);
  PagedKVOptions options;
  options.blockSize = 4;
  options.maxTokens = 16;
  PagedKV kv(blocks, options);
  std::vector<SeqId> seqs;
  for (const SequenceLoad &some : load) {
    seqs.push_back(kv.add());
    ASSERT_TRUE(kv.append(seqs.back(), some.tokens));
  }
  EXPECT_EQ(blocks.numBlocks() - blocks.numFree(), 4);
  // From 5 to 7 allocates nothing in either.
  ASSERT_TRUE(kv.append(seqs[1], 2));
  EXPECT_EQ(blocks.numFree(), 4);
  load[1].tokens = 7;
  EXPECT_EQ(planContiguous(layer, load, 8).reservedSlots, 24);
  // From 5 to 9 the contiguous one moves to 16 tokens; the paged one takes one
  // more block and copies nothing.
  kv.truncate(seqs[1], 5);
  ASSERT_TRUE(kv.append(seqs[1], 4));
  EXPECT_EQ(blocks.numFree(), 3);
  EXPECT_TRUE(kv.pendingCopies().empty());
  load[1].tokens = 9;
  EXPECT_EQ(planContiguous(layer, load, 8).reservedSlots, 8 + 16 + 8);
  EXPECT_EQ(planPaged(layer, load).blocks, 5);
}

TEST(Examples, prefix_sharing_refcounts) {
  enum { A, B, C, D, E, F, G, H };
  BlockManager blocks(8);
  PrefixCacheOptions options;
  options.blockSize = 2;
  options.retain = false;
  PrefixCache cache(blocks, options);
  PagedKVOptions kvOptions;
  kvOptions.blockSize = 2;
  PagedKV kv(blocks, kvOptions);
  PrefixHit hit;
  auto run = [&](const Ids &prompt) {
    SeqId seq = kv.add();
    cache.lookup(prompt, {}, hit);
    EXPECT_TRUE(kv.attachPrefix(seq, cache, hit));
    EXPECT_TRUE(kv.append(seq, int32_t(prompt.size()) - hit.tokens));
    kv.storePrefix(seq, cache, prompt);
    return seq;
  };
  auto refs = [&] {
    return Ids{int32_t(blocks.refs(0)), int32_t(blocks.refs(1)),
               int32_t(blocks.refs(2)), int32_t(blocks.refs(3))};
  };
  SeqId prefix = run({A, B, C, D});
  EXPECT_EQ(refs(), (Ids{1, 1, 0, 0}));
  SeqId first = run({A, B, C, D, E, F});
  EXPECT_EQ(hit.tokens, 4);
  EXPECT_EQ(refs(), (Ids{2, 2, 1, 0}));
  SeqId second = run({A, B, C, D, G, H});
  EXPECT_EQ(refs(), (Ids{3, 3, 1, 1}));
  ASSERT_EQ(cache.lookup(Ids{A, B, C, D, E, F, A}, {}, hit), 6);
  kv.remove(first);
  EXPECT_EQ(refs(), (Ids{2, 2, 0, 1}));
  // Block 2 has left the map and is the next one to be handed out.
  EXPECT_EQ(cache.lookup(Ids{A, B, C, D, E, F, A}, {}, hit), 4);
  EXPECT_EQ(blocks.allocate(), 2);
  blocks.release(2);
  EXPECT_EQ(Ids(kv.table(second).begin(), kv.table(second).end()),
            (Ids{0, 1, 3}));
  EXPECT_EQ(cache.checkInvariants(), "");
  kv.remove(prefix);
  kv.remove(second);
  EXPECT_EQ(blocks.numFree(), 8);
  EXPECT_EQ(cache.numStored(), 0);
}

TEST(Examples, duplicated_prefix) {
  Ids first = {1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  Ids second = {1, 2, 3, 4, 5, 20, 21, 22, 23, 24, 25};
  auto used = [&](int32_t blockSize, bool share) {
    BlockManager blocks(64);
    PrefixCacheOptions options;
    options.blockSize = blockSize;
    PrefixCache cache(blocks, options);
    PagedKVOptions kvOptions;
    kvOptions.blockSize = blockSize;
    PagedKV kv(blocks, kvOptions);
    PrefixHit hit;
    for (const Ids &prompt : {first, second}) {
      SeqId seq = kv.add();
      if (share)
        cache.lookup(prompt, {}, hit);
      EXPECT_TRUE(kv.attachPrefix(seq, cache, hit));
      EXPECT_TRUE(kv.append(seq, 11 - hit.tokens));
      if (share)
        kv.storePrefix(seq, cache, prompt);
    }
    return (blocks.numBlocks() - blocks.numFree()) * blockSize;
  };
  // 22 tokens in all, 12 of them not in the prefix.
  EXPECT_EQ(used(1, false) - 12, 10);
  EXPECT_EQ(used(1, true) - 12, 5);
  // Blocks of 4: one full block of the five tokens is shared.
  EXPECT_EQ(used(4, false) - used(4, true), 4);
  // The plan says the same.
  for (int32_t blockSize : {1, 4}) {
    KvFormat format;
    format.kvHeads = format.headDim = format.vHeadDim = 1;
    format.blockSize = blockSize;
    SequenceLoad load{11, 2};
    EXPECT_EQ(planPaged({format}, {&load, 1}).reservedSlots,
              used(blockSize, false));
    EXPECT_EQ(planPaged({format}, {&load, 1}, 5).reservedSlots,
              used(blockSize, true));
  }
}

TEST(Examples, fragmentation) {
  for (auto kind : {PoolOptions::Contiguous, PoolOptions::Paged}) {
    PoolOptions options;
    options.kind = kind;
    options.blocks = 8;
    options.blockSize = 2;
    PoolSimulation pool(options);
    auto owners = [&] {
      Ids result;
      for (const PoolSimulation::Cell &cell : pool.cells())
        result.push_back(cell.owner);
      return result;
    };
    for (int32_t name : {0, 1, 2, 3})
      ASSERT_TRUE(pool.request(name, 4));
    EXPECT_EQ(owners(), (Ids{0, 0, 1, 1, 2, 2, 3, 3}));
    pool.release(1);
    pool.release(3);
    EXPECT_EQ(owners(), (Ids{0, 0, -1, -1, 2, 2, -1, -1}));
    EXPECT_EQ(pool.freeBlocks(), 4);
    bool paged = kind == PoolOptions::Paged;
    EXPECT_EQ(pool.largestHole(), paged ? 4 : 2);
    EXPECT_EQ(pool.request(4, 6), paged);
    Ids now = owners();
    EXPECT_EQ(std::count(now.begin(), now.end(), 4), paged ? 3 : 0);
    EXPECT_EQ(pool.freeBlocks(), paged ? 1 : 4);
  }
}
