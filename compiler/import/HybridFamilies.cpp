//===- HybridFamilies.cpp - Families with layers that do not attend -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last part of the table of Families.cpp: attention beside linear
// attention, state-space and convolution layers, which keep no KV cache.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"

using namespace llvm;

namespace pagoda {
namespace {

const Family table[] = {
    {.name = "kimi_linear",
     .modelTypes = "kimi_linear",
     .defaults = R"({"kv_lora_rank":512,"qk_nope_head_dim":128,
         "qk_rope_head_dim":64,"v_head_dim":128,
         "max_position_embeddings":1048576})",
     .layerTypes = kimiLinearLayers,
     .heads = latentHeads,
     .scale = latentScale,
     .rope = noRope},
    {.name = "recurrent_gemma",
     .modelTypes = "recurrent_gemma",
     .defaults = R"({"partial_rotary_factor":0.5,
         "attention_window_size":2048,"rope_theta":10000.0,
         "block_types":["recurrent","recurrent","attention"]})",
     .layerTypes = recurrentBlocks},
    {.name = "qwen3_next",
     .modelTypes = "qwen3_next",
     .defaults = R"({"num_hidden_layers":48,"num_attention_heads":16,
         "hidden_size":2048,"num_key_value_heads":2,"head_dim":256,
         "full_attention_interval":4,"partial_rotary_factor":0.25,
         "max_position_embeddings":32768,"rope_theta":10000.0})",
     .layerTypes = linearUnlessNth},
    {.name = "qwen3_next",
     .modelTypes = "qwen3_5_text",
     .defaults = R"({"num_hidden_layers":32,"num_attention_heads":16,
         "hidden_size":4096,"num_key_value_heads":4,"head_dim":256,
         "full_attention_interval":4,"partial_rotary_factor":0.25,
         "max_position_embeddings":32768,"rope_theta":10000.0})",
     .layerTypes = linearUnlessNth},
    {.name = "qwen3_next",
     .modelTypes = "qwen3_5_moe_text",
     .defaults = R"({"num_hidden_layers":40,"num_attention_heads":16,
         "hidden_size":2048,"num_key_value_heads":2,"head_dim":256,
         "full_attention_interval":4,"partial_rotary_factor":0.25,
         "max_position_embeddings":32768,"rope_theta":10000.0})",
     .layerTypes = linearUnlessNth},
    {.name = "nemotron_h",
     .modelTypes = "nemotron_h",
     .defaults = R"({"num_key_value_heads":8,"head_dim":128,
         "max_position_embeddings":4096})",
     .layerTypes = hybridPattern,
     .rope = noRope,
     .note = "attention layers do not rotate q and k"},
    {.name = "jamba",
     .modelTypes = "jamba",
     .defaults = R"({"num_key_value_heads":8,"attn_layer_period":8,
         "attn_layer_offset":4,"max_position_embeddings":262144})",
     .layerTypes = mambaUnlessPeriod,
     .rope = noRope},
    {.name = "bamba",
     .modelTypes = "bamba",
     .defaults = R"({"num_key_value_heads":8,"partial_rotary_factor":0.5,
         "max_position_embeddings":262144,"rope_theta":10000.0})",
     .layerTypes = mambaUnlessListed},
    {.name = "granitemoehybrid",
     .modelTypes = "granitemoehybrid",
     .defaults = R"({"attention_multiplier":1.0,
         "max_position_embeddings":2048,"rope_theta":10000.0})",
     .layerTypes = mambaUnlessNamed,
     .scale = attentionMultiplier,
     .rope = positionTypeRope},
    {.name = "falcon_h1",
     .modelTypes = "falcon_h1",
     .defaults = R"({"num_key_value_heads":8,
         "max_position_embeddings":8192,"rope_theta":10000.0})",
     .layerTypes = hybridOnly,
     .note = "every layer has a mamba mixer beside its attention; "
             "key_multiplier scales K before attention"},
    {.name = "zamba",
     .modelTypes = "zamba",
     .defaults = R"({"max_position_embeddings":4096})",
     .layerTypes = mambaUnlessNamed,
     .heads = attentionHeadDimHeads,
     .scale = halfHeadDim,
     .rope = noRope},
    {.name = "zamba",
     .modelTypes = "zamba2",
     .defaults = R"({"max_position_embeddings":4096,"rope_theta":10000.0})",
     .layerTypes = mambaUnlessNamed,
     .heads = attentionHeadDimHeads,
     .scale = halfHeadDim,
     .rope = memRope},
    {.name = "lfm2",
     .modelTypes = "lfm2",
     .defaults = R"({"num_hidden_layers":32,"num_attention_heads":32,
         "hidden_size":2560,"num_key_value_heads":8,
         "max_position_embeddings":128000,"rope_theta":1000000.0})",
     .layerTypes = convUnlessListed},
    {.name = "lfm2",
     .modelTypes = "lfm2_moe",
     .defaults = R"({"num_hidden_layers":32,"num_attention_heads":32,
         "hidden_size":2048,"num_key_value_heads":8,
         "max_position_embeddings":128000,"rope_theta":1000000.0})",
     .layerTypes = convUnlessListed},
    {.name = "minimax",
     .modelTypes = "minimax minimax_text_01 minimax_m1",
     .defaults = R"({"num_key_value_heads":8,
         "max_position_embeddings":131072,"rope_theta":1000000.0})",
     .layerTypes = attentionTypeList},
    {.name = "olmo_hybrid",
     .modelTypes = "olmo_hybrid",
     .defaults = R"({"full_attention_interval":4,
         "max_position_embeddings":65536,"rope_theta":10000.0})",
     .layerTypes = linearUnlessNth,
     .rope = ropeUnlessNull},
    {.name = "mamba",
     .modelTypes = "mamba mamba2 falcon_mamba",
     .layerTypes = mambaOnly,
     .rope = noRope},
};

} // namespace

ArrayRef<Family> hybridFamilies() { return table; }

} // namespace pagoda
