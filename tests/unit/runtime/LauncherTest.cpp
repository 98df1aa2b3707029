//===- LauncherTest.cpp - Plans run, results right ------------------------===//
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

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace pagoda;
using namespace pagoda::test;

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
  good.block_table_stride = 1; // 3 tokens
  good.q_head_stride = good.o_head_stride = 8;
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
  refused([](auto &a) { a.block_table_stride = 0; },
          "block_table_stride: expected 1 or more for a sequence of 3 tokens, "
          "got 0");
  refused([](auto &a) { a.scale = 0; }, "scale: expected a number greater");
  refused([](auto &a) { a.scale = NAN; }, "scale");
  refused([](auto &a) { a.v.token_stride = 3; },
          "v: token_stride: kernel attend_1 with layout hnd expects 8");
  refused([](auto &a) { std::swap(a.k.token_stride, a.k.head_stride); },
          "k: head_stride");
  refused([](auto &a) { a.q_head_stride = 0; },
          "q_head_stride: expected 8 or more, got 0");
  refused([](auto &a) { a.lse = static_cast<float *>(a.o); },
          "lse_head_stride: expected 1 or more, got 0");
  // A pool of other blocks or heads is seen where its strides tell.
  refused([](auto &a) { a.k.head_stride = a.k.block_stride = 2 * 8; },
          "k: head_stride: kernel attend_1 with layout hnd expects 32 or more "
          "for 2 heads and 4 tokens a block, got 16");
  refused([](auto &a) { a.v.block_stride = 4 * 8; },
          "v: block_stride: kernel attend_1 with layout hnd expects 64");
}

TEST(Launcher, PoolsMayPutHeadsOutsideOfBlocks) {
  FakeLibrary fake{FakeSpec{}};
  float base = 0;
  checkView(fake.kernel(0), {&base, 4 * 8, 100 * 4 * 8, 8}, 8, "k");
}

TEST(Launcher, RowsOfABatchMustLieApart) {
  Engine engine({});
  SeqId seq = engine.add();
  ASSERT_TRUE(engine.append(seq, 3));
  EXPECT_LT(engine.step({{seq, 3}}), 1e-5);
  std::vector<float> q(3 * 32), o(3 * 32);
  pagoda_attention_args args = {};
  args.q = q.data();
  args.o = o.data();
  args.k = engine.pool.k();
  args.v = engine.pool.v();
  args.block_table = engine.kv.tables();
  args.block_table_stride = 1;
  args.scale = 1;
  args.q_head_stride = args.o_head_stride = 8;
  args.o_token_stride = 32;
  EXPECT_PAGODA_ERROR(
      engine.launcher.run(engine.plan, engine.kernels.merge, args),
      ErrorCode::InvalidArgument, "q_token_stride: expected 8 or more, got 0");
  pagoda_append_args append = {};
  append.k = args.k;
  append.v = args.v;
  append.k_new = append.v_new = q.data();
  int64_t slots[] = {0, 1};
  append.slot_mapping = slots;
  append.k_head_stride = append.v_head_stride = 8;
  EXPECT_PAGODA_ERROR(engine.launcher.append(*engine.kernels.append, append, 2),
                      ErrorCode::InvalidArgument,
                      "append: k_token_stride: expected 8");
}

TEST(Launcher, KernelsOfAGpuAreRefused) {
  FakeLibrary fake{FakeSpec{}};
  Engine engine({});
  pagoda_kernel_info gpu = fake.kernel(0);
  gpu.entry = nullptr;
  gpu.target = "nvidia:sm_80";
  const pagoda_kernel_info *one[] = {&gpu};
  AttentionPlan plan(one);
  int32_t qLens[] = {1}, kvLens[] = {1};
  BatchShape batch;
  batch.qLens = qLens;
  batch.kvLens = kvLens;
  plan.build(batch);
  EXPECT_PAGODA_ERROR(engine.launcher.run(plan, nullptr, {}),
                      ErrorCode::Mismatch,
                      "expected a kernel for a CPU, got one for nvidia:sm_80");
  gpu.role = PAGODA_ROLE_COPY;
  EXPECT_PAGODA_ERROR(engine.launcher.copy(gpu, {}, 1), ErrorCode::Mismatch,
                      "for a CPU");
}

TEST(Launcher, ACascadePlanGoesWithItsTable) {
  EngineOptions o;
  o.plan.cascade = true;
  Engine engine(o);
  SeqId seq = engine.add();
  ASSERT_TRUE(engine.append(seq, 3));
  EXPECT_LT(engine.step({{seq, 1}}), 1e-5);
  float dummy[64] = {};
  pagoda_attention_args args = {};
  args.q = args.o = dummy;
  args.q_head_stride = args.o_head_stride = 8;
  args.k = engine.pool.k();
  args.v = engine.pool.v();
  args.scale = 1;
  std::vector<int32_t> table(64, 0);
  args.block_table = table.data();
  args.block_table_stride = 64;
  EXPECT_PAGODA_ERROR(
      engine.launcher.run(engine.plan, engine.kernels.merge, args),
      ErrorCode::InvalidArgument, "that the cascade plan was built from");
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
