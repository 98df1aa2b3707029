//===- WindowsTest.cpp - Which layers have a window ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Classes of one family differ in which layers use the window that the file
// gives; each by the source of its class.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

using namespace pagoda;

namespace {

std::string file(const std::string &type, const std::string &fields = "") {
  return R"({"model_type":")" + type +
         R"(","num_hidden_layers":12,"num_attention_heads":8,"hidden_size":512)" +
         fields + "}";
}

TEST(Windows, WindowsOfQwenByItsClass) {
  using Layers = std::vector<int64_t>;
  auto windowed = [](const std::string &type, const std::string &fields) {
    Layers layers;
    for (const LayerKind &kind : importText(file(type, fields)).kinds)
      if (kind.spec.window) {
        EXPECT_EQ(kind.spec.window, 64) << type;
        layers = kind.layers;
      }
    return layers;
  };
  const std::string window = R"(,"num_key_value_heads":8,
      "sliding_window":64,"max_window_layers":9)";
  const std::string used = window + R"(,"use_sliding_window":true)";
  const Layers last{9, 10, 11}, all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const char *type : {"qwen2", "mimo", "qwen2_vl", "qwen2_vl_text",
                           "qwen2_5_vl", "qwen2_5_vl_text", "qwen3"}) {
    EXPECT_EQ(windowed(type, used), last) << type;
    EXPECT_EQ(windowed(type, window), Layers{}) << type;
    EXPECT_EQ(windowed(type, R"(,"num_key_value_heads":8,
                  "use_sliding_window":true,"sliding_window":null)"),
              Layers{})
        << type;
  }
  // Every other layer below the limit, not those from it on.
  EXPECT_EQ(windowed("qwen2_moe", used), (Layers{0, 2, 4, 6, 8}));
  EXPECT_EQ(windowed("qwen2_moe", window), Layers{});
  // All layers: max_window_layers is not read.
  EXPECT_EQ(windowed("qwen3_moe", used), all);
  EXPECT_EQ(windowed("qwen3_moe", window), Layers{});
  // No windows at all.
  for (const char *type :
       {"qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_omni_moe_text"})
    EXPECT_EQ(windowed(type, used), Layers{}) << type;
  // dots1 has no use_sliding_window.
  EXPECT_EQ(windowed("dots1", window + R"(,"use_sliding_window":false)"), last);
  // What the file lists goes before the rule.
  EXPECT_EQ(windowed("qwen2_moe", used + R"(,
      "layer_types":["full_attention","sliding_attention","full_attention",
        "full_attention","full_attention","full_attention","full_attention",
        "full_attention","full_attention","full_attention","full_attention",
        "full_attention"])"),
            Layers{1});
}

TEST(Windows, MaxWindowLayersLeftOut) {
  auto layers = [](const std::string &type, int64_t count) {
    ModelConfig model = importText(
        R"({"model_type":")" + type + R"(","num_hidden_layers":)" +
        std::to_string(count) + R"(,"num_attention_heads":8,"hidden_size":512,
            "num_key_value_heads":8,"use_sliding_window":true})");
    return kindNamed(model, "sliding_attention").layers;
  };
  EXPECT_EQ(layers("qwen2", 29), (std::vector<int64_t>{28}));
  EXPECT_EQ(layers("qwen2_vl", 82), (std::vector<int64_t>{80, 81}));
  EXPECT_EQ(layers("qwen2_5_omni_text", 30), (std::vector<int64_t>{28, 29}));
  EXPECT_EQ(layers("dots1", 64), (std::vector<int64_t>{62, 63}));
  // Even layers below 28.
  EXPECT_EQ(layers("qwen2_moe", 40).back(), 26);
  EXPECT_EQ(importText(file("phi4_multimodal", R"(,"sliding_window":64)"))
                .kindOf(0)
                .spec.window,
            64);
  // The longest window of this class.
  EXPECT_EQ(importText(R"({"model_type":"qwen2_5_omni_text",
      "num_hidden_layers":29,"num_attention_heads":8,"hidden_size":512,
      "num_key_value_heads":8,"use_sliding_window":true})")
                .kindOf(28)
                .spec.window,
            32768);
}

TEST(Windows, MinimaxHasOneOfAllAttention) {
  for (const char *layers :
       {"", R"(,"attn_type_list":[1,0,1,0,1,0,1,0,1,0,1,0])",
        R"(,"layer_types":["full_attention","linear_attention",
          "full_attention","linear_attention","full_attention",
          "linear_attention","full_attention","linear_attention",
          "full_attention","linear_attention","full_attention",
          "linear_attention"])"}) {
    EXPECT_EQ(kindCounts(importText(file("minimax", layers))),
              "full_attention:6 linear_attention:6");
    ModelConfig model = importText(
        file("minimax", std::string(layers) + R"(,"sliding_window":64)"));
    EXPECT_EQ(kindCounts(model), "sliding_attention:6 linear_attention:6");
    EXPECT_EQ(model.kindOf(0).spec.window, 64);
  }
}

} // namespace
