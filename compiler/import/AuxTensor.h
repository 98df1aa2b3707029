//===- AuxTensor.h - A tensor that mask and score functions read *- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain data, for code that knows no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_AUXTENSOR_H
#define PAGODA_COMPILER_IMPORT_AUXTENSOR_H

#include <cstdint>
#include <string>

namespace pagoda {

/// Entry i of pagoda_attention_args.aux.
struct AuxTensor {
  std::string name;
  bool isFloat = true; ///< f32, else i32
  int64_t rank = 1;    ///< 1 to 4

  bool operator==(const AuxTensor &) const = default;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_AUXTENSOR_H
