//===- PlanBench.cpp - What a step's plan costs ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans for 256 sequences: decode alone and mixed with prefill chunks, with and
// without the search for shared prefixes. The kernels are descriptions only.
//
//===----------------------------------------------------------------------===//

#include "pagoda/AttentionPlan.h"

#include <benchmark/benchmark.h>
#include <random>
#include <vector>

using namespace pagoda;

namespace {

constexpr int32_t Sequences = 256;
constexpr int64_t Stride = 2048;

struct Kernels {
  Kernels() {
    for (int32_t rows : {1, 64}) {
      pagoda_kernel_info info = {};
      info.name = "description";
      info.q_heads = 16;
      info.kv_heads = 8;
      info.head_dim = info.v_head_dim = 128;
      info.block_size = 16;
      info.layout = PAGODA_HND;
      info.features = PAGODA_FEATURE_CAUSAL;
      info.max_rows = rows;
      info.heads_per_item = 8;
      info.kv_tile = 64;
      infos[rows == 64] = info;
      pointers.push_back(&infos[rows == 64]);
    }
  }
  pagoda_kernel_info infos[2];
  std::vector<const pagoda_kernel_info *> pointers;
};

enum Batch { Decode, Mixed, SharedPrompt, Nested };

struct Step {
  explicit Step(Batch kind) : tables(Sequences * Stride) {
    std::mt19937 random(1);
    int32_t next = 0;
    for (int32_t s = 0; s != Sequences; ++s) {
      int32_t shared = kind == SharedPrompt ? 128
                       : kind == Nested     ? 64 + 64 * (s % 8 != 0)
                                            : 0;
      int32_t own = 32 + int32_t(random() % 200);
      for (int32_t i = 0; i != shared + own; ++i)
        tables[s * Stride + i] =
            i < std::min(shared, 64) ? i
            : i < shared ? (kind == Nested ? 1000 * (1 + s % 8) + i : i)
                         : 100000 + next++;
      kv.push_back((shared + own) * 16 - int32_t(random() % 16));
      q.push_back(kind == Mixed && s % 32 == 0 ? 256 : 1);
      rows.push_back(s);
    }
  }
  BatchShape shape() const { return {q, kv, rows, tables.data(), Stride}; }
  std::vector<int32_t> tables, q, kv, rows;
};

void plan(benchmark::State &state, Batch kind, bool cascade) {
  Kernels kernels;
  PlanOptions options;
  options.threads = 16;
  options.cascade = cascade;
  AttentionPlan plan(kernels.pointers, options);
  Step step(kind);
  for (auto _ : state) {
    plan.build(step.shape());
    benchmark::DoNotOptimize(plan.items().data());
  }
  state.counters["items"] = double(plan.items().size());
  state.counters["merges"] = double(plan.merges().size());
}

} // namespace

BENCHMARK_CAPTURE(plan, decode, Decode, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, mixed, Mixed, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, find_prefix_in_decode, Decode, true)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, find_prefix_shared, SharedPrompt, true)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, find_prefix_nested, Nested, true)
    ->Unit(benchmark::kMicrosecond);
