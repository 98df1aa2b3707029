//===- KernelsTest.cpp - NVIDIA kernels against the oracle ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the kernels of small cases for sm_80, runs them on the emulator and
// compares with the f64 oracle: pools full of NaN but for the valid tokens,
// shuffled tables, sentinels around outputs.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/EmulatorBackend.h"

#include <gtest/gtest.h>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

Case halfCase(std::vector<Length> lengths) {
  Case c = makeCase("nvidia", std::move(lengths));
  c.spec.qType = c.spec.kvType = DType::F16;
  return c;
}

EmulatorBackend sm80() {
  return EmulatorBackend(llvm::cantFail(Machine::named("sm_80")));
}

void check(const Case &c, uint64_t seed = 1) {
  static EmulatorBackend kernels = sm80(); // keeps what it compiles
  kernels.device.seed = seed;
  Outcome outcome = runCase(kernels, c);
  EXPECT_EQ(outcome.status, Status::Pass)
      << describe(c) << ": " << outcome.message;
  EXPECT_GT(outcome.comparison.elements, 0);
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

TEST(NvidiaKernels, CausalPrefill) { check(halfCase({{100, 100}})); }

TEST(NvidiaKernels, Decode) {
  Case c = halfCase({{1, 1}, {1, 63}, {1, 64}, {1, 65}, {1, 200}});
  c.kernel = 1;
  check(c);
}

TEST(NvidiaKernels, ChunkedPrefillBesideDecode) {
  check(halfCase({{33, 150}, {1, 77}, {64, 64}, {0, 0}, {5, 5}}));
}

TEST(NvidiaKernels, SequencesWithoutKeys) {
  check(halfCase({{2, 0}, {1, 1}, {3, 0}}));
}

TEST(NvidiaKernels, QueriesBeforeTheFirstKey) {
  check(halfCase({{9, 4}, {80, 70}}));
}

TEST(NvidiaKernels, EveryKeyCountAroundTheTile) {
  std::vector<Length> lengths;
  for (int64_t kv = 126; kv <= 130; ++kv)
    lengths.push_back({2, kv});
  check(halfCase(lengths));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

TEST(NvidiaKernels, HeadDims) {
  for (int64_t dim : {16, 48, 80, 112, 128}) {
    Case c = halfCase({{20, 90}});
    c.spec.headDim = c.spec.vHeadDim = dim;
    check(c);
  }
}

TEST(NvidiaKernels, ValuesNarrowerAndWiderThanKeys) {
  for (auto [k, v] : {std::pair(96, 64), std::pair(32, 128)}) {
    Case c = halfCase({{20, 90}});
    c.spec.headDim = k;
    c.spec.vHeadDim = v;
    check(c);
  }
}

TEST(NvidiaKernels, BlockSizes) {
  for (int64_t block : {1, 7, 48, 256})
    for (KvLayout layout : {KvLayout::NHD, KvLayout::HND}) {
      Case c = halfCase({{20, 90}, {1, 300}});
      c.spec.blockSize = block;
      c.spec.layout = layout;
      check(c);
    }
}

TEST(NvidiaKernels, GroupsOfQueryHeads) {
  for (auto [q, kv] : {std::pair(1, 1), std::pair(15, 3), std::pair(14, 2),
                       std::pair(71, 1)}) {
    Case c = halfCase({{9, 70}});
    c.spec.qHeads = q;
    c.spec.kvHeads = kv;
    c.values = Values::HeadIndex;
    check(c);
    c.values = Values::Normal;
    check(c);
  }
}

TEST(NvidiaKernels, Strides) {
  Case c = halfCase({{20, 90}, {1, 33}});
  c.padding = 8;
  check(c);
  c.spec.layout = KvLayout::NHD;
  check(c);
}

TEST(NvidiaKernels, Bf16) {
  Case c = halfCase({{33, 150}, {1, 77}});
  c.spec.qType = c.spec.kvType = DType::BF16;
  c.splits = 2;
  check(c);
}

//===----------------------------------------------------------------------===//
// Which scores count
//===----------------------------------------------------------------------===//

TEST(NvidiaKernels, NotCausal) {
  Case c = halfCase({{20, 90}, {1, 130}});
  c.spec.causal = false;
  check(c);
}

TEST(NvidiaKernels, Window) {
  for (int64_t window : {1, 17, 64, 1000}) {
    Case c = halfCase({{70, 210}, {1, 150}});
    c.spec.window = window;
    check(c);
  }
}

TEST(NvidiaKernels, Chunk) {
  Case c = halfCase({{70, 210}, {1, 150}});
  c.spec.chunk = 48;
  check(c);
}

TEST(NvidiaKernels, SoftCapAndAlibi) {
  Case c = halfCase({{30, 100}});
  c.spec.softcap = 3;
  check(c);
  c.spec.softcap.reset();
  c.spec.alibiSlopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  check(c);
}

TEST(NvidiaKernels, Sinks) {
  Case c = halfCase({{30, 100}, {2, 0}});
  c.spec.sinks = true;
  c.splits = 3;
  check(c);
}

//===----------------------------------------------------------------------===//
// Values, splits, schedules
//===----------------------------------------------------------------------===//

TEST(NvidiaKernels, NamedValues) {
  for (Values values : {Values::OneHot, Values::LowScores, Values::LastLanes}) {
    Case c = halfCase({{20, 90}});
    c.values = values;
    check(c);
  }
}

TEST(NvidiaKernels, HugeScores) {
  // Scores of 10^10: s c - m c would be off by hundreds.
  Case c = halfCase({{20, 90}, {1, 200}});
  c.spec.scale = 4e8;
  check(c);
  c.splits = 3;
  check(c);
}

TEST(NvidiaKernels, InfinityInUnusedPlaces) {
  Case c = halfCase({{20, 90}, {1, 33}});
  c.poison = Poison::Infinity;
  check(c);
}

TEST(NvidiaKernels, SplitsAndMerge) {
  for (int64_t splits : {2, 5, 200}) {
    Case c = halfCase({{3, 150}, {1, 200}, {2, 0}});
    c.splits = splits;
    check(c);
    c.spec.vHeadDim = 48; // not whole warps of columns
    check(c);
  }
}

TEST(NvidiaKernels, Schedules) {
  for (const char *schedule :
       {"stages=1", "stages=3", "kv_tile=16", "kv_tile=48", "kv_tile=128",
        "q_tile=128,warps=8", "q_tile=16,warps=1,stages=4"}) {
    Case c = halfCase({{20, 90}, {1, 200}});
    c.schedule = {schedule};
    check(c);
  }
  // Q stays in shared memory.
  for (const char *schedule : {"stages=1", "stages=3"}) {
    Case c = halfCase({{20, 90}, {1, 200}});
    c.spec.headDim = 96;
    c.schedule = {schedule};
    check(c);
  }
}

TEST(NvidiaKernels, OrderOfThreads) {
  for (uint64_t seed = 1; seed <= 5; ++seed)
    check(halfCase({{20, 90}, {1, 200}}), seed);
}

TEST(NvidiaKernels, BlocksOnSeveralHostThreads) {
  Case c = halfCase({{100, 100}, {1, 200}});
  c.threads = 3;
  check(c);
}

// One copy per 16 bytes, one matrix load per four matrices, one product per
// 16x8x16: what the schedule says, and nothing twice.
TEST(NvidiaKernels, WorkIsWhatTheTilesSay) {
  Case c = halfCase({{16, 128}});
  c.spec.qHeads = 4;
  c.spec.kvHeads = 1;
  c.splits = 1; // launches are counted where the plan is made by hand
  EmulatorBackend kernels = sm80();
  Outcome outcome = runCase(kernels, c);
  ASSERT_EQ(outcome.status, Status::Pass) << outcome.message;
  // One item: 64 packed rows, two tiles of 64 keys, head dim 64, four warps.
  const emulator::Statistics &s = kernels.statistics;
  EXPECT_EQ(s.products, 2u * 4 * (8 * 4 + 8 * 4));
  EXPECT_EQ(s.matrixLoads, 4u * (4 + 2 * (4 * 4 + 4 * 4)));
  EXPECT_EQ(s.copies, (64u + 2 * 2 * 64) * 64 * 2 / 16);
}

} // namespace
