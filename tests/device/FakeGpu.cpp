//===- FakeGpu.cpp - Kernels for the fake CUDA driver ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/device/FakeGpu.h"

#include "compiler/emit/Emit.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace pagoda::device {

Expected<std::string> fakeCubin(const std::string &object) {
  SmallString<128> from, to;
  for (auto [path, suffix] : {std::pair(&from, "o"), {&to, "so"}})
    if (std::error_code code =
            sys::fs::createTemporaryFile("pagoda-fake", suffix, *path))
      return createStringError("temporary file: " + code.message());
  FileRemover removeFrom(from), removeTo(to);
  if (llvm::Error error = writeFile(from, object))
    return std::move(error);
  if (llvm::Error error = linkSharedLibrary(from, to))
    return std::move(error);
  auto linked = MemoryBuffer::getFile(to);
  if (!linked)
    return createStringError(to + ": cannot be read");
  return (*linked)->getBuffer().str();
}

Expected<Artifact> compileFake(const std::vector<AttentionSpec> &specs,
                               CompileOptions options) {
  options.emulate = true;
  Expected<Artifact> artifact = compile(specs, options);
  if (!artifact)
    return artifact.takeError();
  Expected<std::string> cubin = fakeCubin(artifact->object);
  if (!cubin)
    return cubin.takeError();
  artifact->cubin = std::move(*cubin);
  artifact->object.clear();
  return std::move(*artifact);
}

llvm::Error writeDeviceLibrary(const Artifact &artifact,
                               const std::string &path) {
  Expected<std::string> object = deviceLibraryObject(artifact);
  if (!object)
    return object.takeError();
  std::string objectPath = path + ".o";
  if (llvm::Error error = writeFile(objectPath, *object))
    return error;
  FileRemover remove(objectPath);
  return linkSharedLibrary(objectPath, path);
}

} // namespace pagoda::device
