//===- PrimitiveImages.cpp - What each instruction must answer ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Written down from the PTX ISA, not from the compiler's maps. Matrices hold
// small integers, whose products and sums are exact in every type here, so that
// most answers have no bound but equality.
//
//===----------------------------------------------------------------------===//

#include "tests/device/Primitives.h"
#include "tests/reference/Element.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>

namespace pagoda::device {

namespace {

using Matrix = std::function<double(int row, int column)>;

constexpr size_t qField = offsetof(pagoda_attention_args, q);
constexpr size_t kField = offsetof(pagoda_attention_args, k.base);
constexpr size_t oField = offsetof(pagoda_attention_args, o);

class ImageList {
public:
  explicit ImageList(const std::string &cubin) : cubin(cubin) {}

  CaseImage &start(const std::string &kernel, int threads, int sharedBytes = 0,
                   int64_t blocks = 1) {
    images.emplace_back();
    CaseImage &image = images.back();
    image.name = kernel;
    image.cubin = cubin;
    image.launches = {{kernel, threads, sharedBytes, blocks}};
    return image;
  }
  void input(size_t field, int32_t dtype, const std::vector<double> &values) {
    std::vector<uint8_t> bytes(values.size() * reference::elementBytes(dtype));
    reference::storeRow(bytes.data(), dtype, 0, int64_t(values.size()),
                        values.data());
    images.back().buffers.push_back({uint32_t(field), 0, std::move(bytes)});
  }
  /// The output is `values`, within `bounds` (empty: exactly).
  void output(int32_t dtype, const std::vector<double> &values,
              std::vector<float> bounds = {}) {
    bounds.resize(values.size(), 0);
    CaseImage &image = images.back();
    image.buffers.push_back(
        {uint32_t(oField), 0,
         std::vector<uint8_t>(values.size() * reference::elementBytes(dtype),
                              0xee)});
    image.expectations.push_back(
        {uint32_t(image.buffers.size() - 1), dtype,
         std::vector<float>(values.begin(), values.end()), std::move(bounds)});
  }

  std::vector<CaseImage> images;

private:
  std::string cubin;
};

std::vector<double> numbered(int count) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i)
    result.push_back(i);
  return result;
}

double smallInteger(int row, int column, int seed) {
  return (7 * row + 3 * column + 5 * seed) % 5 - 2;
}

std::string suffixOf(int32_t dtype) {
  return dtype == PAGODA_F16 ? "_f16" : "_bf16";
}

/// Register m of lane l: row l / 4, columns 2 (l % 4) and the next one, of
/// matrix m, or of its transpose. Element (m, r, c) is 64 m + 8 r + c.
void matrixLoads(ImageList &list) {
  for (int count : {1, 2, 4})
    for (bool transpose : {false, true}) {
      list.start("ldmatrix_x" + std::to_string(count) +
                     (transpose ? "_trans" : ""),
                 32, 512);
      list.input(qField, PAGODA_F16, numbered(256));
      std::vector<double> expected;
      for (int lane = 0; lane < 32; ++lane)
        for (int m = 0; m < count; ++m)
          for (int i = 0; i < 2; ++i) {
            int r = lane / 4, c = 2 * (lane % 4) + i;
            expected.push_back(64 * m + (transpose ? 8 * c + r : 8 * r + c));
          }
      list.output(PAGODA_F16, expected);
    }
}

/// "Matrix Fragments for mma.m16n8k16 with floating point type", element by
/// element.
void products(ImageList &list) {
  for (int32_t dtype : {PAGODA_F16, PAGODA_BF16}) {
    list.start("mma_m16n8k16" + suffixOf(dtype), 32);
    auto a = [](int m, int k) { return smallInteger(m, k, 1); };
    auto b = [](int k, int n) { return smallInteger(k, n, 2); };
    std::vector<double> operands, sums, expected;
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane / 4, pair = 2 * (lane % 4);
      for (int i = 0; i < 8; ++i) {
        bool lower = i / 2 % 2 == 0; // a0, a1, a4, a5
        operands.push_back(
            a(group + (lower ? 0 : 8), pair + i % 2 + (i < 4 ? 0 : 8)));
      }
      for (int i = 0; i < 4; ++i)
        operands.push_back(b(pair + i % 2 + (i < 2 ? 0 : 8), group));
      for (int i = 0; i < 4; ++i) {
        int m = group + (i < 2 ? 0 : 8), n = pair + i % 2;
        sums.push_back(100 * m + n);
        double sum = sums.back();
        for (int k = 0; k < 16; ++k)
          sum += a(m, k) * b(k, n);
        expected.push_back(sum);
      }
    }
    list.input(qField, dtype, operands);
    list.input(kField, PAGODA_F32, sums);
    list.output(PAGODA_F32, expected);
  }
}

void fragments(ImageList &list) {
  auto a = [](int r, int c) { return smallInteger(r, c, 1); };
  auto k = [](int r, int c) { return smallInteger(c, r, 2); };
  auto v = [](int r, int c) { return smallInteger(2 * r, c, 3); };
  auto times = [](const Matrix &x, const Matrix &y) {
    return [=](int r, int c) {
      double sum = 0;
      for (int i = 0; i < 16; ++i)
        sum += x(r, i) * y(i, c);
      return sum;
    };
  };
  auto kt = [=](int r, int c) { return k(c, r); };
  Matrix s = times(a, kt);
  auto rowMax = [=](int r, int) {
    double largest = s(r, 0);
    for (int c = 1; c < 16; ++c)
      largest = std::max(largest, s(r, c));
    return largest;
  };
  auto add = [&](const std::string &name, int32_t dtype,
                 const Matrix &expected) {
    list.start(name, 32, 3 * 512);
    std::vector<double> inputs, outputs;
    for (const Matrix &matrix : {Matrix(a), Matrix(k), Matrix(v)})
      for (int i = 0; i < 256; ++i)
        inputs.push_back(matrix(i / 16, i % 16));
    for (int i = 0; i < 256; ++i)
      outputs.push_back(expected(i / 16, i % 16));
    list.input(qField, dtype, inputs);
    list.output(PAGODA_F32, outputs);
  };
  for (int32_t dtype : {PAGODA_F16, PAGODA_BF16}) {
    add("fragment_a_kt" + suffixOf(dtype), dtype, s);
    add("fragment_a_v" + suffixOf(dtype), dtype, times(a, v));
    add("fragment_p_v" + suffixOf(dtype), dtype, times(s, v));
  }
  add("fragment_row_max", PAGODA_F16, rowMax);
}

void copies(ImageList &list) {
  // What a matrix load makes of rows of eight elements, `rows(row, element)`.
  auto loaded = [](int lane, const Matrix &rows, std::vector<double> &to) {
    for (int m = 0; m < 4; ++m)
      for (int i = 0; i < 2; ++i)
        to.push_back(rows(8 * m + lane / 4, 2 * (lane % 4) + i));
  };
  std::vector<double> expected;
  list.start("cp_async_zero_fill", 32, 512);
  list.input(qField, PAGODA_F16, numbered(256));
  for (int lane = 0; lane < 32; ++lane)
    loaded(
        lane, [](int row, int i) { return i < row % 9 ? 8 * row + i : 0; },
        expected);
  list.output(PAGODA_F16, expected);

  expected.clear();
  list.start("cp_async_groups", 32, 1024);
  list.input(qField, PAGODA_F16, numbered(512));
  for (int lane = 0; lane < 32; ++lane)
    for (int group = 0; group < 2; ++group)
      loaded(
          lane, [=](int row, int i) { return 256 * group + 8 * row + i; },
          expected);
  list.output(PAGODA_F16, expected);

  expected.clear();
  list.start("store_shared_barrier", 64, 1024);
  list.input(qField, PAGODA_F16, numbered(512));
  for (int thread = 0; thread < 64; ++thread)
    loaded(
        thread % 32,
        [=](int row, int i) { return 8 * (row + (thread < 32 ? 32 : 0)) + i; },
        expected);
  list.output(PAGODA_F16, expected);
}

void threads(ImageList &list) {
  std::vector<double> expected;
  list.start("thread_block_grid", 64, 0, 3);
  for (int i = 0; i < 192; ++i)
    expected.push_back(3 * 4096 + i);
  list.output(PAGODA_F32, expected);
  for (int mask : {1, 2, 4, 8, 16}) {
    list.start("shfl_bfly_" + std::to_string(mask), 64);
    list.input(qField, PAGODA_F32, numbered(64));
    expected.clear();
    for (int i = 0; i < 64; ++i)
      expected.push_back(i ^ mask);
    list.output(PAGODA_F32, expected);
  }
}

/// Errors that the PTX ISA states, where it states any.
void mathematics(ImageList &list) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double smallest = std::numeric_limits<float>::min();
  auto map = [&](const std::string &name, std::vector<double> x,
                 std::vector<double> y,
                 const std::function<double(double, double)> &of,
                 const std::function<double(double)> &bound) {
    x.resize(32, 1);
    y.resize(32, 1);
    list.start(name, 32);
    list.input(qField, PAGODA_F32, x);
    list.input(kField, PAGODA_F32, y);
    std::vector<double> expected;
    std::vector<float> bounds;
    for (int i = 0; i < 32; ++i) {
      expected.push_back(of(float(x[size_t(i)]), float(y[size_t(i)])));
      double value = expected.back();
      bounds.push_back(std::isfinite(value) ? float(bound(value)) : 0.f);
    }
    list.output(PAGODA_F32, expected, bounds);
  };
  auto relative = [](double units) {
    return [=](double value) { return std::fabs(value) * units * 0x1p-23; };
  };
  std::vector<double> exponents = {-infinity, infinity, nan,  0,    -0.0, 1,
                                   -1,        0.5,      -126, -127, -140, 127.5,
                                   128,       -1000,    1000, 1e-30};
  for (int i = int(exponents.size()); i < 32; ++i)
    exponents.push_back(-37.25 + 2.3125 * i);
  // Subnormal results are 0.
  map(
      "ex2_approx", exponents, {},
      [](double x, double) { return std::exp2(x); },
      [&](double value) {
        return value < smallest ? smallest : relative(2.5)(value);
      });
  std::vector<double> positive = {0,   infinity, nan,  -1,     1,     2,
                                  0.5, 1e-37,    3e38, 1.0001, 0.9999};
  for (int i = int(positive.size()); i < 32; ++i)
    positive.push_back(0.37 * i * i);
  map(
      "lg2_approx", positive, {}, [](double x, double) { return std::log2(x); },
      [&](double value) { return std::max(0x1p-22, relative(3)(value)); });
  // So are subnormal arguments and results here.
  std::vector<double> divisors = {0,      -0.0, infinity, -infinity, nan, 1e-39,
                                  -1e-39, 3e38, -3e38,    1e-37,     8e37};
  for (int i = int(divisors.size()); i < 32; ++i)
    divisors.push_back(0.75 * i - 12.4);
  map(
      "rcp_approx", divisors, {},
      [&](double x, double) {
        double inverse =
            1 / (std::fabs(x) < smallest ? std::copysign(0., x) : x);
        return std::fabs(inverse) < smallest ? std::copysign(0., inverse)
                                             : inverse;
      },
      relative(1.5));
  map(
      "max_number", {nan, 1, nan, -infinity, 3, -0.5}, {2, nan, nan, -7, 2, -1},
      [](double x, double y) { return std::fmax(x, y); },
      [](double) { return 0; });
  for (int32_t dtype : {PAGODA_F16, PAGODA_BF16}) {
    std::vector<double> low = {
        1,       1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-8, 1 + 0x3p-8, 65519,
        65520,   1e30,        -1e30,       infinity,   -infinity,  0x1p-14,
        0x1p-24, 0x1p-25,     0x3p-25,     -0.1,       0};
    std::vector<double> high = low;
    low.resize(32, 0.3);
    high.resize(32, -7.7);
    std::reverse(high.begin(), high.end());
    list.start("cvt" + suffixOf(dtype) + "x2", 32);
    list.input(qField, PAGODA_F32, low);
    list.input(kField, PAGODA_F32, high);
    std::vector<double> pairs(64), expected(64);
    for (size_t i = 0; i < 32; ++i) {
      pairs[2 * i] = float(low[i]);
      pairs[2 * i + 1] = float(high[i]);
    }
    std::vector<uint8_t> rounded(128);
    reference::storeRow(rounded.data(), dtype, 0, 64, pairs.data());
    reference::loadRow(rounded.data(), dtype, 0, 64, expected.data());
    list.output(dtype, expected);
  }
}

/// That the kernels of the limits do what is counted: small ones.
void limits(ImageList &list) {
  std::vector<double> values = numbered(4 * 600);
  list.start("limit_copy", limitThreads, 0, 2).args.q_token_stride = 600;
  list.input(qField, PAGODA_F32, values);
  list.output(PAGODA_F32, values);
  for (int32_t dtype : {PAGODA_F16, PAGODA_BF16}) {
    // All operands are 1: a product adds k = 16 to each of its four sums, and a
    // thread stores the sum of all.
    constexpr int rounds = 3;
    list.start("limit_mma" + suffixOf(dtype), limitThreads, 0, 1)
        .args.q_token_stride = rounds;
    list.output(PAGODA_F32, std::vector<double>(
                                limitThreads, rounds * limitProducts * 4 * 16));
  }
}

} // namespace

std::vector<CaseImage> primitiveImages(const std::string &cubin) {
  ImageList list(cubin);
  matrixLoads(list);
  products(list);
  fragments(list);
  copies(list);
  threads(list);
  mathematics(list);
  limits(list);
  return std::move(list.images);
}

} // namespace pagoda::device
