//===- TileAttention.cpp - Attention level to tiled level -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces each function around a pagoda.attention by one pagoda.kernel per
// schedule and one kernel that merges partial states. Knows the loop structure
// of tiled attention (masked head, full middle, masked tail) and the online
// softmax; knows nothing of any target.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/TileAttention.h"

#include "compiler/Passes.h"
#include "compiler/tiling/SelectTiles.h"
#include "runtime/include/pagoda/kernel_abi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace pagoda;

namespace {

/// log2(e): the softmax works in base 2.
constexpr float log2e = 1.4426950408889634f;

/// Builds the kernels of one attention op.
struct Tiler {
  AttentionOp op;
  func::FuncOp function;
  TargetAttr target;
  ImplicitLocOpBuilder b;
  KvCacheType cache;

  Tiler(AttentionOp op, func::FuncOp function, TargetAttr target)
      : op(op), function(function), target(target), b(op.getLoc(), function),
        cache(op.getCache().getType()) {}

  KernelOp createKernel(const Twine &suffix, Role role, ScheduleAttr schedule) {
    Type qType = cast<RankedTensorType>(op.getQ().getType()).getElementType();
    b.setInsertionPoint(function);
    auto kernel = KernelOp::create(b, (function.getName() + "_" + suffix).str(),
                                   role, cache, op.getQHeads(), qType, schedule,
                                   target, op.getFeatures());
    if (Attribute hash = function->getAttr("pagoda.mods_hash"))
      kernel->setAttr("pagoda.mods_hash", hash);
    Block *body = b.createBlock(&kernel.getBody());
    body->addArgument(b.getType<ArgsType>(), b.getLoc());
    return kernel;
  }

  /// Moves a copy of `region` into `target`, values that it captures replaced
  /// by reads of the kernel's arguments.
  LogicalResult copyRegion(Region &region, Region &target, Value args) {
    if (region.empty())
      return success();
    IRMapping mapping;
    region.cloneInto(&target, mapping);
    OpBuilder::InsertionGuard guard(b);
    // Elements of a captured tensor: read where the region reads them.
    WalkResult result = target.walk([&](tensor::ExtractOp extract) {
      std::optional<StringRef> field = fieldOf(extract.getTensor());
      b.setInsertionPoint(extract);
      SmallVector<Value> indices;
      for (Value index : extract.getIndices())
        indices.push_back(asI32(index));
      if (!field || llvm::is_contained(indices, Value())) {
        extract.emitError("a region may read only tensors that are function "
                          "arguments with pagoda.arg, by constants and by i32 "
                          "cast to index");
        return WalkResult::interrupt();
      }
      Value value = ArgOp::create(b, extract.getType(), args, *field, indices);
      SmallVector<Operation *> casts;
      for (Value index : extract.getIndices())
        casts.push_back(index.getDefiningOp());
      extract.replaceAllUsesWith(value);
      extract.erase();
      for (Operation *cast :
           llvm::SetVector<Operation *>(casts.begin(), casts.end()))
        if (cast->use_empty())
          cast->erase();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    // Captured scalars: read once, at the top of the kernel.
    llvm::SetVector<Value> captured;
    target.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentRegion() == &function.getBody())
          captured.insert(operand);
    });
    for (Value value : captured) {
      std::optional<StringRef> field = fieldOf(value);
      if (!field)
        return op.emitError("a region may capture only function arguments with "
                            "pagoda.arg");
      b.setInsertionPointAfterValue(args);
      Value scalar =
          ArgOp::create(b, value.getType(), args, *field, ValueRange());
      replaceAllUsesInRegionWith(value, scalar, target);
    }
    return success();
  }

  /// An index as the i32 it was made from; null if it was made otherwise.
  Value asI32(Value index) {
    if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
      return cast.getIn().getType().isInteger(32) ? cast.getIn() : Value();
    APInt value;
    if (matchPattern(index, m_ConstantInt(&value)))
      return arith::ConstantOp::create(
          b, b.getI32IntegerAttr(int32_t(value.getSExtValue())));
    return Value();
  }

  /// The field of the argument struct that a function argument stands for: its
  /// `pagoda.arg` attribute.
  std::optional<StringRef> fieldOf(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &function.getBody().front())
      return std::nullopt;
    auto field = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       "pagoda.arg");
    return field ? std::optional<StringRef>(field.getValue()) : std::nullopt;
  }

  /// The exponent's factor: scores reach softmax_step scaled if a score region
  /// saw them, otherwise as q.k.
  Value factor(Value args) {
    Value base = arith::ConstantOp::create(b, b.getF32FloatAttr(log2e));
    if (!op.getScoreMod().empty())
      return base;
    Value scale = ArgOp::create(b, b.getF32Type(), args, "scale", ValueRange());
    return arith::MulFOp::create(b, scale, base);
  }

  TileType tile(int64_t heads, int64_t rows, int64_t cols) {
    return TileType::get(b.getContext(), heads, rows, cols, b.getF32Type(),
                         Attribute());
  }

  LogicalResult buildAttention(ScheduleAttr schedule, const Twine &suffix);
  FailureOr<KvLoopOp> buildLoop(ScheduleAttr schedule, Value args, Value item,
                                Value q, Value coords, Value factor, Value lo,
                                Value hi, Value limit, bool mask,
                                ValueRange state);
  void buildMerge();
};

} // namespace

/// One of the three loops. `limit`: tiles may stick out over it; `mask`: the
/// mask region is applied.
FailureOr<KvLoopOp> Tiler::buildLoop(ScheduleAttr schedule, Value args,
                                     Value item, Value q, Value coords,
                                     Value factor, Value lo, Value hi,
                                     Value limit, bool mask, ValueRange state) {
  auto loop = KvLoopOp::create(b, state.getTypes(), lo, hi,
                               uint64_t(schedule.getKvTile()), state);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&loop.getBody());
  Value j = body->addArgument(b.getI32Type(), b.getLoc());
  for (Value value : state)
    body->addArgument(value.getType(), b.getLoc());
  Value m = body->getArgument(1), l = body->getArgument(2),
        o = body->getArgument(3);

  int64_t heads = schedule.getHeads(), keys = schedule.getKvTile();
  int64_t rows = schedule.getQTile();
  Type element = cache.getElt();
  MLIRContext *context = b.getContext();
  Value tailLimit = mask && hi == limit ? limit : Value();
  auto reference = [&](KvPart part, int64_t dim) -> Value {
    return KvRefOp::create(b, KvType::get(context, heads, keys, dim, element),
                           part, args, item, j, tailLimit);
  };
  Value k = reference(KvPart::key, cache.getKDim());
  Value v = reference(KvPart::value, cache.getVDim());
  TileType sType = tile(heads, rows, keys), rowType = tile(heads, rows, 1);
  Value s = QkOp::create(b, sType, q, k);
  if (!op.getScoreMod().empty()) {
    Value scale;
    {
      OpBuilder::InsertionGuard top(b);
      b.setInsertionPointAfterValue(args);
      scale = ArgOp::create(b, b.getF32Type(), args, "scale", ValueRange());
    }
    auto map = MapScoresOp::create(b, sType, s, coords, j, scale);
    if (failed(copyRegion(op.getScoreMod(), map.getBody(), args)))
      return failure();
    s = map.getResult();
  }
  if (mask) {
    auto masked = MaskScoresOp::create(b, sType, s, coords, j, limit);
    if (failed(copyRegion(op.getMaskMod(), masked.getBody(), args)))
      return failure();
    s = masked.getResult();
  }
  auto step = SoftmaxStepOp::create(b, sType, rowType, rowType, rowType, s, m,
                                    l, factor);
  Value scaled = RescaleOp::create(b, o.getType(), o, step.getAlpha());
  Value sum = PvOp::create(b, o.getType(), step.getP(), v, scaled);
  YieldOp::create(b, ValueRange{step.getMOut(), step.getLOut(), sum});
  return loop;
}

LogicalResult Tiler::buildAttention(ScheduleAttr schedule,
                                    const Twine &suffix) {
  KernelOp kernel = createKernel(suffix, Role::attention, schedule);
  Value args = kernel.getArgs();
  int64_t heads = schedule.getHeads(), rows = schedule.getQTile();
  Value exponent = factor(args);

  auto items = ForItemsOp::create(b, args);
  Block *body = b.createBlock(&items.getBody());
  Value item = body->addArgument(b.getType<ItemType>(), b.getLoc());
  Value q = LoadQOp::create(b, tile(heads, rows, cache.getKDim()), args, item);
  Value coords = CoordsOp::create(
      b, CoordsType::get(b.getContext(), heads, rows), args, item);
  auto range = KvRangeOp::create(b, b.getI32Type(), b.getI32Type(),
                                 b.getI32Type(), b.getI32Type(), item, coords,
                                 uint64_t(schedule.getKvTile()));
  if (failed(copyRegion(op.getKvRange(), range.getBody(), args)))
    return failure();
  TileType row = tile(heads, rows, 1), acc = tile(heads, rows, cache.getVDim());
  auto init = StateInitOp::create(b, row, row, acc, args, item, exponent,
                                  bool(op.getSinks()));

  // A head of masked tiles is there only if some query may start later than
  // the first key, which the range region says by different values.
  SmallVector<Value> state(init.getResults());
  bool head = false;
  if (!op.getKvRange().empty()) {
    Operation *yield = op.getKvRange().front().getTerminator();
    head = yield->getOperand(0) != yield->getOperand(1);
  }
  auto run = [&](Value lo, Value hi, bool mask) -> LogicalResult {
    auto loop = buildLoop(schedule, args, item, q, coords, exponent, lo, hi,
                          range.getEnd(), mask, state);
    if (failed(loop))
      return failure();
    state.assign(loop->getResults().begin(), loop->getResults().end());
    return success();
  };
  if (head && failed(run(range.getBegin(), range.getFullBegin(), true)))
    return failure();
  if (failed(run(range.getFullBegin(), range.getFullEnd(), false)) ||
      failed(run(range.getFullEnd(), range.getEnd(), true)))
    return failure();
  StoreOp::create(b, state[0], state[1], state[2], args, item, exponent);
  YieldOp::create(b, ValueRange{});
  return success();
}

void Tiler::buildMerge() {
  // One query row with all its heads at a time; bound by memory, like decode.
  int64_t group = op.getGroup(), heads = cache.getHeads();
  auto schedule = ScheduleAttr::get(
      b.getContext(), LoopOrder::split_kv, Lanes::head_dim, group,
      /*kv_tile=*/1, heads, /*block_rows=*/1, /*block_vectors=*/4,
      /*prefetch=*/0, /*pack=*/0, /*stages=*/1, /*warps=*/1);
  KernelOp kernel = createKernel("merge", Role::merge, schedule);
  Value args = kernel.getArgs();
  Value exponent = factor(args);
  auto merges = ForMergesOp::create(b, args);
  Block *body = b.createBlock(&merges.getBody());
  Value merge = body->addArgument(b.getType<MergeType>(), b.getLoc());
  TileType row = tile(heads, group, 1),
           acc = tile(heads, group, cache.getVDim());
  auto joined =
      MergePartialsOp::create(b, row, row, acc, args, merge, exponent);
  StoreOp::create(b, joined.getM(), joined.getL(), joined.getO(), args, merge,
                  exponent);
  YieldOp::create(b, ValueRange{});
}

/// Whether the two make the same GPU kernel: there `order` only says how plans
/// use it.
static bool sameGpuKernel(ScheduleAttr a, ScheduleAttr b) {
  Schedule first = fromAttr(a), second = fromAttr(b);
  first.order = second.order;
  return toAttr(a.getContext(), first) == b;
}

LogicalResult pagoda::tileAttention(ModuleOp module, const Machine &machine) {
  OpBuilder builder(module.getContext());
  TargetAttr target = targetOf(module.getContext(), machine);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    SmallVector<AttentionOp> ops;
    function.walk([&](AttentionOp op) { ops.push_back(op); });
    if (ops.empty())
      continue;
    if (ops.size() != 1)
      return function.emitError()
             << "expected one pagoda.attention in a function, got "
             << ops.size();
    AttentionOp op = ops.front();
    if (!op.getSchedules())
      return op.emitError("has no schedules: run pagoda-select-tiles first");
    Tiler tiler(op, function, target);
    // By order of the schedules, as select-tiles writes them.
    auto schedules = op.getSchedules()->getAsRange<ScheduleAttr>();
    for (auto [index, schedule] : llvm::enumerate(schedules)) {
      if (index == 1 && machine.kind == TargetKind::Nvidia &&
          sameGpuKernel(*schedules.begin(), schedule))
        continue;
      std::string name = index == 0 ? "prefill" : "decode";
      if (index > 1)
        name += std::to_string(index);
      if (failed(tiler.buildAttention(schedule, name)))
        return failure();
    }
    tiler.buildMerge();
    function.erase();
  }
  return success();
}

TargetAttr pagoda::targetOf(MLIRContext *context, const Machine &machine) {
  bool cpu = machine.kind == TargetKind::Cpu;
  return TargetAttr::get(context, cpu ? "cpu" : "nvidia", machine.name,
                         cpu ? machine.vectorBits : 0,
                         cpu ? machine.vectorRegisters : 0,
                         int64_t(machine.cpuFeatures));
}

namespace pagoda {
#define GEN_PASS_DEF_TILEATTENTION
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct TileAttentionPass : pagoda::impl::TileAttentionBase<TileAttentionPass> {
  using TileAttentionBase::TileAttentionBase;
  void runOnOperation() override {
    llvm::Expected<Machine> named = Machine::named(machine);
    if (!named) {
      getOperation().emitError() << llvm::toString(named.takeError());
      return signalPassFailure();
    }
    if (failed(tileAttention(getOperation(), *named)))
      signalPassFailure();
  }
};
} // namespace
