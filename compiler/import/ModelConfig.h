//===- ModelConfig.h - A model's attention, from its config.json -*- C++
//-*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that a model's config.json says about attention, in one shape for
// all model families, and one AttentionSpec per distinct kind of layer. The
// rules of the families are in Families.cpp; building attention IR from a spec
// is BuildAttention's work.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_MODELCONFIG_H
#define PAGODA_COMPILER_IMPORT_MODELCONFIG_H

#include "compiler/import/AttentionSpec.h"
#include "compiler/import/Rope.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagoda {

struct ImportOptions {
  /// Ranks that share every layer's heads (tensor parallelism), 1 or more.
  int64_t tensorParallel = 1;
  /// Which of them the specs are for, 0 .. tensorParallel - 1. Only ALiBi
  /// slopes differ between ranks.
  int64_t tensorParallelRank = 0;
};

/// A value that config.json does not give.
struct DefaultTaken {
  std::string field;  ///< as config.json would spell it
  std::string value;  ///< JSON text, cut where it is long
  std::string reason; ///< for example "absent; default of gemma3_text"
};

/// Multi-head latent attention: K and V are projections of one narrow row.
struct MlaConfig {
  int64_t kvLoraRank = 0;    ///< dims of the latent
  int64_t qkNopeHeadDim = 0; ///< dims of a head of q and k without RoPE
  int64_t qkRopeHeadDim = 0; ///< dims of a head of q and k with RoPE
  int64_t vHeadDim = 0;
  int64_t qLoraRank = 0; ///< 0: q is not compressed

  /// Elements per token and layer of the latent cache: kvLoraRank latent dims
  /// and qkRopeHeadDim dims of the rotated key that all heads share.
  int64_t cacheRow() const { return kvLoraRank + qkRopeHeadDim; }
};

/// Layers that are the same to an attention kernel.
struct LayerKind {
  /// What transformers calls it in `layer_types`: "full_attention",
  /// "sliding_attention", "chunked_attention", "linear_attention", "mamba", …
  /// Unique in its model: where layers of one type differ in shape, the shape
  /// is part of the name, as in "full_attention/16x4x64".
  std::string name;
  std::vector<int64_t> layers; ///< ascending, from 0
  /// False: the layers keep no K and V rows (linear attention, mamba, plain
  /// feed-forward); the fields below mean nothing then.
  bool hasKvCache = false;
  int64_t qHeads = 0;  ///< of the whole model, before tensor parallelism
  int64_t kvHeads = 0; ///< of the whole model, before tensor parallelism
  /// Of one rank. Data types are the model's; block size and layout are the
  /// defaults of AttentionSpec. MLA models: the expanded form.
  AttentionSpec spec;
  RopeConfig rope;
};

struct ModelConfig {
  std::string fileName;  ///< as in diagnostics
  std::string modelType; ///< the language model's, for example "gemma3_text"
  std::string family; ///< of the rules that were applied, for example "gemma3"
  /// Key of the sub-object that describes the language model, for example
  /// "text_config"; empty: the whole file does.
  std::string section;

  int64_t layers = 0;
  std::vector<LayerKind> kinds; ///< in order of their first layer

  double scale = 0; ///< softmax scale
  std::string
      scaleRule; ///< where it comes from, for example "attention_multiplier"
  /// Layer i (from 0) uses scale / (i + 1); the specs hold `scale`.
  bool scaleByLayer = false;
  std::vector<float>
      alibiSlopes; ///< one per q head of the whole model, or none
  std::optional<MlaConfig> mla;

  DType dtype = DType::F32; ///< of weights and activations
  /// Longest sequence that the file promises; 0: it gives no limit (ALiBi, no
  /// positions at all).
  int64_t maxLength = 0;

  /// Layers whose q and k are not rotated although their kind's rope says so.
  std::vector<int64_t> noRopeLayers;
  /// kvSource[i]: the layer whose K and V layer i reads; i itself unless the
  /// model shares caches between layers; -1 where there is no KV cache.
  std::vector<int64_t> kvSource;

  int64_t tensorParallel = 1;
  int64_t tensorParallelRank = 0; ///< whose heads' ALiBi slopes the specs have
  int64_t kvReplicas = 1;         ///< ranks that hold the same KV head, at most

  std::vector<DefaultTaken> defaults; ///< in the order they were looked up
  std::vector<std::string> notes;     ///< for a person: what is special here

  /// One spec per distinct kernel: kinds with a KV cache, those that differ in
  /// nothing but their name listed once. Empty for models without attention.
  std::vector<AttentionSpec> specs() const;

  /// The kinds whose layers call the kernels of the spec called `specName`:
  /// that of this name, and those that differ in nothing but their name.
  std::vector<const LayerKind *> kindsServedBy(llvm::StringRef specName) const;

  /// `kind`'s spec in the latent form of MLA: every query head attends to the
  /// one cached row. kvHeads 1, headDim mla->cacheRow(), vHeadDim
  /// mla->kvLoraRank; V is the first kvLoraRank elements of K. Only for models
  /// with `mla`.
  AttentionSpec latentSpec(const LayerKind &kind) const;

  /// The kind that layer `index` is of.
  const LayerKind &kindOf(int64_t index) const;

  /// Elements of K and V that one token takes in all layers of one rank, caches
  /// shared by layers counted once, MLA in the form named.
  int64_t kvElementsPerToken(bool latent = false) const;

  /// Everything above, for `--json`. Heads at the top level are the whole
  /// model's; those in "specs" are one rank's.
  llvm::json::Value toJson() const;
};

/// Whether one kernel, called with one set of numbers, serves both: all but the
/// name is equal.
bool sameKernel(const AttentionSpec &a, const AttentionSpec &b);

/// Reads the text of a config.json. `fileName` only names it in diagnostics.
/// The error is one line, `<file>: <field>: <what>`, with the value found and
/// what was expected. No input crashes it.
llvm::Expected<ModelConfig> parseModelConfig(llvm::StringRef json,
                                             llvm::StringRef fileName,
                                             const ImportOptions &options = {});

/// The same for a file of at most maxConfigBytes.
llvm::Expected<ModelConfig> loadModelConfig(llvm::StringRef path,
                                            const ImportOptions &options = {});

/// Larger files are refused unread: a config.json has a few kilobytes.
inline constexpr int64_t maxConfigBytes = 16 << 20;

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_MODELCONFIG_H
