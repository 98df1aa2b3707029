//===- Describe.h - Specifications in words ---------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels are for, in a line or as JSON.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_DESCRIBE_H
#define PAGODA_TOOLS_PAGODA_DESCRIBE_H

#include "compiler/import/ModelConfig.h"

namespace pagoda {

/// "28 layers, 0-27": how many, and which. Long lists are cut.
std::string describeLayers(const ModelConfig &model, llvm::StringRef specName);

/// "16 q heads, 8 kv heads, head dim 128, block 16 hnd, f32, causal".
std::string describe(const AttentionSpec &spec);

/// The shape of a kernel for --json.
llvm::json::Object toJson(const AttentionSpec &spec);

/// What the layers of `spec` do to scores and to q and k, a line for each
/// rotation: "scale 0.0884; rope theta 1000000". Without a model: the scale.
std::vector<std::string> describeValues(const AttentionSpec &spec,
                                        const ModelConfig *model);

/// "q heads 8-15 of 32, kv heads 2-3 of 8": what the model's rank holds.
std::string describeRank(const ModelConfig &model, const LayerKind &kind);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_DESCRIBE_H
