//===- FamiliesTest.cpp - One small config per rule of a family ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Configs of models that no shipped file covers, with values derived by hand
// from what their published code does. A table, so as long as there are rules.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "compiler/import/Families.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace pagoda;

namespace {

struct FamilyCase {
  const char *name;
  const char *text;
  const char *kinds; ///< as kindCounts prints them
  int64_t qHeads, kvHeads, headDimK, headDimV;
  double scale;
};

const FamilyCase familyCases[] = {
    // Llama and what kept its shape.
    {"llama_without_kv_heads",
     R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":4096,
         "num_attention_heads":32})",
     "full_attention:2", 32, 32, 128, 128, 0.0883883476},
    {"llama_kv_heads_null",
     R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":4096,
         "num_attention_heads":32,"num_key_value_heads":null})",
     "full_attention:2", 32, 32, 128, 128, 0.0883883476},
    {"llama_ignores_sliding_window",
     R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":4096,
         "num_attention_heads":32,"sliding_window":4096})",
     "full_attention:2", 32, 32, 128, 128, 0.0883883476},
    {"deepseek_v1",
     R"({"model_type":"deepseek","num_hidden_layers":28,"hidden_size":2048,
         "num_attention_heads":16,"num_key_value_heads":16})",
     "full_attention:28", 16, 16, 128, 128, 0.0883883476},
    {"internlm3",
     R"({"model_type":"internlm3","num_hidden_layers":48,"hidden_size":4096,
         "num_attention_heads":32,"head_dim":128})",
     "full_attention:48", 32, 2, 128, 128, 0.0883883476},
    {"mistral_nemo",
     R"({"model_type":"mistral","num_hidden_layers":40,"hidden_size":5120,
         "num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
         "sliding_window":null})",
     "full_attention:40", 32, 8, 128, 128, 0.0883883476},
    {"mistral_class_defaults",
     R"({"model_type":"mistral","num_hidden_layers":2,"hidden_size":4096,
         "num_attention_heads":32})",
     "sliding_attention:2", 32, 8, 128, 128, 0.0883883476},
    {"ministral_layer_types",
     R"({"model_type":"ministral","num_hidden_layers":4,"hidden_size":4096,
         "num_attention_heads":32,"sliding_window":32768,"layer_types":
         ["full_attention","sliding_attention","sliding_attention",
         "sliding_attention"]})",
     "full_attention:1 sliding_attention:3", 32, 8, 128, 128, 0.0883883476},
    {"exaone3",
     R"({"model_type":"exaone","num_layers":32,"hidden_size":4096,
         "num_attention_heads":32,"num_key_value_heads":8})",
     "full_attention:32", 32, 8, 128, 128, 0.0883883476},
    {"seed_oss",
     R"({"model_type":"seed_oss","num_hidden_layers":64,"hidden_size":5120,
         "num_attention_heads":80,"num_key_value_heads":8,"head_dim":128})",
     "full_attention:64", 80, 8, 128, 128, 0.0883883476},
    // Qwen.
    {"qwen1",
     R"({"model_type":"qwen","num_hidden_layers":32,"hidden_size":4096,
         "num_attention_heads":32,"kv_channels":128,"seq_length":8192})",
     "full_attention:32", 32, 32, 128, 128, 0.0883883476},
    {"qwen2_moe",
     R"({"model_type":"qwen2_moe","num_hidden_layers":24,"hidden_size":2048,
         "num_attention_heads":16,"num_key_value_heads":16})",
     "full_attention:24", 16, 16, 128, 128, 0.0883883476},
    {"qwen3_moe_without_head_dim",
     R"({"model_type":"qwen3_moe","num_hidden_layers":4,"hidden_size":2048,
         "num_attention_heads":32})",
     "full_attention:4", 32, 4, 64, 64, 0.125},
    {"qwen3_next_interval",
     R"({"model_type":"qwen3_next","num_hidden_layers":12,"hidden_size":2048,
         "num_attention_heads":16,"full_attention_interval":3})",
     "linear_attention:8 full_attention:4", 16, 2, 256, 256, 0.0625},
    {"qwen2_vl_flat",
     R"({"model_type":"qwen2_vl","num_hidden_layers":28,"hidden_size":1536,
         "num_attention_heads":12,"num_key_value_heads":2,
         "use_sliding_window":false,"sliding_window":32768,
         "max_window_layers":28})",
     "full_attention:28", 12, 2, 128, 128, 0.0883883476},
    {"qwen3_vl_text_config",
     R"({"model_type":"qwen3_vl","text_config":{"model_type":"qwen3_vl_text",
         "num_hidden_layers":36,"hidden_size":2560,"num_attention_heads":32,
         "num_key_value_heads":8,"head_dim":128}})",
     "full_attention:36", 32, 8, 128, 128, 0.0883883476},
    // Gemma.
    {"gemma_7b",
     R"({"model_type":"gemma","num_hidden_layers":28,"hidden_size":3072,
         "num_attention_heads":16,"num_key_value_heads":16,"head_dim":256})",
     "full_attention:28", 16, 16, 256, 256, 0.0625},
    {"gemma2_27b",
     R"({"model_type":"gemma2","num_hidden_layers":46,"hidden_size":4608,
         "num_attention_heads":32,"num_key_value_heads":16,"head_dim":128,
         "query_pre_attn_scalar":144,"sliding_window":4096})",
     "sliding_attention:23 full_attention:23", 32, 16, 128, 128, 0.0833333333},
    {"gemma3_text_pattern_4",
     R"({"model_type":"gemma3_text","num_hidden_layers":8,"hidden_size":1152,
         "num_attention_heads":4,"num_key_value_heads":1,
         "_sliding_window_pattern":4})",
     "sliding_attention:6 full_attention:2", 4, 1, 256, 256, 0.0625},
    {"gemma3n",
     R"({"model_type":"gemma3n","text_config":{"model_type":"gemma3n_text",
         "num_hidden_layers":30,"hidden_size":2048,"num_attention_heads":8,
         "num_key_value_heads":2,"head_dim":256,"num_kv_shared_layers":10}})",
     "sliding_attention:24 full_attention:6", 8, 2, 256, 256, 1.0},
    {"recurrent_gemma",
     R"({"model_type":"recurrent_gemma","num_hidden_layers":26,
         "hidden_size":2560,"num_attention_heads":10,"num_key_value_heads":1,
         "head_dim":256,"attention_window_size":2048})",
     "recurrent:18 sliding_attention:8", 10, 1, 256, 256, 0.0625},
    // Phi.
    {"phi_msft",
     R"({"model_type":"phi-msft","n_layer":24,"n_embd":2048,"n_head":32,
         "n_head_kv":null,"rotary_dim":32,"n_positions":2048})",
     "full_attention:24", 32, 32, 64, 64, 0.125},
    {"phimoe",
     R"({"model_type":"phimoe","num_hidden_layers":32,"hidden_size":4096,
         "num_attention_heads":32,"sliding_window":131072})",
     "sliding_attention:32", 32, 8, 128, 128, 0.0883883476},
    // GPT.
    {"starcoder",
     R"({"model_type":"gpt_bigcode","n_layer":40,"n_head":48,"n_embd":6144,
         "n_positions":8192,"multi_query":true})",
     "full_attention:40", 48, 1, 128, 128, 0.0883883476},
    {"gpt_bigcode_multi_head",
     R"({"model_type":"gpt_bigcode","n_layer":4,"n_head":12,"n_embd":768,
         "multi_query":false})",
     "full_attention:4", 12, 12, 64, 64, 0.125},
    {"santacoder",
     R"({"model_type":"gpt2","n_layer":24,"n_head":16,"n_embd":2048,
         "attention_head_type":"multiquery"})",
     "full_attention:24", 16, 1, 128, 128, 0.0883883476},
    {"gpt2_unscaled",
     R"({"model_type":"gpt2","n_layer":2,"n_head":12,"n_embd":768,
         "scale_attn_weights":false})",
     "full_attention:2", 12, 12, 64, 64, 1.0},
    {"gpt_neo",
     R"({"model_type":"gpt_neo","num_layers":4,"num_heads":16,
         "hidden_size":2048,"window_size":256,
         "attention_types":[[["global","local"],2]]})",
     "full_attention:2 sliding_attention:2", 16, 16, 128, 128, 1.0},
    {"codegen",
     R"({"model_type":"codegen","n_layer":20,"n_head":16,"n_embd":1024,
         "rotary_dim":32})",
     "full_attention:20", 16, 16, 64, 64, 0.125},
    {"opt_word_embed_proj",
     R"({"model_type":"opt","num_hidden_layers":24,"hidden_size":1024,
         "num_attention_heads":16,"word_embed_proj_dim":512})",
     "full_attention:24", 16, 16, 64, 64, 0.125},
    {"persimmon",
     R"({"model_type":"persimmon","num_hidden_layers":36,"hidden_size":4096,
         "num_attention_heads":64})",
     "full_attention:36", 64, 64, 64, 64, 0.125},
    {"fuyu_text_config",
     R"({"model_type":"fuyu","text_config":{"model_type":"persimmon"}})",
     "full_attention:36", 64, 64, 64, 64, 0.125},
    {"xglm",
     R"({"model_type":"xglm","num_layers":24,"attention_heads":16,
         "d_model":1024})",
     "full_attention:24", 16, 16, 64, 64, 0.125},
    // Falcon: old and new architecture, and the first names of both.
    {"falcon_7b_multi_query",
     R"({"model_type":"falcon","num_hidden_layers":32,"hidden_size":4544,
         "num_attention_heads":71,"multi_query":true,"num_kv_heads":71})",
     "full_attention:32", 71, 1, 64, 64, 0.125},
    {"falcon_40b",
     R"({"model_type":"falcon","num_hidden_layers":60,"hidden_size":8192,
         "num_attention_heads":128,"new_decoder_architecture":true,
         "num_kv_heads":8,"multi_query":true})",
     "full_attention:60", 128, 8, 64, 64, 0.125},
    {"falcon_multi_head",
     R"({"model_type":"falcon","num_hidden_layers":24,"hidden_size":2048,
         "num_attention_heads":32,"multi_query":false,"alibi":true})",
     "full_attention:24", 32, 32, 64, 64, 0.125},
    {"refined_web",
     R"({"model_type":"RefinedWeb","n_layer":60,"hidden_size":8192,
         "n_head":128,"n_head_kv":8})",
     "full_attention:60", 128, 8, 64, 64, 0.125},
    {"refined_web_model",
     R"({"model_type":"RefinedWebModel","n_layer":32,"hidden_size":4544,
         "n_head":71,"multi_query":true})",
     "full_attention:32", 71, 1, 64, 64, 0.125},
    // MPT and DBRX nest their attention.
    {"mpt_grouped",
     R"({"model_type":"mpt","n_layers":32,"n_heads":32,"d_model":4096,
         "attn_config":{"attn_type":"grouped_query_attention","kv_n_heads":8,
         "alibi":false,"softmax_scale":0.1}})",
     "full_attention:32", 32, 8, 128, 128, 0.1},
    {"mpt_multiquery",
     R"({"model_type":"mpt","n_layers":24,"n_heads":16,"d_model":2048,
         "attn_config":{"attn_type":"multiquery_attention"}})",
     "full_attention:24", 16, 1, 128, 128, 0.0883883476},
    {"mpt_without_attn_config",
     R"({"model_type":"mpt","n_layers":24,"n_heads":16,"d_model":2048})",
     "full_attention:24", 16, 16, 128, 128, 0.0883883476},
    {"dbrx_default_kv_heads",
     R"({"model_type":"dbrx","n_layers":2,"n_heads":16,"d_model":2048})",
     "full_attention:2", 16, 1, 128, 128, 0.0883883476},
    // GLM.
    {"chatglm_multi_head",
     R"({"model_type":"chatglm","num_layers":28,"num_attention_heads":32,
         "hidden_size":4096,"multi_query_attention":false,
         "multi_query_group_num":2})",
     "full_attention:28", 32, 32, 128, 128, 0.0883883476},
    {"glm4_hf",
     R"({"model_type":"glm4","num_hidden_layers":61,"hidden_size":6144,
         "num_attention_heads":48,"num_key_value_heads":2,"head_dim":128})",
     "full_attention:61", 48, 2, 128, 128, 0.0883883476},
    {"glm4_moe",
     R"({"model_type":"glm4_moe","num_hidden_layers":92,"hidden_size":5120,
         "num_attention_heads":96,"num_key_value_heads":8,"head_dim":128})",
     "full_attention:92", 96, 8, 128, 128, 0.0883883476},
    // Cohere, OLMo, EXAONE 4.
    {"cohere2",
     R"({"model_type":"cohere2","num_hidden_layers":32,"hidden_size":4096,
         "num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
         "sliding_window":4096,"sliding_window_pattern":4})",
     "sliding_attention:24 full_attention:8", 32, 8, 128, 128, 0.0883883476},
    {"olmo3",
     R"({"model_type":"olmo3","num_hidden_layers":32,"hidden_size":4096,
         "num_attention_heads":32,"num_key_value_heads":32})",
     "sliding_attention:24 full_attention:8", 32, 32, 128, 128, 0.0883883476},
    {"exaone4_letters",
     R"({"model_type":"exaone4","num_hidden_layers":64,"hidden_size":5120,
         "num_attention_heads":40,"num_key_value_heads":8,
         "sliding_window":4096,"sliding_window_pattern":"LLLG"})",
     "sliding_attention:48 full_attention:16", 40, 8, 128, 128, 0.0883883476},
    {"exaone4_without_window",
     R"({"model_type":"exaone4","num_hidden_layers":30,"hidden_size":2048,
         "num_attention_heads":32,"num_key_value_heads":8,
         "sliding_window":null,"sliding_window_pattern":null})",
     "full_attention:30", 32, 8, 64, 64, 0.125},
    {"cwm",
     R"({"model_type":"cwm","num_hidden_layers":64,"hidden_size":6144,
         "num_attention_heads":48})",
     "full_attention:16 sliding_attention:48", 48, 8, 128, 128, 0.0883883476},
    // Scales.
    {"granite_class_default",
     R"({"model_type":"granite","num_hidden_layers":2,"hidden_size":2048,
         "num_attention_heads":32})",
     "full_attention:2", 32, 32, 64, 64, 1.0},
    {"granitemoe",
     R"({"model_type":"granitemoe","num_hidden_layers":32,"hidden_size":1536,
         "num_attention_heads":24,"num_key_value_heads":8,
         "attention_multiplier":0.015625})",
     "full_attention:32", 24, 8, 64, 64, 0.015625},
    {"hyperclovax_without_multiplier",
     R"({"model_type":"hyperclovax","num_hidden_layers":2,"hidden_size":2048,
         "num_attention_heads":32,"head_dim":64})",
     "full_attention:2", 32, 32, 64, 64, 0.125},
    {"jais_mup",
     R"({"model_type":"jais","n_layer":2,"n_head":32,"n_embd":4096,
         "position_embedding_type":"alibi","mup_scale_qk_dot_by_d":true})",
     "full_attention:2", 32, 32, 128, 128, 0.0078125},
    {"jais_mup_older_name",
     R"({"model_type":"jais","n_layer":2,"n_head":32,"n_embd":4096,
         "scale_qk_dot_by_d":true})",
     "full_attention:2", 32, 32, 128, 128, 0.0078125},
    // Latent attention.
    {"deepseek_v2_without_yarn",
     R"({"model_type":"deepseek_v2","num_hidden_layers":2,"hidden_size":2048,
         "num_attention_heads":16,"kv_lora_rank":512})",
     "full_attention:2", 16, 16, 192, 128, 0.0721687836},
    {"deepseek_yarn_without_mscale",
     R"({"model_type":"deepseek_v2","num_hidden_layers":2,"hidden_size":2048,
         "num_attention_heads":16,"rope_scaling":{"type":"yarn","factor":40,
         "original_max_position_embeddings":4096}})",
     "full_attention:2", 16, 16, 192, 128, 0.0721687836},
    {"kimi_k2",
     R"({"model_type":"kimi_k2","num_hidden_layers":61,"hidden_size":7168,
         "num_attention_heads":64,"num_key_value_heads":64,
         "kv_lora_rank":512,"rope_scaling":{"type":"yarn","factor":32.0,
         "beta_fast":1.0,"beta_slow":1.0,"mscale":1.0,"mscale_all_dim":1.0,
         "original_max_position_embeddings":4096}})",
     "full_attention:61", 64, 64, 192, 128, 0.1308608000},
    {"deepseek_vl2_plain_heads",
     R"({"model_type":"deepseek_vl_v2","language_config":{
         "model_type":"deepseek_v2","num_hidden_layers":12,"hidden_size":1280,
         "num_attention_heads":10,"num_key_value_heads":10,"use_mla":false,
         "kv_lora_rank":null,"qk_nope_head_dim":0,"qk_rope_head_dim":0,
         "v_head_dim":0}})",
     "full_attention:12", 10, 10, 128, 128, 0.0883883476},
    {"hunyuan_attention_head_dim",
     R"({"model_type":"hunyuan","num_hidden_layers":2,"hidden_size":6400,
         "num_attention_heads":80,"num_key_value_heads":8,
         "attention_head_dim":128})",
     "full_attention:2", 80, 8, 128, 128, 0.0883883476},
    {"glm4_moe_lite",
     R"({"model_type":"glm4_moe_lite","num_hidden_layers":47,
         "hidden_size":2048,"num_attention_heads":20})",
     "full_attention:47", 20, 20, 256, 256, 0.0625},
    {"kimi_linear",
     R"({"model_type":"kimi_linear","num_hidden_layers":8,"hidden_size":2304,
         "num_attention_heads":32,"linear_attn_config":{
         "full_attn_layers":[4,8],"kda_layers":[1,2,3,5,6,7]}})",
     "linear_attention:6 full_attention:2", 32, 32, 192, 128, 0.0721687836},
    // Beside recurrent layers.
    {"jamba",
     R"({"model_type":"jamba","num_hidden_layers":32,"hidden_size":4096,
         "num_attention_heads":32})",
     "mamba:28 attention:4", 32, 8, 128, 128, 0.0883883476},
    {"bamba",
     R"({"model_type":"bamba","num_hidden_layers":32,"hidden_size":4096,
         "num_attention_heads":32,"attn_layer_indices":[9,18,27]})",
     "mamba:29 attention:3", 32, 8, 128, 128, 0.0883883476},
    {"granite_4_hybrid",
     R"({"model_type":"granitemoehybrid","num_hidden_layers":4,
         "hidden_size":1536,"num_attention_heads":12,"num_key_value_heads":4,
         "attention_multiplier":0.0078125,"layer_types":
         ["mamba","mamba","attention","mamba"]})",
     "mamba:3 attention:1", 12, 4, 128, 128, 0.0078125},
    {"nemotron_h_dense",
     R"({"model_type":"nemotron_h","num_hidden_layers":6,"hidden_size":4096,
         "num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
         "hybrid_override_pattern":"M-M*M-",
         "time_step_limit":[0.0,Infinity]})",
     "mamba:3 mlp:2 attention:1", 32, 8, 128, 128, 0.0883883476},
    {"falcon_h1",
     R"({"model_type":"falcon_h1","num_hidden_layers":36,"hidden_size":2048,
         "num_attention_heads":8,"num_key_value_heads":2,"head_dim":128})",
     "hybrid:36", 8, 2, 128, 128, 0.0883883476},
    {"zamba2",
     R"({"model_type":"zamba2","num_hidden_layers":4,"hidden_size":2560,
         "num_attention_heads":32,"num_key_value_heads":32,"kv_channels":80,
         "attention_head_dim":160,
         "layers_block_type":["mamba","hybrid","mamba","hybrid"]})",
     "mamba:2 hybrid:2", 32, 32, 160, 160, 0.1118033989},
    {"lfm2",
     R"({"model_type":"lfm2","num_hidden_layers":16,"hidden_size":2048,
         "num_attention_heads":32,"num_key_value_heads":8,
         "full_attn_idxs":[2,5,8,10,12,14]})",
     "conv:10 full_attention:6", 32, 8, 64, 64, 0.125},
    {"minimax_attn_type_list",
     R"({"model_type":"minimax_text_01","num_hidden_layers":8,
         "hidden_size":6144,"num_attention_heads":64,"num_key_value_heads":8,
         "head_dim":128,"rotary_dim":64,"attn_type_list":[0,0,0,0,0,0,0,1]})",
     "linear_attention:7 full_attention:1", 64, 8, 128, 128, 0.0883883476},
    // Wrappers.
    {"mllama",
     R"({"model_type":"mllama","text_config":{
         "model_type":"mllama_text_model","num_hidden_layers":40,
         "hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,
         "cross_attention_layers":[3,8,13,18,23,28,33,38]}})",
     "full_attention:32 cross_attention:8", 32, 8, 128, 128, 0.0883883476},
    {"internvl_chat_llm_config",
     R"({"model_type":"internvl_chat","llm_config":{"model_type":"internlm2",
         "num_hidden_layers":24,"hidden_size":2048,"num_attention_heads":16,
         "num_key_value_heads":8}})",
     "full_attention:24", 16, 8, 128, 128, 0.0883883476},
    {"omni_thinker",
     R"({"model_type":"qwen2_5_omni","thinker_config":{"model_type":
         "qwen2_5_omni_thinker","text_config":{"model_type":
         "qwen2_5_omni_text","num_hidden_layers":28,"hidden_size":3584,
         "num_attention_heads":28,"num_key_value_heads":4}}})",
     "full_attention:28", 28, 4, 128, 128, 0.0883883476},
    {"mistral3_wrapped",
     R"({"model_type":"mistral3","text_config":{"num_hidden_layers":40,
         "hidden_size":5120,"num_attention_heads":32,"head_dim":128,
         "num_key_value_heads":8,"sliding_window":null}})",
     "full_attention:40", 32, 8, 128, 128, 0.0883883476},
};

class Families : public testing::TestWithParam<FamilyCase> {};

TEST_P(Families, GiveTheSpec) {
  const FamilyCase &expected = GetParam();
  ModelConfig model = importText(expected.text);
  EXPECT_EQ(kindCounts(model), expected.kinds);
  bool found = false;
  for (const LayerKind &kind : model.kinds) {
    if (!kind.hasKvCache)
      continue;
    found = true;
    EXPECT_EQ(kind.spec.qHeads, expected.qHeads);
    EXPECT_EQ(kind.spec.kvHeads, expected.kvHeads);
    EXPECT_EQ(kind.spec.headDim, expected.headDimK);
    EXPECT_EQ(kind.spec.vHeadDim, expected.headDimV);
    EXPECT_NEAR(kind.spec.scale, expected.scale, 1e-9);
    EXPECT_TRUE(kind.spec.causal);
    EXPECT_EQ(kind.spec.window.has_value(),
              llvm::StringRef(kind.name).starts_with("sliding"));
  }
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(familyCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// Keys by the names that rules ask for.
const std::set<std::string> readKeys = {"alibi",
                                        "alibi_bias_max",
                                        "attention_chunk_size",
                                        "attention_multiplier",
                                        "attention_types",
                                        "attention_window_size",
                                        "attn_config",
                                        "attn_layer_offset",
                                        "attn_layer_period",
                                        "attn_logit_softcapping",
                                        "attn_type",
                                        "beta_fast",
                                        "beta_slow",
                                        "block_types",
                                        "cross_attention_layers",
                                        "factor",
                                        "full_attention_interval",
                                        "head_dim",
                                        "hidden_size",
                                        "high_freq_factor",
                                        "kv_channels",
                                        "kv_lora_rank",
                                        "low_freq_factor",
                                        "max_position_embeddings",
                                        "max_window_layers",
                                        "multi_query",
                                        "multi_query_group_num",
                                        "new_decoder_architecture",
                                        "no_rope_layer_interval",
                                        "full_attention",
                                        "sliding_attention",
                                        "global_head_dim",
                                        "rope_parameters",
                                        "num_attention_heads",
                                        "num_hidden_layers",
                                        "num_key_value_heads",
                                        "num_kv_shared_layers",
                                        "original_max_position_embeddings",
                                        "partial_rotary_factor",
                                        "position_embedding_type",
                                        "q_lora_rank",
                                        "qk_nope_head_dim",
                                        "qk_rope_head_dim",
                                        "query_pre_attn_scalar",
                                        "rope",
                                        "rope_local_base_freq",
                                        "rope_scaling",
                                        "rope_theta",
                                        "rope_type",
                                        "rotary_dim",
                                        "sliding_window",
                                        "sliding_window_pattern",
                                        "truncate",
                                        "use_sliding_window",
                                        "v_head_dim",
                                        "window_size"};

void checkKeys(const llvm::json::Object &object, llvm::StringRef family) {
  for (const auto &entry : object) {
    EXPECT_TRUE(readKeys.count(llvm::StringRef(entry.first).str()))
        << family.str() << ": no rule reads "
        << llvm::StringRef(entry.first).str();
    if (const llvm::json::Object *inner = entry.second.getAsObject())
      checkKeys(*inner, family);
  }
}

TEST(FamilyTable, DefaultsAreReadByRules) {
  for (llvm::ArrayRef<Family> part : {attentionFamilies(), hybridFamilies()})
    for (const Family &family : part) {
      llvm::Expected<llvm::json::Value> defaults =
          llvm::json::parse(family.defaults);
      ASSERT_TRUE(bool(defaults)) << llvm::toString(defaults.takeError());
      ASSERT_TRUE(defaults->getAsObject()) << family.name.str();
      checkKeys(*defaults->getAsObject(), family.name);
    }
}

TEST(FamilyTable, EachTypeIsListedOnceAndNotRefused) {
  std::vector<llvm::StringRef> types = knownModelTypes();
  llvm::sort(types);
  EXPECT_EQ(std::adjacent_find(types.begin(), types.end()), types.end());
  for (llvm::StringRef type : types) {
    EXPECT_TRUE(findFamily(type)) << type.str();
    EXPECT_TRUE(refusalOf(type).empty()) << type.str();
  }
}

TEST(FamilyTable, SizesLeftOutOfANestedFile) {
  // Only rows that can be wrapped need sizes; those must be complete.
  for (llvm::StringRef type : knownModelTypes()) {
    const Family *family = findFamily(type);
    llvm::json::Value defaults =
        llvm::cantFail(llvm::json::parse(family->defaults));
    if (!defaults.getAsObject()->get("num_hidden_layers"))
      continue;
    ModelConfig model =
        importText(R"({"model_type":"some_vlm","text_config":{"model_type":")" +
                   type.str() + R"("}})");
    EXPECT_FALSE(model.kinds.empty()) << type.str();
  }
}

} // namespace
