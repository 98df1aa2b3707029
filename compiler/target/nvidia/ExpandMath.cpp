//===- ExpandMath.cpp - Elementary functions on NVIDIA --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels and score regions compute beyond arithmetic, in terms of the
// three approximations that the hardware has: 2^x (ex2.approx, 2 units in the
// last place), log2 x (lg2.approx, absolute error 2^-22 between 0.5 and 2, else
// relative) and 1 / x (rcp.approx, 1 unit). The hardware's tanh.approx is not
// used: its error of 2^-11 would show in soft caps.
//
// All flush subnormal numbers to 0: without .ftz PTX has the same functions,
// but each is half a dozen instructions around the hardware's one.
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace pagoda;

static constexpr float log2e = 1.4426950408889634f;
static constexpr float ln2 = 0.69314718055994531f;

namespace {

class Expander {
public:
  Expander(Operation *op) : b(op->getLoc(), op) {}

  Value exp2(Value x) { return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", x); }
  Value log2(Value x) { return intrinsic("llvm.nvvm.lg2.approx.ftz.f", x); }
  Value reciprocal(Value x) {
    return intrinsic("llvm.nvvm.rcp.approx.ftz.f", x);
  }
  Value exp(Value x) { return exp2(times(x, log2e)); }
  Value log(Value x) { return times(log2(x), ln2); }
  /// 1 - 2 / (2^(2 x log2 e) + 1): 1 and -1 where the power overflows or
  /// vanishes; the absolute error is a few units of 2^-23.
  Value tanh(Value x) {
    Value one = constant(1);
    Value power = exp2(times(x, 2 * log2e));
    Value inverse = reciprocal(arith::AddFOp::create(b, power, one));
    return math::FmaOp::create(b, inverse, constant(-2), one);
  }
  Value divide(Value x, Value y) {
    FloatAttr divisor;
    if (matchPattern(y, m_Constant(&divisor))) {
      float inverse = 1 / divisor.getValue().convertToFloat();
      if (std::isnormal(inverse))
        return times(x, inverse);
    }
    return arith::MulFOp::create(b, x, reciprocal(y));
  }

private:
  Value intrinsic(StringRef name, Value x) {
    return LLVM::CallIntrinsicOp::create(b, b.getF32Type(),
                                         b.getStringAttr(name), x)
        .getResult(0);
  }
  Value constant(float value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  /// Constant factors that follow each other become one.
  Value times(Value x, float factor) {
    return arith::MulFOp::create(b, x, constant(factor),
                                 arith::FastMathFlags::reassoc);
  }

  ImplicitLocOpBuilder b;
};

} // namespace

/// Ops of the math dialect that are one instruction, or a few, in PTX.
static bool isNative(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::FloorOp, math::FmaOp, math::RoundEvenOp, math::SqrtOp,
             math::TruncOp>(op);
}

static LogicalResult expand(Operation *op) {
  if (auto division = dyn_cast<arith::DivFOp>(op);
      division && division.getType().isF32()) {
    division.replaceAllUsesWith(
        Expander(op).divide(division.getLhs(), division.getRhs()));
    division.erase();
    return success();
  }
  if (!isa<math::MathDialect>(op->getDialect()) || isNative(op))
    return success();
  if (!op->getResult(0).getType().isF32())
    return op->emitError() << "'" << op->getName()
                           << "' must be of f32 on nvidia, got "
                           << op->getResult(0).getType();
  Expander e(op);
  Value x = op->getOperand(0);
  Value result = llvm::TypeSwitch<Operation *, Value>(op)
                     .Case([&](math::Exp2Op) { return e.exp2(x); })
                     .Case([&](math::ExpOp) { return e.exp(x); })
                     .Case([&](math::Log2Op) { return e.log2(x); })
                     .Case([&](math::LogOp) { return e.log(x); })
                     .Case([&](math::TanhOp) { return e.tanh(x); })
                     .Default([](Operation *) { return Value(); });
  if (!result)
    return op->emitError() << "'" << op->getName()
                           << "' has no lowering on nvidia";
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
  return success();
}

namespace pagoda {
#define GEN_PASS_DEF_NVIDIAEXPANDMATH
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct NvidiaExpandMathPass
    : pagoda::impl::NvidiaExpandMathBase<NvidiaExpandMathPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk(
        [](Operation *op) { return WalkResult(expand(op)); });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
