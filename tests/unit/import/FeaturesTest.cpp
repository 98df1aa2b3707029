//===- FeaturesTest.cpp - What a ModelConfig says beside shapes -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows, chunks, soft caps, sinks, ALiBi, latent rows, shared caches, data
// types, lengths, the defaults that were taken, and the JSON form.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "compiler/import/Families.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace pagoda;

namespace {

std::string file(const std::string &type, const std::string &fields = "") {
  return R"({"model_type":")" + type +
         R"(","num_hidden_layers":12,"num_attention_heads":8,"hidden_size":512)" +
         fields + "}";
}

/// The import of `text`, which must have a layer.
ModelConfig imported(const std::string &text) {
  ModelConfig model = importText(text);
  if (model.kinds.empty())
    model.kinds.emplace_back();
  return model;
}

const DefaultTaken *takenFor(const ModelConfig &model, llvm::StringRef field) {
  for (const DefaultTaken &taken : model.defaults)
    if (taken.field == field)
      return &taken;
  return nullptr;
}

TEST(Features, WindowsAndSpecsPerKind) {
  ModelConfig model = importText(file("gemma2"));
  ASSERT_EQ(kindCounts(model), "sliding_attention:6 full_attention:6");
  EXPECT_EQ(model.kinds[0].layers, (std::vector<int64_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(model.kindOf(4).name, "sliding_attention");
  EXPECT_EQ(model.kindOf(5).name, "full_attention");
  std::vector<AttentionSpec> specs = model.specs();
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].window, 4096);
  EXPECT_EQ(specs[1].window, std::nullopt);
}

TEST(Features, ListedKindsComeFirst) {
  std::string small = R"(","num_hidden_layers":3,"num_attention_heads":32,
      "num_key_value_heads":8,"hidden_size":4096,")";
  std::string kinds =
      R"(":["full_attention","linear_attention","full_attention"]})";
  for (const char *type :
       {"llama", "mistral", "qwen2", "smollm3", "gemma2", "cwm", "llama4_text",
        "qwen3_next", "minimax", "bamba", "granitemoehybrid", "lfm2",
        "nemotron_h", "kimi_linear"})
    EXPECT_EQ(kindCounts(importText(R"({"model_type":")" + std::string(type) +
                                    small + "layer_types" + kinds)),
              "full_attention:2 linear_attention:1")
        << type;
  for (const char *type : {"jamba", "zamba2", "nemotron_h"})
    EXPECT_EQ(kindCounts(importText(R"({"model_type":")" + std::string(type) +
                                    small + "layers_block_type" + kinds)),
              "full_attention:2 linear_attention:1")
        << type;
  EXPECT_EQ(kindCounts(importText(R"({"model_type":"zamba2)" + small +
                                  R"(hybrid_layer_ids":[1]})")),
            "mamba:2 hybrid:1");
  // Newer files of this family count their layers by the list alone.
  EXPECT_EQ(kindCounts(importText(R"({"model_type":"nemotron_h",
      "num_attention_heads":32,"hidden_size":4096,
      "layers_block_type":["mamba","attention","moe"]})")),
            "mamba:1 attention:1 moe:1");
}

TEST(Features, PlacesOfLayers) {
  using Layers = std::vector<int64_t>;
  auto places = [](const std::string &text, const char *kind) {
    return kindNamed(importText(text), kind).layers;
  };
  EXPECT_EQ(places(file("jamba"), "attention"), (Layers{4}));
  EXPECT_EQ(places(file("jamba", R"(,"attn_layer_period":5,
                "attn_layer_offset":1)"),
                   "attention"),
            (Layers{1, 6, 11}));
  EXPECT_EQ(
      places(file("bamba", R"(,"attn_layer_indices":[2,7])"), "attention"),
      (Layers{2, 7}));
  EXPECT_EQ(places(R"({"model_type":"cwm","num_hidden_layers":12,
                "num_attention_heads":48,"hidden_size":6144})",
                   "full_attention"),
            (Layers{0, 4, 8}));
  EXPECT_EQ(places(file("olmo3"), "full_attention"), (Layers{3, 7, 11}));
  EXPECT_EQ(places(file("gemma3_text"), "full_attention"), (Layers{5, 11}));
  EXPECT_EQ(
      places(file("lfm2", R"(,"full_attn_idxs":[0,11])"), "full_attention"),
      (Layers{0, 11}));
  EXPECT_EQ(places(file("minimax"), "linear_attention"),
            (Layers{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(places(file("kimi_linear", R"(,"linear_attn_config":{
                "full_attn_layers":[1,12]})"),
                   "full_attention"),
            (Layers{0, 11}));
  EXPECT_EQ(places(file("recurrent_gemma"), "sliding_attention"),
            (Layers{2, 5, 8, 11}));
  EXPECT_EQ(
      places(file("mllama_text_model", R"(,"cross_attention_layers":[3,8])"),
             "cross_attention"),
      (Layers{3, 8}));
  EXPECT_EQ(places(file("exaone4", R"(,"num_key_value_heads":8,
                "sliding_window_pattern":"LGL")"),
                   "full_attention"),
            (Layers{1, 4, 7, 10}));
  EXPECT_EQ(places(file("smollm3", R"(,"use_sliding_window":true,
                "sliding_window":64)"),
                   "sliding_attention"),
            (Layers{3, 7, 11}));
}

TEST(Features, OtherNamesOfTheWindow) {
  EXPECT_EQ(kindNamed(importText(file("recurrent_gemma",
                                      R"(,"attention_window_size":300)")),
                      "sliding_attention")
                .spec.window,
            300);
  EXPECT_EQ(kindNamed(importText(file("gpt_neo", R"(,"window_size":77,
                "attention_types":[[["global","local"],6]])")),
                      "sliding_attention")
                .spec.window,
            77);
}

TEST(Features, Softcap) {
  auto softcap = [](const std::string &type, const std::string &fields) {
    return imported(file(type, fields)).kinds[0].spec.softcap;
  };
  EXPECT_EQ(softcap("gemma2", ""), 50.0);
  EXPECT_EQ(softcap("gemma2", R"(,"attn_logit_softcapping":30.5)"), 30.5);
  EXPECT_EQ(softcap("gemma2", R"(,"attn_logit_softcapping":null)"),
            std::nullopt);
  EXPECT_EQ(softcap("gemma3_text", ""), std::nullopt);
  // The cap of the final logits is none of attention's business.
  EXPECT_EQ(softcap("gemma3_text", R"(,"final_logit_softcapping":30)"),
            std::nullopt);
}

TEST(Features, SoftcapOfAttnConfig) {
  EXPECT_EQ(imported(file("mpt", R"(,"attn_config":{
                "attn_logit_softcapping":30.0})"))
                .kinds[0]
                .spec.softcap,
            30.0);
}

TEST(Features, Sinks) {
  ModelConfig model = importText(file("gpt_oss"));
  EXPECT_EQ(model.kinds.size(), 2u);
  for (const LayerKind &kind : model.kinds)
    EXPECT_TRUE(kind.spec.sinks);
  EXPECT_FALSE(imported(file("llama")).kinds[0].spec.sinks);
}

TEST(Features, ChunkedLayers) {
  ModelConfig model = importText(file("llama4_text"));
  ASSERT_EQ(kindCounts(model), "chunked_attention:9 full_attention:3");
  EXPECT_EQ(model.kinds[0].spec.chunk, 8192);
  EXPECT_EQ(model.kinds[0].rope.kind, RopeKind::Default);
  EXPECT_EQ(model.kinds[1].spec.chunk, std::nullopt);
  EXPECT_EQ(model.kinds[1].rope.kind, RopeKind::None);
  EXPECT_EQ(model.noRopeLayers, std::vector<int64_t>());

  model = importText(file("llama4_text", R"(,"attention_chunk_size":1024,
      "no_rope_layers":[1,0,1,1,1,1,1,1,1,1,1,0])"));
  ASSERT_EQ(kindCounts(model), "chunked_attention:10 full_attention:2");
  EXPECT_EQ(model.kinds[0].spec.chunk, 1024);
  EXPECT_EQ(model.kinds[1].layers, (std::vector<int64_t>{1, 11}));

  model = importText(file("llama4_text", R"(,"attention_chunk_size":null)"));
  ASSERT_EQ(kindCounts(model), "full_attention:12");
  EXPECT_EQ(model.noRopeLayers, (std::vector<int64_t>{3, 7, 11}));
}

TEST(Features, Alibi) {
  ModelConfig bloom = imported(file("bloom"));
  EXPECT_EQ(bloom.alibiSlopes, alibiSlopes(8));
  EXPECT_EQ(bloom.kinds[0].spec.alibiSlopes, alibiSlopes(8));

  ModelConfig mpt = importText(
      file("mpt", R"(,"attn_config":{"alibi":true,"alibi_bias_max":4})"));
  ASSERT_EQ(mpt.alibiSlopes.size(), 8u);
  EXPECT_FLOAT_EQ(mpt.alibiSlopes[0], std::exp2(-0.5f));
  EXPECT_TRUE(importText(file("mpt", R"(,"attn_config":{"alibi":false})"))
                  .alibiSlopes.empty());

  // Falcon scales the bias together with the scores: 2^-1 / sqrt(64).
  ModelConfig falcon =
      imported(file("falcon", R"(,"alibi":true,"multi_query":false)"));
  ASSERT_EQ(falcon.alibiSlopes.size(), 8u);
  EXPECT_FLOAT_EQ(falcon.alibiSlopes[0], 0.0625f);
  EXPECT_EQ(falcon.kinds[0].rope.kind, RopeKind::None);
  EXPECT_TRUE(importText(file("falcon")).alibiSlopes.empty());
  EXPECT_TRUE(importText(file("jais")).alibiSlopes.empty());
  EXPECT_EQ(importText(file("jais", R"(,"position_embedding_type":"alibi")"))
                .alibiSlopes,
            alibiSlopes(8));
}

TEST(Features, StretchedAlibi) {
  auto jais = [](const std::string &scaling) {
    return file("jais", R"(,"n_positions":4096,
        "position_embedding_type":"alibi","alibi_scaling":)" +
                            scaling);
  };
  EXPECT_EQ(importText(jais("null")).alibiSlopes, alibiSlopes(8));
  ModelConfig fixed = importText(jais(R"({"type":"linear","factor":2.0})"));
  ASSERT_EQ(fixed.alibiSlopes.size(), 8u);
  EXPECT_FLOAT_EQ(fixed.alibiSlopes[0], 0.25f);
  EXPECT_TRUE(fixed.notes.empty());
  ModelConfig past =
      importText(jais(R"({"type":"linear","train_seq_len":2048})"));
  EXPECT_EQ(past.alibiSlopes, alibiSlopes(8));
  EXPECT_EQ(past.notes, (std::vector<std::string>{
                            "alibi_scaling: a sequence of n > 2048 keys takes "
                            "the slopes times 2048 / n"}));
  EXPECT_TRUE(importText(jais(R"({"type":"linear","train_seq_len":4096})"))
                  .notes.empty());
  EXPECT_EQ(refusal(jais(R"({"type":"linear","factor":0.5})")),
            "config.json: alibi_scaling.factor: is 0.5, expected a finite "
            "number above 1 or null");
  EXPECT_EQ(refusal(jais(R"({"type":"dynamic","factor":2.0})")),
            "config.json: alibi_scaling.type: is \"dynamic\" (a string), "
            "expected linear");
  EXPECT_EQ(refusal(jais(R"({"type":"linear"})")),
            "config.json: alibi_scaling.train_seq_len: missing, expected an "
            "integer from 2 to 2147483647");
}

TEST(Features, SparseAttentionIsNoted) {
  auto notes = [](const std::string &type, const std::string &fields) {
    return importText(file(type, fields)).notes;
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(notes("qwen2", R"(,"num_key_value_heads":8,
      "dual_chunk_attention_config":{"chunk_size":262144,"local_size":8192})"),
            (Notes{"dual_chunk_attention_config is left out: sequences of more "
                   "than 253952 keys see all of them"}));
  EXPECT_EQ(notes("minicpm", R"(,"sparse_config":{"dense_len":4096})"),
            (Notes{"sparse_config is left out: sequences of more than 4096 "
                   "keys see all of them"}));
  EXPECT_EQ(notes("minicpm", R"(,"sparse_config":{"topk":64})"),
            (Notes{"sparse_config is left out: sequences of more than 8192 "
                   "keys see all of them"}));
  EXPECT_EQ(notes("minicpm", R"(,"sparse_config":{})"), Notes{});
  EXPECT_EQ(notes("minicpm", R"(,"sparse_config":null,
                                 "dual_chunk_attention_config":null)"),
            Notes{});
}

TEST(Features, BaichuanByItsSize) {
  ModelConfig small = imported(R"({"model_type":"baichuan",
      "num_hidden_layers":32,"num_attention_heads":32,"hidden_size":4096})");
  EXPECT_TRUE(small.alibiSlopes.empty());
  EXPECT_EQ(small.kinds[0].rope.kind, RopeKind::Default);
  ModelConfig large = imported(R"({"model_type":"baichuan",
      "num_hidden_layers":40,"num_attention_heads":40,"hidden_size":5120,
      "model_max_length":4096})");
  EXPECT_EQ(large.alibiSlopes, alibiSlopes(40));
  EXPECT_EQ(large.kinds[0].rope.kind, RopeKind::None);
  EXPECT_FALSE(large.notes.empty());
}

TEST(Features, LatentAttentionInBothForms) {
  ModelConfig model = imported(R"({"model_type":"deepseek_v3",
      "num_hidden_layers":61,"num_attention_heads":128,"hidden_size":7168,
      "num_key_value_heads":1})");
  ASSERT_TRUE(model.mla.has_value());
  EXPECT_EQ(model.mla->kvLoraRank, 512);
  EXPECT_EQ(model.mla->qLoraRank, 1536);
  EXPECT_EQ(model.mla->qkNopeHeadDim, 128);
  EXPECT_EQ(model.mla->qkRopeHeadDim, 64);
  EXPECT_EQ(model.mla->vHeadDim, 128);
  EXPECT_EQ(model.mla->cacheRow(), 576);
  const LayerKind &kind = model.kinds[0];
  EXPECT_EQ(kind.spec.kvHeads, 128); // num_key_value_heads means nothing here
  AttentionSpec latent = model.latentSpec(kind);
  EXPECT_EQ(latent.qHeads, 128);
  EXPECT_EQ(latent.kvHeads, 1);
  EXPECT_EQ(latent.headDim, 576);
  EXPECT_EQ(latent.vHeadDim, 512);
  EXPECT_EQ(latent.scale, kind.spec.scale);
  EXPECT_EQ(model.kvElementsPerToken(true), 61 * 576);
}

TEST(Features, QLoraRankNull) {
  ModelConfig model = importText(file("deepseek_v2", R"(,"q_lora_rank":null)"));
  ASSERT_TRUE(model.mla.has_value());
  EXPECT_EQ(model.mla->qLoraRank, 0);
}

TEST(Features, CachesSharedByLayers) {
  ModelConfig model =
      importText(file("gemma3n_text", R"(,"num_kv_shared_layers":4)"));
  // Full are 4 and 9. Of 8 to 11, which share, 9 is full.
  ASSERT_EQ(kindCounts(model), "sliding_attention:10 full_attention:2");
  EXPECT_EQ(model.kvSource,
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 7, 4, 7, 7}));
  EXPECT_EQ(model.kvElementsPerToken(), 8 * 2 * (256 + 256));
}

TEST(Features, CrossLayerAttention) {
  ModelConfig model =
      importText(file("hunyuan", R"(,"use_cla":true,"cla_share_factor":2)"));
  ASSERT_EQ(model.kvSource.size(), 12u);
  EXPECT_EQ(model.kvSource[7], 6);
  EXPECT_EQ(model.kvSource[6], 6);
  EXPECT_EQ(model.kvElementsPerToken(), 6 * 8 * (64 + 64));
}

TEST(Features, LayersWithoutCache) {
  ModelConfig model = importText(file("qwen3_next"));
  EXPECT_FALSE(kindNamed(model, "linear_attention").hasKvCache);
  EXPECT_EQ(model.specs().size(), 1u);
  EXPECT_EQ(model.kvSource, (std::vector<int64_t>{-1, -1, -1, 3, -1, -1, -1, 7,
                                                  -1, -1, -1, 11}));
  // A model without attention says nothing of heads, and needs not.
  ModelConfig mamba = importText(R"({"model_type":"mamba","n_layer":24})");
  EXPECT_EQ(kindCounts(mamba), "mamba:24");
  EXPECT_TRUE(mamba.specs().empty());
  EXPECT_EQ(mamba.kvElementsPerToken(), 0);
}

TEST(Features, LayersThatDifferInHeads) {
  ModelConfig model = importText(R"({"model_type":"openelm",
      "num_transformer_layers":3,"model_dim":1280,"head_dim":64,
      "num_query_heads":[12,12,16],"num_kv_heads":[3,3,4]})");
  EXPECT_EQ(kindCounts(model),
            "full_attention/12x3x64:2 full_attention/16x4x64:1");
  ASSERT_EQ(model.specs().size(), 2u);
  EXPECT_EQ(model.specs()[1].qHeads, 16);

  model = importText(R"({"model_type":"nemotron-nas","num_hidden_layers":4,
      "hidden_size":8192,"num_attention_heads":64,"block_configs":[
      {"attention":{"n_heads_in_group":8,"no_op":false}},
      {"attention":{"no_op":true}},
      {"attention":{"n_heads_in_group":16}},
      {"attention":{"no_op":false,"replace_with_linear":true}}]})");
  EXPECT_EQ(kindCounts(model), "full_attention/64x8x128:1 no_attention:1 "
                               "full_attention/64x4x128:1 mlp:1");
}

TEST(Features, ScaleThatFallsWithTheLayer) {
  ModelConfig model =
      importText(file("gpt2", R"(,"scale_attn_by_inverse_layer_idx":true)"));
  EXPECT_TRUE(model.scaleByLayer);
  EXPECT_EQ(model.scale, 0.125);
  EXPECT_EQ(model.scaleRule, "1/sqrt(head_dim) / (layer + 1)");
  EXPECT_FALSE(importText(file("gpt2")).scaleByLayer);
}

TEST(Features, DataTypes) {
  auto typeOf = [](const std::string &fields) {
    ModelConfig model = imported(file("llama", fields));
    EXPECT_EQ(model.kinds[0].spec.qType, model.dtype);
    EXPECT_EQ(model.kinds[0].spec.kvType, model.dtype);
    return model.dtype;
  };
  EXPECT_EQ(typeOf(R"(,"torch_dtype":"bfloat16")"), DType::BF16);
  EXPECT_EQ(typeOf(R"(,"torch_dtype":"float16")"), DType::F16);
  EXPECT_EQ(typeOf(R"(,"torch_dtype":"float32")"), DType::F32);
  EXPECT_EQ(typeOf(R"(,"dtype":"bfloat16")"), DType::BF16);
  EXPECT_EQ(typeOf(R"(,"dtype":"torch.float16")"), DType::F16);
  EXPECT_EQ(typeOf(""), DType::F32);
  EXPECT_TRUE(takenFor(importText(file("llama")), "torch_dtype"));
  EXPECT_EQ(refusal(file("llama", R"(,"torch_dtype":"float7")")),
            "config.json: torch_dtype: is \"float7\" (a string), expected "
            "float32, float16 or bfloat16");
  // A wrapper states it once, for all of its parts.
  EXPECT_EQ(importText(R"({"model_type":"llava","torch_dtype":"float16",
                "text_config":{"model_type":"llama"}})")
                .dtype,
            DType::F16);
}

TEST(Features, LongestSequence) {
  auto length = [](const std::string &type, const std::string &fields) {
    return importText(file(type, fields)).maxLength;
  };
  EXPECT_EQ(length("llama", R"(,"max_position_embeddings":8192)"), 8192);
  EXPECT_EQ(length("gpt2", R"(,"n_positions":512)"), 512);
  EXPECT_EQ(length("mpt", R"(,"max_seq_len":65536)"), 65536);
  EXPECT_EQ(length("bloom", R"(,"seq_length":2048)"), 2048);
  EXPECT_EQ(length("bloom", ""), 0);
  EXPECT_EQ(length("cohere", R"(,"max_position_embeddings":8192,
                                 "model_max_length":131072)"),
            131072);
  EXPECT_EQ(length("gemma3_text", ""), 131072);
}

TEST(Features, WindowThatNeverBinds) {
  ModelConfig model = imported(file(
      "mistral", R"(,"sliding_window":4096,"max_position_embeddings":4096)"));
  auto neverMasks = [](const std::string &note) {
    return note.find("never masks") != std::string::npos;
  };
  EXPECT_TRUE(llvm::any_of(model.notes, neverMasks));
  EXPECT_EQ(model.kinds[0].spec.window, 4096);
  model = imported(file(
      "mistral", R"(,"sliding_window":4095,"max_position_embeddings":4096)"));
  EXPECT_FALSE(llvm::any_of(model.notes, neverMasks));
}

TEST(Features, DefaultsAreWrittenDown) {
  ModelConfig model = importText(file("mistral"));
  const DefaultTaken *kv = takenFor(model, "num_key_value_heads");
  ASSERT_TRUE(kv);
  EXPECT_EQ(kv->value, "8");
  EXPECT_EQ(kv->reason, "absent; default of mistral");
  const DefaultTaken *dim = takenFor(model, "head_dim");
  ASSERT_TRUE(dim);
  EXPECT_EQ(dim->value, "64");
  EXPECT_EQ(dim->reason, "absent; hidden_size / num_attention_heads");
  EXPECT_TRUE(takenFor(model, "sliding_window"));
  EXPECT_TRUE(takenFor(model, "rope_theta"));

  model = importText(file("llama", R"(,"num_key_value_heads":null)"));
  kv = takenFor(model, "num_key_value_heads");
  ASSERT_TRUE(kv);
  EXPECT_EQ(kv->reason, "null; one KV head per query head");

  // Nothing is written down about keys that are there.
  model = importText(file("llama", R"(,"num_key_value_heads":4,"head_dim":64,
      "torch_dtype":"float16","rope_theta":10000,"rope_scaling":null,
      "max_position_embeddings":4096)"));
  EXPECT_TRUE(model.defaults.empty());

  // Nested fields are named by their path.
  model = importText(R"({"model_type":"gemma3","text_config":{
      "model_type":"gemma3_text","num_hidden_layers":6}})");
  EXPECT_TRUE(takenFor(model, "text_config.hidden_size"));
}

TEST(Features, SpellingsOfOneKeyMayStandTogether) {
  ModelConfig model = imported(R"({"model_type":"gpt_neox",
      "num_hidden_layers":2,"num_attention_heads":4,"hidden_size":256,
      "rotary_emb_base":10000,"rope_theta":10000.0,"rotary_pct":0.25,
      "partial_rotary_factor":0.25})");
  EXPECT_EQ(model.kinds[0].rope.rotaryDim, 16);
}

TEST(Features, Json) {
  llvm::json::Value value =
      importText(file("gemma2", R"(,"torch_dtype":"bfloat16")"), {2, 0})
          .toJson();
  // It must survive printing and parsing: a tool reads it.
  std::string text;
  llvm::raw_string_ostream(text) << value;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  const llvm::json::Object &object = *parsed->getAsObject();
  EXPECT_EQ(object.getInteger("q_heads"), 8);
  EXPECT_EQ(object.getInteger("tensor_parallel"), 2);
  EXPECT_EQ(object.getString("dtype"), "bf16");
  EXPECT_EQ(object.getNumber("softcap"), 50.0);
  const llvm::json::Array *specs = object.getArray("specs");
  ASSERT_TRUE(specs && specs->size() == 2);
  EXPECT_EQ((*specs)[0].getAsObject()->getInteger("q_heads"), 4);
  EXPECT_EQ((*specs)[0].getAsObject()->getInteger("window"), 4096);
  EXPECT_EQ(*(*specs)[1].getAsObject()->get("window"), nullptr);
  const llvm::json::Array *kinds = object.getArray("kinds");
  ASSERT_TRUE(kinds && kinds->size() == 2);
  EXPECT_EQ((*kinds)[0].getAsObject()->getObject("rope")->getString("type"),
            "default");
  EXPECT_FALSE(object.getArray("defaults")->empty());
}

} // namespace
