//===- BuildAttention.h - Specification to attention IR ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_BUILDATTENTION_H
#define PAGODA_COMPILER_IMPORT_BUILDATTENTION_H

#include "compiler/import/AttentionSpec.h"

#include "mlir/IR/BuiltinOps.h"

namespace pagoda {

struct Mods;

/// Whether the cache of `spec` has 8-bit elements, which come with scales.
bool hasNarrowCache(const AttentionSpec &spec);

/// Appends to `module` a function @name with one pagoda.attention that computes
/// `spec`. Features are attributes and operands of the op, not yet regions;
/// `mods`, if any, are its regions.
void buildAttention(mlir::ModuleOp module, const AttentionSpec &spec,
                    llvm::StringRef name, const Mods *mods = nullptr);

/// Appends a function @name with one pagoda.append_kv that writes new keys and
/// values of `spec`, in its q type, to its cache. Keys rotate as `spec` says.
/// Caches of 8-bit elements are not for it: appending to them needs scales.
void buildAppend(mlir::ModuleOp module, const AttentionSpec &spec,
                 llvm::StringRef name);

/// Appends a function @name with one pagoda.copy_blocks in `spec`'s cache.
void buildCopy(mlir::ModuleOp module, const AttentionSpec &spec,
               llvm::StringRef name);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_BUILDATTENTION_H
