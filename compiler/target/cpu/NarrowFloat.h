//===- NarrowFloat.h - Conversions without a library ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f16 and bf16 on machines that compute in f32. bf16 is the upper half of an
// f32, so every machine converts it with integer operations; f16 needs
// instructions (F16C, AVX-512, NEON).
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_NARROWFLOAT_H
#define PAGODA_COMPILER_TARGET_CPU_NARROWFLOAT_H

#include "compiler/target/cpu/CpuBuilder.h"

namespace pagoda {

/// `value`, a scalar or a vector of f32, f16 or bf16, with elements of type
/// `element`: through f32, rounded to nearest even once.
Value convertFloat(CpuBuilder &b, Value value, Type element);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_NARROWFLOAT_H
