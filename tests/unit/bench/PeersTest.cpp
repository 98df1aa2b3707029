//===- PeersTest.cpp - Peers against the oracle ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every output element of the attention that is built on a matrix product: on
// one that is written out here, which every machine has, and on those of the
// libraries that this machine has.
//
//===----------------------------------------------------------------------===//

#include "bench/peers/SgemmAttention.h"
#include "tests/reference/Compare.h"
#include "tests/reference/Element.h"
#include "tests/unit/reference/SmallProblem.h"

#include "gtest/gtest.h"

#include <random>

using namespace pagoda;
using namespace pagoda::peers;
using namespace pagoda::reference;

namespace {

Sgemm plain() {
  Sgemm result;
  result.name = "plain";
  result.multiply = [](bool transposeB, int64_t m, int64_t n, int64_t k,
                       float alpha, const void *left, int64_t lda,
                       const void *right, int64_t ldb, float beta, float *c,
                       int64_t ldc) {
    auto *a = static_cast<const float *>(left);
    auto *b = static_cast<const float *>(right);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum +=
              a[i * lda + x] * (transposeB ? b[j * ldb + x] : b[x * ldb + j]);
        sum *= alpha;
        c[i * ldc + j] = beta == 0 ? sum : beta * c[i * ldc + j] + sum;
      }
  };
  return result;
}

struct Case {
  const char *name;
  Shape shape; ///< q, kv heads, head dim, v head dim, block, types, features
  int64_t qLen, kvLen;
};

constexpr uint32_t Causal = PAGODA_FEATURE_CAUSAL;
constexpr int32_t F32 = PAGODA_F32, F16 = PAGODA_F16, BF16 = PAGODA_BF16;

// Tiles are of 256 rows and 256 keys: one and several of each, whole and not,
// gathered (blocks smaller than a tile) and in place.
const Case cases[] = {
    {"prompt", {4, 2, 24, 16, 16, F32, F32, Causal}, 300, 300},
    {"in_place", {4, 2, 24, 16, 256, F32, F32, Causal}, 300, 300},
    {"large_blocks", {4, 2, 24, 16, 512, F32, F32, Causal}, 30, 700},
    {"odd_blocks", {3, 1, 7, 9, 11, F32, F32, Causal}, 90, 290},
    {"full", {2, 2, 8, 8, 16, F32, F32, 0}, 20, 270},
    {"decode", {8, 2, 32, 32, 16, F32, F32, Causal}, 1, 1030},
    {"a_large_group", {300, 1, 8, 8, 16, F32, F32, Causal}, 2, 40},
    {"rows_that_see_nothing", {4, 2, 24, 16, 16, F32, F32, Causal}, 40, 30},
    {"bf16", {4, 2, 24, 16, 16, BF16, BF16, Causal}, 140, 300},
    {"f16_cache", {4, 2, 24, 16, 256, F32, F16, Causal}, 140, 300},
    {"f16", {4, 2, 24, 16, 16, F16, F16, Causal}, 3, 300},
};

/// Random tensors in the case's types; unused slots of the cache are NaN.
struct Tensors : SmallProblem {
  std::vector<uint8_t> q2, k2, v2, o2;

  explicit Tensors(const Case &c) : SmallProblem(c.shape, c.qLen, c.kvLen) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> draw(0, 1);
    for (float &value : q)
      value = draw(random);
    for (int64_t position = 0; position < c.kvLen; ++position)
      for (int64_t head = 0; head < shape.kvHeads; ++head) {
        for (int64_t d = 0; d < shape.headDim; ++d)
          keyRow(position, head)[d] = draw(random);
        for (int64_t d = 0; d < shape.vHeadDim; ++d)
          valueRow(position, head)[d] = draw(random);
      }
    storage.q = as(shape.qType, q, q2);
    storage.k.base = as(shape.kvType, k, k2);
    storage.v.base = as(shape.kvType, v, v2);
    std::fill(o.begin(), o.end(), NAN);
    std::fill(lse.begin(), lse.end(), NAN);
    storage.o = as(shape.qType, o, o2);
    storage.scale = 1 / std::sqrt(float(shape.headDim));
  }

  static void *as(int32_t type, const std::vector<float> &values,
                  std::vector<uint8_t> &bytes) {
    bytes.resize(values.size() * elementBytes(type));
    std::vector<double> wide(values.begin(), values.end());
    storeRow(bytes.data(), type, 0, int64_t(wide.size()), wide.data());
    return bytes.data();
  }
};

class PeersTest : public testing::TestWithParam<Case> {
protected:
  void expectRight(SgemmAttention &peer) {
    const Case &c = GetParam();
    Tensors tensors(c);
    ASSERT_EQ(peer.refusal(c.shape), "");
    peer.run(tensors);
    Comparison checked = compare(tensors);
    EXPECT_TRUE(checked.ok())
        << peer.library().name << ' ' << peer.library().version << ": "
        << checked.failures << " of " << checked.elements << " elements, "
        << checked.worst.text();
    EXPECT_EQ(checked.elements,
              c.qLen * c.shape.qHeads * (c.shape.vHeadDim + 1));
  }
};

TEST_P(PeersTest, TilesAreRight) {
  SgemmAttention peer(plain(), 2);
  expectRight(peer);
}

TEST_P(PeersTest, LibrariesAreRight) {
  Peers peers = findPeers(2);
  EXPECT_EQ(peers.present.size() + peers.missing.size(), 3u);
  for (const auto &peer : peers.present)
    if (peer->refusal(GetParam().shape) != "multiplies bf16 only")
      expectRight(*peer);
  for (const std::string &reason : peers.missing)
    std::cout << "skipped: " << reason << '\n';
}

INSTANTIATE_TEST_SUITE_P(Peers, PeersTest, testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(Peers, RefuseWhatTheyCannotDo) {
  Sgemm sgemm = plain();
  SgemmAttention peer(sgemm, 1);
  Shape shape = cases[0].shape;
  shape.features |= PAGODA_FEATURE_WINDOW;
  EXPECT_EQ(peer.refusal(shape), "has causal and full attention only");
  shape = cases[0].shape;
  shape.kvType = PAGODA_F8E4M3;
  EXPECT_EQ(peer.refusal(shape), "has no cache of 8 bits");
  sgemm.operands = PAGODA_BF16;
  EXPECT_EQ(SgemmAttention(sgemm, 1).refusal(cases[0].shape),
            "multiplies bf16 only");
}

} // namespace
