//===- EmulatorTest.cpp - The emulator by itself --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thread functions written by hand: every primitive against its definition, and
// every kind of fault. No compiler takes part.
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

using namespace pagoda::emulator;
using testing::HasSubstr;

namespace {

Result launch(ThreadFunction kernel, const void *args, int threads,
              int sharedBytes = 0, uint64_t seed = 1, int grid = 1) {
  Launch l;
  l.kernel = kernel;
  l.args = args;
  l.threads = threads;
  l.sharedBytes = sharedBytes;
  l.seed = seed;
  l.gridSize = grid;
  return run(l);
}

char *sharedAt(int64_t offset) {
  return static_cast<char *>(pagoda_emu_shared()) + offset;
}

/// Copies 16 bytes of `source` per thread to shared memory, in the order of
/// threads, and waits for the own ones.
void copyMine(const void *source) {
  int thread = pagoda_emu_thread_id();
  pagoda_emu_copy16(sharedAt(16 * thread),
                    static_cast<const char *>(source) + 16 * thread, 16, 1);
  pagoda_emu_commit_copies();
  pagoda_emu_wait_copies(0);
}

//===----------------------------------------------------------------------===//
// Primitives
//===----------------------------------------------------------------------===//

TEST(Emulator, ThreadsKnowTheirPlace) {
  static std::vector<int> seen;
  seen.assign(3 * 64, 0);
  Result result = launch(
      [](const void *) {
        int block = pagoda_emu_block_id();
        EXPECT_EQ(pagoda_emu_grid_size(), 3);
        ++seen[size_t(block * 64 + pagoda_emu_thread_id())];
      },
      nullptr, 64, 0, 1, 3);
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(seen, std::vector<int>(3 * 64, 1));
}

TEST(Emulator, ShufflesReachTheLaneAcross) {
  static int32_t results[64];
  Result result = launch(
      [](const void *) {
        int thread = pagoda_emu_thread_id();
        results[thread] = pagoda_emu_shuffle_xor(100 + thread, 5, 1);
      },
      nullptr, 64);
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.statistics.shuffles, 2u);
  for (int thread = 0; thread < 64; ++thread)
    EXPECT_EQ(results[thread], 100 + (thread ^ 5)) << thread;
}

// Matrix m, row r, column c holds 64 m + 8 r + c. By the PTX ISA a lane gets
// row lane / 4, columns 2 (lane % 4) and the next one, of each matrix; with
// .trans of its transpose.
TEST(Emulator, MatrixLoadsSpreadRowsOverLanes) {
  alignas(16) static uint16_t matrices[4][8][8];
  static uint32_t plain[32][4], transposed[32][4];
  for (int i = 0; i < 256; ++i)
    matrices[i / 64][i / 8 % 8][i % 8] = uint16_t(i);
  Result result = launch(
      [](const void *) {
        copyMine(matrices);
        pagoda_emu_barrier(2);
        int lane = pagoda_emu_thread_id();
        pagoda_emu_load_matrices(sharedAt(16 * lane), 4, 0, plain[lane], 3);
        pagoda_emu_load_matrices(sharedAt(16 * lane), 4, 1, transposed[lane],
                                 4);
      },
      nullptr, 32, 512);
  ASSERT_EQ(result.fault, "");
  for (int lane = 0; lane < 32; ++lane)
    for (int m = 0; m < 4; ++m) {
      uint32_t row = uint32_t(64 * m), r = uint32_t(lane / 4),
               c = uint32_t(2 * (lane % 4));
      EXPECT_EQ(plain[lane][m], (row + 8 * r + c) | (row + 8 * r + c + 1)
                                                        << 16);
      EXPECT_EQ(transposed[lane][m], (row + 8 * c + r) | (row + 8 * (c + 1) + r)
                                                             << 16);
    }
}

// The other forms hold the first matrices, and what lanes past them name is not
// looked at.
TEST(Emulator, OneOrTwoMatrices) {
  alignas(16) static uint16_t matrices[4][8][8];
  static uint32_t out[32][4];
  for (int i = 0; i < 256; ++i)
    matrices[i / 64][i / 8 % 8][i % 8] = uint16_t(i);
  for (static int count = 1; count <= 2; ++count) {
    Result result = launch(
        [](const void *) {
          copyMine(matrices);
          pagoda_emu_barrier(2);
          int lane = pagoda_emu_thread_id();
          const void *row = lane < 8 * count ? sharedAt(16 * lane) : nullptr;
          pagoda_emu_load_matrices(row, count, 0, out[lane], 3);
        },
        nullptr, 32, 512);
    ASSERT_EQ(result.fault, "");
    for (int lane = 0; lane < 32; ++lane)
      for (int m = 0; m < count; ++m) {
        uint32_t first = uint32_t(64 * m + 8 * (lane / 4) + 2 * (lane % 4));
        EXPECT_EQ(out[lane][m], first | (first + 1) << 16);
      }
  }
}

uint16_t toF16(int value) { // small integers
  if (value == 0)
    return 0;
  int exponent = int(std::log2(std::abs(value)));
  int mantissa = (std::abs(value) << 10 >> exponent) & 0x3ff;
  return uint16_t((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | mantissa);
}

uint16_t toBf16(int value) {
  float f = float(value);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return uint16_t(bits >> 16);
}

// Operands by the tables of the PTX ISA, filled with small integers, whose
// products and sums are exact.
void checkProduct(bool isBf16) {
  static int a[16][16], b[16][8], c[16][8];
  static bool bf16;
  static float out[32][4];
  bf16 = isBf16;
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k) {
      a[i][k] = (7 * i + 3 * k) % 11 - 5;
      b[i][k % 8] = (5 * i + 2 * (k % 8)) % 13 - 6;
      c[i][k % 8] = 100 * i + k % 8;
    }
  Result result = launch(
      [](const void *) {
        int lane = pagoda_emu_thread_id(), g = lane / 4, t = lane % 4;
        auto pair = [](int low, int high) {
          uint32_t l = bf16 ? toBf16(low) : toF16(low);
          uint32_t h = bf16 ? toBf16(high) : toF16(high);
          return l | h << 16;
        };
        uint32_t in[10] = {pair(a[g][2 * t], a[g][2 * t + 1]),
                           pair(a[g + 8][2 * t], a[g + 8][2 * t + 1]),
                           pair(a[g][2 * t + 8], a[g][2 * t + 9]),
                           pair(a[g + 8][2 * t + 8], a[g + 8][2 * t + 9]),
                           pair(b[2 * t][g], b[2 * t + 1][g]),
                           pair(b[2 * t + 8][g], b[2 * t + 9][g])};
        float sums[4] = {float(c[g][2 * t]), float(c[g][2 * t + 1]),
                         float(c[g + 8][2 * t]), float(c[g + 8][2 * t + 1])};
        std::memcpy(in + 6, sums, sizeof(sums));
        pagoda_emu_multiply(bf16, in, out[lane], 1);
      },
      nullptr, 32);
  ASSERT_EQ(result.fault, "");
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      int expected = c[m][n];
      for (int k = 0; k < 16; ++k)
        expected += a[m][k] * b[k][n];
      int lane = m % 8 * 4 + n / 2;
      EXPECT_EQ(out[lane][m / 8 * 2 + n % 2], float(expected))
          << m << ", " << n;
    }
}

TEST(Emulator, ProductsOfF16) { checkProduct(false); }
TEST(Emulator, ProductsOfBf16) { checkProduct(true); }

TEST(Emulator, ShortCopiesAreFilledUpWithZeros) {
  alignas(16) static const uint16_t source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  static uint32_t out[32][4];
  Result result = launch(
      [](const void *) {
        int lane = pagoda_emu_thread_id();
        pagoda_emu_copy16(sharedAt(16 * lane), source, lane % 2 ? 6 : 0, 1);
        pagoda_emu_commit_copies();
        pagoda_emu_wait_copies(0);
        pagoda_emu_barrier(2);
        pagoda_emu_load_matrices(sharedAt(16 * lane), 4, 0, out[lane], 3);
      },
      nullptr, 32, 512);
  ASSERT_EQ(result.fault, "");
  for (int lane = 0; lane < 32; ++lane) {
    bool odd = lane / 4 % 2;
    const uint32_t expected[] = {1 | 2 << 16, 3, 0, 0};
    for (uint32_t value : out[lane])
      EXPECT_EQ(value, odd ? expected[lane % 4] : 0) << lane;
  }
}

TEST(Emulator, RoundsToBf16) {
  EXPECT_EQ(pagoda_emu_round_bf16(1.0f), 0x3f80);
  EXPECT_EQ(pagoda_emu_round_bf16(-2.0f), 0xc000);
  EXPECT_EQ(pagoda_emu_round_bf16(0x1.01p0f), 0x3f80); // a tie, to even
  EXPECT_EQ(pagoda_emu_round_bf16(0x1.03p0f), 0x3f82);
  EXPECT_EQ(pagoda_emu_round_bf16(INFINITY), 0x7f80);
  EXPECT_EQ(pagoda_emu_round_bf16(NAN), 0x7fff);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// Thread t copies chunk t and reads chunk (t + 1) % 32; `steps` says what is
/// in between.
struct Steps {
  bool wait, barrier;
};

void copyAndReadNeighbour(const void *args) {
  alignas(16) static const char source[512] = {};
  auto &steps = *static_cast<const Steps *>(args);
  int lane = pagoda_emu_thread_id();
  pagoda_emu_copy16(sharedAt(16 * lane), source + 16 * lane, 16, 1);
  pagoda_emu_commit_copies();
  if (steps.wait)
    pagoda_emu_wait_copies(0);
  if (steps.barrier)
    pagoda_emu_barrier(2);
  uint32_t out[4];
  pagoda_emu_load_matrices(sharedAt(16 * ((lane + 1) % 32)), 4, 0, out, 3);
}

TEST(EmulatorFaults, CopyReadWithoutWaitOrBarrier) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Steps right{true, true}, noWait{false, true}, noBarrier{true, false};
    EXPECT_EQ(launch(copyAndReadNeighbour, &right, 32, 512, seed).fault, "");
    EXPECT_THAT(launch(copyAndReadNeighbour, &noWait, 32, 512, seed).fault,
                HasSubstr("race in shared memory"));
    // By the order of threads the reader finds a copy that another thread has
    // waited for, or nothing at all.
    EXPECT_NE(launch(copyAndReadNeighbour, &noBarrier, 32, 512, seed).fault,
              "");
  }
}

TEST(EmulatorFaults, CopyOverWhatOthersMayStillRead) {
  auto kernel = [](const void *args) {
    alignas(16) static const char source[512] = {};
    copyMine(source);
    pagoda_emu_barrier(2);
    int lane = pagoda_emu_thread_id();
    uint32_t out[4];
    pagoda_emu_load_matrices(sharedAt(16 * ((lane + 1) % 32)), 4, 0, out, 3);
    if (*static_cast<const bool *>(args))
      pagoda_emu_barrier(4);
    pagoda_emu_copy16(sharedAt(16 * lane), source, 16, 5);
  };
  bool barrier = true;
  EXPECT_EQ(launch(kernel, &barrier, 32, 512).fault, "");
  barrier = false;
  std::string fault = launch(kernel, &barrier, 32, 512).fault;
  EXPECT_THAT(fault, HasSubstr("race in shared memory"));
  EXPECT_THAT(fault, HasSubstr("in op 3"));
  EXPECT_THAT(fault, HasSubstr("in op 5"));
}

TEST(EmulatorFaults, TwoCopiesToOnePlace) {
  Result result = launch(
      [](const void *) {
        alignas(16) static const char source[16] = {};
        pagoda_emu_copy16(sharedAt(0), source, 16, 7);
      },
      nullptr, 32, 512);
  EXPECT_THAT(result.fault, HasSubstr("race in shared memory at offset 0"));
}

/// A store or load of the 16 bytes at `offset`, as a kernel makes it.
void touch(int64_t offset, bool write, int32_t op) {
  pagoda_emu_shared_access(sharedAt(offset), write, op);
  if (write)
    std::memset(sharedAt(offset), pagoda_emu_thread_id(), 16);
}

TEST(EmulatorFaults, StoreReadWithoutBarrier) {
  Result result = launch(
      [](const void *) {
        int thread = pagoda_emu_thread_id();
        touch(16 * thread, true, 1);
        touch(16 * (thread ^ 32), false, 2); // of the other warp
      },
      nullptr, 64, 64 * 16);
  // Either side may come first, so the read may find nothing yet.
  EXPECT_THAT(result.fault,
              testing::AnyOf(
                  testing::HasSubstr("nobody has written"),
                  testing::AllOf(testing::HasSubstr("store by thread"),
                                 testing::HasSubstr("in op 1 and read by "
                                                    "thread"),
                                 testing::HasSubstr("in op 2 with no barrier "
                                                    "between them"))));
  result = launch(
      [](const void *) {
        int thread = pagoda_emu_thread_id();
        touch(16 * thread, true, 1);
        pagoda_emu_barrier(3);
        touch(16 * (thread ^ 32), false, 2);
      },
      nullptr, 64, 64 * 16);
  EXPECT_EQ(result.fault, "");
}

TEST(EmulatorFaults, TwoStoresToOnePlace) {
  Result result = launch(
      [](const void *) { touch(0, true, 10 + pagoda_emu_thread_id() % 2); },
      nullptr, 32, 16);
  EXPECT_THAT(result.fault,
              testing::AllOf(testing::HasSubstr("race in shared memory at "
                                                "offset 0: store by thread"),
                             testing::HasSubstr("and store by thread"),
                             testing::HasSubstr("no barrier")));
}

TEST(EmulatorFaults, StoreOverWhatOthersMayStillRead) {
  Result result = launch(
      [](const void *) {
        int thread = pagoda_emu_thread_id();
        if (thread == 0)
          touch(0, true, 1);
        pagoda_emu_barrier(2);
        touch(0, thread == 40, thread == 40 ? 4 : 3);
      },
      nullptr, 64, 16);
  EXPECT_THAT(result.fault, testing::AllOf(testing::HasSubstr("read by thread"),
                                           testing::HasSubstr("in op 3"),
                                           testing::HasSubstr("in op 4")));
}

TEST(EmulatorFaults, SharedMemoryOutOfBoundsOrMisaligned) {
  struct Place {
    int64_t offset;
  };
  auto kernel = [](const void *args) {
    alignas(16) static const char source[16] = {};
    if (pagoda_emu_thread_id() == 9)
      pagoda_emu_copy16(sharedAt(static_cast<const Place *>(args)->offset),
                        source, 16, 7);
  };
  Place last{496}, past{512}, before{-16}, odd{8};
  EXPECT_EQ(launch(kernel, &last, 32, 512).fault, "");
  EXPECT_EQ(
      launch(kernel, &past, 32, 512).fault,
      "block 0: cp.async: thread 9 in op 7: 16 bytes at offset 512 of 512 "
      "bytes of shared memory");
  EXPECT_THAT(launch(kernel, &before, 32, 512).fault, HasSubstr("offset -16"));
  EXPECT_THAT(launch(kernel, &odd, 32, 512).fault,
              HasSubstr("not a multiple of 16"));
}

TEST(EmulatorFaults, ReadOfUnwrittenSharedMemory) {
  Result result = launch(
      [](const void *) {
        uint32_t out[4];
        pagoda_emu_load_matrices(sharedAt(0), 4, 0, out, 3);
      },
      nullptr, 32, 512);
  EXPECT_THAT(result.fault, HasSubstr("that nobody has written"));
}

TEST(EmulatorFaults, DeadlockNamesWhoWaitsWhere) {
  Result result = launch(
      [](const void *) {
        if (pagoda_emu_thread_id() < 32)
          pagoda_emu_barrier(4);
      },
      nullptr, 64);
  EXPECT_EQ(result.fault,
            "block 0: deadlock: threads 0 to 31 wait for a barrier in op 4; "
            "threads 32 to 63 have ended");
}

TEST(EmulatorFaults, LanesThatMeetInDifferentInstructions) {
  Result result = launch(
      [](const void *) {
        int lane = pagoda_emu_thread_id();
        pagoda_emu_shuffle_xor(lane, 1, lane < 16 ? 4 : 5);
      },
      nullptr, 32);
  EXPECT_THAT(result.fault, HasSubstr("meet in different instructions"));
}

TEST(EmulatorFaults, GlobalMemoryOutsideOfBuffers) {
  alignas(16) static float data[8];
  static const float *address;
  static int32_t write;
  Launch l;
  l.kernel = [](const void *) { pagoda_emu_global(address, 4, write, 6); };
  l.buffers = {{"k", data, sizeof(data), false}};
  address = data + 7, write = 0;
  EXPECT_EQ(run(l).fault, "");
  address = data + 8;
  EXPECT_THAT(run(l).fault, HasSubstr("outside of every buffer"));
  address = data, write = 1;
  EXPECT_THAT(run(l).fault, HasSubstr("writes to k, which is read-only"));
  address =
      reinterpret_cast<const float *>(reinterpret_cast<const char *>(data) + 2);
  EXPECT_THAT(run(l).fault, HasSubstr("not aligned"));
}

TEST(EmulatorFaults, LaunchesThatNoGpuTakes) {
  auto nothing = [](const void *) {};
  EXPECT_THROW(launch(nothing, nullptr, 48), std::invalid_argument);
  EXPECT_THROW(launch(nothing, nullptr, 2048), std::invalid_argument);
  EXPECT_THROW(launch(nothing, nullptr, 32, 0, 1, 0), std::invalid_argument);
}

} // namespace
