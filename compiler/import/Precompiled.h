//===- Precompiled.h - Headers that most users of LLVM alone share --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Precompiled once by compiler/import and reused by what includes LLVM and not
// MLIR: compiler/tune, tools, tests and bench. Never included by name: every
// file includes what it uses.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_PRECOMPILED_H
#define PAGODA_COMPILER_IMPORT_PRECOMPILED_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#endif // PAGODA_COMPILER_IMPORT_PRECOMPILED_H
