//===- AssignLayouts.cpp - Where CPU tiles live ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes #pagoda.lanes on every tile type of a kernel. The lowering that
// follows picks its emitter by this layout alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/AssignLayouts.h"
#include "compiler/Passes.h"

using namespace mlir;
using namespace pagoda;

void pagoda::assignCpuLayouts(KernelOp kernel) {
  ScheduleAttr schedule = kernel.getSchedule();
  int64_t lanes = kernel.getTarget()->getVectorBits() / 32;
  bool queries = schedule.getLanes() == Lanes::queries;
  // Queries: a panel is as many rows as the register block holds lanes. Head
  // dim: the rows that are processed together.
  auto layout = LanesLayoutAttr::get(
      kernel.getContext(), queries ? "rows" : "cols",
      queries ? schedule.getBlockVectors() * lanes : schedule.getBlockRows());
  auto annotate = [&](Value value) {
    if (auto tile = dyn_cast<TileType>(value.getType()))
      value.setType(tile.withLayout(layout));
  };
  kernel.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), annotate);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), annotate);
  });
}

namespace pagoda {
#define GEN_PASS_DEF_CPUASSIGNLAYOUTS
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct CpuAssignLayoutsPass
    : pagoda::impl::CpuAssignLayoutsBase<CpuAssignLayoutsPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](KernelOp kernel) {
      if (!kernel.getTarget() || kernel.getTarget()->getKind() != "cpu") {
        kernel.emitOpError("has no cpu target");
        return WalkResult::interrupt();
      }
      assignCpuLayouts(kernel);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
