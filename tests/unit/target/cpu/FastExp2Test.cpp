//===- FastExp2Test.cpp - The error bound of the exp2 polynomial ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles y[i] = exp2(x[i]) through the pass and checks what FastExp2.h
// promises, against the C library in double: over every 509th float in `ci`,
// over all floats in `extended`.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/FastExp2.h"
#include "compiler/Pipeline.h"
#include "compiler/emit/Object.h"
#include "compiler/target/cpu/CpuBuilder.h"
#include "runtime/include/pagoda/kernel_abi.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace pagoda;

namespace {

using Exp2Fn = void (*)(const float *x, float *y, int64_t count);

/// The ways to multiply by a power of two (FastExp2.h).
enum class Power { Shifted, Scalef };

/// exp2 of `count` floats, a multiple of 16, as kernels compute it.
class FastExp2 : public testing::TestWithParam<Power> {
protected:
  static constexpr int64_t lanes = 16;

  void SetUp() override {
    bool scales = GetParam() == Power::Scalef;
    if (scales && !(Machine::host().cpuFeatures & PAGODA_CPU_AVX512F))
      GTEST_SKIP() << "no AVX-512";
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext context(registry);
    context.loadAllAvailableDialects();
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    CpuBuilder b(mlir::UnknownLoc::get(&context), &context);
    b.setInsertionPointToEnd(module->getBody());
    auto define = [&](llvm::StringRef name, bool nonPositive,
                      bool forBf16 = false) {
      mlir::OpBuilder::InsertionGuard guard(b);
      auto function = mlir::LLVM::LLVMFuncOp::create(
          b, name,
          mlir::LLVM::LLVMFunctionType::get(
              mlir::LLVM::LLVMVoidType::get(&context),
              {b.pointerType(), b.pointerType(), b.i64Type()}));
      mlir::Block *entry = function.addEntryBlock(b);
      b.setInsertionPointToStart(entry);
      b.forLoop(b.i64(0), entry->getArgument(2), lanes, [&](Value i) {
        Value at = b.mul(i, 4);
        Value x =
            b.load(b.vectorType(lanes), b.at(entry->getArgument(0), at), 4);
        b.store(nonPositive ? b.exp2OfNonPositive(x, forBf16) : b.exp2(x),
                b.at(entry->getArgument(1), at), 4);
      });
      mlir::LLVM::ReturnOp::create(b, ValueRange{});
    };
    define("exp2_all", false);
    define("exp2_non_positive", true);
    define("exp2_for_bf16", true, true);
    expandExp2(*module, scales);

    Machine machine = Machine::host();
    mlir::PassManager passes(&context);
    buildPhase(passes, Phase::Llvm, machine, {});
    ASSERT_TRUE(succeeded(passes.run(*module)));
    auto target = llvm::cantFail(createTargetMachine(machine));
    llvm::LLVMContext llvmContext;
    auto llvmModule =
        llvm::cantFail(translate(*module, llvmContext, *target, machine));
    optimize(*llvmModule, *target);
    std::string code = llvm::cantFail(emitCode(*llvmModule, *target, false));
    jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    llvm::cantFail(
        jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(code, "exp2")));
    exp2 = llvm::cantFail(jit->lookup("exp2_all")).toPtr<Exp2Fn>();
    exp2OfNonPositive =
        llvm::cantFail(jit->lookup("exp2_non_positive")).toPtr<Exp2Fn>();
    exp2ForBf16 = llvm::cantFail(jit->lookup("exp2_for_bf16")).toPtr<Exp2Fn>();
  }

  float one(float x) {
    std::vector<float> in(lanes, x), out(lanes);
    exp2(in.data(), out.data(), lanes);
    return out[0];
  }

  /// Checks floats by bit pattern: 0, stride, 2 stride, ...
  void sweep(uint64_t stride) {
    constexpr size_t batch = 1 << 16;
    std::vector<float> in(batch), out(batch), again(batch);
    double worst = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += batch * stride) {
      for (size_t i = 0; i < batch; ++i)
        in[i] = std::bit_cast<float>(uint32_t(bits + i * stride));
      exp2(in.data(), out.data(), batch);
      exp2OfNonPositive(in.data(), again.data(), batch);
      for (size_t i = 0; i < batch; ++i) {
        float x = in[i], y = out[i];
        // Where weights would be subnormal, no more is lost than that.
        if (x <= -125.5f)
          ASSERT_NEAR(again[i], std::exp2(double(x)), std::ldexp(0.71, -126))
              << x;
        else if (!(x > 0))
          ASSERT_EQ(std::bit_cast<uint32_t>(y),
                    std::bit_cast<uint32_t>(again[i]))
              << x;
        if (std::isnan(x))
          ASSERT_TRUE(std::isnan(y)) << x;
        else if (x <= -125.5f && GetParam() == Power::Shifted)
          ASSERT_EQ(y, 0.0f) << x;
        else if (x >= 128)
          ASSERT_EQ(y, std::numeric_limits<float>::infinity()) << x;
        else {
          double right = std::exp2(double(x));
          int exponent = std::max(right > 0 ? std::ilogb(right) : -126, -126);
          double unit = std::ldexp(1.0, exponent - 23);
          double error = std::abs(double(y) - right) / unit;
          worst = std::max(worst, error);
          ASSERT_LE(error, 2.5) << "x = " << x << ", y = " << y;
        }
      }
    }
    // A bound that the code is nowhere near would guard nothing.
    EXPECT_GT(worst, 0.5);
    RecordProperty("worst_units_in_the_last_place", std::to_string(worst));
  }

  std::unique_ptr<llvm::orc::LLJIT> jit;
  Exp2Fn exp2, exp2OfNonPositive, exp2ForBf16;
};

INSTANTIATE_TEST_SUITE_P(, FastExp2,
                         testing::Values(Power::Shifted, Power::Scalef),
                         [](const testing::TestParamInfo<Power> &info) {
                           return info.param == Power::Scalef ? "Scalef"
                                                              : "Shifted";
                         });

TEST_P(FastExp2, ForBf16) {
  std::vector<float> in(lanes), out(lanes);
  double worst = 0;
  for (float x = -125; x <= 0; x += 0.0103f * lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      in[lane] = std::min(0.0f, x + 0.0103f * float(lane));
    exp2ForBf16(in.data(), out.data(), lanes);
    for (int64_t lane = 0; lane < lanes; ++lane)
      worst = std::max(
          worst, std::abs(double(out[lane]) / std::exp2(double(in[lane])) - 1));
  }
  EXPECT_LT(worst, 1.03e-4);
  EXPECT_GT(worst, 0.9e-4);
  in.assign(lanes, -std::numeric_limits<float>::infinity());
  in[0] = -3;
  exp2ForBf16(in.data(), out.data(), lanes);
  EXPECT_EQ(out[0], 0.125f);
  EXPECT_EQ(out[1], 0.0f);
}

TEST_P(FastExp2, IntegersAreExact) {
  for (int n = -125; n <= 127; ++n)
    EXPECT_EQ(one(float(n)), std::ldexp(1.0f, n)) << n;
}

TEST_P(FastExp2, EndsOfTheRange) {
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(one(-infinity), 0.0f);
  EXPECT_EQ(one(infinity), infinity);
  EXPECT_EQ(one(128.0f), infinity);
  EXPECT_GT(one(std::nextafter(-125.5f, 0.0f)), 0.0f);
  if (GetParam() == Power::Shifted)
    EXPECT_EQ(one(-125.5f), 0.0f);
  else
    EXPECT_EQ(one(-149.0f), std::numeric_limits<float>::denorm_min());
  EXPECT_LT(one(std::nextafter(128.0f, 0.0f)), infinity);
}

TEST_P(FastExp2, ManyFloats) { sweep(509); }
TEST_P(FastExp2, AllFloats) { sweep(1); }

} // namespace
