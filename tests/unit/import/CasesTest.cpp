//===- CasesTest.cpp - Known faults of other importers -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small cases that some other implementation once got wrong, by name: a null
// head size, the first windowed layer, few KV heads on many ranks, ALiBi slopes
// of head counts that are no power of two.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "compiler/import/Families.h"

#include <cmath>

using namespace pagoda;

namespace {

std::string llamaWith(const std::string &fields) {
  return R"({"model_type":"llama","num_hidden_layers":2,)" + fields + "}";
}

std::string qwen2With(const std::string &fields) {
  return R"({"model_type":"qwen2","num_hidden_layers":28,"hidden_size":3584,
             "num_attention_heads":28,"num_key_value_heads":4)" +
         fields + "}";
}

std::string headsOf(const ModelConfig &model) {
  if (model.kinds.empty())
    return "";
  const AttentionSpec &spec = model.kinds[0].spec;
  return std::to_string(spec.qHeads) + "/" + std::to_string(spec.kvHeads) +
         " x" + std::to_string(model.kvReplicas);
}

TEST(Cases, I1_head_dim_explicit) {
  ModelConfig model = importText(llamaWith(
      R"("hidden_size":1792,"num_attention_heads":24,"head_dim":128)"));
  ASSERT_EQ(model.kinds.size(), 1u);
  EXPECT_EQ(model.kinds[0].spec.headDim, 128);
  EXPECT_EQ(model.kinds[0].spec.vHeadDim, 128);
}

TEST(Cases, I1_head_dim_null) {
  ModelConfig model = importText(llamaWith(
      R"("hidden_size":4096,"num_attention_heads":32,"head_dim":null)"));
  ASSERT_EQ(model.kinds.size(), 1u);
  EXPECT_EQ(model.kinds[0].spec.headDim, 128);
  // Null is not the class's default: qwen3's is 128, 2048 / 32 is 64.
  model = importText(R"({"model_type":"qwen3","num_hidden_layers":2,
      "hidden_size":2048,"num_attention_heads":32,"head_dim":null})");
  ASSERT_EQ(model.kinds.size(), 1u);
  EXPECT_EQ(model.kinds[0].spec.headDim, 64);
}

TEST(Cases, I1_head_dim_not_divisible) {
  EXPECT_EQ(
      refusal(llamaWith(R"("hidden_size":1792,"num_attention_heads":24)")),
      "config.json: head_dim: absent; hidden_size 1792 is not a multiple "
      "of num_attention_heads 24, expected an explicit value");
  EXPECT_EQ(
      refusal(llamaWith(
          R"("hidden_size":1792,"num_attention_heads":24,"head_dim":null)")),
      "config.json: head_dim: null; hidden_size 1792 is not a multiple "
      "of num_attention_heads 24, expected an explicit value");
}

TEST(Cases, I3_max_window_layers) {
  ModelConfig model = importText(qwen2With(
      R"(,"use_sliding_window":true,"sliding_window":4096,"max_window_layers":21)"));
  ASSERT_EQ(kindCounts(model), "full_attention:21 sliding_attention:7");
  EXPECT_EQ(model.kinds[0].layers.back(), 20);
  EXPECT_EQ(model.kinds[1].layers.front(), 21);
  EXPECT_EQ(model.kinds[1].spec.window, 4096);
  EXPECT_EQ(model.kinds[0].spec.window, std::nullopt);
  EXPECT_EQ(model.specs().size(), 2u);
}

TEST(Cases, I3_use_sliding_window_false) {
  EXPECT_EQ(kindCounts(importText(qwen2With(
                R"(,"use_sliding_window":false,"sliding_window":4096,
                   "max_window_layers":21)"))),
            "full_attention:28");
  // Absent is false, too.
  EXPECT_EQ(kindCounts(importText(
                qwen2With(R"(,"sliding_window":4096,"max_window_layers":21)"))),
            "full_attention:28");
}

TEST(Cases, I3_sliding_window_null) {
  EXPECT_EQ(kindCounts(importText(qwen2With(
                R"(,"use_sliding_window":true,"sliding_window":null,
                   "max_window_layers":21)"))),
            "full_attention:28");
}

std::string headsFile(int q, int kv) {
  return llamaWith(
      R"("head_dim":64,"hidden_size":4096,"num_attention_heads":)" +
      std::to_string(q) + R"(,"num_key_value_heads":)" + std::to_string(kv));
}

TEST(Cases, I4_fewer_kv_heads_than_ranks) {
  EXPECT_EQ(headsOf(importText(headsFile(64, 8), {16, 0})), "4/1 x2");
  EXPECT_EQ(headsOf(importText(headsFile(16, 2), {4, 0})), "4/1 x2");
  EXPECT_EQ(refusal(headsFile(12, 3), {2, 0}),
            "config.json: num_key_value_heads: is 3, expected a multiple or a "
            "divisor of 2 ranks");
}

TEST(Cases, D3_alibi_slopes_power_of_two) {
  std::vector<float> slopes = alibiSlopes(8);
  ASSERT_EQ(slopes.size(), 8u);
  for (int h = 0; h < 8; ++h)
    EXPECT_FLOAT_EQ(slopes[h], std::ldexp(1.0f, -(h + 1)));
}

TEST(Cases, D3_alibi_slopes_12_40_112) {
  std::vector<float> slopes = alibiSlopes(12);
  ASSERT_EQ(slopes.size(), 12u);
  for (int h = 0; h < 8; ++h)
    EXPECT_FLOAT_EQ(slopes[h], std::ldexp(1.0f, -(h + 1)));
  for (int h = 0; h < 4; ++h)
    EXPECT_FLOAT_EQ(slopes[8 + h], std::exp2(-0.5f - h));

  slopes = alibiSlopes(40); // 32 heads in steps of 1/4, then eighths
  ASSERT_EQ(slopes.size(), 40u);
  EXPECT_FLOAT_EQ(slopes[0], 0.8408964f);    // 2^-0.25
  EXPECT_FLOAT_EQ(slopes[31], 0.00390625f);  // 2^-8
  EXPECT_FLOAT_EQ(slopes[32], 0.917004043f); // 2^-0.125
  EXPECT_FLOAT_EQ(slopes[39], 0.272626933f); // 2^-1.875

  slopes = alibiSlopes(112); // 64 heads in steps of 1/8, then sixteenths
  ASSERT_EQ(slopes.size(), 112u);
  EXPECT_FLOAT_EQ(slopes[0], 0.917004043f);    // 2^-0.125
  EXPECT_FLOAT_EQ(slopes[63], 0.00390625f);    // 2^-8
  EXPECT_FLOAT_EQ(slopes[64], 0.957603281f);   // 2^-0.0625
  EXPECT_FLOAT_EQ(slopes[111], 0.0163167778f); // 2^-5.9375
}

} // namespace
