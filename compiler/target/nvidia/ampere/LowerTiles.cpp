//===- LowerTiles.cpp - Tiled level to NVVM, Ampere style -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns each pagoda.kernel into a GPU kernel, op by op: an llvm.func inside a
// gpu.module that takes pagoda_attention_args by value. A thread block takes
// the items blockIdx, blockIdx + gridDim, ... below counts[0], so that grid and
// arguments do not depend on lengths. Lowers here what is not about tiles: the
// function, items, coordinates, key ranges, loops.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/LowerTiles.h"
#include "compiler/Passes.h"
#include "compiler/target/nvidia/DeviceModule.h"
#include "compiler/target/nvidia/ampere/Lowering.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

AmpereLowering::AmpereLowering(KernelOp kernel, GpuBuilder &b)
    : b(b), kernel(kernel), schedule(kernel.getSchedule()),
      cache(kernel.getCacheType()), group(kernel.getGroup()) {}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult AmpereLowering::run() {
  if (failed(checkSupported()))
    return failure();
  LLVM::LLVMFuncOp function = createGpuKernel(b, kernel.getSymName(), threads(),
                                              sizeof(pagoda_attention_args));
  Block *entry = function.addEntryBlock(b);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  args = entry->getArgument(0);
  thread = b.threadId(threads());
  lane = b.rem(thread, 32);
  warp = b.div(thread, 32);
  shared = LLVM::AddressOfOp::create(b, b.pointerTo(GpuBuilder::sharedSpace),
                                     sharedSymbol);
  lowerOps(kernel.getBody().front());
  LLVM::ReturnOp::create(b, ValueRange{});
  setDescription(function, describe());
  return success();
}

Value AmpereLowering::arg(StringRef field) {
  Value &value = loadedArgs[field];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(cast<BlockArgument>(args).getOwner());
    AbiField abi = attentionField(field);
    // Every pointer of the struct is one to global memory.
    Type type = abi.type == FieldType::Pointer
                    ? b.pointerTo(GpuBuilder::globalSpace)
                    : fieldType(b.getContext(), abi.type);
    value = b.loadConstant(type, b.at(args, abi.offset));
  }
  return value;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

void AmpereLowering::lowerOps(Block &block) {
  for (Operation &op : block)
    TypeSwitch<Operation *>(&op)
        .Case<ForItemsOp, ForMergesOp, LoadQOp, CoordsOp, KvRangeOp,
              StateInitOp, KvLoopOp, QkOp, MapScoresOp, MaskScoresOp,
              SoftmaxStepOp, RescaleOp, PvOp, MergePartialsOp, StoreOp>(
            [&](auto tiled) { lower(tiled); })
        .Case([&](ArgOp argument) { lower(argument, scalars); })
        // A reference names the part of the acquired slot that qk and pv read.
        .Case<KvRefOp, YieldOp>([](Operation *) {})
        .Default([&](Operation *other) { b.clone(*other, scalars); });
}

void AmpereLowering::lower(ArgOp op, IRMapping &mapping) {
  StringRef field = op.getField();
  Values indices;
  for (Value index : op.getIndices())
    indices.push_back(mapping.lookup(index));
  Value value;
  if (field.starts_with("aux."))
    value = loadAux(op, indices);
  else if (indices.empty())
    value = arg(field);
  else
    value = b.loadConstant(op.getType(), b.element(arg(field), indices[0]));
  mapping.map(op.getResult(), value);
}

Value AmpereLowering::loadAux(ArgOp op, ValueRange indices) {
  unsigned number = 0;
  op.getField().drop_front(strlen("aux.")).getAsInteger(10, number);
  Value record =
      b.at(arg("aux"), int64_t(number) * int64_t(sizeof(pagoda_aux_tensor)));
  Value offset = b.i64(0);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    auto load = [&](size_t array) {
      return b.loadConstant(b.i64Type(),
                            b.at(record, int64_t(array + 8 * dim)));
    };
    Value last = b.sub(load(offsetof(pagoda_aux_tensor, shape)), 1);
    Value inside = b.max(b.min(b.widen(index), last), b.i64(0));
    offset = b.add(offset,
                   b.mul(inside, load(offsetof(pagoda_aux_tensor, strides))));
  }
  Value data =
      b.loadConstant(b.pointerTo(GpuBuilder::globalSpace),
                     b.at(record, int64_t(offsetof(pagoda_aux_tensor, data))));
  return b.loadConstant(op.getType(), b.at(data, b.mul(offset, 4)));
}

Value AmpereLowering::emitRegion(Region &region, ValueRange inputs) {
  IRMapping mapping(scalars);
  Block &block = region.front();
  mapping.map(block.getArguments(), inputs);
  for (Operation &op : block.without_terminator()) {
    if (auto argument = dyn_cast<ArgOp>(op))
      lower(argument, mapping);
    else
      b.clone(op, mapping);
  }
  return mapping.lookup(block.getTerminator()->getOperand(0));
}

void AmpereLowering::lower(ForItemsOp op) {
  Value items = arg("items");
  Value count = b.loadConstant(b.i32Type(), arg("counts"));
  b.forLoop(b.blockId(), count, b.gridSize(), [&](Value index) {
    // Slower warps may still read the shared memory of the item before, and a
    // copy of its Q may be under way if it saw no key.
    b.waitForCopies(0);
    b.barrier();
    Value record =
        b.at(items, b.mul(b.widen(index), int64_t(sizeof(pagoda_work_item))));
    auto field = [&](StringRef name) {
      return b.loadConstant(b.i32Type(), b.at(record, itemField(name).offset));
    };
    item = {field("table_row"),    field("row_map_offset"), field("row_count"),
            field("head_begin"),   field("kv_begin"),       field("kv_end"),
            field("partial_slot"), field("flags"),          {}};
    item.packedRows = b.mul(item.rowCount, group);
    lowerOps(op.getBody().front());
  });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value AmpereLowering::packedRow(int64_t half) {
  Value row = b.add(b.mul(warp, Fragment::rowsPerWarp), b.div(lane, 4));
  return b.add(row, 8 * half);
}

Value AmpereLowering::headOf(int64_t half) {
  Value first = b.mul(item.headBegin, group);
  return b.add(first, b.rem(packedRow(half), group));
}

Value AmpereLowering::planEntry(Value token) {
  return b.add(item.rowMapOffset, b.min(token, b.sub(item.rowCount, 1)));
}

void AmpereLowering::lower(CoordsOp op) {
  RowCoordinates rows;
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Value entry = planEntry(tokenOf(half));
    auto load = [&](StringRef array) {
      return b.loadConstant(b.i32Type(), b.element(arg(array), entry));
    };
    rows[half] = {load("row_seq"), headOf(half), load("row_pos")};
  }
  coordinates[op.getCoords()] = rows;
}

//===----------------------------------------------------------------------===//
// Ranges and loops
//===----------------------------------------------------------------------===//

/// (lo, full_lo, full_hi, hi) for the positions qLo to qHi of sequence seq.
SmallVector<Value> AmpereLowering::visibleKeys(KvRangeOp op, Value seq,
                                               Value qLo, Value qHi) {
  IRMapping mapping(scalars);
  Block &block = op.getBody().front();
  mapping.map(block.getArguments(), ValueRange{seq, qLo, qHi});
  for (Operation &inner : block.without_terminator()) {
    if (auto argument = dyn_cast<ArgOp>(inner))
      lower(argument, mapping);
    else
      b.clone(inner, mapping);
  }
  SmallVector<Value> result;
  for (Value value : block.getTerminator()->getOperands())
    result.push_back(mapping.lookup(value));
  return result;
}

void AmpereLowering::lower(KvRangeOp op) {
  Value begin = item.kvBegin, end = item.kvEnd;
  SmallVector<Value> keys = {begin, begin, end, end};
  if (!op.getBody().empty()) {
    auto plan = [&](StringRef array, Value token) {
      return b.loadConstant(b.i32Type(),
                            b.element(arg(array), planEntry(token)));
    };
    keys = visibleKeys(op, plan("row_seq", b.i32(0)), plan("row_pos", b.i32(0)),
                       plan("row_pos", b.sub(item.rowCount, 1)));
    for (Value &key : keys)
      key = b.min(b.max(key, begin), end);
  }
  // Rounded to tiles counted from the item's first key: `lo` and `full_hi`
  // down, `full_lo` up. Without a full run everything is masked tail.
  int64_t step = op.getStep();
  auto down = [&](Value key) {
    return b.add(begin, b.mul(b.div(b.sub(key, begin), step), step));
  };
  auto up = [&](Value key) { return down(b.add(key, step - 1)); };
  Value first = down(keys[0]);
  Value last = b.max(keys[3], first);
  Value fullBegin = b.max(up(keys[1]), first);
  Value fullEnd = down(b.min(keys[2], last));
  Value none = b.compare(Predicate::sge, fullBegin, fullEnd);
  fullBegin = b.select(none, first, fullBegin);
  fullEnd = b.select(none, first, fullEnd);
  scalars.map(op.getBegin(), first);
  scalars.map(op.getFullBegin(), fullBegin);
  scalars.map(op.getFullEnd(), fullEnd);
  scalars.map(op.getEnd(), last);
  startPipeline(first, last);
}

void AmpereLowering::lower(KvLoopOp op) {
  fetchQ();
  Block &body = op.getBody().front();
  Values inits;
  for (Value init : op.getInits())
    llvm::append_range(inits, fragment(init).registers);
  auto bind = [&](ValueRange tiles, ValueRange registers) {
    for (Value tile : tiles) {
      int64_t count = Fragment::registersOf(cast<TileType>(tile.getType()));
      fragment(tile).registers = Values(registers.take_front(count));
      registers = registers.drop_front(count);
    }
  };
  Values results =
      b.forLoop(scalar(op.getLo()), scalar(op.getHi()), int64_t(op.getStep()),
                inits, [&](Value j, ValueRange carried) {
                  scalars.map(op.getIndex(), j);
                  bind(op.getCarried(), carried);
                  acquireTile(j);
                  lowerOps(body);
                  Values next;
                  for (Value value : body.getTerminator()->getOperands())
                    llvm::append_range(next, fragment(value).registers);
                  return next;
                });
  bind(op.getResults(), results);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult pagoda::lowerNvidiaTiles(ModuleOp module) {
  SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
  if (kernels.empty())
    return success();
  if (!kernels.front().getTarget())
    return kernels.front().emitOpError("has no nvidia target");
  gpu::GPUModuleOp device =
      deviceModule(module, kernels.front().getTarget()->getName());
  for (KernelOp kernel : kernels) {
    GpuBuilder b(kernel.getLoc(), device.getContext());
    b.setInsertionPointToEnd(device.getBody());
    if (failed(AmpereLowering(kernel, b).run()))
      return failure();
    kernel.erase();
  }
  return success();
}

namespace pagoda {
#define GEN_PASS_DEF_NVIDIALOWERTILES
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct NvidiaLowerTilesPass
    : pagoda::impl::NvidiaLowerTilesBase<NvidiaLowerTilesPass> {
  void runOnOperation() override {
    if (failed(lowerNvidiaTiles(getOperation())))
      signalPassFailure();
  }
};
} // namespace
