//===- NarrowFloat.cpp - Conversions without a library --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/NarrowFloat.h"

using namespace mlir;
using namespace pagoda;

/// The type of `like` with other elements.
static Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return vector.clone(element);
  return element;
}

static Value constantLike(CpuBuilder &b, Type type, int32_t value) {
  if (auto vector = dyn_cast<VectorType>(type))
    return b.splat(b.i32(value), vector.getNumElements());
  return b.i32(value);
}

/// In integers: without the instruction LLVM would call a library function for
/// each lane.
static Value widenBf16(CpuBuilder &b, Value value) {
  Type integers = withElement(value.getType(), b.i32Type());
  Value bits = arith::BitcastOp::create(
      b, withElement(value.getType(), b.getI16Type()), value);
  bits = arith::ExtUIOp::create(b, integers, bits);
  bits = arith::ShLIOp::create(b, bits, constantLike(b, integers, 16));
  return arith::BitcastOp::create(b, withElement(integers, b.getF32Type()),
                                  bits);
}

/// To the nearest, ties to even.
static Value roundToBf16(CpuBuilder &b, Value value) {
  Type integers = withElement(value.getType(), b.i32Type());
  auto constant = [&](int32_t number) {
    return constantLike(b, integers, number);
  };
  auto upperHalf = [&](Value bits) -> Value {
    return arith::ShRUIOp::create(b, bits, constant(16));
  };
  Value bits = arith::BitcastOp::create(b, integers, value);
  Value odd = arith::AndIOp::create(b, upperHalf(bits), constant(1));
  Value rounded = upperHalf(b.add(bits, b.add(odd, constant(0x7fff))));
  // A NaN stays one, whatever its payload.
  Value quiet = arith::OrIOp::create(b, upperHalf(bits), constant(0x40));
  Value isNan =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value half = arith::TruncIOp::create(b, withElement(integers, b.getI16Type()),
                                       b.select(isNan, quiet, rounded));
  return arith::BitcastOp::create(b, withElement(integers, b.getBF16Type()),
                                  half);
}

Value pagoda::convertFloat(CpuBuilder &b, Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType()), f32 = b.getF32Type();
  if (from == element)
    return value;
  if (from.isBF16())
    value = widenBf16(b, value);
  else if (!from.isF32())
    value = arith::ExtFOp::create(b, withElement(value.getType(), f32), value);
  if (element.isBF16())
    return roundToBf16(b, value);
  if (!element.isF32())
    value = arith::TruncFOp::create(b, withElement(value.getType(), element),
                                    value);
  return value;
}
