//===- CasesTest.cpp - Known faults, on NVIDIA kernels --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named cases of tests/conformance for kernels with 16-bit elements, on the
// emulator: indices and boundaries (A), masks, NaN and empty rows (B), head
// shapes (C), what happens to scores (D). Values that can be worked out by hand
// are compared with them, everything with the oracle.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/EmulatorBackend.h"
#include "tests/reference/Element.h"

#include "compiler/import/Families.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

EmulatorBackend &backend() {
  static EmulatorBackend instance(llvm::cantFail(Machine::named("sm_80")));
  return instance;
}

/// Small tiles: the same code with fewer copies of it.
Case named(std::string name, std::vector<Length> lengths,
           DType type = DType::F16) {
  Case c = forGpu(makeCase(std::move(name), std::move(lengths)), type);
  c.schedule = {"kv_tile=32"};
  return c;
}

void check(const Case &c, CaseData &data) {
  Outcome outcome = runCase(backend(), c, data);
  EXPECT_EQ(outcome.status, Status::Pass)
      << c.name << ": " << describe(c) << "\n  " << outcome.message;
}
void check(const Case &c) {
  CaseData data(c);
  check(c, data);
}

/// Rows of a case's tensors in its element type.
struct Tensors {
  explicit Tensors(CaseData &data)
      : data(data), args(data.args), dtype(data.problem.shape.qType) {}

  void setQuery(int64_t s, int64_t t, int64_t h, std::vector<double> row) {
    reference::storeRow(const_cast<void *>(args.q), dtype,
                        rowOf(s, t) * args.q_token_stride +
                            h * args.q_head_stride,
                        int64_t(row.size()), row.data());
  }
  void setKey(int64_t s, int64_t t, int64_t h, std::vector<double> row) {
    set(args.k, s, t, h, row);
  }
  void setValue(int64_t s, int64_t t, int64_t h, std::vector<double> row) {
    set(args.v, s, t, h, row);
  }
  double output(int64_t s, int64_t t, int64_t h, int64_t dim) const {
    double value = 0;
    reference::loadRow(args.o, dtype,
                       rowOf(s, t) * args.o_token_stride +
                           h * args.o_head_stride + dim,
                       1, &value);
    return value;
  }
  /// Every key of every sequence is zero, and token t's values are value(t).
  void equalScores(const std::function<double(int64_t)> &value) {
    const reference::Shape &shape = data.problem.shape;
    for (int64_t s = 0; s < int64_t(data.problem.sequences.size()); ++s)
      for (int64_t t = 0; t < data.problem.sequences[s].kvLen; ++t)
        for (int64_t h = 0; h < shape.kvHeads; ++h) {
          setKey(s, t, h, std::vector<double>(shape.headDim, 0));
          setValue(s, t, h, std::vector<double>(shape.vHeadDim, value(t)));
        }
    data.sealInputs();
  }

  CaseData &data;
  const pagoda_attention_args &args;
  int32_t dtype;

private:
  int64_t rowOf(int64_t s, int64_t t) const {
    return data.problem.sequences[s].qBegin + t;
  }
  void set(const pagoda_kv_view &view, int64_t s, int64_t t, int64_t h,
           const std::vector<double> &row) {
    int64_t size = data.problem.shape.blockSize;
    int64_t block = args.block_table[s * args.block_table_stride + t / size];
    reference::storeRow(view.base, dtype,
                        block * view.block_stride + h * view.head_stride +
                            t % size * view.token_stride,
                        int64_t(row.size()), row.data());
  }
};

//===----------------------------------------------------------------------===//
// Indices and boundaries
//===----------------------------------------------------------------------===//

TEST(NvidiaCases, A1_BlockOffsetBeyond2To31) {
  Case c = named("A1", {{32, 32}, {1, 0}});
  c.spec.qHeads = c.spec.kvHeads = 8;
  c.spec.headDim = c.spec.vHeadDim = 128;
  CaseData data(c);
  // A block has 2^14 elements: block 131072 begins at element 2^31.
  constexpr int64_t block = 16 * 8 * 128, bytes = block * 2;
  constexpr int32_t blocks[2][2] = {{131071, 131072}, {-1, -1}};
  GuardedBuffer k((blocks[0][1] + 1) * bytes), v((blocks[0][1] + 1) * bytes);
  for (int i = 0; i < 2; ++i)
    for (auto [to, from] :
         {std::pair(&k, &data.args.k), std::pair(&v, &data.args.v)})
      std::memcpy(to->as<char>() + blocks[0][i] * bytes,
                  static_cast<const char *>(from->base) +
                      data.args.block_table[i] * from->block_stride * 2,
                  bytes);
  data.args.k.base = k.data();
  data.args.v.base = v.data();
  data.args.block_table = blocks[0];
  data.args.block_table_stride = 2;
  check(c, data);
}

TEST(NvidiaCases, A5_LengthsAroundBlocksAndTiles) {
  for (DType type : {DType::F16, DType::BF16}) {
    Case c = named("A5", {}, type);
    c.spec.headDim = c.spec.vHeadDim = 16;
    for (int64_t length : {15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 256})
      c.lengths.push_back({1, length});
    c.lengths.push_back({33, 33});
    check(c);
  }
}

TEST(NvidiaCases, A7_BlockAllocatedAheadIsNotRead) {
  Case c = named("A7", {{1, 16}, {16, 16}, {1, 48}});
  c.seed = 2; // seed mod 3 extra table entries, the first a block of NaN
  CaseData data(c);
  ASSERT_GE(data.args.block_table[1], 0);
  check(c, data);
}

TEST(NvidiaCases, A9_TilesThatDoNotFitPages) {
  for (int64_t block : {1, 24, 96, 192})
    for (int64_t tile : {32, 64}) {
      Case c = named("A9", {{1, 3 * block - 1}, {20, 2 * block + 1}});
      c.spec.qHeads = c.spec.kvHeads = 1;
      c.spec.headDim = 16;
      c.spec.blockSize = block;
      c.values = Values::OneHot;
      c.schedule = {"kv_tile=" + std::to_string(tile)};
      check(c);
    }
}

TEST(NvidiaCases, A10_TilesLargerThanAPage) {
  // Scores of -10: a padded zero would count e^10 times as much.
  Case c = named("A10", {{1, 16}, {16, 16}, {1, 33}, {33, 33}});
  c.values = Values::LowScores;
  c.schedule = {"kv_tile=64"};
  check(c);
}

TEST(NvidiaCases, A14_ValuesHaveTheirOwnStrides) {
  Case c = named("A14", {{1, 75}, {20, 50}});
  c.spec.headDim = 192;
  c.spec.vHeadDim = 128;
  c.spec.layout = KvLayout::NHD;
  c.padding = 24; // V's token rows are wider than its data
  check(c);
}

TEST(NvidiaCases, A15_CombineStaysInBounds) {
  Case c = named("A15", {{1, 200}, {3, 90}, {1, 7}});
  c.spec.qHeads = c.spec.kvHeads = 5;
  c.splits = 4;
  check(c);
}

//===----------------------------------------------------------------------===//
// Masks, NaN, empty rows
//===----------------------------------------------------------------------===//

TEST(NvidiaCases, B1_B6_RowsThatSeeNoKey) {
  for (int64_t splits : {0, 1, 3}) {
    Case c = named("B6", {{4, 2}, {1, 5}, {3, 0}, {2, 17}, {0, 9}, {1, 0}});
    c.splits = splits;
    CaseData data(c);
    check(c, data);
    Tensors tensors(data);
    // The first two of four queries to two keys, and all of no keys.
    for (auto [s, count] : {std::pair(0, 2), {2, 3}, {5, 1}})
      for (int64_t t = 0; t < count; ++t)
        for (int64_t h = 0; h < 4; ++h) {
          EXPECT_EQ(data.lseOf(s, t, h), -infinity);
          for (int64_t d = 0; d < 64; ++d)
            EXPECT_EQ(tensors.output(s, t, h, d), 0);
        }
  }
}

TEST(NvidiaCases, B3_ScoresBelowAnySentinelAndFarAboveOne) {
  // (q, key, what the second key's second dim adds, weight of the second key).
  struct {
    DType type;
    double q, k0, k1, extra, weight;
  } const scores[] = {{DType::F16, 16, -6250, -6250, -1, 0.26894},
                      {DType::BF16, 1e15, 1e15, 1e15, 0, 0.5},
                      {DType::BF16, 1e15, -1e15, -1e15, 0, 0.5},
                      {DType::BF16, 1e15, 1e15, -1e15, 0, 0}};
  for (const auto &score : scores) {
    Case c = named("B3", {{1, 2}}, score.type);
    c.spec.headDim = c.spec.vHeadDim = 16;
    c.spec.scale = 1;
    CaseData data(c);
    Tensors tensors(data);
    auto row = [](double first, double second) {
      std::vector<double> result(16, 0);
      result[15] = first;
      result[3] = second;
      return result;
    };
    for (int64_t h = 0; h < 4; ++h)
      tensors.setQuery(0, 0, h, row(score.q, 1));
    for (int64_t h = 0; h < 2; ++h) {
      tensors.setKey(0, 0, h, row(score.k0, 0));
      tensors.setKey(0, 1, h, row(score.k1, score.extra));
      tensors.setValue(0, 0, h, std::vector<double>(16, 0));
      tensors.setValue(0, 1, h, std::vector<double>(16, 1));
    }
    data.sealInputs();
    check(c, data);
    EXPECT_NEAR(tensors.output(0, 0, 3, 9), score.weight, 5e-3);
  }
}

TEST(NvidiaCases, B5_PoisonOutsideTheValidTokens) {
  for (Poison poison : {Poison::NaN, Poison::Infinity})
    for (int64_t splits : {0, 3}) {
      Case c = named("B5", {{1, 17}, {17, 17}, {2, 33}, {1, 1}});
      c.poison = poison;
      c.splits = splits;
      check(c);
    }
}

TEST(NvidiaCases, B7_EmptySplits) {
  for (int64_t length : {3, 64 * 3 + 1, 0}) {
    Case c = named("B7", {{1, length}, {2, length}});
    c.splits = 8;
    check(c);
  }
}

TEST(NvidiaCases, B9_WindowCountsItself) {
  for (int64_t length : {3, 4, 5, 10}) {
    Case c = named("B9", {{length, length}});
    c.spec.window = 4;
    CaseData data(c);
    Tensors tensors(data);
    tensors.equalScores([](int64_t t) { return std::ldexp(1.0, int(t)); });
    check(c, data);
    for (int64_t row = 0; row < length; ++row) {
      double sum = 0;
      int64_t first = std::max<int64_t>(row - 3, 0);
      for (int64_t t = first; t <= row; ++t)
        sum += std::ldexp(1.0, int(t));
      double mean = sum / double(row - first + 1);
      EXPECT_NEAR(tensors.output(0, row, 3, 63), mean, 1e-3 * mean);
    }
  }
}

TEST(NvidiaCases, B12_CausalLimitWithPackedHeads) {
  Case c = named("B12", {{3, 5}});
  c.spec.qHeads = 8;
  c.spec.kvHeads = 1;
  c.spec.headDim = 192;
  c.spec.vHeadDim = 128;
  CaseData data(c);
  Tensors tensors(data);
  tensors.equalScores([](int64_t t) { return std::ldexp(1.0, int(t)); });
  check(c, data);
  // Query r averages the values of its 3 + r keys.
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t h = 0; h < 8; ++h) {
      double mean = (std::ldexp(1.0, int(3 + r)) - 1) / double(3 + r);
      EXPECT_NEAR(tensors.output(0, r, h, 127), mean, 1e-3 * mean);
    }
}

//===----------------------------------------------------------------------===//
// Head shapes
//===----------------------------------------------------------------------===//

TEST(NvidiaCases, C1_AnyGroupSize) {
  for (auto [qHeads, kvHeads] :
       {std::pair{14, 2}, {28, 4}, {12, 2}, {9, 3}, {71, 1}, {5, 5}}) {
    Case c = named("C1", {{1, 20}, {5, 9}});
    c.spec.headDim = c.spec.vHeadDim = 16;
    c.spec.qHeads = qHeads;
    c.spec.kvHeads = kvHeads;
    c.values = Values::HeadIndex;
    CaseData data(c);
    check(c, data);
    for (int64_t h = 0; h < qHeads; ++h)
      EXPECT_EQ(Tensors(data).output(0, 0, h, 3), h / (qHeads / kvHeads));
  }
}

TEST(NvidiaCases, C2_AnyHeadDim) {
  for (int64_t dim : {1, 3, 17, 40, 80, 100, 120, 192, 255, 256}) {
    Case c = named("C2", {{1, 20}, {18, 18}});
    c.spec.headDim = c.spec.vHeadDim = dim;
    c.spec.scale = 1 / std::sqrt(double(dim));
    c.schedule = {"kv_tile=16"};
    for (Values values : {Values::LastLanes, Values::Normal}) {
      c.values = values;
      check(c);
    }
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

TEST(NvidiaCases, D1_SoftcapBeforeTheMask) {
  Case c = named("D1", {{2, 2}}); // query 0 sees one key
  c.spec.softcap = 50;
  c.spec.scale = 1;
  CaseData data(c);
  Tensors tensors(data);
  for (int64_t t = 0; t < 2; ++t) {
    for (int64_t h = 0; h < 4; ++h)
      tensors.setQuery(0, t, h, std::vector<double>(64, 1));
    for (int64_t h = 0; h < 2; ++h) {
      tensors.setKey(0, t, h, std::vector<double>(64, 100.0 / 64));
      tensors.setValue(0, t, h, std::vector<double>(64, double(t)));
    }
  }
  data.sealInputs();
  check(c, data);
  for (int64_t h = 0; h < 4; ++h) {
    EXPECT_EQ(tensors.output(0, 0, h, 0), 0);
    EXPECT_NEAR(data.lseOf(0, 0, h), 50 * std::tanh(2.0), 1e-3);
  }
}

TEST(NvidiaCases, D3_AlibiSlopesOfAnyHeadCount) {
  struct {
    int64_t head;
    double log2Slope;
  } const known[] = {{0, -1}, {7, -8}, {8, -0.5}, {9, -1.5}, {11, -3.5}};
  Case c = named("D3", {{1, 70}, {3, 9}});
  c.spec.qHeads = 12;
  c.spec.kvHeads = 3;
  c.spec.headDim = c.spec.vHeadDim = 16;
  c.spec.blockSize = 3;
  c.spec.alibiSlopes = alibiSlopes(12);
  CaseData data(c);
  Tensors(data).equalScores([](int64_t t) { return double(t % 5); });
  check(c, data);
  // The score at distance n is -n * slope: weights are a geometric series.
  for (auto [head, log2Slope] : known) {
    double slope = std::exp2(log2Slope);
    double sum = (1 - std::exp(-70 * slope)) / (1 - std::exp(-slope));
    EXPECT_NEAR(data.lseOf(0, 0, head), std::log(sum), 1e-4) << head;
  }
}

TEST(NvidiaCases, D4_SinkCountsOnce) {
  for (float sink : {0.0f, 80.0f, -std::numeric_limits<float>::infinity()})
    for (int64_t splits : {0, 1, 3}) {
      Case c = named("D4", {{1, 3}});
      c.spec.sinks = true;
      c.splits = splits;
      CaseData data(c);
      std::vector<float> sinks(4, sink);
      data.args.sinks = sinks.data();
      Tensors tensors(data);
      tensors.equalScores([](int64_t) { return 1; });
      check(c, data);
      double expected = 3 / (3 + std::exp(double(sink)));
      for (int64_t h = 0; h < 4; ++h)
        EXPECT_NEAR(tensors.output(0, 0, h, 0), expected, 1e-3) << sink;
    }
}

TEST(NvidiaCases, D6_ScoresBeyondTheElementType) {
  // 128 * 30 * 30 = 115200 is no f16.
  Case c = named("D6", {{2, 9}});
  c.spec.headDim = c.spec.vHeadDim = 128;
  c.spec.scale = 1 / std::sqrt(128.0);
  CaseData data(c);
  Tensors tensors(data);
  for (int64_t t = 0; t < 9; ++t) {
    for (int64_t h = 0; h < 4 && t < 2; ++h)
      tensors.setQuery(0, t, h, std::vector<double>(128, 30));
    for (int64_t h = 0; h < 2; ++h)
      tensors.setKey(0, t, h, std::vector<double>(128, 30));
  }
  data.sealInputs();
  check(c, data);
  EXPECT_NEAR(data.lseOf(0, 1, 0), 115200 / std::sqrt(128.0) + std::log(9.0),
              0.1);
}

} // namespace
