//===- RowMath.cpp - The work between two matrix products -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions keep one partial result a lane, which is what lets the compiler
// put lanes into vectors.
//
//===----------------------------------------------------------------------===//

#include "bench/peers/RowMath.h"

#include "runtime/include/pagoda/kernel_abi.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#define PAGODA_CLONES                                                          \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PAGODA_CLONES
#endif

namespace pagoda::peers {

static constexpr int64_t Lanes = 16;

/// 2^x for x <= 0, 0 below the normal numbers; relative error under 2e-7.
static inline float exp2(float x) {
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
  constexpr float round = 12582912;
  x = x < -127 ? -127 : x;
  float rounded = x + round;
  float f = (rounded - round - x) * -0.69314718f; // ln 2 times the rest
  float p =
      1 + f * (1 + f * (0.5f + f * (1 / 6.f + f * (1 / 24.f + f * (1 / 120.f +
                                                                   f / 720)))));
  uint32_t power = (std::bit_cast<uint32_t>(rounded) + 127) << 23;
  return p * std::bit_cast<float>(power);
}

PAGODA_CLONES float largest(const float *row, int64_t n) {
  float lanes[Lanes];
  std::fill_n(lanes, Lanes, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + Lanes <= n; i += Lanes)
    for (int64_t j = 0; j < Lanes; ++j)
      lanes[j] = lanes[j] < row[i + j] ? row[i + j] : lanes[j];
  for (; i < n; ++i)
    lanes[0] = std::max(lanes[0], row[i]);
  return *std::max_element(lanes, lanes + Lanes);
}

PAGODA_CLONES float exponentials(float *row, int64_t n, float max) {
  float lanes[Lanes] = {};
  int64_t i = 0;
  for (; i + Lanes <= n; i += Lanes)
    for (int64_t j = 0; j < Lanes; ++j)
      lanes[j] += row[i + j] = exp2(row[i + j] - max);
  for (; i < n; ++i)
    lanes[0] += row[i] = exp2(row[i] - max);
  float sum = 0;
  for (float lane : lanes)
    sum += lane;
  return sum;
}

PAGODA_CLONES void scale(float *row, int64_t n, float factor) {
  for (int64_t i = 0; i < n; ++i)
    row[i] *= factor;
}

PAGODA_CLONES void widen(const void *base, int32_t type, int64_t offset,
                         int64_t n, float *out) {
  if (type == PAGODA_F32) {
    std::memcpy(out, static_cast<const float *>(base) + offset,
                size_t(n) * sizeof(float));
  } else if (type == PAGODA_F16) {
    const auto *in = static_cast<const _Float16 *>(base) + offset;
    for (int64_t i = 0; i < n; ++i)
      out[i] = float(in[i]);
  } else {
    const auto *in = static_cast<const uint16_t *>(base) + offset;
    for (int64_t i = 0; i < n; ++i)
      out[i] = std::bit_cast<float>(uint32_t(in[i]) << 16);
  }
}

PAGODA_CLONES void narrow(const float *in, int64_t n, void *base, int32_t type,
                          int64_t offset) {
  if (type == PAGODA_F32) {
    std::memcpy(static_cast<float *>(base) + offset, in,
                size_t(n) * sizeof(float));
  } else if (type == PAGODA_F16) {
    auto *out = static_cast<_Float16 *>(base) + offset;
    for (int64_t i = 0; i < n; ++i)
      out[i] = _Float16(in[i]);
  } else {
    auto *out = static_cast<uint16_t *>(base) + offset;
    for (int64_t i = 0; i < n; ++i) {
      uint32_t bits = std::bit_cast<uint32_t>(in[i]);
      out[i] = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
  }
}

} // namespace pagoda::peers
