//===- TensorParallelTest.cpp - Heads divided among ranks ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Query and KV heads of one rank, replicas, slopes of a rank, and what cannot
// be divided.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "compiler/import/Families.h"

using namespace pagoda;

namespace {

const char *const llama70b = R"({"model_type":"llama","num_hidden_layers":80,
    "hidden_size":8192,"num_attention_heads":64,"num_key_value_heads":8})";

TEST(TensorParallel, DividesBothWhereThereAreEnough) {
  ModelConfig model = importText(llama70b, {4, 1});
  ASSERT_EQ(model.kinds.size(), 1u);
  const LayerKind &kind = model.kinds[0];
  EXPECT_EQ(kind.spec.qHeads, 16);
  EXPECT_EQ(kind.spec.kvHeads, 2);
  EXPECT_EQ(kind.spec.headDim, 128);
  EXPECT_EQ(model.kvReplicas, 1);
  // The model itself stays whole.
  EXPECT_EQ(kind.qHeads, 64);
  EXPECT_EQ(kind.kvHeads, 8);
  EXPECT_EQ(model.kvElementsPerToken(), 80 * 2 * (128 + 128));
}

TEST(TensorParallel, ReplicatesFewKvHeads) {
  ModelConfig model = importText(llama70b, {32, 31});
  ASSERT_EQ(model.kinds.size(), 1u);
  EXPECT_EQ(model.kinds[0].spec.qHeads, 2);
  EXPECT_EQ(model.kinds[0].spec.kvHeads, 1);
  EXPECT_EQ(model.kvReplicas, 4);
  EXPECT_EQ(model.tensorParallelRank, 31);
}

TEST(TensorParallel, RefusesWhatIsNotDivisible) {
  EXPECT_EQ(refusal(llama70b, {3, 0}),
            "config.json: num_attention_heads: is 64, expected a multiple of 3 "
            "ranks");
  EXPECT_EQ(refusal(R"({"model_type":"falcon","num_hidden_layers":2,
                "hidden_size":4544,"num_attention_heads":71})",
                    {2, 0}),
            "config.json: num_attention_heads: is 71, expected a multiple of 2 "
            "ranks");
  EXPECT_EQ(refusal(R"({"model_type":"llama","num_hidden_layers":2,
                "hidden_size":3072,"num_attention_heads":24,
                "num_key_value_heads":6})",
                    {4, 0}),
            "config.json: num_key_value_heads: is 6, expected a multiple or a "
            "divisor of 4 ranks");
}

TEST(TensorParallel, RefusesRanksThatDoNotExist) {
  for (ImportOptions options :
       {ImportOptions{0, 0}, ImportOptions{-1, 0}, ImportOptions{2, 2},
        ImportOptions{2, -1}, ImportOptions{int64_t(1) << 40, 0}})
    EXPECT_NE(refusal(llama70b, options).find("tensor parallelism: "),
              std::string::npos);
}

TEST(TensorParallel, EachRankHasItsOwnSlopes) {
  const char *bloom = R"({"model_type":"bloom","n_layer":2,"n_head":16,
                          "hidden_size":1024})";
  std::vector<float> all = alibiSlopes(16);
  for (int64_t rank = 0; rank < 4; ++rank) {
    ModelConfig model = importText(bloom, {4, rank});
    ASSERT_EQ(model.kinds.size(), 1u);
    EXPECT_EQ(model.alibiSlopes, all);
    EXPECT_EQ(
        model.kinds[0].spec.alibiSlopes,
        std::vector<float>(all.begin() + 4 * rank, all.begin() + 4 * rank + 4));
  }
}

TEST(TensorParallel, LatentRowIsHeldByEveryRank) {
  ModelConfig model = importText(R"({"model_type":"deepseek_v3",
      "num_hidden_layers":61,"hidden_size":7168,"num_attention_heads":128})",
                                 {8, 0});
  ASSERT_EQ(model.kinds.size(), 1u);
  EXPECT_EQ(model.kinds[0].spec.qHeads, 16);
  EXPECT_EQ(model.kinds[0].spec.kvHeads, 16);
  AttentionSpec latent = model.latentSpec(model.kinds[0]);
  EXPECT_EQ(latent.qHeads, 16);
  EXPECT_EQ(latent.kvHeads, 1);
  EXPECT_EQ(model.kvElementsPerToken(), 61 * 16 * (192 + 128));
  EXPECT_EQ(model.kvElementsPerToken(true), 61 * 576);
}

} // namespace
