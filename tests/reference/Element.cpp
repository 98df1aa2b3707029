//===- Element.cpp - Element types as doubles -----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One description per floating-point format (exponent bits, mantissa bits, how
// it spells infinity), one decoder and one encoder for all of them.
//
//===----------------------------------------------------------------------===//

#include "tests/reference/Element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace pagoda::reference {

namespace {

struct Format {
  int exponentBits;
  int mantissaBits;
  bool hasInfinity; // F8E4M3: the all-ones exponent holds finite values

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int bits() const { return 1 + exponentBits + mantissaBits; }
  int maxExponent() const { return (1 << exponentBits) - 1; }
};

Format formatOf(int32_t dtype) {
  switch (dtype) {
  case PAGODA_F16:
    return {5, 10, true};
  case PAGODA_BF16:
    return {8, 7, true};
  case PAGODA_F8E4M3:
    return {4, 3, false};
  case PAGODA_F8E5M2:
    return {5, 2, true};
  default:
    return {8, 23, true};
  }
}

double decode(uint32_t bits, const Format &f) {
  uint32_t mantissa = bits & ((1u << f.mantissaBits) - 1);
  int exponent = (bits >> f.mantissaBits) & f.maxExponent();
  double sign = (bits >> (f.bits() - 1)) & 1 ? -1.0 : 1.0;
  if (exponent == f.maxExponent()) {
    bool allOnes = mantissa == (1u << f.mantissaBits) - 1;
    if (f.hasInfinity)
      return mantissa ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    if (allOnes)
      return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - f.bias() - f.mantissaBits);
  return sign * std::ldexp(mantissa + (1u << f.mantissaBits),
                           exponent - f.bias() - f.mantissaBits);
}

uint32_t encode(double value, const Format &f) {
  uint32_t sign = std::signbit(value) ? 1u << (f.bits() - 1) : 0;
  uint32_t expOnes = uint32_t(f.maxExponent()) << f.mantissaBits;
  uint32_t mantissaOnes = (1u << f.mantissaBits) - 1;
  uint32_t infinity = sign | expOnes | (f.hasInfinity ? 0 : mantissaOnes);
  if (std::isnan(value))
    return sign | expOnes | mantissaOnes;
  if (std::isinf(value))
    return infinity;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  int exponent;
  std::frexp(magnitude, &exponent); // magnitude = [0.5, 1) * 2^exponent
  exponent = std::max(exponent - 1, 1 - f.bias());
  // Counting in units of the last place makes a carry into the next binade
  // produce the right bit pattern by itself. nearbyint rounds to even.
  double units =
      std::nearbyint(std::ldexp(magnitude, f.mantissaBits - exponent));
  uint64_t pattern = uint64_t(units);
  if (pattern >= (1u << f.mantissaBits))
    pattern += uint64_t(exponent + f.bias() - 1) << f.mantissaBits;
  uint64_t firstBad = f.hasInfinity ? expOnes : (expOnes | mantissaOnes);
  return pattern >= firstBad ? infinity : sign | uint32_t(pattern);
}

template <typename Bits>
void decodeRow(const void *base, int64_t offset, int64_t n, const Format &f,
               double *out) {
  const Bits *bits = static_cast<const Bits *>(base) + offset;
  for (int64_t i = 0; i < n; ++i)
    out[i] = decode(bits[i], f);
}

template <typename Bits>
void encodeRow(void *base, int64_t offset, int64_t n, const Format &f,
               const double *in) {
  Bits *bits = static_cast<Bits *>(base) + offset;
  for (int64_t i = 0; i < n; ++i)
    bits[i] = Bits(encode(in[i], f));
}

} // namespace

size_t elementBytes(int32_t dtype) {
  switch (dtype) {
  case PAGODA_F32:
    return 4;
  case PAGODA_F16:
  case PAGODA_BF16:
    return 2;
  default:
    return 1;
  }
}

double epsilon(int32_t dtype) {
  if (dtype == PAGODA_I8)
    return 0;
  return std::ldexp(1.0, -formatOf(dtype).mantissaBits);
}

void loadRow(const void *base, int32_t dtype, int64_t offset, int64_t n,
             double *out) {
  if (dtype == PAGODA_F32) {
    const float *row = static_cast<const float *>(base) + offset;
    std::copy(row, row + n, out);
  } else if (dtype == PAGODA_I8) {
    const int8_t *row = static_cast<const int8_t *>(base) + offset;
    std::copy(row, row + n, out);
  } else if (elementBytes(dtype) == 2) {
    decodeRow<uint16_t>(base, offset, n, formatOf(dtype), out);
  } else {
    decodeRow<uint8_t>(base, offset, n, formatOf(dtype), out);
  }
}

void storeRow(void *base, int32_t dtype, int64_t offset, int64_t n,
              const double *in) {
  if (dtype == PAGODA_F32) {
    float *row = static_cast<float *>(base) + offset;
    for (int64_t i = 0; i < n; ++i)
      row[i] = float(in[i]);
  } else if (dtype == PAGODA_I8) {
    int8_t *row = static_cast<int8_t *>(base) + offset;
    for (int64_t i = 0; i < n; ++i)
      row[i] = int8_t(std::nearbyint(std::clamp(in[i], -128.0, 127.0)));
  } else if (elementBytes(dtype) == 2) {
    encodeRow<uint16_t>(base, offset, n, formatOf(dtype), in);
  } else {
    encodeRow<uint8_t>(base, offset, n, formatOf(dtype), in);
  }
}

void fillNaN(void *base, int32_t dtype, int64_t n) {
  double nan = dtype == PAGODA_I8 ? 0 : std::nan("");
  std::vector<uint8_t> pattern(elementBytes(dtype));
  storeRow(pattern.data(), dtype, 0, 1, &nan);
  uint8_t *bytes = static_cast<uint8_t *>(base);
  if (n == 0)
    return;
  std::memcpy(bytes, pattern.data(), pattern.size());
  // Doubling copies: pools are large.
  size_t done = pattern.size(), total = size_t(n) * pattern.size();
  while (done < total) {
    size_t step = std::min(done, total - done);
    std::memcpy(bytes + done, bytes, step);
    done += step;
  }
}

} // namespace pagoda::reference
