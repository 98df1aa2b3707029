//===- TranslateTest.cpp - What LLVM is told of device code ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipeline.h"
#include "compiler/emit/Object.h"
#include "compiler/emit/Ptx.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/Instructions.h"

#include <gtest/gtest.h>

using namespace pagoda;

namespace {

// Without it LLVM may move what all lanes of a warp must do together into a
// branch that only some take.
TEST(PtxTranslation, InlineAssemblyIsConvergent) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    gpu.module @device [#nvvm.target<chip = "sm_80">] {
      llvm.func @kernel() attributes {nvvm.kernel} {
        llvm.inline_asm has_side_effects asm_dialect = att "bar.warp.sync 0xffffffff;", "" : () -> ()
        llvm.return
      }
    })",
                                                        &context);
  ASSERT_TRUE(module);
  llvm::LLVMContext llvmContext;
  auto target = llvm::cantFail(
      createTargetMachine(llvm::cantFail(Machine::named("sm_80"))));
  auto translated =
      llvm::cantFail(translateDevice(*module, llvmContext, *target));
  size_t calls = 0;
  for (const llvm::Instruction &op :
       translated->getFunction("kernel")->getEntryBlock())
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&op)) {
      ++calls;
      EXPECT_TRUE(call->isConvergent());
    }
  EXPECT_EQ(calls, 1u);
}

} // namespace
