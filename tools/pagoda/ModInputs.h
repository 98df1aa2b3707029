//===- ModInputs.h - A user's mods and the tensors they read ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `pagoda run --mods` needs beyond the kernels: the auxiliary tensors from
// a safetensors file, and the functions' meaning for the reference.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_MODINPUTS_H
#define PAGODA_TOOLS_PAGODA_MODINPUTS_H

#include "compiler/import/ModEvaluator.h"
#include "tests/reference/Attention.h"
#include "tools/pagoda/Safetensors.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace pagoda {

class ModInputs {
public:
  /// Parses `text`, which came from `path`, and takes the tensors that it names
  /// from the file `tensors` (empty: there is none). Errors name the file, the
  /// tensor and what does not fit.
  static llvm::Expected<std::unique_ptr<ModInputs>>
  read(llvm::StringRef text, llvm::StringRef path, llvm::StringRef tensors);

  uint64_t hash() const { return evaluator->hash(); }
  /// Sets args.aux.
  void attach(pagoda_attention_args &args) const;
  /// Tells the reference what the functions mean.
  void attach(reference::Problem &problem) const;

private:
  std::unique_ptr<ModEvaluator> evaluator;
  std::vector<pagoda_aux_tensor> aux;
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<int32_t>> integers;
};

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_MODINPUTS_H
