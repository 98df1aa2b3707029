//===- FastExp2.cpp - math.exp2 to a polynomial ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expands f32 math.exp2 into twelve elementwise ops, eleven where the operand
// is known not to be positive, eight where vscalefps multiplies by the power of
// two; two less for a result that will be rounded to bf16. LLVM would call libm
// once per lane instead, which costs a prefill kernel nearly half of its speed.
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

/// The same with three terms: at most 1.02e-4, a twentieth of what rounding to
/// bf16 may change.
static constexpr float coefficientsOfBf16[] = {0.693282902f, 0.242210969f,
                                               0.0550089329f};

/// Adding it and a number below 2^22 leaves that number, plus the nearest
/// integer to x, in the low mantissa bits.
static constexpr float roundingMagic = 12582912.0f; // 1.5 * 2^23

namespace {

/// Expands the exponentials of values of one type.
struct Expansion {
  CpuBuilder &b;
  Type type;
  ArrayRef<float> terms;

  Value constant(float value) {
    return constantOf(b.getF32FloatAttr(value), type);
  }
  Value constantOf(TypedAttr element, Type type) {
    if (auto vector = dyn_cast<VectorType>(type))
      element = DenseElementsAttr::get(vector, Attribute(element));
    return arith::ConstantOp::create(b, element);
  }
  /// 2^fraction, times `factor`, for a fraction in [-1/2, 1/2].
  Value polynomial(Value fraction, float factor) {
    Value sum = constant(factor * terms.back());
    for (float coefficient : llvm::reverse(terms.drop_back()))
      sum = b.fma(sum, fraction, constant(factor * coefficient));
    return b.fma(sum, fraction, constant(factor));
  }
  Value shiftedIntoPlace(Value x, bool nonPositive);
  Value scaled(Value x);
};

} // namespace

/// A power of two is shifted into place as an exponent, which ends at 2^127
/// and, with 0, at 2^-127. x that is not positive takes 2^n, n the nearest
/// integer; else 128 needs one too, and it is 2^(n - 1) and twice the
/// polynomial, whose product overflows. A NaN does not compare and passes.
Value Expansion::shiftedIntoPlace(Value x, bool nonPositive) {
  auto compare = [&](arith::CmpFPredicate predicate, Value l, Value r) {
    return arith::CmpFOp::create(b, predicate, l, r);
  };
  constexpr float bias = 127;
  float halved = nonPositive ? 0 : 1;
  Value most = constant(128.0f), least = constant(halved - bias);
  Value clamped = x;
  if (!nonPositive)
    clamped = arith::SelectOp::create(
        b, compare(arith::CmpFPredicate::OLT, most, x), most, x);
  clamped = arith::SelectOp::create(
      b, compare(arith::CmpFPredicate::OGT, least, clamped), least, clamped);
  Value magic = constant(roundingMagic + bias - halved);
  Value shifted = b.addf(clamped, magic);
  Value fraction = b.subf(clamped, b.subf(shifted, magic));
  Value sum = polynomial(fraction, 1 + halved);

  Type bitsType = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    bitsType = VectorType::get(vector.getShape(), bitsType);
  Value amount = constantOf(b.getI32IntegerAttr(23), bitsType);
  Value bits = arith::BitcastOp::create(b, bitsType, shifted);
  Value power = arith::ShLIOp::create(b, bits, amount);
  return b.mulf(sum, arith::BitcastOp::create(b, type, power));
}

/// An infinite x leaves NaN for a fraction, and vscalefps says that NaN times
/// 2^-inf is 0 and times 2^inf is inf (Intel's manual, VSCALEFPS, special
/// cases): nothing needs to be compared. Any other NaN stays.
Value Expansion::scaled(Value x) {
  Value nearest = math::RoundEvenOp::create(b, x);
  Value passthrough = constant(0.0f);
  Value all = arith::ConstantOp::create(b, b.getI16IntegerAttr(-1));
  constexpr int64_t currentRounding = 4;
  Value operands[] = {polynomial(b.subf(x, nearest), 1), nearest, passthrough,
                      all, b.i32(currentRounding)};
  return LLVM::CallIntrinsicOp::create(
             b, type, b.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
             ValueRange(operands))
      .getResult(0);
}

void pagoda::expandExp2(Operation *root, bool hasScalef) {
  root->walk([&](math::Exp2Op op) {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return;
    CpuBuilder b(op.getLoc(), op);
    Expansion expansion{b, type, coefficients};
    if (op->hasAttr(forBf16Name))
      expansion.terms = coefficientsOfBf16;
    bool scales = hasScalef && type == b.vectorType(16);
    op.replaceAllUsesWith(
        scales ? expansion.scaled(op.getOperand())
               : expansion.shiftedIntoPlace(op.getOperand(),
                                            op->hasAttr(nonPositiveName)));
    op.erase();
  });
}
