//===- KvPool.cpp - The memory that the blocks stand for ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Places the K planes and then the V planes in one piece of memory and copies
// blocks within it.
//
//===----------------------------------------------------------------------===//

#include "pagoda/KvPool.h"

#include "cache/HugeMemory.h"

#include <cstring>
#include <string>

using namespace pagoda;

/// Planes start at multiples of this, so that no two share a cache line.
static constexpr size_t PlaneAlign = 4096;
/// Between K and V. Without it a pool of 2^n blocks has its V a power of two
/// bytes after its K; decode, which reads both, was a quarter slower.
static constexpr size_t Gap = 4096;
/// No machine maps more; sums and products of smaller sizes do not overflow.
static constexpr int64_t MaxBytes = int64_t(1) << 56;

static size_t alignUp(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

int64_t pagoda::dtypeBytes(int32_t dtype) {
  switch (dtype) {
  case PAGODA_F32:
    return 4;
  case PAGODA_F16:
  case PAGODA_BF16:
    return 2;
  case PAGODA_F8E4M3:
  case PAGODA_F8E5M2:
  case PAGODA_I8:
    return 1;
  }
  throw Error(ErrorCode::InvalidArgument,
              "dtype: expected a pagoda_dtype from 0 to 5, got " +
                  std::to_string(dtype));
}

const char *pagoda::dtypeName(int32_t dtype) {
  static const char *const names[] = {"f32",    "f16",    "bf16",
                                      "f8e4m3", "f8e5m2", "i8"};
  return dtype >= 0 && dtype <= PAGODA_I8 ? names[dtype] : "no dtype";
}

const char *pagoda::layoutName(int32_t layout) {
  return layout == PAGODA_NHD   ? "nhd"
         : layout == PAGODA_HND ? "hnd"
                                : "no layout";
}

int64_t KvFormat::blockBytes() const {
  return kBlockElements() * dtypeBytes(kType) +
         vBlockElements() * dtypeBytes(vType);
}

static void inRange(const char *field, int64_t value, int64_t low,
                    int64_t high) {
  if (value < low || value > high)
    throw Error(ErrorCode::InvalidArgument,
                std::string("kv format: ") + field + ": expected " +
                    std::to_string(low) + " to " + std::to_string(high) +
                    ", got " + std::to_string(value));
}

void KvFormat::verify() const {
  inRange("kv_heads", kvHeads, 1, 1 << 16);
  inRange("head_dim", headDim, 1, 1 << 16);
  inRange("v_head_dim", vHeadDim, 1, 1 << 16);
  inRange("block_size", blockSize, 1, 1 << 16);
  inRange("layout", layout, PAGODA_NHD, PAGODA_HND);
  inRange("k_dtype", kType, PAGODA_F32, PAGODA_I8);
  inRange("v_dtype", vType, PAGODA_F32, PAGODA_I8);
  if (!vInsideK)
    return;
  inRange("v_head_dim (v inside k)", vHeadDim, 1, headDim);
  inRange("v_dtype (v inside k)", vType, kType, kType);
}

size_t KvPool::bytesNeeded(const KvFormat &format, int32_t numBlocks,
                           int32_t planes) {
  format.verify();
  inRange("blocks", numBlocks, 0, INT32_MAX);
  inRange("planes", planes, 1, 1 << 16);
  auto planeBytes = [&](int64_t elements, int32_t type) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements * dtypeBytes(type), numBlocks, &bytes))
      bytes = INT64_MAX; // too much all the same
    return bytes;
  };
  int64_t k = planeBytes(format.kBlockElements(), format.kType);
  int64_t v = planeBytes(format.vBlockElements(), format.vType);
  inRange("bytes of one plane of K", k, 0, MaxBytes / planes / 2);
  inRange("bytes of one plane of V", v, 0, MaxBytes / planes / 2);
  return (alignUp(k, PlaneAlign) + alignUp(v, PlaneAlign)) * planes +
         (v ? Gap : 0);
}

KvPool::KvPool(const KvFormat &format, int32_t numBlocks, int32_t planes)
    : Format(format), NumBlocks(numBlocks), Planes(planes),
      Bytes(bytesNeeded(format, numBlocks, planes)),
      Memory(static_cast<std::byte *>(mapHuge(Bytes))), Owned(true) {
  place();
}

KvPool::KvPool(const KvFormat &format, int32_t numBlocks, int32_t planes,
               void *memory, size_t bytes)
    : Format(format), NumBlocks(numBlocks), Planes(planes),
      Bytes(bytesNeeded(format, numBlocks, planes)),
      Memory(static_cast<std::byte *>(memory)) {
  if (bytes < Bytes)
    throw Error(ErrorCode::InvalidArgument,
                "kv pool: memory: expected " + std::to_string(Bytes) +
                    " bytes or more, got " + std::to_string(bytes));
  if (!memory || reinterpret_cast<size_t>(memory) % 64 != 0)
    throw Error(ErrorCode::InvalidArgument,
                "kv pool: memory: expected an address that is a multiple of "
                "64, got one that is not");
  place();
}

void KvPool::place() {
  size_t kPlane = alignUp(size_t(NumBlocks) * Format.kBlockElements() *
                              dtypeBytes(Format.kType),
                          PlaneAlign);
  VBase = Format.vInsideK ? Memory : Memory + kPlane * Planes + Gap;
}

KvPool::~KvPool() {
  if (Owned)
    unmapHuge(Memory, Bytes);
}

static pagoda_kv_view view(const KvFormat &format, std::byte *base, int32_t dim,
                           int64_t blockElements) {
  pagoda_kv_view view = {};
  view.base = base;
  view.block_stride = blockElements;
  bool nhd = format.layout == PAGODA_NHD;
  view.head_stride = nhd ? dim : int64_t(format.blockSize) * dim;
  view.token_stride = nhd ? int64_t(format.kvHeads) * dim : dim;
  return view;
}

static void checkPlane(int32_t plane, int32_t planes) {
  if (plane < 0 || plane >= planes)
    throw Error(ErrorCode::InvalidArgument,
                "kv pool: plane: expected 0 to " + std::to_string(planes - 1) +
                    ", got " + std::to_string(plane));
}

pagoda_kv_view KvPool::k(int32_t plane) const {
  checkPlane(plane, Planes);
  size_t size = alignUp(size_t(NumBlocks) * Format.kBlockElements() *
                            dtypeBytes(Format.kType),
                        PlaneAlign);
  return view(Format, Memory + size * plane, Format.headDim,
              Format.kBlockElements());
}

pagoda_kv_view KvPool::v(int32_t plane) const {
  if (Format.vInsideK)
    return k(plane);
  checkPlane(plane, Planes);
  size_t size = alignUp(size_t(NumBlocks) * Format.vBlockElements() *
                            dtypeBytes(Format.vType),
                        PlaneAlign);
  return view(Format, VBase + size * plane, Format.vHeadDim,
              Format.vBlockElements());
}

void KvPool::copyBlocks(std::span<const pagoda_block_copy> copies) {
  for (const pagoda_block_copy &copy : copies)
    for (int32_t block : {copy.src, copy.dst})
      if (block < 0 || block >= NumBlocks)
        throw Error(ErrorCode::UnknownBlock, "block copy: block " +
                                                 std::to_string(block) +
                                                 ": expected an id from 0 to " +
                                                 std::to_string(NumBlocks - 1));
  size_t kBytes = Format.kBlockElements() * dtypeBytes(Format.kType);
  size_t vBytes = Format.vBlockElements() * dtypeBytes(Format.vType);
  for (const pagoda_block_copy &copy : copies) {
    if (copy.src == copy.dst)
      continue;
    for (int32_t plane = 0; plane < Planes; ++plane) {
      auto *keys = static_cast<std::byte *>(k(plane).base);
      std::memcpy(keys + copy.dst * kBytes, keys + copy.src * kBytes, kBytes);
      if (vBytes == 0)
        continue;
      auto *values = static_cast<std::byte *>(v(plane).base);
      std::memcpy(values + copy.dst * vBytes, values + copy.src * vBytes,
                  vBytes);
    }
  }
}
