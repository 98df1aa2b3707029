//===- SelectTiles.cpp - Schedules for each pagoda.attention --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the `schedules` attribute: reads the specification off the op, asks
// the SRAM-fit formula, and puts the answer into the IR. All choosing is in
// SramFit.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/SelectTiles.h"

#include "compiler/Passes.h"
#include "compiler/tiling/SramFit.h"
#include "runtime/include/pagoda/kernel_abi.h"

using namespace mlir;
using namespace pagoda;

// The plain enumerators are cast from and to the dialect's.
static_assert(int(Schedule::Order::SplitKv) == int(LoopOrder::split_kv) &&
              int(Schedule::Order::Naive) == int(LoopOrder::naive) &&
              int(Schedule::Lanes::HeadDim) == int(Lanes::head_dim) &&
              int(KvLayout::HND) == int(CacheLayout::hnd));

ScheduleAttr pagoda::toAttr(MLIRContext *context, const Schedule &s) {
  return ScheduleAttr::get(context, LoopOrder(s.order), Lanes(s.lanes), s.qTile,
                           s.kvTile, s.heads, s.blockRows, s.blockVectors,
                           s.prefetch, s.pack, s.stages, s.warps);
}

Schedule pagoda::fromAttr(ScheduleAttr attr) {
  return {Schedule::Order(attr.getOrder()),
          Schedule::Lanes(attr.getLanes()),
          attr.getQTile(),
          attr.getKvTile(),
          attr.getHeads(),
          attr.getBlockRows(),
          attr.getBlockVectors(),
          attr.getPrefetch(),
          attr.getPack(),
          attr.getStages(),
          attr.getWarps()};
}

/// The element type of q, o or the cache, or a diagnostic.
static FailureOr<DType> dtypeOf(AttentionOp op, Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (isa<Float8E4M3FNType>(type))
    return DType::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return DType::F8E5M2;
  if (type.isInteger(8))
    return DType::I8;
  return op.emitOpError() << "element type must be f32, f16, bf16 or an 8-bit "
                             "type, got "
                          << type;
}

FailureOr<AttentionSpec> pagoda::specOf(AttentionOp op) {
  KvCacheType cache = op.getCache().getType();
  auto q = cast<RankedTensorType>(op.getQ().getType());
  FailureOr<DType> qType = dtypeOf(op, q.getElementType());
  FailureOr<DType> kvType = dtypeOf(op, cache.getElt());
  if (failed(qType) || failed(kvType))
    return failure();
  AttentionSpec spec;
  spec.qHeads = op.getQHeads();
  spec.kvHeads = cache.getHeads();
  spec.headDim = cache.getKDim();
  spec.vHeadDim = cache.getVDim();
  spec.blockSize = cache.getBlock();
  spec.layout = KvLayout(cache.getLayout());
  spec.qType = *qType;
  spec.kvType = *kvType;
  // All that causal means to the formula is that rows differ in what they see;
  // once features are expanded, regions say so.
  spec.causal =
      op.getCausal() || !op.getKvRange().empty() || !op.getMaskMod().empty();
  return spec;
}

/// Checks what is there, or chooses.
static LogicalResult selectTiles(AttentionOp op, const Machine &machine,
                                 ArrayRef<std::string> overrides) {
  FailureOr<AttentionSpec> spec = specOf(op);
  if (failed(spec))
    return failure();
  if (auto given = op.getSchedules()) {
    for (auto schedule : given->getAsRange<ScheduleAttr>())
      if (llvm::Error error = checkSchedule(fromAttr(schedule), machine, *spec))
        return op.emitOpError() << llvm::toString(std::move(error));
    return success();
  }
  SmallVector<Attribute> schedules;
  for (Variant variant : {Variant::Prefill, Variant::Decode}) {
    llvm::Expected<TileCandidate> tile =
        selectTile(machine, *spec, variant, overrides);
    if (!tile)
      return op.emitOpError()
             << nameOf(variant) << ": " << llvm::toString(tile.takeError());
    schedules.push_back(toAttr(op.getContext(), tile->schedule));
  }
  op.setSchedulesAttr(ArrayAttr::get(op.getContext(), schedules));
  return success();
}

LogicalResult pagoda::selectTiles(ModuleOp module, const Machine &machine,
                                  ArrayRef<std::string> overrides) {
  WalkResult result = module.walk([&](AttentionOp op) {
    return WalkResult(::selectTiles(op, machine, overrides));
  });
  return failure(result.wasInterrupted());
}

namespace pagoda {
#define GEN_PASS_DEF_SELECTTILES
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct SelectTilesPass : pagoda::impl::SelectTilesBase<SelectTilesPass> {
  using SelectTilesBase::SelectTilesBase;
  void runOnOperation() override {
    llvm::Expected<Machine> named = Machine::named(machine);
    if (!named) {
      getOperation().emitError() << llvm::toString(named.takeError());
      return signalPassFailure();
    }
    if (failed(selectTiles(getOperation(), *named, overrides)))
      signalPassFailure();
  }
};
} // namespace
