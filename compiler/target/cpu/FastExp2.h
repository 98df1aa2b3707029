//===- FastExp2.h - 2^x as a polynomial -------------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_FASTEXP2_H
#define PAGODA_COMPILER_TARGET_CPU_FASTEXP2_H

#include "mlir/IR/Operation.h"

namespace pagoda {

/// Expands every f32 math.exp2 below `root`, scalar or vector.
///
/// x = n + f with n the nearest integer and |f| <= 1/2; 2^f is a polynomial of
/// degree 5 whose relative error is below 1.1e-7; it is multiplied by 2^n. For
/// x in (-125.5, 128) the result is within 2.5 units in the last place of 2^x,
/// and exact for integers. Up to -125.5 (-inf included) it is 0. From 128 on it
/// is +inf. NaN stays NaN.
///
/// An op that says its operand is not positive is spared the comparison with
/// 128, and is right down to -126.5. One that says its result is for bf16 takes
/// a polynomial of degree 3, whose relative error is below 1.02e-4.
///
/// With `hasScalef` (AVX-512) vectors of 16 are multiplied by vscalefps, which
/// needs no comparison at all; results below 2^-126 are then subnormal, not 0.
/// tests/unit/target/cpu/FastExp2Test.cpp checks all this over all floats.
void expandExp2(mlir::Operation *root, bool hasScalef = false);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_FASTEXP2_H
