//===- SpecOptions.h - What to compile, from the command line ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options that say which kernels a subcommand is about: a model's
// config.json or shapes one by one, the machine, the schedule.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_SPECOPTIONS_H
#define PAGODA_TOOLS_PAGODA_SPECOPTIONS_H

#include "compiler/emit/Emit.h"
#include "compiler/import/ModelConfig.h"

#include <optional>

namespace pagoda {

/// Shapes that something other than the options has settled already, a file of
/// tensors for one. 0: not settled.
struct KnownShape {
  std::string source; ///< for messages, for example the file
  int64_t qHeads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t vHeadDim = 0;
};

struct Specification {
  std::vector<AttentionSpec> specs; ///< one per kernel, at least one
  std::optional<ModelConfig> model; ///< with --config
  /// Layers of the model that each spec serves; 1 without --config.
  std::vector<int64_t> layers;
  CompileOptions compile;
  /// For a person: what was decided that the options and the config leave open.
  std::vector<std::string> notes;
  size_t recordNotes = 0; ///< the last ones, which are about tuning records
};

/// Reads --config or the shape options, --target, --schedule and --name. Errors
/// name the option at fault, its value and what was expected.
llvm::Expected<Specification> readSpecification(const KnownShape &known = {});

/// Appends what a person should know of the kernels.
void addNotes(Specification &specification);

/// Whether options say which kernels: --config or --heads.
bool namesSpecification();

/// What the manifest says of where kernels come from; refers to
/// `specification`.
Provenance provenanceOf(const Specification &specification);

/// An error naming the first shape in which `spec` and `known` differ.
llvm::Error checkAgainst(const AttentionSpec &spec, const KnownShape &known);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_SPECOPTIONS_H
