//===- ElementTest.cpp - Element types against the compiler's own ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f16 against _Float16 for every bit pattern, bf16 against the top half of f32,
// the 8-bit formats against their published extremes and a round trip of every
// pattern.
//
//===----------------------------------------------------------------------===//

#include "tests/reference/Element.h"
#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace pagoda::reference;

namespace {

template <typename Bits> double read(Bits bits, int32_t dtype) {
  double out;
  loadRow(&bits, dtype, 0, 1, &out);
  return out;
}

template <typename Bits> Bits write(double value, int32_t dtype) {
  Bits bits = 0;
  storeRow(&bits, dtype, 0, 1, &value);
  return bits;
}

template <typename Bits> void roundTripAll(int32_t dtype) {
  for (uint32_t i = 0; i <= std::numeric_limits<Bits>::max(); ++i) {
    double value = read<Bits>(Bits(i), dtype);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(read(write<Bits>(value, dtype), dtype))) << i;
    else
      EXPECT_EQ(write<Bits>(value, dtype), Bits(i)) << value;
  }
}

TEST(Element, RoundTrips) {
  roundTripAll<uint16_t>(PAGODA_F16);
  roundTripAll<uint16_t>(PAGODA_BF16);
  roundTripAll<uint8_t>(PAGODA_F8E4M3);
  roundTripAll<uint8_t>(PAGODA_F8E5M2);
  for (int i = -128; i < 128; ++i)
    EXPECT_EQ(int8_t(write<uint8_t>(i, PAGODA_I8)), i);
}

TEST(Element, F16AgreesWithTheLanguage) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    double want = double(std::bit_cast<_Float16>(uint16_t(i)));
    double got = read(uint16_t(i), PAGODA_F16);
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << i;
  }
  // Rounding, ties and overflow: halfway points and their neighbours.
  for (uint32_t i = 0; i < 0x7bff; ++i) {
    double a = read(uint16_t(i), PAGODA_F16);
    double b = read(uint16_t(i + 1), PAGODA_F16);
    for (double x : {(a + b) / 2, a + (b - a) * 0.4999, a + (b - a) * 0.5001})
      EXPECT_EQ(write<uint16_t>(x, PAGODA_F16),
                std::bit_cast<uint16_t>(_Float16(x)))
          << x;
  }
  for (double x : {65519.0, 65520.0, 1e9, 1e-9, -65520.0})
    EXPECT_EQ(write<uint16_t>(x, PAGODA_F16),
              std::bit_cast<uint16_t>(_Float16(x)));
}

TEST(Element, Bf16IsTheTopOfF32) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    float want = std::bit_cast<float>(i << 16);
    double got = read(uint16_t(i), PAGODA_BF16);
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << i;
  }
  EXPECT_EQ(write<uint16_t>(1 + 1.0 / 256, PAGODA_BF16), 0x3f80); // tie: even
  EXPECT_EQ(write<uint16_t>(1 + 3.0 / 256, PAGODA_BF16), 0x3f82);
}

TEST(Element, EightBitExtremes) {
  EXPECT_EQ(read(uint8_t(0x7e), PAGODA_F8E4M3), 448);
  EXPECT_TRUE(std::isnan(read(uint8_t(0x7f), PAGODA_F8E4M3)));
  EXPECT_EQ(read(uint8_t(0x01), PAGODA_F8E4M3), std::ldexp(1.0, -9));
  EXPECT_EQ(read(uint8_t(0x7b), PAGODA_F8E5M2), 57344);
  EXPECT_TRUE(std::isinf(read(uint8_t(0x7c), PAGODA_F8E5M2)));
  EXPECT_EQ(write<uint8_t>(464, PAGODA_F8E4M3), 0x7e); // tie: to even
  EXPECT_EQ(write<uint8_t>(465, PAGODA_F8E4M3), 0x7f); // NaN: no infinity
}

TEST(Element, FillNaN) {
  float values[5] = {1, 1, 1, 1, 1};
  fillNaN(values, PAGODA_F32, 4);
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(std::isnan(values[i]));
  EXPECT_EQ(values[4], 1);
  EXPECT_EQ(epsilon(PAGODA_F32), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(epsilon(PAGODA_BF16), 1.0 / 128);
}

} // namespace
