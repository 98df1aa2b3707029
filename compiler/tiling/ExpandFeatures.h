//===- ExpandFeatures.h - Attributes of attention to regions ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_EXPANDFEATURES_H
#define PAGODA_COMPILER_TILING_EXPANDFEATURES_H

#include "dialect/Dialect.h"

namespace pagoda {

/// Turns the sugar of `op` into regions, in place; records it in `features`.
void expandFeatures(AttentionOp op);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_EXPANDFEATURES_H
