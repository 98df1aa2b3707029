//===- Step.cpp - One attention step, for a simulated cache ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   pagoda-order-step LIBRARY.so QUERIES KEYS SPLITS RUNS
//
// One sequence in a shuffled pool, its keys in SPLITS runs (planned for as many
// threads, run on one). RUNS 0 does everything but the step: what a simulator
// counts then is what to subtract.
//
//===----------------------------------------------------------------------===//

#include "pagoda/CpuLauncher.h"
#include "pagoda/KvPool.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

using namespace pagoda;

static void step(const char *path, int32_t queries, int32_t keys, int splits,
                 int runs) {
  KernelLibrary library = KernelLibrary::open(path);
  KernelSpec spec = KernelSpec::of(library.kernels().front());
  KernelSet kernels = library.select(spec);
  int32_t blocks = (keys + spec.blockSize - 1) / spec.blockSize;
  KvPool pool(spec.format(), blocks);
  auto random = [seed = 1u]() mutable {
    seed = seed * 1664525u + 1013904223u;
    return float(int32_t(seed)) * 0x1p-31f;
  };
  auto *elements = static_cast<float *>(pool.data());
  std::generate_n(elements, pool.bytes() / sizeof(float), random);
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(1));

  auto rows = size_t(queries) * size_t(spec.qHeads);
  std::vector<float> q(rows * size_t(spec.headDim));
  std::vector<float> o(rows * size_t(spec.vHeadDim));
  std::generate(q.begin(), q.end(), random);
  pagoda_attention_args args{};
  args.q = q.data();
  args.q_head_stride = spec.headDim;
  args.q_token_stride = int64_t(spec.qHeads) * spec.headDim;
  args.o = o.data();
  args.o_head_stride = spec.vHeadDim;
  args.o_token_stride = int64_t(spec.qHeads) * spec.vHeadDim;
  args.k = pool.k();
  args.v = pool.v();
  args.block_table = table.data();
  args.block_table_stride = blocks;
  args.scale = 1 / std::sqrt(float(spec.headDim));

  PlanOptions options;
  options.threads = splits;
  AttentionPlan plan(kernels.attention, options);
  BatchShape batch;
  batch.qLens = {&queries, 1};
  batch.kvLens = {&keys, 1};
  plan.build(batch);
  ThreadPool threads(1);
  CpuLauncher launcher(threads);
  for (int run = 0; run < runs; ++run)
    launcher.run(plan, kernels.merge, args);
  std::printf("%zu items, %zu merges, o[0] %g\n", plan.items().size(),
              plan.merges().size(), double(o[0]));
}

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s LIBRARY.so QUERIES KEYS SPLITS RUNS\n",
                 argv[0]);
    return 2;
  }
  try {
    step(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]),
         std::atoi(argv[5]));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
