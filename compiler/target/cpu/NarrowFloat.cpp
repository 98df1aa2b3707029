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
  Value bits = arith::ExtUIOp::create(b, integers, value);
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
  return arith::TruncIOp::create(b, withElement(integers, b.getI16Type()),
                                 b.select(isNan, quiet, rounded));
}

Type pagoda::storedAs(Type element) {
  return element.isBF16() ? IntegerType::get(element.getContext(), 16)
                          : element;
}

Value pagoda::convertFloat(CpuBuilder &b, Value value, Type from, Type to,
                           bool hasInstruction) {
  if (from == to)
    return value;
  if (from.isBF16())
    value = widenBf16(b, value);
  else if (!from.isF32())
    value = arith::ExtFOp::create(
        b, withElement(value.getType(), b.getF32Type()), value);
  if (to.isBF16() && hasInstruction && isa<VectorType>(value.getType())) {
    Type rounded = withElement(value.getType(), to);
    return arith::BitcastOp::create(b, withElement(rounded, b.getI16Type()),
                                    arith::TruncFOp::create(b, rounded, value));
  }
  if (to.isBF16())
    return roundToBf16(b, value);
  if (!to.isF32())
    value = arith::TruncFOp::create(b, withElement(value.getType(), to), value);
  return value;
}

std::pair<Value, Value> pagoda::splitPairs(CpuBuilder &b, Value pairs) {
  Type integers = pairs.getType();
  Type floats = withElement(integers, b.getF32Type());
  Value lower = arith::ShLIOp::create(b, pairs, constantLike(b, integers, 16));
  Value upper = arith::AndIOp::create(
      b, pairs, constantLike(b, integers, int32_t(0xffff0000)));
  return {arith::BitcastOp::create(b, floats, lower),
          arith::BitcastOp::create(b, floats, upper)};
}

Value pagoda::addPairProducts(CpuBuilder &b, Value x, Value y, Value sum,
                              bool hasInstruction) {
  if (!hasInstruction) {
    auto [lowerX, upperX] = splitPairs(b, x);
    auto [lowerY, upperY] = splitPairs(b, y);
    return b.fma(upperX, upperY, b.fma(lowerX, lowerY, sum));
  }
  auto type = cast<VectorType>(sum.getType());
  int64_t lanes = type.getNumElements();
  auto pairs = VectorType::get({2 * lanes}, b.getBF16Type());
  std::string name =
      "llvm.x86.avx512bf16.dpbf16ps." + std::to_string(lanes * 32);
  Value factors[] = {sum, vector::BitCastOp::create(b, pairs, x),
                     vector::BitCastOp::create(b, pairs, y)};
  return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name),
                                       ValueRange(factors))
      .getResult(0);
}

Value pagoda::pairsOfBf16(CpuBuilder &b, Value first, Value second,
                          bool hasInstruction) {
  auto integers = VectorType::get(cast<VectorType>(first.getType()).getShape(),
                                  b.i32Type());
  if (hasInstruction) {
    // All of the first vector's elements, then all of the second's.
    int64_t lanes = integers.getNumElements();
    Value both = LLVM::CallIntrinsicOp::create(
                     b, VectorType::get({2 * lanes}, b.getBF16Type()),
                     b.getStringAttr("llvm.x86.avx512bf16.cvtne2ps2bf16." +
                                     std::to_string(lanes * 32)),
                     ValueRange{second, first})
                     .getResult(0);
    both = vector::BitCastOp::create(
        b, VectorType::get({2 * lanes}, b.getI16Type()), both);
    SmallVector<int64_t> inTurns;
    for (int64_t lane = 0; lane < lanes; ++lane)
      inTurns.append({lane, lanes + lane});
    both = vector::ShuffleOp::create(b, both, both, inTurns);
    return vector::BitCastOp::create(b, integers, both);
  }
  auto rounded = [&](Value value) {
    Value bits = arith::BitcastOp::create(b, integers, value);
    return b.add(bits, constantLike(b, integers, 0x8000));
  };
  Value lower =
      arith::ShRUIOp::create(b, rounded(first), constantLike(b, integers, 16));
  Value upper = arith::AndIOp::create(
      b, rounded(second), constantLike(b, integers, int32_t(0xffff0000)));
  return arith::OrIOp::create(b, lower, upper);
}
