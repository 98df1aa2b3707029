//===- AssignLayouts.cpp - Where NVIDIA tiles live ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes #pagoda.fragment on the tile types of attention kernels, by what makes
// a tile. The lowering that follows picks its emitter by op and layout alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/AssignLayouts.h"
#include "compiler/Passes.h"

using namespace mlir;
using namespace pagoda;

void pagoda::assignNvidiaLayouts(KernelOp kernel) {
  if (kernel.getRole() != Role::attention)
    return;
  auto layout = [&](StringRef form) {
    return FragmentLayoutAttr::get(kernel.getContext(), form,
                                   kernel.getSchedule().getWarps());
  };
  auto annotate = [&](Value value) {
    auto tile = dyn_cast<TileType>(value.getType());
    if (!tile)
      return;
    StringRef form = value.getDefiningOp<LoadQOp>() ? "a"
                     : tile.getCols() == 1          ? "row"
                                                    : "acc";
    value.setType(tile.withLayout(layout(form)));
  };
  kernel.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), annotate);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), annotate);
  });
}

namespace pagoda {
#define GEN_PASS_DEF_NVIDIAASSIGNLAYOUTS
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct NvidiaAssignLayoutsPass
    : pagoda::impl::NvidiaAssignLayoutsBase<NvidiaAssignLayoutsPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](KernelOp kernel) {
      if (!kernel.getTarget() || kernel.getTarget()->getKind() != "nvidia") {
        kernel.emitOpError("has no nvidia target");
        return WalkResult::interrupt();
      }
      assignNvidiaLayouts(kernel);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
