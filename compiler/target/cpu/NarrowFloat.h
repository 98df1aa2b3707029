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

/// How elements of type `element` are loaded and stored: bf16 as its bits, an
/// i16. LLVM would convert a bf16 that it takes out of a vector by a library
/// function.
Type storedAs(Type element);

/// `value`, a scalar or a vector of elements `from`, with elements `to`:
/// through f32, rounded to nearest even once. Both are f32, f16 or bf16 (as
/// storedAs), or any one type. With `hasInstruction` (AVX512_BF16) vectors are
/// rounded to bf16 by one, which takes subnormals for 0.
Value convertFloat(CpuBuilder &b, Value value, Type from, Type to,
                   bool hasInstruction = false);

/// The elements in the lower and in the upper half of each pair of bf16, an
/// i32, as vectors of f32.
std::pair<Value, Value> splitPairs(CpuBuilder &b, Value pairs);

/// sum + the products of both elements of each pair: `x` and `y` are vectors of
/// n pairs of bf16, each an i32, `sum` of n f32. One instruction if
/// `hasInstruction` (AVX512_BF16), which takes subnormal inputs for 0; else two
/// fused ones.
Value addPairProducts(CpuBuilder &b, Value x, Value y, Value sum,
                      bool hasInstruction);

/// Two vectors of n f32, none a NaN, as one of n pairs of bf16, each an i32
/// with `first`'s element in the lower half. One instruction and a permutation
/// if `hasInstruction` (AVX512_BF16): to the nearest, ties to even, subnormals
/// to 0; else in integers, ties away from zero.
Value pairsOfBf16(CpuBuilder &b, Value first, Value second,
                  bool hasInstruction);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_NARROWFLOAT_H
