//===- LauncherTest.cpp - Plans run, results right ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs plans through the pool and compares with the oracle: mixed batches,
// splits, windows, layouts, any number of threads, and arguments that must be
// refused.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "TestErrors.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace pagoda;
using namespace pagoda::test;

TEST(ThreadPool, EveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> seen(count + 1);
        pool.forEach(
            count, grain,
            [](void *context, int64_t begin, int64_t end, int) {
              auto &seen =
                  *static_cast<std::vector<std::atomic<int>> *>(context);
              for (int64_t i = begin; i != end; ++i)
                ++seen[i];
            },
            &seen);
        for (int64_t i = 0; i != count; ++i)
          ASSERT_EQ(seen[i], 1) << threads << " " << count << " " << grain;
        ASSERT_EQ(seen[count], 0);
      }
    }
  }
}

TEST(ThreadPool, BadCounts) {
  EXPECT_PAGODA_ERROR(ThreadPool(-1), ErrorCode::InvalidArgument, "got -1");
  EXPECT_GE(ThreadPool(0).threads(), 1);
}

/// Chunked prefill, decode, an empty sequence and one without queries.
static double mixedBatch(Engine &engine) {
  SeqId long1 = engine.add(), long2 = engine.add(), empty = engine.add(),
        idle = engine.add(), fresh = engine.add();
  EXPECT_TRUE(engine.append(long1, 700));
  EXPECT_TRUE(engine.append(long2, 1200));
  EXPECT_TRUE(engine.append(idle, 5));
  EXPECT_TRUE(engine.append(fresh, 33));
  double worst = engine.step({{long1, 1},
                              {empty, 0},
                              {long2, 1},
                              {idle, 0},
                              {empty, 2},
                              {fresh, 33},
                              {long1, 19, 3}});
  // Again, so that memory that is used twice shows.
  return std::max(worst, engine.step({{long2, 9}, {fresh, 1}}));
}

TEST(Launcher, MixedBatch) {
  for (int32_t layout : {PAGODA_NHD, PAGODA_HND})
    for (int threads : {1, 4})
      for (bool deterministic : {false, true})
        for (int32_t heads : {1, 2}) {
          EngineOptions o;
          o.kernels.layout = layout;
          o.kernels.headsPerItem = heads;
          o.kernels.vHeadDim = 5;
          o.kernels.qHeads = 6;
          o.threads = o.plan.threads = threads;
          o.plan.deterministic = deterministic;
          o.plan.deterministicSplit = 128;
          o.numBlocks = 600;
          o.maxTokens = 1300;
          Engine engine(o);
          EXPECT_LT(mixedBatch(engine), 1e-4)
              << layoutName(layout) << " " << threads << " " << deterministic;
          if (threads > 1 || deterministic) {
            EXPECT_FALSE(engine.plan.merges().empty());
          }
        }
}

TEST(Launcher, ResultsDoNotDependOnThreads) {
  std::vector<float> first;
  for (int threads : {1, 2, 5}) {
    EngineOptions o;
    o.threads = threads;
    o.plan.threads = 4; // one plan
    o.numBlocks = 600;
    o.maxTokens = 1300;
    Engine engine(o);
    EXPECT_LT(mixedBatch(engine), 1e-4);
    if (first.empty())
      first = engine.o;
    ASSERT_EQ(first.size(), engine.o.size());
    EXPECT_EQ(std::memcmp(first.data(), engine.o.data(),
                          first.size() * sizeof(float)),
              0);
  }
}

TEST(Launcher, DeterministicRowsHaveTheSameBits) {
  EngineOptions o;
  o.plan.deterministic = true;
  o.plan.deterministicSplit = 64;
  o.plan.threads = 4;
  o.numBlocks = 600;
  o.maxTokens = 1300;
  Engine engine(o);
  SeqId seq = engine.add(), other = engine.add();
  ASSERT_TRUE(engine.append(seq, 1000) && engine.append(other, 300));
  EXPECT_LT(engine.step({{seq, 1}, {other, 1}}), 1e-4);
  std::vector<float> q(engine.q.begin(),
                       engine.q.begin() + engine.q.size() / 2);
  std::vector<float> o1(engine.o.begin(),
                        engine.o.begin() + engine.o.size() / 2);
  // The same query alone, on a plan for another number of threads.
  PlanOptions alone = o.plan;
  alone.threads = 1;
  AttentionPlan plan(engine.kernels.attention, alone);
  std::vector<int32_t> qLens{1}, kvLens{1000}, rows{engine.kv.row(seq)};
  plan.build({qLens, kvLens, rows, nullptr, 0});
  std::vector<float> o2(o1.size(), Sentinel);
  const FakeSpec &s = o.kernels;
  pagoda_attention_args args = {};
  args.q = q.data();
  args.q_token_stride = s.qHeads * s.headDim;
  args.q_head_stride = s.headDim;
  args.o = o2.data();
  args.o_token_stride = s.qHeads * s.vHeadDim;
  args.o_head_stride = s.vHeadDim;
  args.k = engine.pool.k();
  args.v = engine.pool.v();
  args.block_table = engine.kv.tables();
  args.block_table_stride = engine.kv.tableStride();
  args.scale = 1 / std::sqrt(float(s.headDim));
  engine.launcher.run(plan, engine.kernels.merge, args);
  EXPECT_EQ(std::memcmp(o1.data(), o2.data(), o1.size() * sizeof(float)), 0);
}

TEST(Launcher, RowsThatSeeNoKey) {
  Engine engine({});
  SeqId seq = engine.add();
  ASSERT_TRUE(engine.append(seq, 2));
  EXPECT_LT(engine.step({{seq, 4}}), 1e-5); // positions -2 .. 1
  EXPECT_EQ(engine.o[0], 0);
  EXPECT_EQ(engine.lse[0], -INFINITY);
}

TEST(Launcher, CallersMaySharePoolAndLauncher) {
  EngineOptions o;
  o.threads = 3;
  o.plan.threads = 4;
  o.numBlocks = 600;
  o.maxTokens = 1300;
  Engine engine(o);
  SeqId seq = engine.add();
  ASSERT_TRUE(engine.append(seq, 900));
  EXPECT_LT(engine.step({{seq, 1}}), 1e-4);
  ASSERT_FALSE(engine.plan.merges().empty());
  const FakeSpec &s = o.kernels;
  std::vector<std::vector<float>> out(4, std::vector<float>(engine.o.size()));
  std::vector<std::thread> callers;
  for (std::vector<float> &own : out)
    callers.emplace_back([&] {
      pagoda_attention_args args = {};
      args.q = engine.q.data();
      args.q_token_stride = s.qHeads * s.headDim;
      args.q_head_stride = s.headDim;
      args.o = own.data();
      args.o_token_stride = s.qHeads * s.vHeadDim;
      args.o_head_stride = s.vHeadDim;
      args.k = engine.pool.k();
      args.v = engine.pool.v();
      args.block_table = engine.kv.tables();
      args.block_table_stride = engine.kv.tableStride();
      args.scale = 1 / std::sqrt(float(s.headDim));
      for (int i = 0; i != 20; ++i)
        engine.launcher.run(engine.plan, engine.kernels.merge, args);
    });
  for (std::thread &caller : callers)
    caller.join();
  for (const std::vector<float> &own : out)
    EXPECT_EQ(own, engine.o);
}

TEST(Launcher, ArgumentsThatKernelsCannotTakeAreRefused) {
  Engine engine({});
  SeqId seq = engine.add();
  ASSERT_TRUE(engine.append(seq, 3));
  EXPECT_LT(engine.step({{seq, 1}}), 1e-5);
  pagoda_attention_args good = {};
  float dummy[64] = {};
  good.q = good.o = dummy;
  good.k = engine.pool.k();
  good.v = engine.pool.v();
  good.block_table = engine.kv.tables();
  good.scale = 1;
  auto refused = [&](auto change, const char *part) {
    pagoda_attention_args args = good;
    change(args);
    EXPECT_PAGODA_ERROR(
        engine.launcher.run(engine.plan, engine.kernels.merge, args),
        ErrorCode::InvalidArgument, part);
  };
  refused([](auto &a) { a.q = nullptr; }, "q: expected memory, got null");
  refused([](auto &a) { a.o = nullptr; }, "o: expected memory");
  refused([](auto &a) { a.k.base = nullptr; }, "k: base");
  refused([](auto &a) { a.block_table = nullptr; }, "block_table");
  refused([](auto &a) { a.scale = 0; }, "scale: expected a number greater");
  refused([](auto &a) { a.scale = NAN; }, "scale");
  refused([](auto &a) { a.v.token_stride = 3; },
          "v: token_stride: kernel attend_1 with layout hnd expects 8");
  refused([](auto &a) { std::swap(a.k.token_stride, a.k.head_stride); },
          "k: head_stride");
}

TEST(KvPool, CallersMemory) {
  KvFormat format;
  format.kvHeads = 2;
  format.headDim = 8;
  format.vHeadDim = 4;
  format.blockSize = 4;
  size_t bytes = KvPool::bytesNeeded(format, 3, 2);
  alignas(64) static std::byte memory[1 << 16];
  ASSERT_LE(bytes, sizeof(memory));
  KvPool pool(format, 3, 2, memory, sizeof(memory));
  EXPECT_EQ(pool.k(0).base, memory);
  EXPECT_NE(pool.k(0).base, pool.k(1).base);
  EXPECT_EQ(pool.v().block_stride, 2 * 4 * 4);
  EXPECT_EQ(pool.k().head_stride, 4 * 8);
  EXPECT_PAGODA_ERROR(KvPool(format, 3, 2, memory, bytes - 1),
                      ErrorCode::InvalidArgument, "bytes or more");
  EXPECT_PAGODA_ERROR(KvPool(format, 3, 2, memory + 4, bytes),
                      ErrorCode::InvalidArgument, "multiple of 64");
  EXPECT_PAGODA_ERROR(pool.k(2), ErrorCode::InvalidArgument, "plane");
}

TEST(KvPool, ValuesInsideKeys) {
  KvFormat format;
  format.kvHeads = 1;
  format.headDim = 576;
  format.vHeadDim = 512;
  format.vInsideK = true;
  KvPool pool(format, 4);
  EXPECT_EQ(pool.v().base, pool.k().base);
  EXPECT_EQ(pool.v().token_stride, 576);
  EXPECT_EQ(format.blockBytes(), 16 * 576 * 4);
  format.vHeadDim = 600;
  EXPECT_PAGODA_ERROR(format.verify(), ErrorCode::InvalidArgument, "v inside");
}

TEST(KvPool, MemoryIsAlignedForHugePages) {
  KvFormat format;
  format.kvHeads = 2;
  format.headDim = format.vHeadDim = 64;
  KvPool pool(format, 10);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.data()) % (2 << 20), 0u);
  format.headDim = 0;
  EXPECT_PAGODA_ERROR(KvPool(format, 10), ErrorCode::InvalidArgument,
                      "head_dim: expected 1 to 65536, got 0");
}

TEST(KvPool, CopiesEveryPlaneKAndV) {
  for (int32_t layout : {PAGODA_NHD, PAGODA_HND}) {
    KvFormat format;
    format.kvHeads = 2;
    format.headDim = 8;
    format.vHeadDim = 4;
    format.blockSize = 4;
    format.layout = layout;
    KvPool pool(format, 3, 2);
    auto *all = static_cast<float *>(pool.data());
    std::iota(all, all + pool.bytes() / 4, 0.0f);
    std::vector<float> before(all, all + pool.bytes() / 4);
    pagoda_block_copy copies[] = {{1, 2}, {0, 0}};
    pool.copyBlocks(copies);
    int changed = 0;
    for (int32_t plane : {0, 1})
      for (pagoda_kv_view view : {pool.k(plane), pool.v(plane)}) {
        auto *base = static_cast<float *>(view.base);
        for (int64_t i = 0; i != view.block_stride; ++i, ++changed)
          EXPECT_EQ(base[2 * view.block_stride + i],
                    before[base - all + view.block_stride + i]);
      }
    for (size_t i = 0; i != before.size(); ++i)
      changed -= all[i] != before[i];
    EXPECT_EQ(changed, 0) << "elements outside block 2 changed";
    pagoda_block_copy bad[] = {{1, 2}, {1, 3}};
    EXPECT_PAGODA_ERROR(pool.copyBlocks(bad), ErrorCode::UnknownBlock,
                        "block 3: expected an id from 0 to 2");
  }
}

TEST(Launcher, CascadeGivesTheSameAnswer) {
  for (bool sinks : {false, true}) {
    EngineOptions o;
    o.kernels.headDim = o.kernels.vHeadDim = 32;
    o.kernels.maxRows = {1, 16};
    o.plan.cascade = true;
    o.threads = o.plan.threads = 3;
    o.numBlocks = 800;
    o.maxTokens = 1500;
    if (sinks)
      o.kernels.features |= PAGODA_FEATURE_SINKS;
    Engine engine(o);
    if (sinks)
      engine.sinks.assign(o.kernels.qHeads, 1.5f);
    SeqId root = engine.add();
    ASSERT_TRUE(engine.append(root, 1003));
    SeqId a = engine.fork(root, 1003), b = engine.fork(root, 801);
    ASSERT_TRUE(engine.append(a, 200) && engine.append(b, 130));
    SeqId c = engine.fork(b, 925), d = engine.fork(root, 600);
    ASSERT_TRUE(engine.append(c, 20) && engine.append(d, 1));
    EXPECT_LT(engine.step({{root, 1}, {a, 1}, {b, 1}, {c, 1}, {d, 1}}), 1e-4);
    EXPECT_EQ(engine.plan.merges().size(), 5u);
    EXPECT_LT(engine.step({{a, 40}, {b, 1}, {c, 20}, {d, 0}, {root, 3}}), 1e-4);
  }
}
