//===- OrderBytesTest.cpp - What the loop orders move ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counted by hand where everything stays, or nothing. What lies between is
// checked against a simulated cache (bench/orders).
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "compiler/tiling/OrderBytes.h"
#include "gtest/gtest.h"

using namespace pagoda;
using namespace pagoda::test;

namespace {

using Order = Schedule::Order;

/// One head of 128 dims, f32, all keys seen.
AttentionSpec oneHead() {
  AttentionSpec s = spec(1, 1, 128);
  s.causal = false;
  return s;
}

Schedule ordered(Order order) {
  Schedule schedule;
  schedule.order = order;
  schedule.qTile = 288;
  schedule.kvTile = 96;
  schedule.blockRows = 4;
  schedule.blockVectors = 3;
  return schedule;
}

MovedBytes moved(const AttentionSpec &spec, const Schedule &schedule,
                 SequenceWork work, FastMemory memory, int64_t splits = 1) {
  return orderBytes(machine("x86-64-v3"), spec, schedule, work, memory, splits);
}

constexpr FastMemory large{int64_t(1) << 30};
// The size of Q, K, V and O of 2048 tokens.
constexpr double T = 2048 * 128 * 4;

} // namespace

TEST(OrderBytes, AllOrdersMoveTheSameWhereEverythingStays) {
  for (Order order :
       {Order::Naive, Order::Gather, Order::KvOuter, Order::QOuter}) {
    MovedBytes bytes = moved(oneHead(), ordered(order), {2048, 2048}, large);
    // Q and O once, K and V for each of 8 query tiles.
    EXPECT_EQ(bytes.in, 2 * T + 8 * 2 * T);
    EXPECT_EQ(bytes.out, T);
  }
}

// A causal tile of 288 queries stops at its last query: 288 + 576 + ... keys.
TEST(OrderBytes, CausalTilesVisitLess) {
  AttentionSpec s = oneHead();
  s.causal = true;
  double keys = 288 * (1 + 2 + 3 + 4 + 5 + 6 + 7) + 2048;
  EXPECT_EQ(moved(s, ordered(Order::QOuter), {2048, 2048}, large).in,
            2 * T + keys * 256 * 4);
}

// Heads of a group share a tile, so keys are read for all of them at once.
TEST(OrderBytes, GroupsShareTheirKeys) {
  AttentionSpec s = oneHead();
  s.qHeads = 8;
  s.kvHeads = 2;
  // 72 tokens a tile: 29 tiles for each KV head.
  EXPECT_EQ(moved(s, ordered(Order::QOuter), {2048, 2048}, large).in,
            8 * 2 * T + 2. * 29 * 2 * T);
}

TEST(OrderBytes, SplitsWriteAndReadTheirStates) {
  Schedule schedule = ordered(Order::SplitKv);
  schedule.lanes = Schedule::Lanes::HeadDim;
  schedule.qTile = 1;
  MovedBytes bytes = moved(oneHead(), schedule, {1, 2048}, large, 4);
  double state = 4 * (128 + 2) * 4;
  EXPECT_EQ(bytes.in, 2 * T + 2 * 128 * 4 + state);
  EXPECT_EQ(bytes.out, 128 * 4 + state);
}

// A tile of 24 queries and all 2048 keys in a memory that holds nothing.
TEST(OrderBytes, WhatDoesNotFitIsMovedByEachPass) {
  Schedule schedule = ordered(Order::Naive);
  schedule.qTile = 24;
  schedule.kvTile = 2048;
  constexpr FastMemory small{1024};
  double rows = 24 * 128 * 4, scores = 24 * 2048 * 4;
  // O^T with m, l and alpha.
  double state = rows + 24 * 3 * 4;
  MovedBytes naive = moved(oneHead(), schedule, {24, 2048}, small);
  // Scores are written, searched and turned into weights; 32 columns of four
  // dims read them all, and a line of V holds the dims of four columns.
  EXPECT_EQ(naive.in, 2 * rows + 2 * T + (rows + state) + 3 * scores + 3 * T +
                          32 * scores);
  EXPECT_EQ(naive.out, rows + state + 2 * scores);

  // A copy is written, and read in place of what was copied.
  schedule.order = Order::Gather;
  MovedBytes gather = moved(oneHead(), schedule, {24, 2048}, small);
  EXPECT_EQ(gather.in, naive.in + 2 * T + 2 * T);
  EXPECT_EQ(gather.out, naive.out + 2 * T);

  // A mask is one more pass over the scores.
  AttentionSpec causal = oneHead();
  causal.causal = true;
  schedule.order = Order::Naive;
  MovedBytes masked = moved(causal, schedule, {24, 2048}, small);
  EXPECT_EQ(masked.in, naive.in + scores);
  EXPECT_EQ(masked.out, naive.out + scores);
}
