//===- IrMutator.h - Damaged IR from a seed ---------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes one of the modules in a folder of tests and changes words, numbers and
// lines of it, so that most inputs are nearly right.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_PIPELINE_IRMUTATOR_H
#define PAGODA_TESTS_UNIT_PIPELINE_IRMUTATOR_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda {

class IrMutator {
public:
  /// Reads every .mlir file below `folder`; a file may hold several modules,
  /// separated by lines of `// -----`. Comments are dropped. Modules of which
  /// an error is expected only lend words and lines to others.
  explicit IrMutator(llvm::StringRef folder);

  size_t seeds() const { return valid.size(); }
  /// The same folder and number give the same text. One in eight is a module
  /// as it is.
  std::string input(uint64_t number) const;

private:
  std::vector<std::string> all, valid;
};

} // namespace pagoda

#endif // PAGODA_TESTS_UNIT_PIPELINE_IRMUTATOR_H
