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
  // o has a form of its own: it is one column wide where v_head_dim is 1.
  auto formOf = [](OpResult value) -> StringRef {
    Operation *op = value.getOwner();
    if (isa<LoadQOp>(op))
      return "a";
    if (isa<PvOp, RescaleOp>(op))
      return "acc";
    if (auto init = dyn_cast<StateInitOp>(op))
      return value == init.getO() ? "acc" : "row";
    return cast<TileType>(value.getType()).getCols() == 1 ? "row" : "acc";
  };
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<KvLoopOp>(op)) {
      for (auto [init, carried, result] : llvm::zip_equal(
               loop.getInits(), loop.getCarried(), loop.getResults())) {
        carried.setType(init.getType());
        result.setType(init.getType());
      }
      return;
    }
    for (OpResult result : op->getResults())
      if (auto tile = dyn_cast<TileType>(result.getType()))
        result.setType(tile.withLayout(layout(formOf(result))));
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
