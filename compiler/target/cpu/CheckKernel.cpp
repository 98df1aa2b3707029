//===- CheckKernel.cpp - What the CPU lowering can take -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks, from the kernel inwards. Order among ops needs no check: it follows
// from each value being defined before it is used.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/CheckKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <algorithm>

using namespace mlir;
using namespace pagoda;

namespace {

/// Everything is unrolled by these, so they need a limit of their own; the
/// widest vectors of any CPU, and twice the registers.
constexpr int64_t MaxVectorBits = 2048, MaxRegisters = 64;
/// Of other fields of a schedule.
constexpr int64_t MaxSize = 65536;

struct Checker {
  KernelOp kernel;
  ScheduleAttr schedule;
  KvCacheType cache;

  LogicalResult target();
  LogicalResult sizes();
  LogicalResult body();
  LogicalResult items(ForItemsOp op);
  LogicalResult merges(ForMergesOp op);
  LogicalResult loop(KvLoopOp op, ValueRange state);
  LogicalResult overlap(Block &block);
  LogicalResult region(Operation *op);
  LogicalResult tiles(Operation *op);
};

} // namespace

static bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

/// Whether `op` computes scalars from scalars and nothing else.
static bool isScalarOp(Operation *op) {
  if (isa<ArgOp>(op))
    return true;
  return op->getNumRegions() == 0 && op->getNumSuccessors() == 0 &&
         isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
             op->getDialect()) &&
         llvm::all_of(op->getOperandTypes(), isScalar) &&
         llvm::all_of(op->getResultTypes(), isScalar);
}

/// The only op of its kind in `block`; a diagnostic if there is none or more.
template <typename Op>
static FailureOr<Op> only(Operation *parent, Block &block) {
  auto ops = block.getOps<Op>();
  int64_t count = std::distance(ops.begin(), ops.end());
  if (count == 1)
    return *ops.begin();
  return parent->emitOpError() << "lowers to a cpu with one "
                               << Op::getOperationName() << ", got " << count;
}

static LogicalResult refuse(Operation *op) {
  return op->emitOpError() << "does not lower to a cpu inside "
                           << op->getParentOp()->getName();
}

LogicalResult Checker::target() {
  TargetAttr target = kernel.getTarget().value_or(TargetAttr());
  if (!target || target.getKind() != "cpu")
    return kernel.emitOpError("has no cpu target");
  if (target.getVectorBits() > MaxVectorBits)
    return kernel.emitOpError()
           << "target vector_bits must be at most " << MaxVectorBits << ", got "
           << target.getVectorBits();
  for (Type type : {kernel.getQType(), cache.getElt()})
    if (!type.isF32() && !type.isF16() && !type.isBF16())
      return kernel.emitOpError()
             << "element type must be f32, f16 or bf16 on a cpu, got " << type;
  return success();
}

LogicalResult Checker::sizes() {
  int64_t group = kernel.getGroup();
  if (schedule.getQTile() < group)
    return kernel.emitOpError()
           << "schedule q_tile must hold the " << group
           << " query heads of a kv head, got " << schedule.getQTile();
  struct Field {
    const char *name;
    int64_t value;
  };
  for (Field field : {Field{"q_tile", schedule.getQTile()},
                      {"kv_tile", schedule.getKvTile()},
                      {"heads", schedule.getHeads()},
                      {"block_rows", schedule.getBlockRows()},
                      {"block_vectors", schedule.getBlockVectors()},
                      {"prefetch", schedule.getPrefetch()}})
    if (field.value > MaxSize)
      return kernel.emitOpError()
             << "schedule " << field.name << " must be at most " << MaxSize
             << ", got " << field.value;
  int64_t registers =
      std::min(kernel.getTarget()->getRegisters(), MaxRegisters);
  // With two stages a block's rows go in passes that fit.
  int64_t accumulators = schedule.getBlockRows() * schedule.getBlockVectors();
  if (accumulators > registers && schedule.getStages() == 1)
    return kernel.emitOpError()
           << "schedule block_rows * block_vectors must be at most the "
           << registers << " registers, got " << accumulators;
  bool overlaps = schedule.getLanes() == Lanes::head_dim;
  if (schedule.getStages() > (overlaps ? 2 : 1))
    return kernel.emitOpError()
           << "schedule stages must be at most " << (overlaps ? 2 : 1)
           << " with lanes = " << stringifyLanes(schedule.getLanes())
           << ", got " << schedule.getStages();
  if (schedule.getLanes() == Lanes::queries) {
    if (schedule.getHeads() != 1)
      return kernel.emitOpError() << "schedule heads must be 1 with lanes = "
                                     "queries, got "
                                  << schedule.getHeads();
    bool bf16 = kernel.getQType().isBF16() && cache.getElt().isBF16();
    if (schedule.getPack() == 2 &&
        (!bf16 || cache.getKDim() % 2 != 0 || schedule.getKvTile() % 2 != 0))
      return kernel.emitOpError()
             << "schedule pack = 2 takes pairs of bf16: expected queries and "
                "keys of bf16, an even head dim and an even kv_tile, got "
             << kernel.getQType() << ", " << cache.getElt() << ", "
             << cache.getKDim() << " and " << schedule.getKvTile();
    if (schedule.getKvTile() % schedule.getBlockRows() != 0)
      return kernel.emitOpError()
             << "schedule kv_tile must be a multiple of block_rows, "
             << schedule.getBlockRows() << ", got " << schedule.getKvTile();
    return success();
  }
  if (schedule.getPack() == 2)
    return kernel.emitOpError("schedule pack = 2 needs lanes = queries");
  if (schedule.getOrder() < LoopOrder::q_outer)
    return kernel.emitOpError()
           << "schedule order " << stringifyLoopOrder(schedule.getOrder())
           << " needs lanes = queries";
  return success();
}

LogicalResult Checker::body() {
  Block &block = kernel.getBody().front();
  bool merge = kernel.getRole() == Role::merge;
  for (Operation &op : block) {
    bool isLoop = merge ? isa<ForMergesOp>(op) : isa<ForItemsOp>(op);
    if (!isLoop && !isScalarOp(&op))
      return refuse(&op);
  }
  if (merge) {
    FailureOr<ForMergesOp> op = only<ForMergesOp>(kernel, block);
    return failed(op) ? failure() : merges(*op);
  }
  FailureOr<ForItemsOp> op = only<ForItemsOp>(kernel, block);
  return failed(op) ? failure() : items(*op);
}

/// Whether `values` are the state that `m`, `l`, `o` stand for.
static bool isState(ValueRange values, Value m, Value l, Value o) {
  return values.size() == 3 && values[0] == m && values[1] == l &&
         values[2] == o;
}

LogicalResult Checker::items(ForItemsOp op) {
  Block &block = op.getBody().front();
  for (Operation &inner : block)
    if (!isScalarOp(&inner) && !isa<LoadQOp, CoordsOp, KvRangeOp, StateInitOp,
                                    KvLoopOp, StoreOp, YieldOp>(inner))
      return refuse(&inner);
  FailureOr<LoadQOp> q = only<LoadQOp>(op, block);
  FailureOr<CoordsOp> coords = only<CoordsOp>(op, block);
  FailureOr<KvRangeOp> range = only<KvRangeOp>(op, block);
  FailureOr<StateInitOp> init = only<StateInitOp>(op, block);
  FailureOr<StoreOp> store = only<StoreOp>(op, block);
  if (failed(q) || failed(coords) || failed(range) || failed(init) ||
      failed(store) || failed(region(*range)))
    return failure();
  if (int64_t(range->getStep()) != schedule.getKvTile())
    return range->emitOpError()
           << "step must be the schedule's kv_tile, " << schedule.getKvTile()
           << ", got " << int64_t(range->getStep());
  SmallVector<Value> state(init->getResults());
  for (auto next : block.getOps<KvLoopOp>()) {
    if (failed(loop(next, state)))
      return failure();
    state.assign(next.result_begin(), next.result_end());
  }
  if (!isState(state, store->getM(), store->getL(), store->getO()))
    return store->emitOpError("must store the state of the last kv_loop");
  return schedule.getStages() == 2 ? overlap(block) : success();
}

/// Tiles overlap from one loop to the next, so all loops are one walk.
LogicalResult Checker::overlap(Block &block) {
  SmallVector<KvLoopOp> loops(block.getOps<KvLoopOp>());
  for (auto [i, loop] : llvm::enumerate(loops)) {
    if (i && loop.getLo() != loops[i - 1].getHi())
      return loop.emitOpError("must begin where the kv_loop before it ends, "
                              "with two stages");
    for (auto ref : loop.getBody().getOps<KvRefOp>())
      if (ref.getLimit() && ref.getLimit() != loops.back().getHi())
        return ref.emitOpError("limit must be the end of the last kv_loop, "
                               "with two stages");
  }
  return success();
}

LogicalResult Checker::merges(ForMergesOp op) {
  Block &block = op.getBody().front();
  for (Operation &inner : block)
    if (!isScalarOp(&inner) && !isa<MergePartialsOp, StoreOp, YieldOp>(inner))
      return refuse(&inner);
  FailureOr<MergePartialsOp> merged = only<MergePartialsOp>(op, block);
  FailureOr<StoreOp> store = only<StoreOp>(op, block);
  if (failed(merged) || failed(store))
    return failure();
  if (!isState(merged->getResults(), store->getM(), store->getL(),
               store->getO()))
    return store->emitOpError("must store the merged state");
  return success();
}

LogicalResult Checker::loop(KvLoopOp op, ValueRange state) {
  if (ValueRange(op.getInits()) != state || state.size() != 3)
    return op.emitOpError("must carry the state of state_init or of the "
                          "kv_loop before it");
  if (int64_t(op.getStep()) != schedule.getKvTile())
    return op.emitOpError()
           << "step must be the schedule's kv_tile, " << schedule.getKvTile()
           << ", got " << int64_t(op.getStep());
  Block &block = op.getBody().front();
  KvRefOp key, value;
  for (Operation &inner : block) {
    if (!isa<KvRefOp, QkOp, MapScoresOp, MaskScoresOp, SoftmaxStepOp, RescaleOp,
             PvOp, YieldOp>(inner))
      return refuse(&inner);
    if (auto ref = dyn_cast<KvRefOp>(inner)) {
      KvRefOp &slot = ref.getPart() == KvPart::key ? key : value;
      if (slot)
        return ref.emitOpError("is the second of its part in a kv_loop");
      if (ref.getJ() != op.getIndex())
        return ref.emitOpError("must be at the kv_loop's index");
      slot = ref;
    }
    if (failed(region(&inner)))
      return failure();
  }
  FailureOr<QkOp> qk = only<QkOp>(op, block);
  FailureOr<SoftmaxStepOp> step = only<SoftmaxStepOp>(op, block);
  FailureOr<RescaleOp> rescale = only<RescaleOp>(op, block);
  FailureOr<PvOp> pv = only<PvOp>(op, block);
  if (failed(qk) || failed(step) || failed(rescale) || failed(pv))
    return failure();
  Value scores = qk->getS();
  // Each of the two at most once, in this order.
  auto through = [&](auto ops) -> LogicalResult {
    for (auto next : ops) {
      if (next.getS() != scores)
        return next.emitOpError("must take the scores of the op before it");
      scores = next.getResult();
    }
    return success();
  };
  if (failed(through(block.getOps<MapScoresOp>())) ||
      failed(through(block.getOps<MaskScoresOp>())))
    return failure();
  Value m = op.getCarried()[0], l = op.getCarried()[1], o = op.getCarried()[2];
  Operation *yield = block.getTerminator();
  if (!key || !value || qk->getK() != key.getRef() ||
      pv->getV() != value.getRef() || !qk->getQ().getDefiningOp<LoadQOp>() ||
      step->getS() != scores || step->getM() != m || step->getL() != l ||
      rescale->getO() != o || rescale->getAlpha() != step->getAlpha() ||
      pv->getP() != step->getP() || pv->getO() != rescale->getResult() ||
      !isState(yield->getOperands(), step->getMOut(), step->getLOut(),
               pv->getResult()))
    return op.emitOpError("is no step of the online softmax: expected the "
                          "carried m, l and o through qk, softmax_step, "
                          "rescale and pv to the yield");
  return success();
}

/// Regions are evaluated on whole vectors.
LogicalResult Checker::region(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block.without_terminator()) {
        bool constant = inner.hasTrait<OpTrait::ConstantLike>();
        if (!isScalarOp(&inner) ||
            (!isa<ArgOp>(inner) && !constant &&
             !OpTrait::hasElementwiseMappableTraits(&inner)))
          return refuse(&inner);
      }
  return success();
}

/// Tiles, coordinates and references are of the schedule's and the cache's
/// sizes. Verifiers have compared them with each other, so this looks at what
/// stands at the beginning.
LogicalResult Checker::tiles(Operation *op) {
  int64_t heads = schedule.getHeads();
  int64_t rows = kernel.getRole() == Role::merge ? int64_t(kernel.getGroup())
                                                 : schedule.getQTile();
  auto expect = [&](ArrayRef<int64_t> actual,
                    ArrayRef<int64_t> expected) -> LogicalResult {
    if (actual == expected)
      return success();
    InFlightDiagnostic error = op->emitOpError() << "must be ";
    llvm::interleave(expected, error, "x");
    error << " by schedule and cache, got ";
    llvm::interleave(actual, error, "x");
    return error;
  };
  auto shape = [](TileType type) {
    return SmallVector<int64_t>{type.getHeads(), type.getRows(),
                                type.getCols()};
  };
  if (auto q = dyn_cast<LoadQOp>(op))
    return expect(shape(q.getTile().getType()), {heads, rows, cache.getKDim()});
  if (auto coords = dyn_cast<CoordsOp>(op)) {
    CoordsType type = coords.getCoords().getType();
    return expect({type.getHeads(), type.getRows()}, {heads, rows});
  }
  if (auto init = dyn_cast<StateInitOp>(op))
    return expect(shape(init.getO().getType()), {heads, rows, cache.getVDim()});
  if (auto merged = dyn_cast<MergePartialsOp>(op))
    return expect(shape(merged.getO().getType()),
                  {heads, rows, cache.getVDim()});
  if (auto ref = dyn_cast<KvRefOp>(op)) {
    KvType type = ref.getRef().getType();
    int64_t dim =
        ref.getPart() == KvPart::key ? cache.getKDim() : cache.getVDim();
    return expect({type.getHeads(), type.getKeys(), type.getDim()},
                  {heads, schedule.getKvTile(), dim});
  }
  return success();
}

LogicalResult pagoda::checkCpuKernel(KernelOp kernel) {
  Checker checker{kernel, kernel.getSchedule(), kernel.getCacheType()};
  if (failed(checker.target()) || failed(checker.sizes()) ||
      failed(checker.body()))
    return failure();
  WalkResult result =
      kernel.walk([&](Operation *op) { return WalkResult(checker.tiles(op)); });
  return failure(result.wasInterrupted());
}
