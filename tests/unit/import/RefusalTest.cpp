//===- RefusalTest.cpp - What the importer refuses, and how it says so ----===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every damage to a file is one line with file, field, value and expectation.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace pagoda;

namespace {

/// A llama file with one key replaced, added or (value "") left out.
std::string with(const std::string &key, const std::string &value) {
  std::string text = "{";
  bool replaced = false;
  auto add = [&](const std::string &k, const std::string &v) {
    if (v.empty())
      return;
    if (text.size() > 1)
      text += ",";
    text += "\"" + k + "\":" + v;
  };
  const std::pair<const char *, const char *> base[] = {
      {"model_type", "\"llama\""},
      {"num_hidden_layers", "32"},
      {"hidden_size", "4096"},
      {"num_attention_heads", "32"},
      {"num_key_value_heads", "8"}};
  for (auto [k, v] : base) {
    replaced |= key == k;
    add(k, key == k ? value : v);
  }
  if (!replaced)
    add(key, value);
  return text + "}";
}

std::string refusalWith(const std::string &key, const std::string &value) {
  std::string message = refusal(with(key, value));
  llvm::StringRef rest = message;
  EXPECT_TRUE(rest.consume_front("config.json: ")) << message;
  return rest.str();
}

bool mentions(const std::string &message, const char *part) {
  return message.find(part) != std::string::npos;
}

TEST(Refusal, TheBaseIsLegal) { importText(with("x", "1")); }

TEST(Refusal, MissingFields) {
  EXPECT_EQ(refusalWith("model_type", ""),
            "model_type: missing, expected a string");
  EXPECT_EQ(refusalWith("num_hidden_layers", ""),
            "num_hidden_layers: missing, expected an integer from 1 to 4096");
  EXPECT_EQ(
      refusalWith("num_attention_heads", ""),
      "num_attention_heads: missing, expected an integer from 1 to 65536");
  EXPECT_EQ(refusalWith("hidden_size", ""),
            "hidden_size: missing, expected an integer from 1 to 16777216");
}

TEST(Refusal, NullAndWrongTypes) {
  const std::pair<const char *, const char *> values[] = {
      {"null", "null"},
      {"true", "true (a boolean)"},
      {"\"32\"", "\"32\" (a string)"},
      {"[32]", "[32] (an array)"},
      {"{}", "{} (an object)"},
      {"32.5", "32.5"},
      {"NaN", "NaN"},
      {"Infinity", "Infinity"},
      {"-1", "-1"},
      {"0", "0"},
      {"1099511627776", "1099511627776"}};
  for (auto [value, shown] : values)
    EXPECT_EQ(refusalWith("num_hidden_layers", value),
              std::string("num_hidden_layers: is ") + shown +
                  ", expected an integer from 1 to 4096");
  EXPECT_EQ(refusalWith("num_key_value_heads", "true"),
            "num_key_value_heads: is true (a boolean), expected an integer "
            "from 1 to 65536 or null");
  EXPECT_EQ(refusalWith("head_dim", "0"),
            "head_dim: is 0, expected an integer from 1 to 8192 or null");
  EXPECT_EQ(refusalWith("head_dim", "-128"),
            "head_dim: is -128, expected an integer from 1 to 8192 or null");
  EXPECT_EQ(refusalWith("head_dim", "1e18"),
            "head_dim: is 1e+18, expected an integer from 1 to 8192 or null");
  EXPECT_EQ(refusalWith("model_type", "7"),
            "model_type: is 7, expected a string");
  EXPECT_EQ(refusalWith("model_type", "null"),
            "model_type: is null, expected a string");
  EXPECT_EQ(refusalWith("max_position_embeddings", "4294967296"),
            "max_position_embeddings: is 4294967296, expected an integer from "
            "1 to 2147483647");
}

TEST(Refusal, ImpossibleShapes) {
  EXPECT_EQ(refusalWith("num_key_value_heads", "5"),
            "num_key_value_heads: is 5, expected a divisor of "
            "num_attention_heads 32");
  EXPECT_EQ(refusalWith("num_key_value_heads", "64"),
            "num_key_value_heads: is 64, expected a divisor of "
            "num_attention_heads 32");
}

TEST(Refusal, ScalesBeyondFloat) {
  EXPECT_EQ(refusal(R"({"model_type":"granite","num_hidden_layers":2,
                "hidden_size":512,"num_attention_heads":8,
                "attention_multiplier":1e-60})"),
            "config.json: the softmax scale attention_multiplier is 1e-60, "
            "expected a positive number in the range of f32");
}

TEST(Refusal, UnknownModelTypes) {
  EXPECT_EQ(refusalWith("model_type", "\"lama\""),
            "model_type: unknown \"lama\", did you mean \"llama\"");
  EXPECT_EQ(refusalWith("model_type", "\"qwen-3\""),
            "model_type: unknown \"qwen-3\", did you mean \"qwen3\"");
  // Nothing is near; familiar keys do not make a known model.
  EXPECT_TRUE(mentions(refusalWith("model_type", "\"zzzzzzzzzzzz\""),
                       "model_type: unknown \"zzzzzzzzzzzz\", expected one of "
                       "the "));
  EXPECT_TRUE(mentions(refusalWith("model_type", "\"\""),
                       "model_type: unknown \"\", expected one of the "));
}

TEST(Refusal, KnownModelsOfOtherKinds) {
  for (const char *type : {"\"t5\"", "\"whisper\"", "\"bart\"", "\"m2m_100\""})
    EXPECT_TRUE(mentions(refusalWith("model_type", type),
                         "is an encoder-decoder model"))
        << type;
  for (const char *type : {"\"bert\"", "\"modernbert\"", "\"siglip\""})
    EXPECT_TRUE(mentions(refusalWith("model_type", type),
                         "is an encoder without a KV cache"))
        << type;
  EXPECT_TRUE(
      mentions(refusalWith("model_type", "\"rwkv\""), "without attention"));
  EXPECT_EQ(refusalWith("is_encoder_decoder", "true"),
            "is_encoder_decoder: is true (a boolean), expected false, a "
            "decoder with causal self-attention");
  EXPECT_EQ(refusal(R"({"model_type":"gemma3_text","num_hidden_layers":2,
                "num_attention_heads":3,"hidden_size":768,
                "use_bidirectional_attention":true})"),
            "config.json: use_bidirectional_attention: is true (a boolean), "
            "expected false, a decoder with causal self-attention");
  EXPECT_EQ(refusal(R"({"model_type":"chatglm","num_layers":28,
                "num_attention_heads":32,"hidden_size":4096,
                "position_encoding_2d":true})"),
            "config.json: position_encoding_2d: is true (a boolean), expected "
            "false: the first ChatGLM has a two-dimensional rotation and a "
            "prefix mask");
  EXPECT_EQ(refusal(R"({"model_type":"mpt","n_layers":2,"n_heads":8,
                "d_model":512,"attn_config":{"prefix_lm":true}})"),
            "config.json: attn_config.prefix_lm: is true (a boolean), expected "
            "false");
}

TEST(Refusal, MisspeltKeys) {
  // Taking the default instead would be a silent guess.
  EXPECT_EQ(refusal(R"({"model_type":"llama","num_hidden_layers":2,
                "hidden_size":4096,"num_attention_heads":32,
                "num_key_value_head":8})"),
            "config.json: num_key_value_head: unknown key, did you mean "
            "\"num_key_value_heads\"");
  EXPECT_EQ(refusal(R"({"model_type":"llama","num_hiden_layers":2,
                "hidden_size":4096,"num_attention_heads":32})"),
            "config.json: num_hiden_layers: unknown key, did you mean "
            "\"num_hidden_layers\"");
  EXPECT_EQ(refusal(R"({"model_type":"mistral","num_hidden_layers":2,
                "hidden_size":4096,"num_attention_heads":32,
                "sliding_windw":512})"),
            "config.json: sliding_windw: unknown key, did you mean "
            "\"sliding_window\"");
}

TEST(Refusal, SpellingsThatDisagree) {
  EXPECT_EQ(refusal(R"({"model_type":"bloom","n_layer":24,"n_head":16,
                "num_attention_heads":32,"hidden_size":1024})"),
            "config.json: n_head: is 16, but num_attention_heads is 32, "
            "expected one value for both");
  EXPECT_EQ(
      refusalWith("rope_scaling",
                  R"({"rope_type":"yarn","type":"linear","factor":4.0})"),
      "rope_scaling.type: is \"linear\", but rope_type is \"yarn\", expected "
      "one value for both");
  // Names of two ages, and image positions beside none.
  importText(
      with("rope_scaling",
           R"({"rope_type":"yarn","type":"deepseek_yarn","factor":4.0})"));
  importText(with("rope_scaling", R"({"rope_type":"default","type":"mrope",
                                      "mrope_section":[16,24,24]})"));
}

TEST(Refusal, LayerLists) {
  EXPECT_EQ(refusalWith("layer_types", R"(["full_attention"])"),
            "layer_types: has 1 elements, expected 32 as in num_hidden_layers");
  std::string two = R"({"model_type":"qwen3","num_hidden_layers":2,
      "hidden_size":1024,"num_attention_heads":32,"layer_types":)";
  EXPECT_EQ(refusal(two + R"(["full_attention","slidin_attention"]})"),
            "config.json: layer_types: layer 1 is \"slidin_attention\", "
            "expected sliding_attention");
  EXPECT_TRUE(mentions(refusal(two + R"(["full_attention","xyzzy"]})"),
                       "layer 1 is \"xyzzy\", expected one of full_attention, "
                       "sliding_attention, "));
  EXPECT_EQ(refusal(two + R"(["full_attention",7]})"),
            "config.json: layer_types: element 1 is 7, expected a string");
  EXPECT_EQ(refusal(two + R"("full_attention"})"),
            "config.json: layer_types: is \"full_attention\" (a string), "
            "expected an array");
  EXPECT_EQ(refusal(two + R"(["full_attention","sliding_attention"],
                "sliding_window":null})"),
            "config.json: sliding_window: is null, expected an integer, since "
            "some layers have a window");
}

std::string small(const std::string &type, const std::string &fields) {
  return R"({"model_type":")" + type +
         R"(","num_hidden_layers":3,"hidden_size":1024,
            "num_attention_heads":32,)" +
         fields + "}";
}

TEST(Refusal, LayerPatterns) {
  EXPECT_EQ(refusal(small("nemotron_h", R"("hybrid_override_pattern":"M*")")),
            "config.json: hybrid_override_pattern: has 2 letters, expected 3 "
            "as in num_hidden_layers");
  EXPECT_EQ(refusal(small("nemotron_h", R"("hybrid_override_pattern":"M*X")")),
            "config.json: hybrid_override_pattern: is \"M*X\" (a string), "
            "expected M (mamba), * (attention), - (mlp) and E (moe)");
  EXPECT_EQ(refusal(small("jamba", R"("attn_layer_period":4,
                                      "attn_layer_offset":4)")),
            "config.json: attn_layer_offset: is 4, expected an integer from 0 "
            "to 3");
  EXPECT_EQ(refusal(small("gemma3_text", R"("sliding_window_pattern":0)")),
            "config.json: sliding_window_pattern: is 0, expected an integer "
            "from 1 to 4096");
  EXPECT_EQ(refusal(small("exaone4", R"("sliding_window_pattern":"LLX")")),
            "config.json: sliding_window_pattern: is \"LLX\" (a string), "
            "expected letters L (window) and G (all keys)");
  EXPECT_TRUE(mentions(
      refusal(
          small("gpt_neo", R"("attention_types":[[["global","local"],1]])")),
      "attention_types: is [[[\"global\",\"local\"],1]] (an array), expected"));
  EXPECT_EQ(refusal(small("granitemoehybrid", R"("layer_types":null)")),
            "config.json: layer_types: is null, expected the kind of each "
            "layer");
  EXPECT_EQ(refusal(small("smollm3", R"("no_rope_layers":[1,0])")),
            "config.json: no_rope_layers: has 2 elements, expected 3 as in "
            "num_hidden_layers");
  EXPECT_EQ(refusal(small("gemma3n_text", R"("num_kv_shared_layers":4)")),
            "config.json: num_kv_shared_layers: is 4, expected an integer from "
            "0 to 3 or null");
  EXPECT_EQ(refusal(small("openelm", R"("num_query_heads":[8,8],
                                        "num_kv_heads":[1,1,1])")),
            "config.json: num_query_heads: is [8,8] (an array), expected one "
            "count per layer, 3 in all");
  EXPECT_EQ(refusal(small("nemotron-nas",
                          R"("block_configs":[{"attention":{}},
                             {"attention":{"n_heads_in_group":8}},{}])")),
            "config.json: block_configs: element 2 has no object "
            "\"attention\"");
}

TEST(Refusal, OtherAttentionInOneLayer) {
  auto blocks = [](const std::string &field) {
    return small("nemotron-nas",
                 R"("block_configs":[{"attention":{"n_heads_in_group":8}},
                    {"attention":{"n_heads_in_group":8,)" +
                     field + R"(}},{"attention":{"n_heads_in_group":8}}])");
  };
  for (const char *key :
       {"window_length", "num_sink_tokens", "llama4", "mamba"}) {
    std::string quoted = "\"" + std::string(key) + "\":";
    importText(blocks(quoted + "null"));
    EXPECT_EQ(refusal(blocks(quoted + "4")),
              "config.json: block_configs: element 1 has attention." +
                  std::string(key) + " 4, expected null");
  }
  importText(small("mpt", R"("block_overrides":null)"));
  importText(small("mpt", R"("block_overrides":{})"));
  EXPECT_TRUE(mentions(
      refusal(small("mpt", R"("block_overrides":{"order":[]})")),
      "block_overrides: is {\"order\":[]} (an object), expected none"));
}

TEST(Refusal, NoCausalMask) {
  importText(with("is_causal", "true"));
  importText(with("is_causal", "null"));
  EXPECT_EQ(refusalWith("is_causal", "false"),
            "is_causal: is false (a boolean), expected true, a decoder with "
            "causal self-attention");
  EXPECT_EQ(refusal(R"({"model_type":"llava","text_config":
                {"model_type":"llama","is_causal":false}})"),
            "config.json: text_config.is_causal: is false (a boolean), "
            "expected true, a decoder with causal self-attention");
}

TEST(Refusal, NestedFieldsAreNamedByTheirPath) {
  EXPECT_EQ(refusal(R"({"model_type":"llava","text_config":{
                "model_type":"llama","num_attention_heads":-1}})"),
            "config.json: text_config.num_attention_heads: is -1, expected an "
            "integer from 1 to 65536");
  EXPECT_EQ(refusal(R"({"model_type":"some_vlm","text_config":{
                "hidden_size":64}})"),
            "config.json: text_config.model_type: missing, expected a string");
  EXPECT_EQ(refusal(R"({"model_type":"llava"})"),
            "config.json: text_config: missing, expected the language model of "
            "\"llava\"");
  EXPECT_EQ(refusal(R"({"model_type":"llava","text_config":7})"),
            "config.json: text_config: is 7, expected the language model of "
            "\"llava\"");
  EXPECT_TRUE(mentions(
      refusal(R"({"model_type":"x","text_config":{"model_type":"t5"}})"),
      "config.json: text_config.model_type: \"t5\" is an encoder-decoder"));
}

TEST(Refusal, NotAnObject) {
  EXPECT_EQ(refusal("[]"), "config.json: is [] (an array), expected an object");
  EXPECT_EQ(refusal("null"), "config.json: is null, expected an object");
  EXPECT_EQ(refusal("{}"),
            "config.json: model_type: missing, expected a string");
}

TEST(Refusal, TooManyKeys) {
  std::string text = R"({"model_type":"llama")";
  for (int i = 0; i < 4096; ++i)
    text += ",\"k" + std::to_string(i) + "\":1";
  EXPECT_EQ(refusal(text + "}"),
            "config.json: has 4097 keys, expected at most 4096");
}

TEST(Refusal, TextFaultsNameThePlace) {
  EXPECT_EQ(refusal(""),
            "config.json: line 1, column 1: no value, expected '{'");
  EXPECT_EQ(refusal("{\"model_type\":\"llama\",\"model_type\":\"llama\"}"),
            "config.json: line 1, column 23: a second \"model_type\" in one "
            "object");
  EXPECT_EQ(refusal("\xEF\xBB\xBF{}"),
            "config.json: line 1, column 1: a byte order mark, expected '{'");
  EXPECT_TRUE(
      mentions(refusal(std::string(10000, '[')), "nested more than 64 deep"));
}

TEST(Refusal, SizesAreBoundedBeforeReading) {
  EXPECT_EQ(refusal(std::string(maxConfigBytes + 1, ' ')),
            "config.json: has 16777217 bytes, expected at most 16777216");
  // A sparse file of 1 GiB takes no disk and must take no memory.
  llvm::SmallString<128> path;
  int descriptor;
  ASSERT_FALSE(
      llvm::sys::fs::createTemporaryFile("pagoda", "json", descriptor, path));
  ASSERT_FALSE(llvm::sys::fs::resize_file_sparse(descriptor, 1 << 30));
  llvm::sys::fs::file_t handle =
      llvm::sys::fs::convertFDToNativeFile(descriptor);
  llvm::Expected<ModelConfig> model = loadModelConfig(path);
  llvm::sys::fs::closeFile(handle);
  llvm::sys::fs::remove(path);
  ASSERT_FALSE(bool(model));
  EXPECT_EQ(llvm::toString(model.takeError()),
            path.str().str() +
                ": has 1073741824 bytes, expected at most 16777216");
}

TEST(Refusal, FilesThatCannotBeRead) {
  llvm::Expected<ModelConfig> absent = loadModelConfig("/no/such/config.json");
  ASSERT_FALSE(bool(absent));
  EXPECT_EQ(llvm::toString(absent.takeError()),
            "/no/such/config.json: No such file or directory");
  llvm::Expected<ModelConfig> folder = loadModelConfig("/");
  ASSERT_FALSE(bool(folder));
  EXPECT_EQ(llvm::toString(folder.takeError()),
            "/: is a directory, expected a file");
  // No size, and no end.
  llvm::Expected<ModelConfig> endless = loadModelConfig("/dev/zero");
  ASSERT_FALSE(bool(endless));
  EXPECT_EQ(llvm::toString(endless.takeError()),
            "/dev/zero: has more than 16777216 bytes, expected a config.json");
}

} // namespace
