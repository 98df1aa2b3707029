//===- PoolTest.cpp - Memory, views and block copies ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pool of K and V: whose memory, which strides, and copies in every plane.
//
//===----------------------------------------------------------------------===//

#include "TestErrors.h"
#include "pagoda/KvPool.h"

#include <bit>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

using namespace pagoda;
using namespace pagoda::test;

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

// K and V of a pool of 2^n blocks are not a power of two bytes apart: they
// would be in each other's way.
TEST(KvPool, ValuesDoNotLieOnKeys) {
  KvFormat format;
  format.kvHeads = 8;
  format.headDim = format.vHeadDim = 128;
  for (int32_t planes : {1, 4}) {
    KvPool pool(format, 64, planes);
    for (int32_t plane = 0; plane < planes; ++plane) {
      auto k = reinterpret_cast<uintptr_t>(pool.k(plane).base);
      auto v = reinterpret_cast<uintptr_t>(pool.v(plane).base);
      EXPECT_GE(v - k, size_t(format.blockBytes() / 2 * 64));
      EXPECT_FALSE(std::has_single_bit(v - k));
      uintptr_t end = reinterpret_cast<uintptr_t>(pool.data()) + pool.bytes();
      EXPECT_LE(v + size_t(format.blockBytes() / 2 * 64), end);
    }
  }
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

TEST(KvPool, SizesDoNotOverflow) {
  KvFormat format;
  format.kvHeads = format.headDim = format.vHeadDim = format.blockSize = 1
                                                                         << 16;
  EXPECT_PAGODA_ERROR((void)KvPool::bytesNeeded(format, INT32_MAX, 1 << 16),
                      ErrorCode::InvalidArgument, "bytes of one plane of K");
  EXPECT_PAGODA_ERROR((void)KvPool::bytesNeeded(format, 1 << 14, 1),
                      ErrorCode::InvalidArgument, "bytes of one plane of K");
  alignas(64) char memory[64];
  EXPECT_PAGODA_ERROR(KvPool(format, 1 << 14, 1, memory, sizeof(memory)),
                      ErrorCode::InvalidArgument, "bytes");
}
