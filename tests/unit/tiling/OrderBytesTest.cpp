//===- OrderBytesTest.cpp - The table of compiler/tiling/README.md --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/OrderBytes.h"
#include "gtest/gtest.h"

using namespace pagoda;

namespace {

/// One head of 128 dims, f32, all keys seen.
AttentionSpec oneHead() {
  AttentionSpec spec;
  spec.qHeads = spec.kvHeads = 1;
  spec.headDim = spec.vHeadDim = 128;
  spec.causal = false;
  return spec;
}

Schedule ordered(Schedule::Order order) {
  Schedule schedule;
  schedule.order = order;
  schedule.qTile = 288;
  schedule.kvTile = 96;
  return schedule;
}

} // namespace

// N = 2048, T = 2048 * 128 * 4 bytes.
TEST(OrderBytes, AsTheReadmeSays) {
  constexpr double T = 2048 * 128 * 4;
  SequenceWork prompt{2048, 2048};
  auto bytes = [&](Schedule::Order order) {
    return orderBytes(oneHead(), ordered(order), prompt);
  };
  EXPECT_EQ(bytes(Schedule::Order::Naive), 4 * T + 4. * 2048 * 2048 * 4);
  EXPECT_EQ(bytes(Schedule::Order::Gather), 2 * T + 8 * 6 * T);
  EXPECT_EQ(bytes(Schedule::Order::KvOuter), 2 * T + 22 * 3 * T);
  EXPECT_EQ(bytes(Schedule::Order::QOuter), 2 * T + 8 * 2 * T);
  EXPECT_EQ(
      orderBytes(oneHead(), ordered(Schedule::Order::SplitKv), {1, 2048}, 4),
      2 * T + 2 * 128 * 4 + 2 * 4 * (128 + 2) * 4);
}

// A causal tile of 288 queries stops at its last query: 288 + 576 + ... keys.
TEST(OrderBytes, CausalTilesVisitLess) {
  AttentionSpec spec = oneHead();
  spec.causal = true;
  double keys = 288 * (1 + 2 + 3 + 4 + 5 + 6 + 7) + 2048;
  EXPECT_EQ(orderBytes(spec, ordered(Schedule::Order::QOuter), {2048, 2048}),
            2. * 2048 * 128 * 4 + keys * 256 * 4);
}

// Heads of a group share a tile, so keys are read for all of them at once.
TEST(OrderBytes, GroupsShareTheirKeys) {
  AttentionSpec spec = oneHead();
  spec.qHeads = 8;
  spec.kvHeads = 2;
  // 72 tokens a tile: 29 tiles for each KV head.
  EXPECT_EQ(orderBytes(spec, ordered(Schedule::Order::QOuter), {2048, 2048}),
            8. * 2048 * 256 * 4 + 2. * 29 * 2048 * 256 * 4);
}
