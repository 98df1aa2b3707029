//===- Emulation.h - pagoda run on the emulator -----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place of the tools that knows whether this build has an emulator, and
// what it means to run on it: slowly, for answers and not for times.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_EMULATION_H
#define PAGODA_TOOLS_PAGODA_EMULATION_H

#include "compiler/Driver.h"
#include "tools/pagoda/Engine.h"

#include "llvm/Support/Error.h"

#include <memory>

namespace pagoda {

/// Whether `device`, "cpu" or "emulator", can run kernels for `machine` here.
/// An error names the option at fault and what would do.
llvm::Error checkDevice(llvm::StringRef device, const Machine &machine);

/// The emulator as a device of few multiprocessors, so that plans of small
/// batches split keys. `seed` orders the threads of its blocks.
std::unique_ptr<Device> emulatorDevice(int hostThreads, uint64_t seed);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_EMULATION_H
