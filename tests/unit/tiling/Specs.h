//===- Specs.h - Specifications that the tiling tests share ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_TILING_SPECS_H
#define PAGODA_TESTS_UNIT_TILING_SPECS_H

#include "compiler/tiling/Schedule.h"

#include <string>

namespace pagoda::test {

inline AttentionSpec spec(int64_t qHeads, int64_t kvHeads, int64_t headDim,
                          DType type = DType::F32) {
  AttentionSpec spec;
  spec.qHeads = qHeads;
  spec.kvHeads = kvHeads;
  spec.headDim = spec.vHeadDim = headDim;
  spec.qType = spec.kvType = type;
  return spec;
}

inline Machine machine(llvm::StringRef name) {
  return llvm::cantFail(Machine::named(name));
}

/// The text of an error; empty for success.
inline std::string text(llvm::Error error) {
  return llvm::toString(std::move(error));
}

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_TILING_SPECS_H
