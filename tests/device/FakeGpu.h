//===- FakeGpu.h - Kernels for the fake CUDA driver -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_FAKEGPU_H
#define PAGODA_TESTS_DEVICE_FAKEGPU_H

#include "compiler/Driver.h"

namespace pagoda::device {

/// `object` (host code for the emulator) as what the fake driver takes for a
/// cubin.
llvm::Expected<std::string> fakeCubin(const std::string &object);

/// Compiles `specs` for the emulator, with a fake cubin in place of PTX.
llvm::Expected<Artifact> compileFake(const std::vector<AttentionSpec> &specs,
                                     CompileOptions options);

/// Writes an artifact for a GPU, fake or not, as the library that
/// KernelLibrary::open() takes.
llvm::Error writeDeviceLibrary(const Artifact &artifact,
                               const std::string &path);

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_FAKEGPU_H
