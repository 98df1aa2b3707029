//===- PublishedShapesTest.cpp - Files as models are published with -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PublishedShapes.h"

#include "TestConfigs.h"

#include <cmath>

using namespace pagoda;
using namespace pagoda::test;

namespace {

ModelConfig import(const std::string &text) {
  llvm::Expected<ModelConfig> model = parseModelConfig(text, "config.json");
  if (model)
    return std::move(*model);
  ADD_FAILURE() << llvm::toString(model.takeError()) << "\n" << text;
  return ModelConfig();
}

TEST(PublishedShapes, KindsAreThoseOfTheModelsClasses) {
  for (const PublishedShape &shape : publishedShapes()) {
    ModelConfig model = import(shape.json);
    std::vector<std::string> kinds;
    for (const LayerKind &kind : model.kinds)
      kinds.push_back(describe(kind));
    EXPECT_EQ(kinds, shape.kinds) << shape.name;
  }
}

TEST(PublishedShapes, ProportionalRotationKeepsTheFirstFrequencies) {
  RopeConfig rope;
  rope.kind = RopeKind::Proportional;
  rope.rotaryDim = 16;
  rope.theta = 10000;
  rope.rotatedFraction = 0.25;
  // Two of eight; the exponent counts all dims of the head.
  EXPECT_EQ(
      ropeFrequencies(rope, 1),
      (std::vector<double>{1, std::pow(10000.0, -2.0 / 16), 0, 0, 0, 0, 0, 0}));
  rope.factor = 4;
  EXPECT_EQ(ropeFrequencies(rope, 1)[0], 0.25);
}

TEST(PublishedShapes, WiderHeadsWhereAllKeysAreSeen) {
  std::string text = R"({"model_type":"gemma4_text","hidden_size":1536,
      "num_hidden_layers":6,"num_attention_heads":8,"num_key_value_heads":1,
      "num_kv_shared_layers":6)";
  // Without a word about the rotation: the class's, one for each kind.
  ModelConfig plain = import(text + "}");
  ASSERT_EQ(plain.kinds.size(), 2u);
  EXPECT_EQ(plain.kinds[0].spec.headDim, 256);
  EXPECT_EQ(plain.kinds[0].rope.theta, 10000);
  EXPECT_EQ(plain.kinds[1].spec.headDim, 512);
  EXPECT_EQ(plain.kinds[1].rope.kind, RopeKind::Proportional);
  EXPECT_EQ(plain.kinds[1].rope.rotatedFraction, 0.25);
  // All layers sharing means that none does.
  EXPECT_EQ(plain.kvSource, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  // The count of KV heads of these layers only holds where K serves as V.
  for (const char *serves : {"false", "true"}) {
    ModelConfig model =
        import(text + R"(,"num_global_key_value_heads":4,"attention_k_eq_v":)" +
               serves + "}");
    ASSERT_EQ(model.kinds.size(), 2u);
    EXPECT_EQ(model.kinds[1].spec.kvHeads, serves[0] == 't' ? 4 : 1);
  }
}

TEST(PublishedShapes, AxesMayTakeTurns) {
  for (const char *turns : {"false", "true"}) {
    ModelConfig model =
        import(std::string(R"({"model_type":"qwen3_vl_text","hidden_size":2048,
            "num_hidden_layers":2,"num_attention_heads":16,"num_key_value_heads":8,
            "rope_scaling":{"rope_type":"default","mrope_section":[24,20,20],
            "mrope_interleaved":)") +
               turns + "}}");
    ASSERT_EQ(model.kinds.size(), 1u);
    EXPECT_EQ(model.kinds[0].rope.sectionsInterleaved, turns[0] == 't');
  }
}

TEST(PublishedShapes, SpecsNameTheKindsTheyServe) {
  // Two kinds that only differ in name share a kernel.
  ModelConfig model = import(R"({"model_type":"gemma3_text",
      "hidden_size":1024,"num_hidden_layers":4,"num_attention_heads":4,
      "layer_types":["sliding_attention","full_attention","attention",
      "full_attention"],"sliding_window":512})");
  ASSERT_EQ(model.specs().size(), 2u);
  EXPECT_EQ(model.kindsServedBy("sliding_attention").size(), 1u);
  std::vector<const LayerKind *> served = model.kindsServedBy("full_attention");
  ASSERT_EQ(served.size(), 2u);
  EXPECT_EQ(served[0]->layers, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(served[1]->layers, (std::vector<int64_t>{2}));
  EXPECT_TRUE(model.kindsServedBy("mamba").empty());
}

} // namespace
