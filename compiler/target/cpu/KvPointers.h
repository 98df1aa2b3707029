//===- KvPointers.h - Pointers to the rows of a KV tile ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_KVPOINTERS_H
#define PAGODA_COMPILER_TARGET_CPU_KVPOINTERS_H

#include "compiler/target/cpu/TileEmitter.h"

namespace pagoda {

/// Stores a pointer to each key or value of the tile that begins at key `j`
/// (i32), and to each of those that the schedule prefetches meanwhile. Keys
/// from `limit` (i32) on do not exist; null: all of the tile do.
KvRows pointToRows(KernelContext &context, KvPart part, Value j, Value limit);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_KVPOINTERS_H
