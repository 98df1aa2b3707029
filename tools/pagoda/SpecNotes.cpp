//===- SpecNotes.cpp - What a person should know of kernels ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Notes on a specification: what the caller does, what a rank or a GPU makes
// different.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Describe.h"
#include "tools/pagoda/SpecOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace pagoda {

namespace {

/// What is one rank's, and what each rank passes for itself.
void addRankNotes(Specification &result) {
  const ModelConfig &model = *result.model;
  result.notes.push_back(
      formatv("kernels are those of one of {0} ranks; a KV head is held by "
              "{1} of them",
              model.tensorParallel, model.kvReplicas));
  bool alibi = false, sinks = false;
  for (const LayerKind &kind : model.kinds) {
    if (!kind.hasKvCache)
      continue;
    std::string note = formatv("rank {0} has {1}", model.tensorParallelRank,
                               describeRank(model, kind));
    if (!is_contained(result.notes, note))
      result.notes.push_back(note);
    alibi |= !kind.spec.alibiSlopes.empty();
    sinks |= kind.spec.sinks;
  }
  if (alibi)
    result.notes.push_back(
        formatv("alibi_slopes are those of rank {0}; --tp-rank gives those of "
                "the others",
                model.tensorParallelRank));
  if (sinks)
    result.notes.push_back("each rank passes the sinks of its own q heads");
  if (!result.compile.mods.empty())
    result.notes.push_back("the functions count heads from 0 in each "
                           "rank: it passes the tensors of its own heads");
}

/// What a person should know about the model's kernels.
void addModelNotes(Specification &result) {
  const ModelConfig &model = *result.model;
  for (const LayerKind &kind : model.kinds)
    if (!kind.hasKvCache)
      result.notes.push_back(
          formatv("{0}: {1} no KV cache and no kernel", kind.name,
                  kind.layers.size() == 1
                      ? std::string("1 layer has")
                      : std::to_string(kind.layers.size()) + " layers have"));
  if (model.mla)
    result.notes.push_back(formatv(
        "kernels are of the expanded form of latent attention: {0} elements "
        "a token and rank in all layers, {1} in the latent form",
        model.kvElementsPerToken(), model.kvElementsPerToken(true)));
  if (model.tensorParallel > 1)
    addRankNotes(result);
  llvm::append_range(result.notes, model.notes);
}

/// The one attention kernel of a GPU, which a newcomer may miss another beside.
void addGpuNotes(Specification &result) {
  const Machine &machine = result.compile.machine;
  if (machine.kind != TargetKind::Nvidia)
    return;
  result.notes.push_back("on " + machine.name +
                         " the prefill kernel decodes, too: there is no "
                         "decode kernel");
  if (result.compile.decodeTokens > 1)
    result.notes.push_back(formatv(
        "--decode-tokens {0} changes nothing on {1}, whose kernel takes "
        "any number of query tokens",
        result.compile.decodeTokens, machine.name));
}

} // namespace

void addNotes(Specification &specification) {
  if (specification.model)
    addModelNotes(specification);
  addGpuNotes(specification);
}

} // namespace pagoda
