//===- LowerFragments.cpp - The pagoda_nv dialect to NVVM -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"
#include "compiler/target/nvidia/DeviceModule.h"
#include "compiler/target/nvidia/fragments/Lowering.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda;

FragmentLowering::FragmentLowering(LLVM::LLVMFuncOp kernel)
    : b(kernel.getLoc(), kernel.getContext()), kernel(kernel) {
  auto counts = kernel->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getReqntidAttrName());
  threads = counts[0];
}

void FragmentLowering::run() {
  Block &entry = kernel.getBody().front();
  b.setInsertionPointToStart(&entry);
  thread = b.threadId(threads);
  lane = b.rem(thread, 32);
  warp = b.div(thread, 32);
  memory = LLVM::AddressOfOp::create(b, b.pointerTo(GpuBuilder::sharedSpace),
                                     sharedSymbol);
  lower(entry);
  // Ops before those that they use.
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

static bool isOurs(Operation *op) {
  return isa<nv::NvDialect>(op->getDialect());
}

void FragmentLowering::lower(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isOurs(&op)) {
      b.setInsertionPoint(&op);
      b.setLoc(op.getLoc());
      lower(&op);
      replaced.push_back(&op);
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && llvm::any_of(loop.getResultTypes(),
                                    llvm::IsaPred<nv::FragmentType>)) {
      lower(loop);
    } else {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          lower(inner);
    }
  }
}

void FragmentLowering::lower(Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case<nv::PipelineOp, nv::SlotOp, nv::AcquireOp, nv::CommitOp, nv::WaitOp,
            nv::ReleaseOp, nv::CopyRowsOp, nv::LoadOp, nv::MmaOp, nv::ConvertOp,
            nv::SplatOp, nv::RowReduceOp, nv::Exp2Op, nv::ScaleOp, nv::PerRowOp,
            nv::MapOp, nv::StoreOp, nv::ForRowsOp>(
          [&](auto known) { lower(known); });
}

void FragmentLowering::lower(scf::ForOp loop) {
  b.setInsertionPoint(loop);
  b.setLoc(loop.getLoc());
  auto flat = [&](ValueRange values) {
    Values result;
    for (Value value : values) {
      if (isa<nv::FragmentType>(value.getType()))
        llvm::append_range(result, registers(value));
      else
        result.push_back(value);
    }
    return result;
  };
  auto bind = [&](ValueRange values, ValueRange flattened) {
    for (Value value : values) {
      int64_t count = 1;
      if (auto type = dyn_cast<nv::FragmentType>(value.getType())) {
        count = Fragment::registersOf(type);
        registers(value) = Values(flattened.take_front(count));
      } else {
        value.replaceAllUsesWith(flattened.front());
      }
      flattened = flattened.drop_front(count);
    }
  };
  auto result =
      scf::ForOp::create(b, loop.getLowerBound(), loop.getUpperBound(),
                         loop.getStep(), flat(loop.getInitArgs()));
  Block &body = *result.getBody();
  body.getOperations().splice(body.end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(result.getInductionVar());
  bind(loop.getRegionIterArgs(), result.getRegionIterArgs());
  replaced.push_back(loop);
  lower(body);
  Operation *yield = &body.back();
  b.setInsertionPoint(yield);
  scf::YieldOp::create(b, flat(yield->getOperands()));
  replaced.push_back(yield);
  bind(loop.getResults(), result.getResults());
}

Values FragmentLowering::inlined(Region &region, ValueRange inputs) {
  IRMapping mapping;
  Block &block = region.front();
  mapping.map(block.getArguments(), inputs);
  for (Operation &op : block.without_terminator())
    b.clone(op, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// What the walk relies on, and verifiers cannot see.
static LogicalResult check(LLVM::LLVMFuncOp kernel) {
  auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getReqntidAttrName());
  if (!threads || threads.empty())
    return kernel.emitOpError("must say its threads by nvvm.reqntid");
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    bool gives = llvm::any_of(op->getResultTypes(), [](Type type) {
      return isa<nv::NvDialect>(type.getDialect());
    });
    if (gives && !isOurs(op) && !isa<scf::ForOp>(op))
      return op->emitOpError("cannot give a pagoda_nv type, expected scf.for "
                             "or an op of pagoda_nv");
    if (auto copy = dyn_cast<nv::CopyRowsOp>(op)) {
      int64_t chunks = copy.getTarget().getType().getPaddedCols() / 8;
      if (chunks > threads[0])
        return copy.emitOpError()
               << "rows of " << chunks << " chunks need as many threads, got "
               << threads[0];
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace pagoda {
#define GEN_PASS_DEF_NVIDIALOWERFRAGMENTS
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct NvidiaLowerFragmentsPass
    : pagoda::impl::NvidiaLowerFragmentsBase<NvidiaLowerFragmentsPass> {
  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> kernels;
    getOperation().walk([&](LLVM::LLVMFuncOp function) {
      bool uses = false;
      function.walk([&](Operation *op) { uses |= isOurs(op); });
      if (uses)
        kernels.push_back(function);
    });
    for (LLVM::LLVMFuncOp kernel : kernels) {
      if (failed(check(kernel)))
        return signalPassFailure();
      FragmentLowering(kernel).run();
    }
  }
};
} // namespace
