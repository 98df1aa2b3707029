//===- RopeTest.cpp - Spellings and frequencies of RoPE ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every spelling of the rotary parameters, and the frequencies that follow.
// Numbers are the published formulas, worked out apart from this code.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include <cmath>

using namespace pagoda;

namespace {

RopeConfig ropeOf(const std::string &text, size_t kind = 0) {
  ModelConfig model = importText(text);
  if (kind < model.kinds.size())
    return model.kinds[kind].rope;
  ADD_FAILURE() << "no kind " << kind;
  return {};
}

std::string llama(const std::string &fields) {
  return R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":4096,
             "num_attention_heads":32)" +
         fields + "}";
}

void expectFrequencies(const RopeConfig &rope, int64_t length,
                       std::vector<std::pair<size_t, double>> expected) {
  std::vector<double> actual = ropeFrequencies(rope, length);
  ASSERT_EQ(static_cast<int64_t>(actual.size()), rope.rotaryDim / 2);
  for (auto [index, value] : expected)
    EXPECT_NEAR(actual[index], value, 1e-10 * value) << "index " << index;
}

TEST(Rope, PlainAndItsDefaults) {
  ModelConfig model = importText(llama(""));
  ASSERT_EQ(model.kinds.size(), 1u);
  const RopeConfig &rope = model.kinds[0].rope;
  EXPECT_EQ(rope.kind, RopeKind::Default);
  EXPECT_EQ(rope.theta, 10000);
  EXPECT_EQ(rope.rotaryDim, 128);
  EXPECT_EQ(rope.rotaryOffset, 0);
  EXPECT_FALSE(rope.interleaved);
  expectFrequencies(rope, 1, {{0, 1.0}, {32, 0.01}});
  EXPECT_EQ(ropeOf(llama(R"(,"rope_theta":500000)")).theta, 500000);
  EXPECT_EQ(ropeOf(llama(R"(,"rope_theta":500000,"rope_scaling":null)")).theta,
            500000);
}

TEST(Rope, Linear) {
  for (const char *key : {"rope_type", "type"}) {
    RopeConfig rope = ropeOf(llama(R"(,"rope_scaling":{")" + std::string(key) +
                                   R"(":"linear","factor":8.0})"));
    EXPECT_EQ(rope.kind, RopeKind::Linear);
    EXPECT_EQ(rope.factor, 8);
    expectFrequencies(rope, 1, {{0, 0.125}, {32, 0.00125}});
  }
}

TEST(Rope, Dynamic) {
  RopeConfig rope =
      ropeOf(llama(R"(,"max_position_embeddings":32768,"rope_theta":1000000,
               "rope_scaling":{"type":"dynamic","factor":2.0})"));
  EXPECT_EQ(rope.kind, RopeKind::Dynamic);
  EXPECT_EQ(rope.originalMaxPosition, 32768);
  expectFrequencies(rope, 32768, {{0, 1.0}, {32, 1e-3}});
  expectFrequencies(
      rope, 65536,
      {{1, 0.791911494513}, {32, 0.000572338150838}, {63, 4.13645920251e-07}});
}

TEST(Rope, DynamicWithFixedAlpha) {
  // hunyuan: a larger base instead, for all lengths.
  RopeConfig rope = ropeOf(R"({"model_type":"hunyuan_v1_dense",
      "num_hidden_layers":2,"hidden_size":4096,"num_attention_heads":32,
      "rope_scaling":{"type":"dynamic","alpha":1000.0,"factor":1.0}})");
  EXPECT_EQ(rope.kind, RopeKind::Default);
  EXPECT_NEAR(rope.theta, 11158839.92507748, 1e-3);
}

TEST(Rope, Llama3) {
  RopeConfig rope = ropeOf(llama(R"(,"rope_theta":500000.0,"rope_scaling":{
      "rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,
      "high_freq_factor":4.0,"original_max_position_embeddings":8192})"));
  EXPECT_EQ(rope.kind, RopeKind::Llama3);
  // Plain up to index 28, divided from 36, a ramp between.
  expectFrequencies(rope, 1,
                    {{0, 1.0},
                     {20, 0.016560440081},
                     {29, 0.0021665707635},
                     {30, 0.00137189356776},
                     {32, 0.000524846160993},
                     {35, 9.55621235396e-05},
                     {36, 7.78465527393e-05},
                     {63, 3.06892598891e-07}});
}

TEST(Rope, YarnWithoutTruncation) {
  RopeConfig rope = ropeOf(R"({"model_type":"gpt_oss","num_hidden_layers":2,
      "hidden_size":2880,"num_attention_heads":64,"rope_theta":150000,
      "rope_scaling":{"rope_type":"yarn","factor":32.0,"beta_fast":32.0,
      "beta_slow":1.0,"truncate":false,
      "original_max_position_embeddings":4096}})");
  EXPECT_EQ(rope.kind, RopeKind::Yarn);
  EXPECT_FALSE(rope.truncate);
  EXPECT_NEAR(rope.attentionFactor, 1.3465735902799727, 1e-12);
  expectFrequencies(rope, 1,
                    {{0, 1.0},
                     {5, 0.155322989484},
                     {8, 0.0508132748155},
                     {10, 0.0193350011265},
                     {14, 0.00209379237897},
                     {17, 0.000129318701245},
                     {18, 3.83088123738e-05},
                     {31, 3.02351142812e-07}});
}

TEST(Rope, AbsentScalingIsTheClassDefault) {
  RopeConfig rope = ropeOf(R"({"model_type":"gpt_oss","num_hidden_layers":2,
      "hidden_size":2880,"num_attention_heads":64})");
  EXPECT_EQ(rope.kind, RopeKind::Yarn);
  EXPECT_EQ(rope.factor, 32);
  EXPECT_FALSE(rope.truncate);
}

TEST(Rope, YarnOfLatentAttention) {
  std::string file = R"({"model_type":"deepseek_v2","num_hidden_layers":27,
      "hidden_size":2048,"num_attention_heads":16,"rope_theta":10000,
      "max_position_embeddings":163840,"rope_scaling":{"type":"yarn",
      "factor":40,"beta_fast":32,"beta_slow":1,"mscale":1.0,
      "mscale_all_dim":0.5,"original_max_position_embeddings":4096}})";
  RopeConfig rope = ropeOf(file);
  EXPECT_EQ(rope.rotaryDim, 64);
  EXPECT_EQ(rope.rotaryOffset, 128);
  EXPECT_TRUE(rope.interleaved);
  EXPECT_NEAR(rope.attentionFactor, 1.1557219901962608, 1e-12);
  expectFrequencies(rope, 1,
                    {{0, 1.0},
                     {10, 0.056234132519},
                     {11, 0.0390069265671},
                     {15, 0.00833450895102},
                     {22, 0.000177827941004},
                     {23, 3.33380358041e-05},
                     {31, 3.33380358041e-06}});
  // softmax: 192^-0.5 * (0.05 ln 40 + 1)^2
  EXPECT_NEAR(importText(file).scale, 0.101246130, 1e-8);
}

TEST(Rope, YarnOfOtherNamesAndRamps) {
  auto file = [](const std::string &scaling) {
    return R"({"model_type":"deepseek_v2","num_hidden_layers":2,
      "hidden_size":2048,"num_attention_heads":16,"rope_scaling":{)" +
           scaling + R"(,"original_max_position_embeddings":4096}})";
  };
  RopeConfig rope =
      ropeOf(file(R"("type":"deepseek_yarn","factor":4,"beta_slow":2.0)"));
  EXPECT_EQ(rope.kind, RopeKind::Yarn);
  EXPECT_EQ(rope.betaSlow, 2);
  EXPECT_EQ(rope.betaFast, 32);
  // Sharpened only where the context is stretched.
  EXPECT_DOUBLE_EQ(
      importText(file(R"("type":"yarn","factor":0.5,"mscale_all_dim":1.0)"))
          .scale,
      1 / std::sqrt(192.0));
}

TEST(Rope, DynamicStartsAtTheStatedMaximum) {
  RopeConfig rope = ropeOf(R"({"model_type":"llama","num_hidden_layers":2,
      "hidden_size":512,"num_attention_heads":8,
      "max_position_embeddings":8192,"rope_scaling":{"type":"dynamic",
      "factor":2.0,"original_max_position_embeddings":2048}})");
  EXPECT_EQ(rope.kind, RopeKind::Dynamic);
  EXPECT_EQ(rope.originalMaxPosition, 8192);
}

TEST(Rope, YarnDefaults) {
  // The numbers of YarnOfLatentAttention, with 32 and 1 turns left out.
  RopeConfig rope = ropeOf(R"({"model_type":"llama","num_hidden_layers":2,
      "hidden_size":512,"num_attention_heads":8,"rope_scaling":{
      "type":"yarn","factor":40,"original_max_position_embeddings":4096}})");
  EXPECT_NEAR(rope.attentionFactor, 1.3688879454113937, 1e-12);
  expectFrequencies(rope, 1,
                    {{10, 0.056234132519},
                     {11, 0.0390069265671},
                     {22, 0.000177827941004},
                     {23, 3.33380358041e-05}});
  // Without a trained length the stated one is it.
  EXPECT_EQ(ropeOf(llama(R"(,"max_position_embeddings":1234,
                "rope_scaling":{"type":"yarn","factor":2})"))
                .originalMaxPosition,
            1234);
}

TEST(Rope, YarnRampEndsInsideTheHead) {
  // 1e6 turns at index 1; one turn at 8, which is past the last of 8 dims.
  RopeConfig rope = ropeOf(R"({"model_type":"llama","num_hidden_layers":2,
      "hidden_size":64,"num_attention_heads":8,"rope_scaling":{"type":"yarn",
      "factor":2,"beta_fast":1e6,
      "original_max_position_embeddings":100000000}})");
  expectFrequencies(rope, 1, {{0, 1.0}, {1, 0.1}, {2, 0.01 * 11 / 12}});
}

TEST(Rope, YarnAttentionFactorGiven) {
  RopeConfig rope = ropeOf(llama(R"(,"rope_scaling":{"rope_type":"yarn",
      "factor":4.0,"attention_factor":1.5,
      "original_max_position_embeddings":32768})"));
  EXPECT_EQ(rope.attentionFactor, 1.5);
  EXPECT_EQ(rope.originalMaxPosition, 32768);
  EXPECT_TRUE(rope.truncate);
}

std::string phi3(const std::string &scaling, const std::string &rest = "") {
  return R"({"model_type":"phi3","num_hidden_layers":2,"hidden_size":64,
             "num_attention_heads":8,"max_position_embeddings":131072,
             "rope_scaling":)" +
         scaling + rest + "}";
}

TEST(Rope, LongRope) {
  for (const char *type : {"longrope", "su"}) {
    RopeConfig rope = ropeOf(
        phi3(R"({"type":")" + std::string(type) +
                 R"(","short_factor":[1,2,3,4],"long_factor":[5,6,7,8]})",
             R"(,"original_max_position_embeddings":4096)"));
    EXPECT_EQ(rope.kind, RopeKind::LongRope);
    EXPECT_EQ(rope.rotaryDim, 8);
    EXPECT_EQ(rope.factor, 32);
    EXPECT_NEAR(rope.attentionFactor, 1.1902380714238083, 1e-12);
    expectFrequencies(rope, 4096, {{0, 1.0}, {1, 0.05}, {3, 0.001 / 4}});
    expectFrequencies(rope, 4097, {{0, 0.2}, {1, 0.1 / 6}, {3, 0.001 / 8}});
  }
}

TEST(Rope, LongRopeWithTheLengthInside) {
  RopeConfig rope = ropeOf(phi3(R"({"rope_type":"longrope",
      "short_factor":[1,2,3,4],"long_factor":[5,6,7,8],
      "original_max_position_embeddings":65536})"));
  EXPECT_EQ(rope.originalMaxPosition, 65536);
  EXPECT_EQ(rope.factor, 2);
}

TEST(Rope, LongRopeOfPhimoe) {
  ModelConfig model = importText(R"({"model_type":"phimoe",
      "num_hidden_layers":2,"hidden_size":64,"num_attention_heads":8,
      "rope_scaling":{"type":"longrope","short_factor":[1,1,1,1],
      "long_factor":[1,2,3,4],"short_mscale":1.25,"long_mscale":1.25,
      "original_max_position_embeddings":4096}})");
  ASSERT_EQ(model.kinds.size(), 1u);
  EXPECT_EQ(model.kinds[0].rope.attentionFactor, 1.25);
}

TEST(Rope, JsonForm) {
  auto formOf = [](const std::string &text) {
    std::string out;
    llvm::raw_string_ostream(out) << toJson(ropeOf(text));
    return out;
  };
  EXPECT_EQ(formOf(llama("")),
            R"({"interleaved":false,"rotary_dim":128,"rotary_offset":0,)"
            R"("theta":10000,"type":"default"})");
  EXPECT_EQ(formOf(llama(R"(,"rope_scaling":{"type":"linear","factor":2.5})")),
            R"({"factor":2.5,"interleaved":false,"rotary_dim":128,)"
            R"("rotary_offset":0,"theta":10000,"type":"linear"})");
  EXPECT_EQ(formOf(llama(R"(,"rope_scaling":{"type":"dynamic","factor":2})")),
            R"({"factor":2,"interleaved":false,"original_max_position":2048,)"
            R"("rotary_dim":128,"rotary_offset":0,"theta":10000,)"
            R"("type":"dynamic"})");
  EXPECT_EQ(formOf(llama(R"(,"rope_scaling":{"type":"yarn","factor":1,
                "attention_factor":1.5})")),
            R"({"attention_factor":1.5,"beta_fast":32,"beta_slow":1,)"
            R"("factor":1,"interleaved":false,"original_max_position":2048,)"
            R"("rotary_dim":128,"rotary_offset":0,"theta":10000,)"
            R"("truncate":true,"type":"yarn"})");
  EXPECT_EQ(formOf(llama(R"(,"rope_scaling":{"rope_type":"llama3","factor":8,
                "low_freq_factor":1,"high_freq_factor":4,
                "original_max_position_embeddings":8192})")),
            R"({"factor":8,"high_freq_factor":4,"interleaved":false,)"
            R"("low_freq_factor":1,"original_max_position":8192,)"
            R"("rotary_dim":128,"rotary_offset":0,"theta":10000,)"
            R"("type":"llama3"})");
  EXPECT_EQ(formOf(phi3(R"({"type":"longrope","short_factor":[1,2,3,4],
                "long_factor":[5,6,7,8],"attention_factor":1.5,
                "original_max_position_embeddings":65536})")),
            R"({"attention_factor":1.5,"factor":2,"interleaved":false,)"
            R"("long_factor":[5,6,7,8],"original_max_position":65536,)"
            R"("rotary_dim":8,"rotary_offset":0,"short_factor":[1,2,3,4],)"
            R"("theta":10000,"type":"longrope"})");
  EXPECT_EQ(formOf(R"({"model_type":"gpt2","n_layer":1,"n_head":2,
                "n_embd":128})"),
            R"({"type":"none"})");
}

TEST(Rope, SectionsOfSeveralAxes) {
  for (const char *type : {"mrope", "default"}) {
    RopeConfig rope =
        ropeOf(R"({"model_type":"qwen2_vl",
        "num_hidden_layers":2,"hidden_size":1536,"num_attention_heads":12,
        "num_key_value_heads":2,"rope_scaling":{"type":")" +
               std::string(type) + R"(","mrope_section":[16,24,24]}})");
    EXPECT_EQ(rope.kind, RopeKind::Default);
    EXPECT_EQ(rope.sections, (std::vector<int64_t>{16, 24, 24}));
  }
}

TEST(Rope, FlatRopeParameters) {
  RopeConfig rope = ropeOf(llama(R"(,"rope_parameters":{"rope_theta":250000.0,
      "rope_type":"linear","factor":2.0,"partial_rotary_factor":0.5})"));
  EXPECT_EQ(rope.kind, RopeKind::Linear);
  EXPECT_EQ(rope.theta, 250000);
  EXPECT_EQ(rope.rotaryDim, 64);
  rope = ropeOf(llama(R"(,"rope_parameters":{"rope_theta":250000.0})"));
  EXPECT_EQ(rope.kind, RopeKind::Default);
  EXPECT_EQ(rope.theta, 250000);
}

TEST(Rope, RopeParametersPerKindOfLayer) {
  ModelConfig model = importText(R"({"model_type":"gemma3_text",
      "num_hidden_layers":12,"hidden_size":1152,"num_attention_heads":4,
      "num_key_value_heads":1,"rope_parameters":{
      "full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1e6},
      "sliding_attention":{"rope_type":"default","rope_theta":20000.0}}})");
  const RopeConfig &full = kindNamed(model, "full_attention").rope;
  EXPECT_EQ(full.kind, RopeKind::Linear);
  EXPECT_EQ(full.theta, 1e6);
  const RopeConfig &sliding = kindNamed(model, "sliding_attention").rope;
  EXPECT_EQ(sliding.kind, RopeKind::Default);
  EXPECT_EQ(sliding.theta, 20000);
}

TEST(Rope, NullForOneKindOfLayer) {
  ModelConfig model = importText(R"({"model_type":"olmo3",
      "num_hidden_layers":4,"hidden_size":512,"num_attention_heads":4,
      "rope_parameters":{"full_attention":null,
      "sliding_attention":{"rope_theta":20000.0}}})");
  EXPECT_EQ(kindNamed(model, "full_attention").rope.kind, RopeKind::None);
  EXPECT_EQ(kindNamed(model, "sliding_attention").rope.theta, 20000);
}

TEST(Rope, TwoThetas) {
  ModelConfig model = importText(R"({"model_type":"gemma3_text",
      "num_hidden_layers":12,"hidden_size":1152,"num_attention_heads":4,
      "num_key_value_heads":1,"rope_theta":1000000,
      "rope_local_base_freq":30000,"rope_scaling":{"factor":8.0,
      "rope_type":"linear"}})");
  const RopeConfig &full = kindNamed(model, "full_attention").rope;
  EXPECT_EQ(full.kind, RopeKind::Linear);
  EXPECT_EQ(full.theta, 1000000);
  const RopeConfig &sliding = kindNamed(model, "sliding_attention").rope;
  EXPECT_EQ(sliding.kind, RopeKind::Default);
  EXPECT_EQ(sliding.theta, 30000);
  EXPECT_EQ(sliding.factor, 1);
}

TEST(Rope, OnlyFullLayersAreStretched) {
  ModelConfig model = importText(R"({"model_type":"olmo3",
      "num_hidden_layers":8,"hidden_size":512,"num_attention_heads":4,
      "rope_theta":500000,"rope_scaling":{"rope_type":"yarn","factor":8.0,
      "original_max_position_embeddings":8192}})");
  EXPECT_EQ(kindNamed(model, "full_attention").rope.kind, RopeKind::Yarn);
  const RopeConfig &sliding = kindNamed(model, "sliding_attention").rope;
  EXPECT_EQ(sliding.kind, RopeKind::Default);
  EXPECT_EQ(sliding.theta, 500000);
}

TEST(Rope, RotatedPartOfTheHead) {
  auto dims = [](const std::string &type, const std::string &fields) {
    return ropeOf(R"({"model_type":")" + type +
                  R"(","num_hidden_layers":2,"num_attention_heads":32,
                  "hidden_size":2560)" +
                  fields + "}")
        .rotaryDim;
  };
  EXPECT_EQ(dims("phi", R"(,"partial_rotary_factor":0.4)"), 32);
  EXPECT_EQ(dims("phi", ""), 40); // the class's half
  EXPECT_EQ(dims("stablelm", ""), 20);
  EXPECT_EQ(dims("stablelm_epoch", R"(,"rope_pct":0.5)"), 40);
  EXPECT_EQ(dims("gpt_neox", R"(,"rotary_pct":0.25)"), 20);
  EXPECT_EQ(dims("gpt_neox", R"(,"rotary_pct":1.0)"), 80);
  EXPECT_EQ(dims("gptj", R"(,"rotary_dim":64)"), 64);
  EXPECT_EQ(dims("phi-msft", R"(,"rotary_dim":32)"), 32);
  EXPECT_EQ(dims("llama", ""), 80);
}

TEST(Rope, OlderNamesOfTheBase) {
  EXPECT_EQ(ropeOf(R"({"model_type":"gpt_neox","num_hidden_layers":2,
      "num_attention_heads":4,"hidden_size":128,"rotary_emb_base":40000})")
                .theta,
            40000);
  // chatglm stretches the base by a ratio.
  RopeConfig glm = ropeOf(R"({"model_type":"chatglm","num_layers":2,
      "num_attention_heads":32,"hidden_size":4096,"rope_ratio":500,
      "multi_query_attention":true,"multi_query_group_num":2})");
  EXPECT_EQ(glm.theta, 5000000);
  EXPECT_EQ(glm.rotaryDim, 64);
  EXPECT_TRUE(glm.interleaved);
}

TEST(Rope, Pairing) {
  auto interleaved = [](const std::string &type) {
    return ropeOf(R"({"model_type":")" + type +
                  R"(","num_hidden_layers":4,"num_attention_heads":32,
                  "num_key_value_heads":8,"hidden_size":4096})")
        .interleaved;
  };
  for (const char *type : {"gptj", "codegen", "cohere", "cohere2", "glm",
                           "glm4", "helium", "ernie4_5", "llama4_text"})
    EXPECT_TRUE(interleaved(type)) << type;
  for (const char *type : {"llama", "qwen2", "phi3", "glm4_moe", "gpt_neox",
                           "granite", "falcon", "exaone4"})
    EXPECT_FALSE(interleaved(type)) << type;
}

TEST(Rope, ModelsThatDoNotRotate) {
  for (const char *type :
       {"gpt2", "opt", "gpt_bigcode", "bloom", "mpt", "xglm", "biogpt", "jais"})
    EXPECT_EQ(ropeOf(R"({"model_type":")" + std::string(type) +
                     R"(","num_hidden_layers":2,"num_attention_heads":8,
                     "hidden_size":512})")
                  .kind,
              RopeKind::None)
        << type;
}

TEST(Rope, LayersThatDoNotRotate) {
  ModelConfig model = importText(R"({"model_type":"smollm3",
      "num_hidden_layers":8,"num_attention_heads":16,"hidden_size":2048})");
  EXPECT_EQ(kindCounts(model), "full_attention:8");
  EXPECT_EQ(model.noRopeLayers, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(kindNamed(model, "full_attention").rope.kind, RopeKind::Default);
  model = importText(R"({"model_type":"smollm3","num_hidden_layers":4,
      "num_attention_heads":16,"hidden_size":2048,
      "no_rope_layers":[0,1,1,0]})");
  EXPECT_EQ(model.noRopeLayers, (std::vector<int64_t>{0, 3}));

  model = importText(R"({"model_type":"cohere2","num_hidden_layers":8,
      "num_attention_heads":16,"hidden_size":2048})");
  EXPECT_EQ(kindNamed(model, "full_attention").rope.kind, RopeKind::None);
  EXPECT_EQ(kindNamed(model, "sliding_attention").rope.kind, RopeKind::Default);
}

TEST(Rope, Refusals) {
  EXPECT_EQ(
      refusal(llama(R"(,"rope_scaling":{"rope_type":"yarm","factor":2})")),
      "config.json: rope_scaling.rope_type: is \"yarm\" (a string), "
      "expected \"yarn\"");
  EXPECT_EQ(refusal(llama(R"(,"rope_scaling":{"factor":2})")),
            "config.json: rope_scaling.rope_type: missing, expected a kind of "
            "scaling");
  EXPECT_EQ(refusal(llama(R"(,"rope_scaling":{"type":"linear"})")),
            "config.json: rope_scaling.factor: missing, expected a finite "
            "number above 0");
  EXPECT_EQ(refusal(llama(R"(,"rope_scaling":{"type":"linear","factor":0})")),
            "config.json: rope_scaling.factor: is 0, expected a finite number "
            "above 0");
  EXPECT_EQ(refusal(llama(R"(,"rope_scaling":[1])")),
            "config.json: rope_scaling: is [1] (an array), expected an object "
            "or null");
  EXPECT_EQ(refusal(llama(R"(,"rope_theta":NaN)")),
            "config.json: rope_theta: is NaN, expected a finite number above 1 "
            "or null");
  EXPECT_EQ(refusal(llama(R"(,"rope_scaling":{"rope_type":"llama3",
                "factor":8.0,"low_freq_factor":4.0,"high_freq_factor":1.0,
                "original_max_position_embeddings":8192})")),
            "config.json: rope_scaling.high_freq_factor: is 1, expected "
            "low_freq_factor or more");
  EXPECT_EQ(refusal(phi3(R"({"type":"longrope","short_factor":[1,2,3],
                "long_factor":[1,2,3,4]})")),
            "config.json: rope_scaling.short_factor: has 3 elements, expected "
            "4, half of the rotated dims");
  EXPECT_EQ(refusal(R"({"model_type":"gptj","n_layer":2,"n_head":16,
                "n_embd":4096,"rotary_dim":63})"),
            "config.json: rotary_dim: is 63, expected an even number of "
            "rotated dims from 2 to the head dim 256");
  EXPECT_EQ(refusal(R"({"model_type":"qwen2_vl","num_hidden_layers":2,
                "hidden_size":1536,"num_attention_heads":12,
                "num_key_value_heads":2,
                "rope_scaling":{"type":"mrope","mrope_section":[16,24]}})"),
            "config.json: rope_scaling.mrope_section: adds up to 40, expected "
            "64, half of the rotated dims");
}

} // namespace
