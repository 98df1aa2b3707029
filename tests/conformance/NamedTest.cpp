//===- NamedTest.cpp - Known faults of systems like this one --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One test per fault: indices and boundaries (A), masks, NaN and empty rows
// (B), head shapes (C). Values that can be worked out by hand are compared with
// them, everything with the oracle. What happens to scores is in
// NamedScoresTest.cpp, the published worked examples are in ExampleTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/NamedFixture.h"

#include <cmath>
#include <cstring>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();

using Indices = NamedTest;
using Masks = NamedTest;
using Heads = NamedTest;

//===----------------------------------------------------------------------===//
// Indices and boundaries
//===----------------------------------------------------------------------===//

TEST_F(Indices, A1_BlockOffsetBeyond2To31) {
  for (KvLayout layout : {KvLayout::NHD, KvLayout::HND})
    for (int64_t q : {1, 32}) {
      Case c = makeCase("A1", {{q, 32}});
      c.spec.kvHeads = 8;
      c.spec.qHeads = 16;
      c.spec.headDim = c.spec.vHeadDim = 128;
      c.spec.layout = layout;
      CaseData data(c);
      // A block has 2^14 elements: block 131072 begins at element 2^31.
      constexpr int64_t Block = 16 * 8 * 128;
      constexpr int32_t Blocks[2] = {131071, 131072};
      GuardedBuffer k((int64_t(Blocks[1]) + 1) * Block * sizeof(float));
      GuardedBuffer v((int64_t(Blocks[1]) + 1) * Block * sizeof(float));
      for (int i = 0; i < 2; ++i) {
        auto copy = [&](const GuardedBuffer &to, const pagoda_kv_view &from) {
          std::memcpy(to.as<float>() + Blocks[i] * Block,
                      static_cast<const float *>(from.base) +
                          data.args.block_table[i] * from.block_stride,
                      Block * sizeof(float));
        };
        copy(k, data.args.k);
        copy(v, data.args.v);
      }
      data.args.k.base = k.data();
      data.args.v.base = v.data();
      data.args.block_table = Blocks;
      check(c, data);
    }
}

TEST_F(Indices, A5_LengthsAroundBlocksAndTiles) {
  std::vector<int64_t> lengths = {15, 16, 17, 32};
  for (int64_t tile : {64, 128, 256, 512})
    lengths.insert(lengths.end(), {tile - 1, tile, tile + 1, 2 * tile});
  Case decode = makeCase("A5.decode", {});
  for (int64_t length : lengths)
    decode.lengths.push_back({1, length});
  check(decode);
  for (int64_t length : lengths) {
    Case prefill = makeCase("A5.prefill", {{length, length}});
    prefill.spec.qHeads = 2;
    prefill.spec.kvHeads = 1;
    prefill.spec.headDim = prefill.spec.vHeadDim = 16;
    check(prefill);
  }
}

TEST_F(Indices, A7_BlockAllocatedAheadIsNotRead) {
  Case c = makeCase("A7", {{1, 16}, {16, 16}, {1, 48}});
  c.seed = 2; // seed mod 3 extra table entries, the first a block of NaN
  CaseData data(c);
  ASSERT_GE(data.args.block_table_stride, 3);
  ASSERT_GE(data.args.block_table[1], 0);
  check(c, data);
}

TEST_F(Indices, A9_TilesThatDoNotFitPages) {
  for (int64_t block : {1, 8, 16, 24, 48, 96, 192, 256})
    for (int64_t tile : {32, 64, 128}) {
      Case c =
          makeCase("A9", {{1, 3 * block - 1}, {3 * block - 1, 3 * block - 1}});
      c.spec.qHeads = c.spec.kvHeads = 1;
      c.spec.headDim = 16;
      c.spec.blockSize = block;
      c.values = Values::OneHot;
      c.schedule = {"kv_tile=" + std::to_string(tile)};
      check(c);
    }
}

TEST_F(Indices, A14_ValuesHaveTheirOwnStrides) {
  for (KvLayout layout : {KvLayout::NHD, KvLayout::HND}) {
    Case c = makeCase("A14", {{1, 75}, {20, 50}});
    c.spec.headDim = 192;
    c.spec.vHeadDim = 128;
    c.spec.layout = layout;
    check(c);
    c.padding = 24; // V's rows (nhd) or blocks (hnd) are wider than its data
    check(c);
  }
}

TEST_F(Indices, A15_CombineStaysInBounds) {
  for (int kernel : {0, 1}) {
    Case c = makeCase("A15", {{1, 200}, {3, 90}, {1, 7}});
    c.spec.qHeads = c.spec.kvHeads = 5;
    c.kernel = kernel;
    c.splits = 4;
    CaseData split(c);
    check(c, split);
    c.splits = 1;
    CaseData whole(c);
    check(c, whole);
    for (int64_t s = 0; s < 3; ++s)
      for (int64_t t = 0; t < c.lengths[s].q; ++t)
        for (int64_t h = 0; h < 5; ++h)
          for (int64_t d = 0; d < 64; ++d)
            ASSERT_NEAR(split.outputRow(s, t, h)[d],
                        whole.outputRow(s, t, h)[d], 1e-5);
  }
}

TEST_F(Indices, OneQueryTo100kKeys) {
  Case c = makeCase("one query", {{1, 100'000}});
  c.spec.kvHeads = 1;
  c.spec.headDim = c.spec.vHeadDim = 32;
  for (int threads : {1, 2}) {
    c.threads = threads;
    check(c);
  }
  for (int kernel : {0, 1})
    for (int64_t splits : {1, 7}) {
      c.kernel = kernel;
      c.splits = splits;
      check(c);
    }
}

//===----------------------------------------------------------------------===//
// Masks, NaN, empty rows
//===----------------------------------------------------------------------===//

TEST_F(Masks, B1_RowsThatSeeNoKey) {
  for (int kernel : {0, 1}) {
    Case c = makeCase("B1", {{4, 2}});
    c.splits = 1;
    c.kernel = kernel;
    CaseData data(c);
    check(c, data);
    for (int64_t t : {0, 1})
      for (int64_t h = 0; h < 4; ++h) {
        EXPECT_EQ(data.lseOf(0, t, h), -Infinity);
        for (int64_t d = 0; d < 64; ++d)
          EXPECT_EQ(data.outputRow(0, t, h)[d], 0);
      }
  }
}

TEST_F(Masks, B3_ScoresBelowAnySentinelAndFarAboveOne) {
  for (int64_t dim : {1, 5, 16, 64}) {
    Case c = makeCase("B3", {{1, 2}});
    c.spec.headDim = c.spec.vHeadDim = dim;
    c.spec.scale = 1;
    // (q, keys, weight of the second key). Errors in the scores themselves
    // are what the tolerance is for: 1e5 has a unit of 0.008.
    struct {
      float q, k0, k1;
      double weight, tolerance;
    } const scores[] = {{1, -1e5f, -1e5f - 1, 0.26894, 5e-3},
                        {1e15f, 1e15f, 1e15f, 0.5, 1e-6},
                        {1e15f, -1e15f, -1e15f, 0.5, 1e-6},
                        {1e15f, 1e15f, -1e15f, 0, 0}};
    for (const auto &score : scores)
      for (int kernel : {0, 1}) {
        c.splits = 1;
        c.kernel = kernel;
        CaseData data(c);
        for (int64_t h = 0; h < 4; ++h) {
          std::fill_n(data.queryRow(0, 0, h), dim, 0.0f);
          data.queryRow(0, 0, h)[dim - 1] = score.q;
        }
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t t = 0; t < 2; ++t) {
            std::fill_n(data.keyRow(0, t, h), dim, 0.0f);
            data.keyRow(0, t, h)[dim - 1] = t == 0 ? score.k0 : score.k1;
            std::fill_n(data.valueRow(0, t, h), dim, float(t));
          }
        data.sealInputs();
        check(c, data);
        for (int64_t h = 0; h < 4; ++h)
          EXPECT_NEAR(data.outputRow(0, 0, h)[dim - 1], score.weight,
                      score.tolerance)
              << "dim " << dim << " score " << score.k0 * score.q << " kernel "
              << kernel;
      }
  }
}

TEST_F(Masks, B5_PoisonOutsideTheValidTokens) {
  for (Poison poison : {Poison::NaN, Poison::Infinity})
    for (KvLayout layout : {KvLayout::NHD, KvLayout::HND})
      for (bool causal : {true, false}) {
        // Block 0 and every unused block are poison in any case's pool.
        Case c = makeCase("B5", {{1, 17}, {17, 17}, {2, 33}, {1, 1}});
        c.poison = poison;
        c.spec.layout = layout;
        c.spec.causal = causal;
        check(c);
        c.splits = 3;
        check(c);
      }
}

TEST_F(Masks, B6_EmptySequencesInABatch) {
  // No queries, one, or a few; by the runtime's plan, or on either kernel.
  Case c = makeCase("B6", {{1, 0}, {1, 5}, {3, 0}, {2, 17}, {0, 9}, {0, 0}});
  for (bool causal : {false, true})
    for (int64_t splits : {0, 1, 3})
      for (int kernel : {0, 1}) {
        c.spec.causal = causal;
        c.splits = splits;
        c.kernel = kernel;
        CaseData data(c);
        ASSERT_EQ(data.args.block_table[0], -1);
        check(c, data);
        for (int64_t s : {0, 2})
          for (int64_t t = 0; t < c.lengths[s].q; ++t)
            for (int64_t h = 0; h < 4; ++h) {
              EXPECT_EQ(data.lseOf(s, t, h), -Infinity);
              for (int64_t d = 0; d < 64; ++d)
                EXPECT_EQ(data.outputRow(s, t, h)[d], 0);
            }
      }
}

TEST_F(Masks, B7_EmptySplits) {
  for (int64_t length : {3, 64 * 3 + 1, 0})
    for (int kernel : {0, 1}) {
      Case c = makeCase("B7", {{1, length}, {2, length}});
      c.kernel = kernel;
      c.splits = 8;
      CaseData split(c);
      check(c, split);
      c.splits = 1;
      CaseData whole(c);
      check(c, whole);
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t d = 0; d < 64; ++d)
          ASSERT_NEAR(split.outputRow(0, 0, h)[d], whole.outputRow(0, 0, h)[d],
                      1e-5);
    }
}

TEST_F(Masks, B9_WindowCountsItself) {
  // A window of W is W keys, the query's own included: (left, right) = (W - 1,
  // 0) where others count the keys on either side.
  constexpr int64_t Window = 4;
  for (int64_t length : {3, 4, 5, 10})
    for (int64_t q : {int64_t(1), length})
      for (int kernel : {0, 1}) {
        Case c = makeCase("B9", {{q, length}});
        c.spec.window = Window;
        c.splits = 1;
        c.kernel = kernel;
        CaseData data(c);
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t t = 0; t < length; ++t) {
            std::fill_n(data.keyRow(0, t, h), 64, 0.0f);
            std::fill_n(data.valueRow(0, t, h), 64, std::ldexp(1.0f, int(t)));
          }
        data.sealInputs();
        check(c, data);
        // The mean of 2^first .. 2^(end - 1).
        for (int64_t row = 0; row < q; ++row) {
          int64_t end = length - q + row + 1;
          int64_t first = std::max<int64_t>(end - Window, 0);
          double mean =
              (std::ldexp(1.0, int(end)) - std::ldexp(1.0, int(first))) /
              double(end - first);
          EXPECT_NEAR(data.outputRow(0, row, 3)[63], mean, 1e-6 * mean)
              << "row " << row << " of " << q << ", length " << length;
        }
      }
}

TEST_F(Masks, B12_CausalLimitWithPackedHeads) {
  for (int kernel : {0, 1}) {
    Case c = makeCase("B12", {{3, 5}});
    c.spec.qHeads = 8;
    c.spec.kvHeads = 1;
    c.spec.headDim = 192;
    c.spec.vHeadDim = 128;
    c.splits = 1;
    c.kernel = kernel;
    CaseData data(c);
    // Equal scores: query r averages the values of its 3 + r keys.
    for (int64_t t = 0; t < 5; ++t) {
      std::fill_n(data.keyRow(0, t, 0), 192, 0.0f);
      std::fill_n(data.valueRow(0, t, 0), 128, std::ldexp(1.0f, int(t)));
    }
    data.sealInputs();
    check(c, data);
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t h = 0; h < 8; ++h)
        EXPECT_NEAR(data.outputRow(0, r, h)[127],
                    (std::ldexp(1.0, int(3 + r)) - 1) / double(3 + r), 1e-5)
            << "row " << r << " head " << h;
  }
}

//===----------------------------------------------------------------------===//
// Head shapes
//===----------------------------------------------------------------------===//

TEST_F(Heads, C1_AnyGroupSize) {
  for (auto [qHeads, kvHeads] : {std::pair{14, 2},
                                 {28, 4},
                                 {56, 8},
                                 {40, 8},
                                 {12, 2},
                                 {9, 3},
                                 {36, 4},
                                 {71, 1},
                                 {5, 5}}) {
    Case c = makeCase("C1", {{1, 20}, {5, 9}});
    c.spec.qHeads = qHeads;
    c.spec.kvHeads = kvHeads;
    c.values = Values::HeadIndex;
    CaseData data(c);
    check(c, data);
    for (int64_t h = 0; h < qHeads; ++h)
      EXPECT_NEAR(data.outputRow(0, 0, h)[3], double(h / (qHeads / kvHeads)),
                  1e-5)
          << qHeads << '/' << kvHeads << " head " << h;
  }
}

TEST_F(Heads, C2_AnyHeadDim) {
  // Head dims beyond 256 need a narrower form of the kernels.
  for (int64_t dim : {40, 80, 96, 112, 120, 192, 256, 1, 3, 17, 100, 255}) {
    Case c = makeCase("C2", {{1, 20}, {18, 18}});
    c.spec.headDim = c.spec.vHeadDim = dim;
    c.spec.scale = 1 / std::sqrt(double(dim));
    c.values = Values::LastLanes;
    check(c);
    c.values = Values::Normal;
    check(c);
  }
}

} // namespace
