//===- PublishedShapes.h - Files as models are published with ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_IMPORT_PUBLISHEDSHAPES_H
#define PAGODA_TESTS_UNIT_IMPORT_PUBLISHEDSHAPES_H

#include "compiler/import/ModelConfig.h"

#include <string>
#include <vector>

namespace pagoda::test {

/// One kind of layers in one line:
///
///   full_attention 28: 16x8x128/128 scale 0.0883883 window 4096, default 10000
///   128
///
/// name and layers; q heads, KV heads, head dims of k and v; the features that
/// are there; kind, base and dims (+ offset) of the rotation, and "pairs" where
/// neighbours form one.
std::string describe(const LayerKind &kind);

/// A config.json and the kinds of layers it means, as describe() writes them.
struct PublishedShape {
  const char *name, *json;
  std::vector<std::string> kinds;
};

/// Shapes beyond those of tools/configs: nested and flat, older spellings, null
/// fields, lists per layer, hybrids. What they mean was checked against the
/// configuration and modeling classes of each model.
const std::vector<PublishedShape> &publishedShapes();

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_IMPORT_PUBLISHEDSHAPES_H
