//===- ClassDefaultsTest.cpp - What a file may leave out ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every model type from a file that holds little but its size, and from a
// nested one that does not even hold that: what remains are the rules and the
// defaults of its class. class_defaults.txt says for each what must come out.
//
//===----------------------------------------------------------------------===//

#include "PublishedShapes.h"

#include "compiler/import/Families.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <map>

using namespace pagoda;
using namespace pagoda::test;

namespace {

/// What some types cannot do without.
std::string needed(const std::string &type) {
  const std::map<std::string, std::string> keys = {
      {"gemma3n_text", R"("num_kv_shared_layers":4)"},
      {"mllama_text_model", R"("cross_attention_layers":[3,8])"},
      {"gpt_neo", R"("attention_types":[[["global","local"],6]])"},
      {"nemotron_h", R"("hybrid_override_pattern":"M*-EM*-EM*-E")"},
      {"zamba", R"("hybrid_layer_ids":[2,8])"},
      {"zamba2", R"("hybrid_layer_ids":[2,8])"},
      {"bamba", R"("attn_layer_indices":[3,9])"},
      {"lfm2", R"("full_attn_idxs":[1,4])"},
      {"granitemoehybrid", R"("layer_types":["mamba","mamba","attention",
        "mamba","mamba","attention","mamba","mamba","attention","mamba",
        "mamba","attention"],"position_embedding_type":"rope")"},
      {"kimi_linear", R"("linear_attn_config":{"full_attn_layers":[4,8,12]})"},
      {"openelm", R"("num_query_heads":[4,4,4,4,4,4,8,8,8,8,8,8],
        "num_kv_heads":[1,1,1,1,1,1,2,2,2,2,2,2])"}};
  auto it = keys.find(type);
  return it == keys.end() ? "" : "," + it->second;
}

std::string summary(const std::string &text) {
  llvm::Expected<ModelConfig> model = parseModelConfig(text, "config.json");
  if (!model)
    return llvm::toString(model.takeError());
  std::string result = model->family + ", " + std::to_string(model->maxLength);
  for (const LayerKind &kind : model->kinds) {
    result += "; " + describe(kind);
    if (kind.hasKvCache && kind.rope.kind > RopeKind::Default)
      result += " " + llvm::formatv("{0}", toJson(kind.rope)).str();
  }
  for (size_t i = 0; i < model->noRopeLayers.size(); ++i)
    result +=
        (i ? " " : "; unrotated ") + std::to_string(model->noRopeLayers[i]);
  return result;
}

TEST(ClassDefaults, AreThoseOfTheModelsClasses) {
  auto buffer = llvm::MemoryBuffer::getFile(PAGODA_CLASS_DEFAULTS);
  ASSERT_TRUE(bool(buffer)) << PAGODA_CLASS_DEFAULTS;
  std::map<std::string, std::string> expected;
  for (llvm::StringRef line : llvm::split((*buffer)->getBuffer(), '\n'))
    if (!line.empty() && !line.starts_with("#"))
      expected[line.split(": ").first.str()] = line.split(": ").second.str();
  for (llvm::StringRef name : knownModelTypes()) {
    std::string type = name.str();
    std::string flat = R"({"model_type":")" + type +
                       R"(","num_hidden_layers":12,"hidden_size":10240,)"
                       R"("num_attention_heads":160)" +
                       needed(type) + "}";
    std::string nested = R"({"model_type":"llava","text_config":)"
                         R"({"model_type":")" +
                         type + "\"}}";
    EXPECT_EQ(summary(flat), expected[type]) << type;
    EXPECT_EQ(summary(nested), expected[type + " nested"]) << type;
    // Windows that the class leaves out unless it is told.
    if (!llvm::StringRef(findFamily(name)->defaults)
             .contains("use_sliding_window"))
      continue;
    nested.insert(nested.size() - 2, R"(,"use_sliding_window":true)");
    EXPECT_EQ(summary(nested), expected[type + " windowed"]) << type;
  }
}

} // namespace
