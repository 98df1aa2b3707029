//===- HeadRules.cpp - How many heads of what size, and the scale ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules for the heads of a layer, for the softmax scale and for ALiBi
// slopes.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Families.h"

#include "llvm/ADT/STLExtras.h"

#include <bit>
#include <cmath>

using namespace llvm;

namespace pagoda {
namespace {

int64_t queryHeads(ImportContext &c) {
  return c.config.coreInteger("num_attention_heads", headRange);
}

/// hidden_size / num_attention_heads, `times` over, which must be whole.
int64_t dimOfHidden(ImportContext &c, StringRef key, int64_t times = 1) {
  int64_t hidden = c.config.coreInteger("hidden_size", widthRange);
  int64_t heads = queryHeads(c);
  if (c.config.failed())
    return 1;
  const json::Value *given = c.config.find(key);
  StringRef state = given ? "null" : "absent";
  if (hidden % heads) {
    c.config.fail(key, state + "; hidden_size " + Twine(hidden) +
                           " is not a multiple of num_attention_heads " +
                           Twine(heads) + ", expected an explicit value");
    return 1;
  }
  int64_t dim = times * hidden / heads;
  if (dim < headDimRange.min || dim > headDimRange.max)
    c.config.fail(key, state + "; " + Twine(times) +
                           " * hidden_size / num_attention_heads is " +
                           Twine(dim) + ", expected at most " +
                           Twine(headDimRange.max));
  c.config.tookDefault(key, dim,
                       state + (times == 1 ? "; " : "; twice ") +
                           "hidden_size / num_attention_heads");
  return dim;
}

int64_t headDim(ImportContext &c, StringRef key = "head_dim") {
  // Another name in files of hunyuan and nemotron_h, which may carry both.
  if (key == "head_dim" && !c.config.find(key))
    if (c.config.has("attention_head_dim"))
      return c.config.integer("attention_head_dim", headDimRange);
  if (auto dim = c.config.maybeInteger(key, headDimRange))
    return *dim;
  return dimOfHidden(c, key);
}

int64_t kvHeadsUnder(ConfigReader &config, StringRef key, int64_t qHeads) {
  if (auto heads = config.maybeInteger(key, headRange))
    return *heads;
  config.tookDefault(key, qHeads,
                     Twine(config.find(key) ? "null" : "absent") +
                         "; one KV head per query head");
  return qHeads;
}

LayerShape uniform(int64_t qHeads, int64_t kvHeads, int64_t dim) {
  return {qHeads, kvHeads, dim, dim};
}

double rule(ImportContext &c, StringRef text, double scale) {
  c.model.scaleRule = text.str();
  return scale;
}

} // namespace

LayerShape groupedHeads(ImportContext &c, StringRef, int64_t) {
  int64_t q = queryHeads(c);
  return uniform(q, kvHeadsUnder(c.config, "num_key_value_heads", q),
                 headDim(c));
}

LayerShape falconHeads(ImportContext &c, StringRef, int64_t) {
  int64_t q = queryHeads(c);
  // Files of the old architecture carry num_kv_heads = num_attention_heads
  // beside multi_query, which alone counts.
  int64_t kv = c.config.boolean("new_decoder_architecture", false)
                   ? kvHeadsUnder(c.config, "num_key_value_heads", q)
               : c.config.boolean("multi_query", true) ? 1
                                                       : q;
  return uniform(q, kv, headDim(c));
}

LayerShape multiQueryHeads(ImportContext &c, StringRef, int64_t) {
  int64_t q = queryHeads(c);
  bool shared = c.config.boolean("multi_query", false) ||
                c.config.maybeString("attention_head_type") == "multiquery";
  return uniform(q, shared ? 1 : q, headDim(c));
}

LayerShape chatGlmHeads(ImportContext &c, StringRef, int64_t) {
  if (c.config.boolean("position_encoding_2d", false))
    c.config.failExpected("position_encoding_2d",
                          "false: the first ChatGLM has a two-dimensional "
                          "rotation and a prefix mask");
  int64_t q = queryHeads(c);
  int64_t kv = c.config.boolean("multi_query_attention", false)
                   ? c.config.integer("multi_query_group_num", headRange)
                   : q;
  return uniform(q, kv, headDim(c, "kv_channels"));
}

LayerShape attnConfigHeads(ImportContext &c, StringRef, int64_t) {
  ConfigReader attention = c.config.subObject("attn_config");
  int64_t q = queryHeads(c);
  int64_t kv = q;
  std::string type =
      attention.maybeString("attn_type").value_or("grouped_query_attention");
  if (type == "multiquery_attention")
    kv = 1;
  else if (type == "grouped_query_attention")
    kv = kvHeadsUnder(attention, "num_key_value_heads", q);
  else if (type != "multihead_attention")
    attention.failExpected("attn_type",
                           "multihead_attention, multiquery_attention or "
                           "grouped_query_attention");
  // Layers with windows, or with the cache of another layer.
  if (auto overrides = c.config.maybeObject("block_overrides");
      overrides && !overrides->raw().empty())
    c.config.failExpected("block_overrides", "none: layers of one kind");
  if (attention.boolean("prefix_lm", false))
    attention.failExpected("prefix_lm", "false");
  if (auto window = attention.maybeInteger("sliding_window_size",
                                           {-1, positionRange.max});
      window && *window != -1)
    attention.failExpected("sliding_window_size", "-1, no window");
  return uniform(q, kv, headDim(c));
}

LayerShape latentHeads(ImportContext &c, StringRef type, int64_t layer) {
  // Small models of the family say that they attend in the plain way.
  if (!c.config.boolean("use_mla", true))
    return groupedHeads(c, type, layer);
  MlaConfig mla;
  mla.kvLoraRank = c.config.integer("kv_lora_rank", widthRange);
  mla.qLoraRank = c.config.maybeInteger("q_lora_rank", widthRange).value_or(0);
  mla.qkNopeHeadDim = c.config.integer("qk_nope_head_dim", headDimRange);
  mla.qkRopeHeadDim = c.config.integer("qk_rope_head_dim", headDimRange);
  mla.vHeadDim = headDim(c, "v_head_dim");
  c.model.mla = mla;
  // Expanded, every query head has its own K and V, whatever the file says.
  int64_t q = queryHeads(c);
  return {q, q, mla.qkNopeHeadDim + mla.qkRopeHeadDim, mla.vHeadDim};
}

LayerShape perLayerHeads(ImportContext &c, StringRef, int64_t layer) {
  auto at = [&](StringRef key) -> int64_t {
    auto heads = c.config.maybeIntegers(key, headRange);
    if (heads && layer < static_cast<int64_t>(heads->size()))
      return (*heads)[layer];
    c.config.failExpected(key, "one count per layer, " + Twine(c.model.layers) +
                                   " in all");
    return 1;
  };
  return uniform(at("num_query_heads"), at("num_kv_heads"),
                 c.config.integer("head_dim", headDimRange));
}

LayerShape blockConfigHeads(ImportContext &c, StringRef, int64_t layer) {
  int64_t q = queryHeads(c);
  const json::Object *block =
      (*c.config.find("block_configs")->getAsArray())[layer].getAsObject();
  std::optional<int64_t> group =
      block->getObject("attention")->getInteger("n_heads_in_group");
  if (!group || *group < 1 || q % *group) {
    c.config.fail("block_configs",
                  "element " + Twine(layer) +
                      " has no legal attention.n_heads_in_group, expected a "
                      "divisor of num_attention_heads " +
                      Twine(q));
    return {};
  }
  return uniform(q, q / *group, headDim(c));
}

LayerShape globalHeads(ImportContext &c, StringRef type, int64_t) {
  int64_t q = queryHeads(c);
  int64_t kv = kvHeadsUnder(c.config, "num_key_value_heads", q);
  if (type != "full_attention")
    return uniform(q, kv, headDim(c));
  // Layers that see all keys have wider heads, and fewer where K serves as V.
  if (c.config.boolean("attention_k_eq_v", false))
    kv = c.config.maybeInteger("num_global_key_value_heads", headRange)
             .value_or(kv);
  return uniform(q, kv, headDim(c, "global_head_dim"));
}

LayerShape attentionHeadDimHeads(ImportContext &c, StringRef, int64_t) {
  int64_t q = queryHeads(c);
  auto dim = c.config.maybeInteger("attention_head_dim", headDimRange);
  return uniform(q, kvHeadsUnder(c.config, "num_key_value_heads", q),
                 dim ? *dim : dimOfHidden(c, "attention_head_dim", 2));
}

double inverseSqrtHeadDim(ImportContext &c, const LayerShape &heads) {
  std::string text = "1/sqrt(head_dim)";
  for (const DefaultTaken &taken : c.config.importLog().defaults)
    if (taken.field == c.config.fieldName("head_dim") &&
        StringRef(taken.reason).contains("default of"))
      text += "; head_dim from class default " + taken.value;
  return rule(c, text, 1 / std::sqrt(heads.headDim));
}

double queryPreAttnScalar(ImportContext &c, const LayerShape &) {
  double scalar = c.config.number("query_pre_attn_scalar", 0);
  return rule(c, "query_pre_attn_scalar^-0.5", 1 / std::sqrt(scalar));
}

double attentionMultiplier(ImportContext &c, const LayerShape &heads) {
  if (auto multiplier = c.config.maybeNumber("attention_multiplier", 0))
    return rule(c, "attention_multiplier", *multiplier);
  return inverseSqrtHeadDim(c, heads);
}

/// `plain` names 1/sqrt(head_dim), which long contexts may sharpen.
static double sharpenedScale(ImportContext &c, const LayerShape &heads,
                             StringRef plain) {
  double scale = 1 / std::sqrt(heads.headDim);
  for (StringRef key : {"rope_parameters", "rope_scaling"}) {
    std::optional<ConfigReader> scaling = c.config.maybeObject(key);
    if (!scaling)
      continue;
    // Long contexts flatten the softmax; DeepSeek's models sharpen it again.
    double mscale = scaling->maybeNumber("mscale_all_dim", -1).value_or(0);
    if (mscale == 0)
      break;
    double factor = scaling->number("factor", 0);
    double sharpen = factor > 1 ? 0.1 * mscale * std::log(factor) + 1 : 1;
    return rule(c, (plain + " * (0.1*mscale_all_dim*ln(factor)+1)^2").str(),
                scale * sharpen * sharpen);
  }
  return rule(c, plain, scale);
}

double latentScale(ImportContext &c, const LayerShape &heads) {
  if (!c.model.mla)
    return inverseSqrtHeadDim(c, heads);
  return sharpenedScale(c, heads, "1/sqrt(qk_nope+qk_rope)");
}

double sharpenedHeadDimScale(ImportContext &c, const LayerShape &heads) {
  return sharpenedScale(c, heads, "1/sqrt(head_dim)");
}

double optionalAttnWeights(ImportContext &c, const LayerShape &heads) {
  c.model.scaleByLayer =
      c.config.boolean("scale_attn_by_inverse_layer_idx", false);
  double scale = c.config.boolean("scale_attn_weights", true)
                     ? inverseSqrtHeadDim(c, heads)
                     : unscaled(c, heads);
  if (c.model.scaleByLayer)
    c.model.scaleRule += " / (layer + 1)";
  return scale;
}

double attnConfigScale(ImportContext &c, const LayerShape &heads) {
  if (auto scale =
          c.config.subObject("attn_config").maybeNumber("softmax_scale", 0))
    return rule(c, "attn_config.softmax_scale", *scale);
  return inverseSqrtHeadDim(c, heads);
}

double halfHeadDim(ImportContext &c, const LayerShape &heads) {
  return rule(c, "1/sqrt(head_dim/2)", 1 / std::sqrt(heads.headDim / 2.0));
}

double jaisScale(ImportContext &c, const LayerShape &heads) {
  if (c.config.boolean("mup_scale_qk_dot_by_d", false) ||
      c.config.boolean("scale_qk_dot_by_d", false))
    return rule(c, "1/head_dim", 1.0 / heads.headDim);
  return inverseSqrtHeadDim(c, heads);
}

double unscaled(ImportContext &c, const LayerShape &) {
  return rule(c, "1", 1);
}

std::vector<float> alibiSlopes(int64_t heads, double maxBias) {
  std::vector<float> slopes;
  if (heads < 1)
    return slopes;
  int64_t power = std::bit_floor(static_cast<uint64_t>(heads));
  for (int64_t h = 0; h < power; ++h)
    slopes.push_back(std::exp2(-maxBias * (h + 1) / power));
  for (int64_t h = 0; h < heads - power; ++h)
    slopes.push_back(std::exp2(-maxBias * (2 * h + 1) / (2 * power)));
  return slopes;
}

/// What jais multiplies its slopes by for longer sequences.
static float jaisSlopeFactor(ImportContext &c) {
  std::optional<ConfigReader> scaling = c.config.maybeObject("alibi_scaling");
  if (!scaling)
    return 1;
  if (scaling->maybeString("type") != "linear")
    scaling->failExpected("type", "linear");
  if (auto factor = scaling->maybeNumber("factor", 1))
    return static_cast<float>(1 / *factor);
  int64_t trained = scaling->integer("train_seq_len", {2, positionRange.max});
  if (positionLimit(c) > trained)
    c.config.importLog().note("alibi_scaling: a sequence of n > " +
                              Twine(trained) + " keys takes the slopes times " +
                              Twine(trained) + " / n");
  return 1;
}

std::vector<float> modelAlibiSlopes(ImportContext &c, const LayerShape &heads) {
  if (c.family.alibi == Family::Never)
    return {};
  bool wanted = c.family.alibi == Family::Always;
  double maxBias = 8;
  float factor = 1;
  if (c.family.name == "mpt") {
    ConfigReader attention = c.config.subObject("attn_config");
    wanted = attention.boolean("alibi", false);
    if (wanted)
      maxBias = attention.number("alibi_bias_max", 0);
  } else if (c.family.name == "falcon") {
    wanted = c.config.boolean("alibi", false);
    // Falcon adds the bias before it scales the scores.
    factor = 1 / std::sqrt(static_cast<float>(heads.headDim));
  } else if (c.family.name == "baichuan") {
    // The 7B and 13B models share one class and no key tells them apart.
    wanted = c.config.coreInteger("hidden_size", widthRange) != 4096;
    c.config.importLog().note(wanted ? "baichuan with hidden_size other than "
                                       "4096: ALiBi, no rotation"
                                     : "baichuan with hidden_size 4096: "
                                       "rotation, no ALiBi");
  } else if (c.family.name == "jais") {
    wanted = c.config.maybeString("position_embedding_type") == "alibi";
    if (wanted)
      factor = jaisSlopeFactor(c);
  }
  if (!wanted)
    return {};
  std::vector<float> slopes = alibiSlopes(heads.qHeads, maxBias);
  for (float &slope : slopes)
    slope *= factor;
  return slopes;
}

} // namespace pagoda
