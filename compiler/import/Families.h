//===- Families.h - What is special about each model family -----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A family is a row of a table: the `model_type`s it serves, what its
// configuration class holds for absent keys, and one rule per question (which
// kind is each layer, how many heads of what size, which scale, which
// rotation). A new family is a new row; a new rule is a function beside the
// others.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_FAMILIES_H
#define PAGODA_COMPILER_IMPORT_FAMILIES_H

#include "compiler/import/ConfigReader.h"

namespace pagoda {

struct Family;

/// What rules read and write.
struct ImportContext {
  ConfigReader &config;
  const Family &family;
  ModelConfig &model; ///< `layers` is set before any rule runs
};

/// The heads of one layer.
struct LayerShape {
  int64_t qHeads = 1, kvHeads = 1, headDim = 1, vHeadDim = 1;

  bool operator==(const LayerShape &) const = default;
};

/// The kind of each layer, by the names of `layer_types`.
using LayerTypesRule = std::vector<std::string> (*)(ImportContext &);
/// The heads of layer `layer`, which is of kind `type`.
using HeadsRule = LayerShape (*)(ImportContext &, llvm::StringRef type,
                                 int64_t layer);
/// The softmax scale; says in model.scaleRule where it comes from.
using ScaleRule = double (*)(ImportContext &, const LayerShape &);
/// The rotation in layers of kind `type`.
using RopeRule = RopeConfig (*)(ImportContext &, llvm::StringRef type,
                                const LayerShape &);

// Rules for layers (LayerRules.cpp). All but fullLayers obey `layer_types`
// where the file has it; fullLayers does, too, since many newer classes read
// that key.
std::vector<std::string> fullLayers(ImportContext &);
std::vector<std::string> windowedLayers(ImportContext &);
std::vector<std::string> windowedIfUsed(ImportContext &);
std::vector<std::string> windowFromMaxWindowLayers(ImportContext &);
std::vector<std::string> windowFromMaxWindowLayersIfUsed(ImportContext &);
std::vector<std::string> evenLayersWindowedIfUsed(ImportContext &);
std::vector<std::string> windowedWhereUnrotated(ImportContext &);
std::vector<std::string> everyNthLayerFull(ImportContext &);
std::vector<std::string> firstOfEveryNLayersFull(ImportContext &);
std::vector<std::string> chunkedWhereRotated(ImportContext &);
std::vector<std::string> linearUnlessNth(ImportContext &);
std::vector<std::string> mambaUnlessPeriod(ImportContext &);
std::vector<std::string> mambaUnlessListed(ImportContext &);
std::vector<std::string> mambaUnlessNamed(ImportContext &);
std::vector<std::string> convUnlessListed(ImportContext &);
std::vector<std::string> hybridPattern(ImportContext &);
std::vector<std::string> recurrentBlocks(ImportContext &);
std::vector<std::string> gptNeoLayers(ImportContext &);
std::vector<std::string> crossAttentionLayers(ImportContext &);
std::vector<std::string> attentionTypeList(ImportContext &);
std::vector<std::string> kimiLinearLayers(ImportContext &);
std::vector<std::string> blockConfigLayers(ImportContext &);
std::vector<std::string> mambaOnly(ImportContext &);
std::vector<std::string> hybridOnly(ImportContext &);

/// A kind of layer, and whether its layers keep K and V rows.
struct KnownLayerType {
  llvm::StringLiteral name;
  bool hasKvCache;
};
/// All kinds that the rules above name; `layer_types` may hold no other.
llvm::ArrayRef<KnownLayerType> knownLayerTypes();
/// Of a known kind; nothing for any other.
std::optional<bool> layerTypeHasKvCache(llvm::StringRef type);
/// Layers without rotation, from `no_rope_layers`.
std::vector<int64_t> unrotatedLayers(ImportContext &);
/// kvSource of a model whose layers have these kinds.
std::vector<int64_t> sharedKvSources(ImportContext &,
                                     llvm::ArrayRef<std::string> types);

// Rules for heads (HeadRules.cpp).
LayerShape groupedHeads(ImportContext &, llvm::StringRef type, int64_t layer);
LayerShape falconHeads(ImportContext &, llvm::StringRef type, int64_t layer);
LayerShape multiQueryHeads(ImportContext &, llvm::StringRef type,
                           int64_t layer);
LayerShape chatGlmHeads(ImportContext &, llvm::StringRef type, int64_t layer);
LayerShape attnConfigHeads(ImportContext &, llvm::StringRef type,
                           int64_t layer);
LayerShape latentHeads(ImportContext &, llvm::StringRef type, int64_t layer);
LayerShape perLayerHeads(ImportContext &, llvm::StringRef type, int64_t layer);
LayerShape blockConfigHeads(ImportContext &, llvm::StringRef type,
                            int64_t layer);
LayerShape globalHeads(ImportContext &, llvm::StringRef type, int64_t layer);
LayerShape attentionHeadDimHeads(ImportContext &, llvm::StringRef type,
                                 int64_t layer);

// Rules for the scale (HeadRules.cpp).
double inverseSqrtHeadDim(ImportContext &, const LayerShape &);
double queryPreAttnScalar(ImportContext &, const LayerShape &);
double attentionMultiplier(ImportContext &, const LayerShape &);
double latentScale(ImportContext &, const LayerShape &);
double sharpenedHeadDimScale(ImportContext &, const LayerShape &);
double optionalAttnWeights(ImportContext &, const LayerShape &);
double attnConfigScale(ImportContext &, const LayerShape &);
double halfHeadDim(ImportContext &, const LayerShape &);
double jaisScale(ImportContext &, const LayerShape &);
double unscaled(ImportContext &, const LayerShape &);

// Rules for the rotation (RopeRules.cpp).
RopeConfig noRope(ImportContext &, llvm::StringRef type, const LayerShape &);
RopeConfig neoxRope(ImportContext &, llvm::StringRef type, const LayerShape &);
RopeConfig interleavedRope(ImportContext &, llvm::StringRef type,
                           const LayerShape &);
RopeConfig latentRope(ImportContext &, llvm::StringRef type,
                      const LayerShape &);
RopeConfig latentNeoxRope(ImportContext &, llvm::StringRef type,
                          const LayerShape &);
RopeConfig localThetaRope(ImportContext &, llvm::StringRef type,
                          const LayerShape &);
RopeConfig scaledFullRope(ImportContext &, llvm::StringRef type,
                          const LayerShape &);
RopeConfig windowOnlyRope(ImportContext &, llvm::StringRef type,
                          const LayerShape &);
RopeConfig windowOnlyNeoxRope(ImportContext &, llvm::StringRef type,
                              const LayerShape &);
RopeConfig chatGlmRope(ImportContext &, llvm::StringRef type,
                       const LayerShape &);
RopeConfig positionTypeRope(ImportContext &, llvm::StringRef type,
                            const LayerShape &);
RopeConfig attnConfigRope(ImportContext &, llvm::StringRef type,
                          const LayerShape &);
RopeConfig unlessAlibiRope(ImportContext &, llvm::StringRef type,
                           const LayerShape &);
RopeConfig ropeUnlessNull(ImportContext &, llvm::StringRef type,
                          const LayerShape &);
RopeConfig rotaryObjectRope(ImportContext &, llvm::StringRef type,
                            const LayerShape &);
RopeConfig memRope(ImportContext &, llvm::StringRef type, const LayerShape &);

struct Family {
  llvm::StringLiteral name;
  /// Values of `model_type`, separated by spaces.
  llvm::StringLiteral modelTypes;
  /// A JSON object: what the configuration class holds for absent keys. Keys
  /// that it derives from others (one KV head per query head, head_dim from
  /// hidden_size) are not in it.
  llvm::StringLiteral defaults = "{}";
  LayerTypesRule layerTypes = fullLayers;
  HeadsRule heads = groupedHeads;
  ScaleRule scale = inverseSqrtHeadDim;
  RopeRule rope = neoxRope;
  /// Keys `alibi`, `position_embedding_type` or the size of the model decide
  /// unless the family always has it.
  enum { Never, Always, ByKey } alibi = Never;
  bool sinks = false;
  /// For a person; empty: nothing to add.
  llvm::StringLiteral note = "";
};

/// The table in three parts: families whose layers all attend, with llama's
/// shape or with GPT's, and the others.
llvm::ArrayRef<Family> attentionFamilies();
llvm::ArrayRef<Family> gptFamilies();
llvm::ArrayRef<Family> hybridFamilies();
/// The family of a `model_type`; null: unknown.
const Family *findFamily(llvm::StringRef modelType);
/// All values of `model_type` that have a family.
std::vector<llvm::StringRef> knownModelTypes();

/// Why models of this known type have no place here ("an encoder without a KV
/// cache", …); empty for all others.
llvm::StringRef refusalOf(llvm::StringRef modelType);

/// The language model's `model_type` in a multimodal model whose file leaves it
/// out; empty: unknown wrapper.
llvm::StringRef wrappedModelType(llvm::StringRef modelType);

/// Positions that the model was made for; 0: the file sets no limit.
int64_t positionLimit(ImportContext &);

/// ALiBi slopes for `heads` heads, as released models compute them: for a power
/// of two n, head h (from 0) gets 2^(-maxBias * (h + 1) / n). Other counts take
/// the slopes of the next lower power of two n, and then every second slope of
/// 2n. `maxBias` is 8 in the paper (Press et al., "Train Short, Test Long",
/// 2022).
std::vector<float> alibiSlopes(int64_t heads, double maxBias = 8);

/// ALiBi slopes of the model, one per query head; empty: it has none.
std::vector<float> modelAlibiSlopes(ImportContext &, const LayerShape &);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_FAMILIES_H
