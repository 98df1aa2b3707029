//===- ModEvaluator.h - Evaluates mask and score functions ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a user's mask and score functions mean, for one score at a time: floats
// in f64, i32 with wrap-around. The reference that generated kernels with mods
// are compared with.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_MODEVALUATOR_H
#define PAGODA_COMPILER_IMPORT_MODEVALUATOR_H

#include "compiler/import/AuxTensor.h"
#include "runtime/include/pagoda/kernel_abi.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace pagoda {

class ModEvaluator {
public:
  /// Parses `text` (import/Mods.h); an error holds the diagnostics. `file`
  /// names it in them.
  static llvm::Expected<std::unique_ptr<ModEvaluator>>
  create(llvm::StringRef text, llvm::StringRef file);
  ~ModEvaluator();

  /// The auxiliary tensors that are expected, in order.
  const std::vector<AuxTensor> &aux() const;
  uint64_t hash() const;
  /// The tensors to read: one for each of aux(), kept by the caller.
  void bind(const pagoda_aux_tensor *tensors) { this->tensors = tensors; }

  /// Whether the query sees the key; true without a mask function.
  bool mask(int64_t seq, int64_t head, int64_t qPos, int64_t kvPos) const;
  /// The score to use; `score` itself without a score function.
  double score(double score, int64_t seq, int64_t head, int64_t qPos,
               int64_t kvPos) const;

private:
  ModEvaluator();

  struct State; // hides MLIR
  std::unique_ptr<State> state;
  const pagoda_aux_tensor *tensors = nullptr;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_MODEVALUATOR_H
