//===- FastExp2.cpp - math.exp2 to a polynomial ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expands f32 math.exp2 into twelve elementwise ops, eleven where the operand
// is known not to be positive. LLVM would call libm once per lane instead,
// which costs a prefill kernel nearly half of its speed.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/FastExp2.h"
#include "compiler/target/cpu/CpuBuilder.h"

using namespace mlir;
using namespace pagoda;

/// 2^f - 1 = f (c1 + f (c2 + ...)) on [-1/2, 1/2], least maximum relative error
/// with 2^0 exact: at most 1.1e-7 with these f32 coefficients.
static constexpr float coefficients[] = {
    0.6931470036506653f, 0.24022242426872253f, 0.05550733581185341f,
    0.009671512991189957f, 0.001326472731307149f};

/// Adding it leaves the nearest integer to x, minus 1, plus the bias of an
/// f32's exponent, in the low mantissa bits.
static constexpr float roundingMagic = 12582912.0f + 126; // 1.5 * 2^23 + 126

static Value expand(CpuBuilder &b, Value x, bool nonPositive) {
  auto type = dyn_cast<VectorType>(x.getType());
  auto constant = [&](float value) -> Value {
    Attribute attribute = b.getF32FloatAttr(value);
    if (type)
      return arith::ConstantOp::create(b,
                                       DenseElementsAttr::get(type, attribute));
    return arith::ConstantOp::create(b, cast<TypedAttr>(attribute));
  };
  Type bitsType = b.getI32Type();
  if (type)
    bitsType = VectorType::get(type.getShape(), bitsType);
  auto bits = [&](Value value) {
    return arith::BitcastOp::create(b, bitsType, value);
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value l, Value r) {
    return arith::CmpFOp::create(b, predicate, l, r);
  };

  // The power of two that is shifted into place is 2^(n - 1), n the nearest
  // integer: 0 for n = -126, and finite for 128, where the product overflows.
  // A NaN does not compare and passes.
  Value most = constant(128.0f), least = constant(-126.0f);
  Value clamped = x;
  if (!nonPositive)
    clamped = arith::SelectOp::create(
        b, compare(arith::CmpFPredicate::OLT, most, x), most, x);
  clamped = arith::SelectOp::create(
      b, compare(arith::CmpFPredicate::OGT, least, clamped), least, clamped);
  Value magic = constant(roundingMagic);
  Value shifted = b.addf(clamped, magic);
  Value fraction = b.subf(clamped, b.subf(shifted, magic));
  Value sum = constant(2 * coefficients[4]);
  for (float coefficient : {coefficients[3], coefficients[2], coefficients[1],
                            coefficients[0], 1.0f})
    sum = b.fma(sum, fraction, constant(2 * coefficient));

  Attribute shift = b.getI32IntegerAttr(23);
  Value amount =
      type ? Value(arith::ConstantOp::create(
                 b, DenseElementsAttr::get(cast<VectorType>(bitsType), shift)))
           : Value(arith::ConstantOp::create(b, cast<TypedAttr>(shift)));
  Value power = arith::ShLIOp::create(b, bits(shifted), amount);
  return b.mulf(sum, arith::BitcastOp::create(b, x.getType(), power));
}

void pagoda::expandExp2(Operation *root) {
  root->walk([](math::Exp2Op op) {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return;
    CpuBuilder b(op.getLoc(), op);
    op.replaceAllUsesWith(
        expand(b, op.getOperand(), op->hasAttr(nonPositiveName)));
    op.erase();
  });
}
