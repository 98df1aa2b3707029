//===- OrderBytes.h - What each loop order moves ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_ORDERBYTES_H
#define PAGODA_COMPILER_TILING_ORDERBYTES_H

#include "compiler/tiling/Roofline.h"

namespace pagoda {

/// Bytes between a query tile's fast memory and what lies beyond, one sequence,
/// one layer, by the formulas of compiler/tiling/README.md ("How attention got
/// fast") for the keys that a tile really visits. `splits`: runs that split_kv
/// cuts the keys of a query into, at least 1.
double orderBytes(const AttentionSpec &spec, const Schedule &schedule,
                  const SequenceWork &work, int64_t splits = 1);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_ORDERBYTES_H
