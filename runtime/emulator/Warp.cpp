//===- Warp.cpp - What a warp does together -------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix loads, matrix products and shuffles, as the PTX ISA describes them
// ("Warp-level matrix load instruction: ldmatrix", "Matrix Fragments for
// mma.m16n8k16"), written down from there and not from the compiler's maps.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace pagoda::emulator;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Half precision: shifted into place, then the exponent's bias corrected by a
/// multiplication, which also normalises subnormal numbers.
static float fromF16(uint16_t half) {
  uint32_t magnitude = uint32_t(half & 0x7fff) << 13;
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  if (magnitude >= 0x0f800000) // infinity or NaN
    return fromBits(sign | 0x7f800000 | (magnitude & 0x7fffff));
  float value = fromBits(magnitude) * 0x1p112f;
  return sign ? -value : value;
}

static float fromBf16(uint16_t value) {
  return fromBits(uint32_t(value) << 16);
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

int32_t pagoda_emu_shuffle_xor(int32_t value, int32_t mask, int32_t op) {
  Block &block = *Block::active;
  struct Lane {
    int32_t value, mask, result;
  } mine = {value, mask, 0};
  block.meet("shfl.sync", op, nullptr, &mine, [&](Meeting &meeting) {
    ++block.statistics.shuffles;
    for (int lane = 0; lane < warpSize; ++lane) {
      auto *to = static_cast<Lane *>(meeting.out[lane]);
      auto *from = static_cast<Lane *>(meeting.out[(lane ^ to->mask) % 32]);
      to->result = from->value;
    }
  });
  return mine.result;
}

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

void pagoda_emu_load_matrices(const void *row, int32_t count, int32_t transpose,
                              uint32_t *out, int32_t op) {
  Block &block = *Block::active;
  Thread &thread = block.current();
  if (thread.lane() < 8 * count) {
    std::string fault = block.shared.read(row, {thread.id, op, thread.epoch});
    if (!fault.empty())
      block.fail("ldmatrix: " + fault);
  }
  block.meet("ldmatrix", op, row, out, [&](Meeting &meeting) {
    ++block.statistics.matrixLoads;
    for (int matrix = 0; matrix < count; ++matrix) {
      uint16_t m[8][8];
      for (int r = 0; r < 8; ++r)
        std::memcpy(m[r], meeting.in[8 * matrix + r], sizeof(m[r]));
      for (int lane = 0; lane < warpSize; ++lane) {
        int r = lane / 4, c = lane % 4 * 2;
        uint32_t low = transpose ? m[c][r] : m[r][c];
        uint32_t high = transpose ? m[c + 1][r] : m[r][c + 1];
        static_cast<uint32_t *>(meeting.out[lane])[matrix] = high << 16 | low;
      }
    }
  });
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// Both elements of a register.
static void unpackPair(uint32_t pair, bool isBf16, float &low, float &high) {
  auto l = uint16_t(pair), h = uint16_t(pair >> 16);
  low = isBf16 ? fromBf16(l) : fromF16(l);
  high = isBf16 ? fromBf16(h) : fromF16(h);
}

void pagoda_emu_multiply(int32_t isBf16, const uint32_t *in, float *out,
                         int32_t op) {
  Block &block = *Block::active;
  block.meet("mma", op, in, out, [&](Meeting &meeting) {
    ++block.statistics.products;
    float a[16][16], b[16][8], c[16][8];
    for (int lane = 0; lane < warpSize; ++lane) {
      auto *registers = static_cast<const uint32_t *>(meeting.in[lane]);
      int group = lane / 4, pair = lane % 4 * 2;
      for (int i = 0; i < 4; ++i) {
        float *at = &a[group + (i % 2) * 8][pair + i / 2 * 8];
        unpackPair(registers[i], isBf16, at[0], at[1]);
      }
      for (int i = 0; i < 2; ++i)
        unpackPair(registers[4 + i], isBf16, b[pair + 8 * i][group],
                   b[pair + 8 * i + 1][group]);
      std::memcpy(&c[group][pair], registers + 6, 2 * sizeof(float));
      std::memcpy(&c[group + 8][pair], registers + 8, 2 * sizeof(float));
    }
    for (int m = 0; m < 16; ++m)
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 8; ++n)
          c[m][n] += a[m][k] * b[k][n];
    for (int lane = 0; lane < warpSize; ++lane) {
      auto *result = static_cast<float *>(meeting.out[lane]);
      int group = lane / 4, pair = lane % 4 * 2;
      std::memcpy(result, &c[group][pair], 2 * sizeof(float));
      std::memcpy(result + 2, &c[group + 8][pair], 2 * sizeof(float));
    }
  });
}

//===----------------------------------------------------------------------===//
// Approximations
//===----------------------------------------------------------------------===//

/// .ftz: subnormal numbers are 0.
static float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min()
             ? std::copysign(0.f, x)
             : x;
}

float pagoda_emu_exp2(float x) { return flushed(std::exp2(flushed(x))); }
float pagoda_emu_log2(float x) { return std::log2(flushed(x)); }
float pagoda_emu_reciprocal(float x) { return flushed(1 / flushed(x)); }

int32_t pagoda_emu_round_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  if (std::isnan(x))
    return 0x7fff;
  bits += 0x7fff + (bits >> 16 & 1);
  return int32_t(bits >> 16);
}
