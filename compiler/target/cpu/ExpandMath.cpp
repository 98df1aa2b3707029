//===- ExpandMath.cpp - Elementary functions to polynomials ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp2 is Pagoda's own (FastExp2.cpp): it is what kernels spend time on. log is
// used once per row and tanh by soft caps; MLIR's approximations serve both.
// What this pass leaves of the math dialect has instructions (fma).
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"
#include "compiler/target/cpu/FastExp2.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace pagoda {
#define GEN_PASS_DEF_CPUEXPANDMATH
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct CpuExpandMathPass : pagoda::impl::CpuExpandMathBase<CpuExpandMathPass> {
  using CpuExpandMathBase::CpuExpandMathBase;

  void runOnOperation() override {
    pagoda::expandExp2(getOperation(), scalef);
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::LogOp::getOperationName() ||
             name == math::ExpOp::getOperationName() ||
             name == math::TanhOp::getOperationName();
    });
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
