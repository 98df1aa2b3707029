//===- Emit.h - Files of an artifact ----------------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per format. Errors name the file.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_EMIT_EMIT_H
#define PAGODA_COMPILER_EMIT_EMIT_H

#include "compiler/Driver.h"
#include "compiler/import/ModelConfig.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

namespace pagoda {

/// Writes `contents` to `path`, whole or not at all.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef contents);

/// Links an object file into a shared library with ld.lld, whatever machine it
/// is for.
llvm::Error linkSharedLibrary(llvm::StringRef objectPath,
                              llvm::StringRef libraryPath);

/// An object file for this machine with what the runtime needs of kernels for
/// a GPU: the library's table and the artifact's cubin and PTX, as `image`.
llvm::Expected<std::string> deviceLibraryObject(const Artifact &artifact);

/// A C header that declares the library's table and lists its kernels.
std::string headerText(const Artifact &artifact, llvm::StringRef baseName);

/// What kernels are for, beyond the artifact itself.
struct Provenance {
  llvm::ArrayRef<AttentionSpec> specs;
  const ModelConfig *model = nullptr;  ///< null: shapes without a model
  llvm::ArrayRef<std::string> notes{}; ///< for a person: what was decided
};

/// Everything that a caller needs to know about the kernels: what each was
/// built for, its schedule and the steps that led to it, the layers that use
/// it, their rotation, and the values to pass at run time.
llvm::json::Value manifest(const Artifact &artifact,
                           const Provenance &provenance);

/// Writes all files of an artifact into `dir`, which is made: CPU targets
/// baseName.o, libbaseName.so, baseName.h; NVIDIA targets baseName.ptx,
/// once assembled, baseName.cubin, and libbaseName.so with both for the
/// runtime; and baseName.json, the manifest.
llvm::Error emitArtifact(const Artifact &artifact, const Provenance &provenance,
                         llvm::StringRef dir, llvm::StringRef baseName);

} // namespace pagoda

#endif // PAGODA_COMPILER_EMIT_EMIT_H
