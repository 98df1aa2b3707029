//===- AllocationTest.cpp - Steps take no heap memory ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces operator new for the whole program, runtime included, and counts its
// calls while an engine repeats a step that it has done before: admission by
// prefix, append, copy-on-write, plan, launch, storing, the end.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <numeric>

static std::atomic<int64_t> allocations{0};

static void *counted(size_t bytes, size_t align) {
  ++allocations;
  size_t size = (bytes + align - 1) / align * align;
  void *memory = align > alignof(std::max_align_t)
                     ? std::aligned_alloc(align, size)
                     : std::malloc(bytes ? bytes : 1);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}
void *operator new(size_t bytes) { return counted(bytes, 1); }
void *operator new[](size_t bytes) { return counted(bytes, 1); }
void *operator new(size_t bytes, std::align_val_t align) {
  return counted(bytes, static_cast<size_t>(align));
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

using namespace pagoda;
using namespace pagoda::test;

TEST(Allocation, NoneInARepeatedStep) {
  EngineOptions o;
  o.kernels.headDim = o.kernels.vHeadDim = 32;
  o.kernels.maxRows = {1, 16};
  o.plan.cascade = true;
  o.threads = o.plan.threads = 2;
  o.numBlocks = 800;
  o.maxTokens = 1500;
  Engine e(o);
  PrefixCacheOptions cacheOptions;
  cacheOptions.blockSize = o.kernels.blockSize;
  PrefixCache cache(e.blocks, cacheOptions);
  PrefixHit hit;
  const FakeSpec &s = o.kernels;
  constexpr int32_t Prompt = 1100;
  std::vector<int32_t> tokens(Prompt);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<float> k(2048 * s.kvHeads * s.headDim, 0.5f);
  std::vector<float> q(2048 * s.qHeads * s.headDim, 0.5f), out(q.size());
  std::vector<int64_t> slots(2048);
  SeqId seqs[3];
  int32_t qLens[3], kvLens[3], rows[3];

  auto step = [&](int32_t round) {
    for (int32_t n = 0; n != 2; ++n) {
      tokens[Prompt - 3] = 1000000 + 2 * round + n;
      seqs[n] = e.kv.add();
      ASSERT_LE(0, cache.lookup(tokens, {}, hit));
      ASSERT_TRUE(e.kv.attachPrefix(seqs[n], cache, hit));
      ASSERT_TRUE(e.kv.append(seqs[n], Prompt - hit.tokens));
      qLens[n] = Prompt - hit.tokens;
      e.kv.storePrefix(seqs[n], cache, tokens);
    }
    seqs[2] = e.kv.fork(seqs[0], Prompt - 1);
    ASSERT_TRUE(e.kv.append(seqs[2], 1));
    ASSERT_FALSE(e.kv.pendingCopies().empty());
    qLens[2] = 1;
    e.pool.copyBlocks(e.kv.pendingCopies());
    e.kv.copiesDone();
    for (int32_t n = 0; n != 3; ++n) {
      kvLens[n] = e.kv.length(seqs[n]);
      rows[n] = e.kv.row(seqs[n]);
      e.kv.slotMapping(seqs[n], kvLens[n] - qLens[n],
                       std::span(slots).first(qLens[n]));
      pagoda_append_args args = {};
      args.k_new = args.v_new = k.data();
      args.k_token_stride = args.v_token_stride = s.kvHeads * s.headDim;
      args.k_head_stride = args.v_head_stride = s.headDim;
      args.k = e.pool.k();
      args.v = e.pool.v();
      args.slot_mapping = slots.data();
      e.launcher.append(*e.kernels.append, args, qLens[n]);
    }
    e.plan.build({qLens, kvLens, rows, e.kv.tables(), e.kv.tableStride()});
    pagoda_attention_args args = {};
    args.q = q.data();
    args.o = out.data();
    args.q_token_stride = args.o_token_stride = s.qHeads * s.headDim;
    args.q_head_stride = args.o_head_stride = s.headDim;
    args.k = e.pool.k();
    args.v = e.pool.v();
    args.block_table = e.kv.tables();
    args.block_table_stride = e.kv.tableStride();
    args.scale = 1;
    e.launcher.run(e.plan, e.kernels.merge, args);
    for (SeqId seq : seqs)
      e.kv.remove(seq);
  };
  step(0); // everything is new: the largest step
  step(1);
  EXPECT_FALSE(e.plan.merges().empty());
  int64_t before = allocations;
  for (int32_t round = 2; round != 6; ++round)
    step(round);
  EXPECT_EQ(allocations - before, 0);
  EXPECT_GT(before, 0) << "operator new was not replaced";
  EXPECT_GT(cache.counters().acquiredTokens, 10000);
}
