//===- TuneDevice.h - pagoda tune for a machine elsewhere -------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_TUNEDEVICE_H
#define PAGODA_TOOLS_PAGODA_TUNEDEVICE_H

#include "llvm/Support/Error.h"

namespace pagoda {

/// Whether --export or --import is given.
bool isForOtherDevice();

/// --export DIR: writes the candidates of each kernel, a manifest and the
/// runner. --import FILE: records what the runner found. Prints what was done,
/// as JSON if so asked.
llvm::Error tuneOtherDevice(bool json);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_TUNEDEVICE_H
