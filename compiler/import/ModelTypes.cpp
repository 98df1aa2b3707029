//===- ModelTypes.cpp - From model_type to a family -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which family a model_type belongs to, which language model a multimodal one
// wraps, and which known types are refused, with the reason.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

#include <array>

using namespace llvm;

namespace pagoda {
namespace {

bool listHolds(StringRef list, StringRef word) {
  SmallVector<StringRef> words;
  list.split(words, ' ');
  return is_contained(words, word);
}

struct Refusal {
  StringLiteral modelTypes;
  StringLiteral reason;
};

const Refusal refusals[] = {
    {"t5 mt5 umt5 longt5 switch_transformers t5gemma bart mbart plbart mvp led "
     "pegasus pegasus_x bigbird_pegasus marian m2m_100 nllb-moe blenderbot "
     "blenderbot-small prophetnet xlm-prophetnet fsmt whisper speech_to_text "
     "seamless_m4t seamless_m4t_v2 speecht5 moonshine trocr "
     "vision-encoder-decoder encoder-decoder speech-encoder-decoder "
     "musicgen pix2struct udop florence2",
     "an encoder-decoder model, expected a decoder with causal "
     "self-attention"},
    {"bert roberta xlm-roberta xlm-roberta-xl camembert distilbert albert "
     "electra deberta deberta-v2 mpnet modernbert eurobert nomic_bert new "
     "funnel layoutlm layoutlmv3 longformer big_bird roformer rembert esm vit "
     "clip siglip siglip2 dinov2 wav2vec2 hubert convbert megatron-bert "
     "jina_embeddings_v3 splinter squeezebert mobilebert xlnet",
     "an encoder without a KV cache, expected a decoder with causal "
     "self-attention"},
    {"rwkv rwkv5 rwkv6 rwkv7 xlstm retnet",
     "a recurrent model without attention, expected a decoder with causal "
     "self-attention"},
    {"transfo-xl reformer ctrl xlm cpmant doge diffllama jetmoe phi3small "
     "deepseek_v32 deepseek_v4 glm_moe_dsa",
     "a model whose attention has no paged kernel here (relative positions, "
     "hashed, sparse or differential attention)"},
};

} // namespace

static std::array<ArrayRef<Family>, 3> parts() {
  return {attentionFamilies(), gptFamilies(), hybridFamilies()};
}

const Family *findFamily(StringRef modelType) {
  for (ArrayRef<Family> part : parts())
    for (const Family &family : part)
      if (listHolds(family.modelTypes, modelType))
        return &family;
  return nullptr;
}

std::vector<StringRef> knownModelTypes() {
  std::vector<StringRef> all;
  for (ArrayRef<Family> part : parts())
    for (const Family &family : part) {
      SmallVector<StringRef> types;
      StringRef(family.modelTypes).split(types, ' ');
      append_range(all, types);
    }
  return all;
}

StringRef refusalOf(StringRef modelType) {
  for (const Refusal &refusal : refusals)
    if (listHolds(refusal.modelTypes, modelType))
      return refusal.reason;
  return "";
}

StringRef wrappedModelType(StringRef modelType) {
  return StringSwitch<StringRef>(modelType)
      .Cases({"llava", "llava_next", "llava_next_video", "video_llava",
              "vipllava", "idefics3", "smolvlm"},
             "llama")
      .Cases({"llava_onevision", "got_ocr2", "internvl"}, "qwen2")
      .Cases({"mistral3", "idefics2"}, "mistral")
      .Case("paligemma", "gemma")
      .Case("gemma3", "gemma3_text")
      .Case("gemma3n", "gemma3n_text")
      .Case("gemma4", "gemma4_text")
      .Case("ernie4_5_vl_moe", "ernie4_5_vl_moe_text")
      .Case("llama4", "llama4_text")
      .Case("mllama", "mllama_text_model")
      .Case("fuyu", "persimmon")
      .Case("qwen2_vl", "qwen2_vl_text")
      .Case("qwen2_5_vl", "qwen2_5_vl_text")
      .Case("qwen3_vl", "qwen3_vl_text")
      .Case("qwen3_vl_moe", "qwen3_vl_moe_text")
      .Case("qwen3_5", "qwen3_5_text")
      .Case("qwen3_5_moe", "qwen3_5_moe_text")
      .Case("glm4v", "glm4v_text")
      .Case("glm4v_moe", "glm4v_moe_text")
      .Case("aya_vision", "cohere2")
      .Case("cohere2_vision", "cohere2")
      .Default("");
}

} // namespace pagoda
