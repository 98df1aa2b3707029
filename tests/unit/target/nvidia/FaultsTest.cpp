//===- FaultsTest.cpp - Mistakes that the emulator must report ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Breaks kernels in the ways that compilers and their authors do, and expects a
// fault or a wrong answer. A mutation that passes means that neither the
// emulator nor the oracle would see that mistake.
//
//===----------------------------------------------------------------------===//

#include "MutatedKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace pagoda;
using namespace pagoda::conformance;
using testing::HasSubstr;

namespace {

/// The ops of one kind, in the order of the text.
template <typename Op> SmallVector<Op> all(ModuleOp module) {
  SmallVector<Op> result;
  module.walk([&](Op op) { result.push_back(op); });
  return result;
}

Case smallCase() {
  Case c = makeCase("mutated", {{20, 90}, {1, 200}});
  c.spec.qType = c.spec.kvType = DType::F16;
  c.splits = 1; // one kernel, which is the one that is broken
  return c;
}

Outcome runMutated(Mutation mutation, const Case &c = smallCase()) {
  MutatedKernels kernels(std::move(mutation));
  return runCase(kernels, c);
}

void expectSeen(const Outcome &outcome) {
  EXPECT_EQ(outcome.status, Status::Fail) << "the mutation went unseen";
}

TEST(NvidiaFaults, NothingChanged) {
  Outcome outcome = runMutated([](ModuleOp) {});
  EXPECT_EQ(outcome.status, Status::Pass) << outcome.message;
}

TEST(NvidiaFaults, AnyBarrierRemoved) {
  // In the first kernel: between items, before Q's registers are read, and one
  // in each of the two loops. All but the first stand for data of other
  // threads.
  for (size_t which : {1, 2, 3}) {
    Outcome outcome = runMutated([&](ModuleOp module) {
      auto barriers = all<NVVM::Barrier0Op>(module);
      ASSERT_GE(barriers.size(), 4u);
      barriers[which].erase();
    });
    expectSeen(outcome);
  }
}

TEST(NvidiaFaults, BarrierBetweenItemsRemoved) {
  // Fewer blocks than items; the barrier keeps fast warps from copying the next
  // Q over this one while slow warps read it, as they do in every tile here.
  Case c = smallCase();
  c.spec.headDim = 128;
  expectSeen(runMutated(
      [&](ModuleOp module) { all<NVVM::Barrier0Op>(module)[0].erase(); }, c));
}

TEST(NvidiaFaults, BarrierAfterStoresRemoved) {
  // Rows of 34 bytes pass through registers: no wait stands beside the barrier
  // that makes them visible.
  Case c = smallCase();
  c.spec.headDim = c.spec.vHeadDim = 17;
  for (size_t which : {1, 2, 3}) {
    Outcome outcome = runMutated(
        [&](ModuleOp module) { all<NVVM::Barrier0Op>(module)[which].erase(); },
        c);
    expectSeen(outcome);
    EXPECT_THAT(outcome.message,
                testing::AnyOf(HasSubstr("race"), HasSubstr("nobody")));
  }
}

TEST(NvidiaFaults, BarrierThatOneWarpSkips) {
  Outcome outcome = runMutated([&](ModuleOp module) {
    auto barrier = all<NVVM::Barrier0Op>(module)[1];
    auto thread = all<NVVM::ThreadIdXOp>(module)[0];
    OpBuilder builder(barrier);
    Location loc = barrier.getLoc();
    Value first =
        arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(32));
    Value others = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::uge, thread.getResult(), first);
    auto branch = scf::IfOp::create(builder, loc, others, /*else=*/false);
    barrier->moveBefore(branch.thenBlock()->getTerminator());
  });
  expectSeen(outcome);
  EXPECT_THAT(outcome.message,
              testing::AnyOf(HasSubstr("wait for a barrier in op"),
                             HasSubstr("race"), HasSubstr("nobody")));
}

TEST(NvidiaFaults, AnyWaitRemoved) {
  for (size_t which : {1, 2, 3}) {
    Outcome outcome = runMutated([&](ModuleOp module) {
      auto waits = all<NVVM::CpAsyncWaitGroupOp>(module);
      ASSERT_GE(waits.size(), 4u);
      waits[which].erase();
    });
    expectSeen(outcome);
  }
}

TEST(NvidiaFaults, WaitForOneGroupTooFew) {
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto wait : all<NVVM::CpAsyncWaitGroupOp>(module))
      wait.setN(wait.getN() + 1);
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, CommitRemoved) {
  Outcome outcome = runMutated([&](ModuleOp module) {
    all<NVVM::CpAsyncCommitGroupOp>(module)[1].erase();
  });
  expectSeen(outcome);
}

/// Positions past the last one are held back by a minimum.
void dropMinima(ModuleOp module) {
  for (auto least : all<arith::MinSIOp>(module))
    least.replaceAllUsesWith(least.getLhs());
}

TEST(NvidiaFaults, TailRowsCopied) {
  // The tail of the last block is NaN, and 0 * NaN is NaN.
  Outcome outcome = runMutated([&](ModuleOp module) {
    dropMinima(module);
    OpBuilder builder(module.getContext());
    for (auto copy : all<NVVM::CpAsyncOp>(module)) {
      builder.setInsertionPoint(copy);
      copy.getCpSizeMutable().assign(arith::ConstantOp::create(
          builder, copy.getLoc(), builder.getI32IntegerAttr(16)));
    }
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, TableReadPastTheEnd) {
  Case c = smallCase();
  c.schedule = {"kv_tile=128"};
  Outcome outcome = runMutated(dropMinima, c);
  expectSeen(outcome);
  EXPECT_THAT(outcome.message, HasSubstr("outside of every buffer"));
}

TEST(NvidiaFaults, MaskShiftedByOne) {
  // Scores are hidden by selects against -inf: k < limit, k <= q.
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto compare : all<arith::CmpIOp>(module))
      if (compare.getPredicate() == arith::CmpIPredicate::sle)
        compare.setPredicate(arith::CmpIPredicate::slt);
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, MaskRemoved) {
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto select : all<arith::SelectOp>(module)) {
      FloatAttr hidden;
      if (matchPattern(select.getFalseValue(), m_Constant(&hidden)) &&
          hidden.getValue().isInfinity() && hidden.getValue().isNegative())
        select.replaceAllUsesWith(select.getTrueValue());
    }
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, StorePredicateRemoved) {
  // Rows past the item's last are stored over its last token's.
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto branch : all<scf::IfOp>(module)) {
      // The innermost branch around a store asks whether the row exists.
      auto ops = branch.thenBlock()->getOps<LLVM::StoreOp>();
      bool stores = llvm::any_of(ops, [](LLVM::StoreOp store) {
        return cast<LLVM::LLVMPointerType>(store.getAddr().getType())
                   .getAddressSpace() == 1;
      });
      if (!stores)
        continue;
      OpBuilder builder(branch);
      branch.getConditionMutable().assign(arith::ConstantOp::create(
          builder, branch.getLoc(), builder.getBoolAttr(true)));
    }
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, MatrixLoadNotTransposed) {
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto load : all<NVVM::LdMatrixOp>(module))
      load.setLayout(NVVM::MMALayout::row);
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, FragmentMapShifted) {
  // Operand B's two registers exchanged in one product.
  Outcome outcome = runMutated([&](ModuleOp module) {
    auto product = all<NVVM::MmaOp>(module)[3];
    Value first = product.getOperandB()[0], second = product.getOperandB()[1];
    product.getOperandBMutable().assign(ValueRange{second, first});
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, ReductionOverHalfTheRow) {
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto shuffle : all<NVVM::ShflOp>(module)) {
      OpBuilder builder(shuffle);
      shuffle.getOffsetMutable().assign(arith::ConstantOp::create(
          builder, shuffle.getLoc(), builder.getI32IntegerAttr(1)));
    }
  });
  expectSeen(outcome);
}

TEST(NvidiaFaults, PermutationOfChunksDropped) {
  // Copies keep the permutation, matrix loads lose it.
  Outcome outcome = runMutated([&](ModuleOp module) {
    for (auto bits : all<arith::XOrIOp>(module))
      if (llvm::any_of(bits->getUsers(), [](Operation *user) {
            return isa<arith::XOrIOp>(user);
          }))
        bits.replaceAllUsesWith(bits.getLhs());
  });
  expectSeen(outcome);
}

} // namespace
