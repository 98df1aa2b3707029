//===- OccupancyTest.cpp - Blocks of a kernel on a multiprocessor ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "compiler/tiling/Occupancy.h"
#include "gtest/gtest.h"

using namespace pagoda;
using namespace pagoda::test;

TEST(Occupancy, BlocksThatFitAMultiprocessor) {
  auto blocks = [](const char *on, int registers, int threads, int shared) {
    return residentBlocks(machine(on), registers, threads, shared).total();
  };
  EXPECT_EQ(blocks("sm_80", 32, 128, 0), 16);        // threads
  EXPECT_EQ(blocks("sm_80", 16, 32, 0), 32);         // block slots
  EXPECT_EQ(blocks("sm_89", 16, 32, 0), 24);         // the same
  EXPECT_EQ(blocks("sm_80", 168, 128, 0), 3);        // registers: 12 warps
  EXPECT_EQ(blocks("sm_80", 255, 128, 0), 2);        // 8 warps
  EXPECT_EQ(blocks("sm_80", 128, 128, 80 << 10), 2); // shared memory
  EXPECT_EQ(blocks("sm_89", 128, 128, 80 << 10), 1); // less of it
}

// One register more costs a block, or there is none.
TEST(Occupancy, MostRegistersAreTheMost) {
  Machine m = machine("sm_90a");
  for (int64_t threads : {32, 96, 128, 160, 256, 512, 1024})
    for (int64_t blocks = 1; blocks * threads <= 2048; ++blocks) {
      int64_t most = mostRegisters(m, blocks, threads);
      EXPECT_GE(residentBlocks(m, most, threads, 0).byRegisters, blocks)
          << blocks << " blocks of " << threads;
      if (most < m.registersPerThread)
        EXPECT_LT(residentBlocks(m, most + 1, threads, 0).byRegisters, blocks)
            << blocks << " blocks of " << threads;
    }
}

TEST(Occupancy, ClaimsEveryRegisterThatCostsNoBlock) {
  Machine m = machine("sm_80");
  RegisterClaim c = claimRegisters(m, 150, 128, 40 << 10);
  EXPECT_EQ(c.blocks, 3);
  EXPECT_EQ(c.registers, 168); // 65536 / 12 warps, in units of 256
  EXPECT_EQ(c.need, 150);
  // Shared memory leaves room for two: four warps more of registers.
  c = claimRegisters(m, 150, 128, 80 << 10);
  EXPECT_EQ(c.blocks, 2);
  EXPECT_EQ(c.registers, 255);
  // What no thread can have: it takes what there is, and one block fits.
  c = claimRegisters(m, 284, 256, 160 << 10);
  EXPECT_EQ(c.blocks, 1);
  EXPECT_EQ(c.registers, 255);
  // A block that no multiprocessor holds still claims to be one.
  EXPECT_EQ(claimRegisters(m, 255, 1024, 0).blocks, 1);
  EXPECT_EQ(claimRegisters(m, 255, 1024, 0).registers, 64);
}
