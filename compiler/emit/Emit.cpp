//===- Emit.cpp - Files of an artifact ------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes what compilation gave: object, shared library, PTX. The header and the
// manifest are made in files of their own.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pagoda;

Error pagoda::writeFile(StringRef path, StringRef contents) {
  Error error = writeToOutput(path, [&](raw_ostream &stream) -> Error {
    stream << contents;
    stream.flush();
    // A full disk is found out here; unasked for, it would end the process.
    // Every stream of this function is one of a file.
    auto &file = static_cast<raw_fd_ostream &>(stream);
    std::error_code code = file.error();
    file.clear_error();
    return errorCodeToError(code);
  });
  if (!error)
    return Error::success();
  // Its own text names the path, too.
  return createStringError(path + ": " +
                           errorToErrorCode(std::move(error)).message());
}

Error pagoda::linkSharedLibrary(StringRef objectPath, StringRef libraryPath) {
  SmallVector<StringRef> beside{"/usr/lib/llvm-22/bin"};
  ErrorOr<std::string> linker = sys::findProgramByName("ld.lld-22");
  if (!linker)
    linker = sys::findProgramByName("ld.lld", beside);
  if (!linker)
    linker = sys::findProgramByName("ld.lld");
  if (!linker)
    return createStringError(libraryPath + ": needs ld.lld to link, which is "
                                           "not on the path (Debian: lld-22)");
  SmallString<128> name = sys::path::filename(libraryPath);
  std::string message;
  int status = sys::ExecuteAndWait(
      *linker,
      {*linker, "-shared", "--build-id=none", "-z", "noexecstack", "-soname",
       name, "-o", libraryPath, objectPath},
      /*Env=*/std::nullopt, /*Redirects=*/{},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status == 0)
    return Error::success();
  return createStringError(formatv("{0}: ld.lld failed with status {1}{2}{3}",
                                   libraryPath, status,
                                   message.empty() ? "" : ": ", message)
                               .str());
}

Error pagoda::emitArtifact(const Artifact &artifact,
                           const Provenance &provenance, StringRef dir,
                           StringRef baseName) {
  if (std::error_code code = sys::fs::create_directories(dir))
    return createStringError(dir + ": " + code.message());
  auto path = [&](const Twine &name) {
    SmallString<128> result(dir);
    sys::path::append(result, name);
    return std::string(result);
  };
  auto library = [&](StringRef code) -> Error {
    std::string object = path(baseName + ".o");
    if (Error error = writeFile(object, code))
      return error;
    return linkSharedLibrary(object, path("lib" + baseName + ".so"));
  };
  if (!artifact.object.empty()) {
    if (Error error = library(artifact.object))
      return error;
    if (Error error =
            writeFile(path(baseName + ".h"), headerText(artifact, baseName)))
      return error;
  }
  if (!artifact.ptx.empty()) {
    if (Error error = writeFile(path(baseName + ".ptx"), artifact.ptx))
      return error;
    Expected<std::string> object = deviceLibraryObject(artifact);
    if (!object)
      return object.takeError();
    if (Error error = library(*object))
      return error;
  }
  if (!artifact.cubin.empty())
    if (Error error = writeFile(path(baseName + ".cubin"), artifact.cubin))
      return error;
  std::string text = formatv("{0:2}\n", manifest(artifact, provenance)).str();
  return writeFile(path(baseName + ".json"), text);
}
