//===- RopeFamiliesTest.cpp - Rotations that single families read --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Objects and keys for the rotation that only one class knows.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

using namespace pagoda;

namespace {

RopeConfig ropeOf(const std::string &text, size_t kind = 0) {
  ModelConfig model = importText(text);
  if (kind < model.kinds.size())
    return model.kinds[kind].rope;
  ADD_FAILURE() << "no kind " << kind;
  return {};
}

TEST(RopeOfFamily, RotaryObject) {
  auto internlm = [](const std::string &fields) {
    return R"({"model_type":"internlm","num_hidden_layers":2,
        "hidden_size":5120,"num_attention_heads":40,
        "max_position_embeddings":4096)" +
           fields + "}";
  };
  EXPECT_EQ(ropeOf(internlm("")).kind, RopeKind::Default);
  EXPECT_EQ(ropeOf(internlm(R"(,"rope_theta":5000)")).theta, 5000);
  RopeConfig rope = ropeOf(internlm(R"(,"rotary":{"base":1000000,
      "type":"dynamic","scaling_factor":4.0})"));
  EXPECT_EQ(rope.kind, RopeKind::Dynamic);
  EXPECT_EQ(rope.theta, 1000000);
  EXPECT_EQ(rope.rotaryDim, 128);
  EXPECT_FALSE(rope.interleaved);
  EXPECT_EQ(rope.factor, 4);
  EXPECT_EQ(rope.originalMaxPosition, 4096);
  rope = ropeOf(internlm(R"(,"rotary":{"base":20000,"type":"dynamic"})"));
  EXPECT_EQ(rope.kind, RopeKind::Dynamic);
  EXPECT_EQ(rope.factor, 1);
  rope = ropeOf(internlm(R"(,"rotary":{"base":20000,"type":"origin"})"));
  EXPECT_EQ(rope.kind, RopeKind::Default);
  EXPECT_EQ(rope.theta, 20000);
  EXPECT_EQ(refusal(internlm(R"(,"rotary":{"base":20000,"type":"linear"})")),
            "config.json: rotary.type: is \"linear\" (a string), expected "
            "origin or dynamic");
}

TEST(RopeOfFamily, ImplementationsOfAttnConfig) {
  auto mpt = [](const std::string &fields) {
    return R"({"model_type":"mpt","d_model":4096,"n_heads":32,"n_layers":2,
        "max_seq_len":8192,"attn_config":{"alibi":false,"rope":true,
        "rope_theta":20000)" +
           fields + "}}";
  };
  for (const char *plain :
       {"", R"(,"rope_impl":"dail")",
        R"(,"rope_impl":"dail","rope_dail_config":{"type":"original"},
            "rope_hf_config":{"type":"linear","factor":4.0})",
        R"(,"rope_impl":"hf","rope_hf_config":{"type":"no_scaling",
            "factor":1.0})",
        R"(,"rope_impl":"hf")"}) {
    RopeConfig rope = ropeOf(mpt(plain));
    EXPECT_EQ(rope.kind, RopeKind::Default) << plain;
    EXPECT_EQ(rope.theta, 20000) << plain;
  }
  RopeConfig rope = ropeOf(mpt(R"(,"rope_impl":"hf",
      "rope_hf_config":{"type":"linear","factor":4.0})"));
  EXPECT_EQ(rope.kind, RopeKind::Linear);
  EXPECT_EQ(rope.factor, 4);
  rope = ropeOf(mpt(R"(,"rope_impl":"hf",
      "rope_hf_config":{"type":"dynamic","factor":2.0})"));
  EXPECT_EQ(rope.kind, RopeKind::Dynamic);
  EXPECT_EQ(rope.factor, 2);
  EXPECT_EQ(rope.originalMaxPosition, 8192);
  EXPECT_EQ(refusal(mpt(R"(,"rope_dail_config":{"type":"xpos"})")),
            "config.json: attn_config.rope_dail_config.type: is \"xpos\" (a "
            "string), expected original");
  EXPECT_EQ(refusal(mpt(R"(,"rope_impl":"other")")),
            "config.json: attn_config.rope_impl: is \"other\" (a string), "
            "expected dail or hf");
}

TEST(RopeOfFamily, NullBaseOfOlmoHybrid) {
  auto olmo = [](const std::string &fields) {
    return ropeOf(R"({"model_type":"olmo_hybrid","num_hidden_layers":4,
        "hidden_size":3840,"num_attention_heads":30,
        "layer_types":["full_attention","linear_attention",
          "linear_attention","linear_attention"])" +
                  fields + "}");
  };
  EXPECT_EQ(olmo("").theta, 10000);
  EXPECT_EQ(olmo(R"(,"rope_theta":500000.0)").theta, 500000);
  EXPECT_EQ(olmo(R"(,"rope_parameters":null)").theta, 10000);
  EXPECT_EQ(olmo(R"(,"rope_theta":null)").kind, RopeKind::None);
  EXPECT_EQ(olmo(R"(,"rope_parameters":{"rope_theta":null,
                     "rope_type":"default"})")
                .kind,
            RopeKind::None);
}

TEST(RopeOfFamily, YarnOfMiniCpm3SharpensToo) {
  std::string file = R"({"model_type":"minicpm3","num_hidden_layers":2,
      "hidden_size":2560,"num_attention_heads":40,"rope_scaling":{
      "type":"yarn","factor":4.0,"mscale_all_dim":1.0,
      "original_max_position_embeddings":32768}})";
  // 96^-0.5 * (0.1 ln 4 + 1)^2
  EXPECT_NEAR(importText(file).scale, 0.132321129, 1e-8);
}

TEST(RopeOfFamily, LengthThatPhi3WasTrainedFor) {
  // Absent: that of the class, not the stretched one.
  for (const char *type : {"phi3", "phi4_multimodal"}) {
    RopeConfig rope = ropeOf(R"({"model_type":")" + std::string(type) +
                             R"(","num_hidden_layers":2,
      "hidden_size":64,"num_attention_heads":8,"num_key_value_heads":8,
      "max_position_embeddings":16384,"rope_scaling":{"type":"longrope",
      "short_factor":[1,1,1,1],"long_factor":[2,2,2,2]}})");
    EXPECT_EQ(rope.originalMaxPosition, 4096);
    EXPECT_EQ(rope.factor, 4);
  }
}

} // namespace
