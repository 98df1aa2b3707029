//===- FamilyTableTest.cpp - The table of families as such ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value in it is read by a rule, every type stands there once, and rows
// with sizes are complete.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "compiler/import/Families.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace pagoda;

namespace {

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
                                        "mscale",
                                        "mscale_all_dim",
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
  for (llvm::ArrayRef<Family> part :
       {attentionFamilies(), gptFamilies(), hybridFamilies()})
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
    // The sizes of this class give no whole head dim.
    if (type == "qwen3_omni_moe_text")
      continue;
    ModelConfig model =
        importText(R"({"model_type":"some_vlm","text_config":{"model_type":")" +
                   type.str() + R"("}})");
    EXPECT_FALSE(model.kinds.empty()) << type.str();
  }
}

} // namespace
