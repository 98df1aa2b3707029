//===- AssignLayouts.h - Where CPU tiles live -------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_ASSIGNLAYOUTS_H
#define PAGODA_COMPILER_TARGET_CPU_ASSIGNLAYOUTS_H

#include "dialect/Dialect.h"

namespace pagoda {

/// Annotates every tile type in `kernel` with the layout its schedule asks for.
void assignCpuLayouts(KernelOp kernel);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_ASSIGNLAYOUTS_H
