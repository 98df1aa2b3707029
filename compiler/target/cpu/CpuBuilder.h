//===- CpuBuilder.h - Shorthand for CPU code --------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op builder with short names for what CPU lowering emits all the time:
// integer arithmetic that folds, loads and stores at byte offsets, counted
// loops. Nothing here knows about attention.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_CPUBUILDER_H
#define PAGODA_COMPILER_TARGET_CPU_CPUBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace pagoda {

/// On a math.exp2: its operand is at most 0, or NaN.
inline constexpr llvm::StringLiteral nonPositiveName = "pagoda.nonpositive";
/// On a math.exp2: its result is rounded to bf16.
inline constexpr llvm::StringLiteral forBf16Name = "pagoda.for_bf16";

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

class CpuBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Type i32Type() { return getI32Type(); }
  Type i64Type() { return getI64Type(); }
  Type pointerType() { return mlir::LLVM::LLVMPointerType::get(getContext()); }
  mlir::VectorType vectorType(int64_t lanes) {
    return mlir::VectorType::get({lanes}, getF32Type());
  }

  Value i32(int64_t value) {
    return mlir::arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value i64(int64_t value) {
    return mlir::arith::ConstantOp::create(*this, getI64IntegerAttr(value));
  }
  Value f32(float value) {
    return mlir::arith::ConstantOp::create(*this, getF32FloatAttr(value));
  }

  Value add(Value a, Value b) {
    return createOrFold<mlir::arith::AddIOp>(a, b);
  }
  Value sub(Value a, Value b) {
    return createOrFold<mlir::arith::SubIOp>(a, b);
  }
  Value mul(Value a, Value b) {
    return createOrFold<mlir::arith::MulIOp>(a, b);
  }
  Value min(Value a, Value b) {
    return createOrFold<mlir::arith::MinSIOp>(a, b);
  }
  Value max(Value a, Value b) {
    return createOrFold<mlir::arith::MaxSIOp>(a, b);
  }
  Value add(Value a, int64_t b) { return add(a, constantLike(a, b)); }
  Value sub(Value a, int64_t b) { return sub(a, constantLike(a, b)); }
  Value mul(Value a, int64_t b) { return mul(a, constantLike(a, b)); }
  /// For non-negative a.
  Value div(Value a, int64_t b) {
    return createOrFold<mlir::arith::DivUIOp>(a, constantLike(a, b));
  }
  /// ceil(a / b) for non-negative a.
  Value ceilDiv(Value a, int64_t b) { return div(add(a, b - 1), b); }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return createOrFold<mlir::arith::CmpIOp>(predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return createOrFold<mlir::arith::SelectOp>(condition, a, b);
  }
  /// i32 to i64, sign kept.
  Value widen(Value a) {
    if (a.getType().isInteger(64))
      return a;
    return createOrFold<mlir::arith::ExtSIOp>(i64Type(), a);
  }

  Value addf(Value a, Value b) {
    return mlir::arith::AddFOp::create(*this, a, b);
  }
  Value subf(Value a, Value b) {
    return mlir::arith::SubFOp::create(*this, a, b);
  }
  Value mulf(Value a, Value b) {
    return mlir::arith::MulFOp::create(*this, a, b);
  }
  Value divf(Value a, Value b) {
    return mlir::arith::DivFOp::create(*this, a, b);
  }
  Value negf(Value a) { return mlir::arith::NegFOp::create(*this, a); }
  /// a * b + c, scalar or vector.
  Value fma(Value a, Value b, Value c) {
    if (mlir::isa<mlir::VectorType>(a.getType()))
      return mlir::vector::FMAOp::create(*this, a, b, c);
    return mlir::math::FmaOp::create(*this, a, b, c);
  }
  /// The larger; b where they do not compare. One maxps on x86.
  Value maxf(Value a, Value b) {
    Value greater = mlir::arith::CmpFOp::create(
        *this, mlir::arith::CmpFPredicate::OGT, a, b);
    return mlir::arith::SelectOp::create(*this, greater, a, b);
  }
  Value exp2(Value a) { return mlir::math::Exp2Op::create(*this, a); }
  /// 2^a for a <= 0 (or NaN): the exponents of a softmax.
  Value exp2OfNonPositive(Value a, bool forBf16 = false) {
    Value result = exp2(a);
    mlir::Operation *op = result.getDefiningOp();
    op->setDiscardableAttr(nonPositiveName, getUnitAttr());
    if (forBf16)
      op->setDiscardableAttr(forBf16Name, getUnitAttr());
    return result;
  }

  Value splat(Value scalar, int64_t lanes) {
    return mlir::vector::BroadcastOp::create(
        *this, mlir::VectorType::get({lanes}, scalar.getType()), scalar);
  }

  /// pointer + bytes.
  Value at(Value pointer, Value bytes) {
    return mlir::LLVM::GEPOp::create(*this, pointerType(), getI8Type(), pointer,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }
  Value at(Value pointer, int64_t bytes) {
    if (bytes == 0)
      return pointer;
    return mlir::LLVM::GEPOp::create(
        *this, pointerType(), getI8Type(), pointer,
        llvm::ArrayRef<mlir::LLVM::GEPArg>{int32_t(bytes)});
  }
  Value load(Type type, Value pointer, unsigned alignment = 0) {
    return mlir::LLVM::LoadOp::create(*this, type, pointer, alignment);
  }
  void store(Value value, Value pointer, unsigned alignment = 0) {
    mlir::LLVM::StoreOp::create(*this, value, pointer, alignment);
  }

  /// Fetches the line at `pointer` for reading, into the first-level cache
  /// (locality 3) or the second (2).
  void prefetch(Value pointer, int32_t locality) {
    mlir::LLVM::Prefetch::create(*this, pointer, /*rw=*/0, locality,
                                 /*cache=*/1);
  }

  /// for (i = lo; i < hi; i += step) carrying `inits`; returns the results.
  Values forLoop(Value lo, Value hi, int64_t step, ValueRange inits,
                 llvm::function_ref<Values(Value, ValueRange)> body) {
    auto loop =
        mlir::scf::ForOp::create(*this, lo, hi, constantLike(lo, step), inits);
    mlir::OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(loop.getBody());
    Values results = body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!inits.empty() || loop.getBody()->empty() ||
        !loop.getBody()->back().hasTrait<mlir::OpTrait::IsTerminator>())
      mlir::scf::YieldOp::create(*this, results);
    return Values(loop.getResults());
  }
  void forLoop(Value lo, Value hi, int64_t step,
               llvm::function_ref<void(Value)> body) {
    forLoop(lo, hi, step, ValueRange{}, [&](Value i, ValueRange) {
      body(i);
      return Values{};
    });
  }
  /// Covers [begin, end) by calls of body(index, width): a loop over pieces of
  /// `width`, a few at a time, then what is left in halved widths.
  void forPieces(int64_t begin, int64_t end, int64_t width,
                 llvm::function_ref<void(Value, int64_t)> body) {
    constexpr int64_t unroll = 4;
    int64_t step = width * unroll;
    int64_t looped = begin + (end - begin) / step * step;
    if (looped != begin)
      forLoop(i64(begin), i64(looped), step, [&](Value index) {
        for (int64_t u = 0; u != unroll; ++u)
          body(add(index, u * width), width);
      });
    for (int64_t at = looped; at != end; at += width) {
      while (width > end - at)
        width /= 2;
      body(i64(at), width);
    }
  }
  void ifThen(Value condition, llvm::function_ref<void()> then) {
    auto branch = mlir::scf::IfOp::create(*this, condition, /*else=*/false);
    mlir::OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(branch.thenBlock());
    then();
  }
  void ifThenElse(Value condition, llvm::function_ref<void()> then,
                  llvm::function_ref<void()> otherwise) {
    auto branch = mlir::scf::IfOp::create(*this, condition, /*else=*/true);
    mlir::OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(branch.thenBlock());
    then();
    setInsertionPointToStart(branch.elseBlock());
    otherwise();
  }

private:
  Value constantLike(Value like, int64_t value) {
    return like.getType().isInteger(32) ? i32(value) : i64(value);
  }
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_CPUBUILDER_H
