//===- AssignLayouts.h - Where NVIDIA tiles live ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_ASSIGNLAYOUTS_H
#define PAGODA_COMPILER_TARGET_NVIDIA_ASSIGNLAYOUTS_H

#include "dialect/Dialect.h"

namespace pagoda {

/// Annotates every tile type of an attention kernel with #pagoda.fragment: the
/// query tile `a`, per-row values `row`, scores and accumulator `acc`. Merge
/// kernels multiply no matrices and are left as they are.
void assignNvidiaLayouts(KernelOp kernel);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_ASSIGNLAYOUTS_H
