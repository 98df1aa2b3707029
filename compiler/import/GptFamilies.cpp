//===- GptFamilies.cpp - Families with GPT's shape or with ALiBi --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the table of Families.cpp that came before llama's shape: learned
// positions, biases in their place, and the first rotations.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"

using namespace llvm;

namespace pagoda {
namespace {

const Family table[] = {
    // GPT and its descendants.
    {.name = "gpt2",
     .modelTypes = "gpt2 gpt-sw3",
     .defaults = R"({"max_position_embeddings":1024})",
     .heads = multiQueryHeads,
     .scale = optionalAttnWeights,
     .rope = noRope},
    {.name = "gpt2",
     .modelTypes = "gpt_bigcode",
     .defaults = R"({"multi_query":true,"max_position_embeddings":1024})",
     .heads = multiQueryHeads,
     .scale = optionalAttnWeights,
     .rope = noRope},
    {.name = "gpt2",
     .modelTypes = "opt",
     .defaults = R"({"num_hidden_layers":12,"num_attention_heads":12,
         "hidden_size":768,"max_position_embeddings":2048})",
     .rope = noRope},
    {.name = "gpt2",
     .modelTypes = "xglm",
     .defaults = R"({"num_hidden_layers":24,"num_attention_heads":16,
         "hidden_size":1024,"max_position_embeddings":2048})",
     .rope = noRope},
    {.name = "gpt2",
     .modelTypes = "biogpt",
     .defaults = R"({"num_hidden_layers":24,"num_attention_heads":16,
         "hidden_size":1024,"max_position_embeddings":1024})",
     .rope = noRope},
    {.name = "gpt_neo",
     .modelTypes = "gpt_neo",
     .defaults = R"({"window_size":256,"max_position_embeddings":2048,
         "attention_types":[[["global","local"],12]]})",
     .layerTypes = gptNeoLayers,
     .scale = unscaled,
     .rope = noRope},
    {.name = "gptj",
     .modelTypes = "gptj codegen",
     .defaults = R"({"rotary_dim":64,"max_position_embeddings":2048,
         "rope_theta":10000.0})",
     .rope = interleavedRope},
    {.name = "gpt_neox",
     .modelTypes = "gpt_neox",
     .defaults = R"({"partial_rotary_factor":0.25,
         "max_position_embeddings":2048,"rope_theta":10000.0})"},
    {.name = "gpt_neox",
     .modelTypes = "gpt_neox_japanese",
     .defaults = R"({"partial_rotary_factor":1.0,
         "max_position_embeddings":2048,"rope_theta":10000.0})"},
    {.name = "gpt_oss",
     .modelTypes = "gpt_oss",
     .defaults = R"({"num_key_value_heads":8,"head_dim":64,
         "sliding_window":128,"sliding_window_pattern":2,
         "max_position_embeddings":131072,"rope_theta":150000.0,
         "rope_scaling":{"rope_type":"yarn","factor":32.0,"beta_fast":32.0,
         "beta_slow":1.0,"truncate":false,
         "original_max_position_embeddings":4096}})",
     .layerTypes = everyNthLayerFull,
     .sinks = true},
    {.name = "starcoder2",
     .modelTypes = "starcoder2",
     .defaults = R"({"num_key_value_heads":2,"sliding_window":null,
         "max_position_embeddings":4096,"rope_theta":10000.0})",
     .layerTypes = windowedLayers},
    {.name = "persimmon",
     .modelTypes = "persimmon",
     .defaults = R"({"num_hidden_layers":36,"num_attention_heads":64,
         "hidden_size":4096,"partial_rotary_factor":0.5,
         "max_position_embeddings":16384,"rope_theta":10000.0})"},

    // ALiBi.
    {.name = "bloom",
     .modelTypes = "bloom",
     .rope = noRope,
     .alibi = Family::Always},
    {.name = "mpt",
     .modelTypes = "mpt",
     .defaults = R"({"max_position_embeddings":2048,"attn_config":{
         "attn_type":"multihead_attention","alibi":true,"alibi_bias_max":8,
         "rope_theta":10000.0}})",
     .heads = attnConfigHeads,
     .scale = attnConfigScale,
     .rope = attnConfigRope,
     .alibi = Family::ByKey},
    {.name = "dbrx",
     .modelTypes = "dbrx",
     .defaults = R"({"max_position_embeddings":2048,"attn_config":{
         "num_key_value_heads":1,"rope":true,"rope_theta":10000.0}})",
     .heads = attnConfigHeads,
     .rope = attnConfigRope},
    {.name = "falcon",
     .modelTypes = "falcon RefinedWebModel",
     .defaults = R"({"multi_query":true,"max_position_embeddings":2048,
         "rope_theta":10000.0})",
     .heads = falconHeads,
     .rope = unlessAlibiRope,
     .alibi = Family::ByKey},
    {.name = "falcon",
     .modelTypes = "RefinedWeb",
     .defaults = R"({"new_decoder_architecture":true,
         "max_position_embeddings":2048,"rope_theta":10000.0})",
     .heads = falconHeads,
     .rope = unlessAlibiRope,
     .alibi = Family::ByKey},
    {.name = "baichuan",
     .modelTypes = "baichuan",
     .defaults = R"({"rope_theta":10000.0})",
     .rope = unlessAlibiRope,
     .alibi = Family::ByKey},
    {.name = "jais",
     .modelTypes = "jais",
     .defaults = R"({"max_position_embeddings":1024,
         "position_embedding_type":"learned"})",
     .scale = jaisScale,
     .rope = noRope,
     .alibi = Family::ByKey},
};

} // namespace

ArrayRef<Family> gptFamilies() { return table; }

} // namespace pagoda
