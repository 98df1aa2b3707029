//===- SharedTileTest.cpp - Where chunks lie in shared memory -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results do not tell whether matrix loads meet bank conflicts; this does. The
// builder folds constants, so places of constant rows and chunks are numbers.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/fragments/SharedTile.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"

#include <gtest/gtest.h>

#include <set>

using namespace pagoda;

namespace {

TEST(NvidiaKernelsSharedTile, EightRowsLieInEightBankGroups) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::arith::ArithDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  GpuBuilder b(module->getLoc(), module->getBodyRegion());
  for (int64_t chunks = 2; chunks <= 32; chunks += 2) {
    SharedTile tile{{}, chunks};
    auto place = [&](int64_t row, int64_t chunk) {
      llvm::APInt result;
      EXPECT_TRUE(mlir::matchPattern(tile.placeOf(b, b.i32(row), b.i32(chunk)),
                                     mlir::m_ConstantInt(&result)));
      return result.getSExtValue();
    };
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      std::set<int64_t> groups;
      for (int64_t row = 8; row < 16; ++row)
        groups.insert((row * chunks + place(row, chunk)) % 8);
      EXPECT_EQ(groups.size(), 8u) << chunks << " chunks, chunk " << chunk;
    }
    for (int64_t row = 0; row < 16; ++row) {
      std::set<int64_t> places;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        places.insert(place(row, chunk));
        // What matrix loads rely on.
        EXPECT_EQ(place(row, chunk), place(row + 8, chunk));
        EXPECT_EQ(place(row, chunk) / tile.period(), chunk / tile.period());
      }
      EXPECT_EQ(places.size(), size_t(chunks)) << "row " << row;
      EXPECT_LT(*places.rbegin(), chunks);
    }
  }
}

} // namespace
