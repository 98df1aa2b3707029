//===- TestConfigs.h - Short ways to import in tests ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Importing a text that must be legal, and one that must be refused.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_IMPORT_TESTCONFIGS_H
#define PAGODA_TESTS_UNIT_IMPORT_TESTCONFIGS_H

#include "compiler/import/ModelConfig.h"

#include "gtest/gtest.h"

namespace pagoda {

/// The import of a legal text; a fault fails the test and gives an empty model.
inline ModelConfig importText(llvm::StringRef text,
                              const ImportOptions &options = {}) {
  llvm::Expected<ModelConfig> model =
      parseModelConfig(text, "config.json", options);
  if (model)
    return std::move(*model);
  ADD_FAILURE() << llvm::toString(model.takeError()) << "\nin " << text.str();
  return {};
}

/// The diagnostic of an illegal text; a success fails the test.
inline std::string refusal(llvm::StringRef text,
                           const ImportOptions &options = {}) {
  llvm::Expected<ModelConfig> model =
      parseModelConfig(text, "config.json", options);
  if (!model)
    return llvm::toString(model.takeError());
  ADD_FAILURE() << "imported without a diagnostic: " << text.str();
  return "";
}

/// How many layers of each kind, as in "full_attention:12 mamba:4", in the
/// order of their first layer.
inline std::string kindCounts(const ModelConfig &model) {
  std::string out;
  for (const LayerKind &kind : model.kinds)
    out += (out.empty() ? "" : " ") + kind.name + ":" +
           std::to_string(kind.layers.size());
  return out;
}

/// The kind of that name; a model without it fails the test.
inline const LayerKind &kindNamed(const ModelConfig &model,
                                  llvm::StringRef name) {
  static const LayerKind none;
  for (const LayerKind &kind : model.kinds)
    if (kind.name == name)
      return kind;
  ADD_FAILURE() << "no layers of kind " << name.str();
  return none;
}

} // namespace pagoda

#endif // PAGODA_TESTS_UNIT_IMPORT_TESTCONFIGS_H
