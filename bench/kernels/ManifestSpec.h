//===- ManifestSpec.h - What a generated library was made for ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The specifications in the manifest that `pagoda gen` writes beside a library:
// what the library itself does not say are the values of run-time arguments.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_KERNELS_MANIFESTSPEC_H
#define PAGODA_BENCH_KERNELS_MANIFESTSPEC_H

#include "compiler/import/AttentionSpec.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace pagoda {

/// Where the manifest of a library lies: out/qwen3.json for out/libqwen3.so.
std::string manifestPath(llvm::StringRef library);

/// The specifications of the manifest at `path`, at least one. Errors name the
/// file and the field.
llvm::Expected<std::vector<AttentionSpec>>
readManifestSpecs(llvm::StringRef path);

} // namespace pagoda

#endif // PAGODA_BENCH_KERNELS_MANIFESTSPEC_H
