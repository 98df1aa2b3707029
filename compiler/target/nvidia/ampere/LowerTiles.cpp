//===- LowerTiles.cpp - Tiled level to fragments, Ampere style ------------===//
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

#include "mlir/IR/Matchers.h"
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
  LLVM::LLVMFuncOp function =
      createGpuKernel(b, kernel.getSymName(), threads(),
                      sizeof(pagoda_attention_args), claimedBlocks());
  Block *entry = function.addEntryBlock(b);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  args = entry->getArgument(0);
  if (kernel.getRole() == Role::attention)
    createPipelines();
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
        .Case([&](ArgOp argument) { lower(argument, values); })
        // A reference names the part of the acquired slot that qk and pv read.
        .Case<KvRefOp, YieldOp>([](Operation *) {})
        .Default([&](Operation *other) { b.clone(*other, values); });
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
  IRMapping mapping(values);
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
    nv::WaitOp::create(b, qPipeline, 0);
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

nv::FragmentType AmpereLowering::fragmentOf(TileType tile) {
  auto layout = cast<FragmentLayoutAttr>(tile.getLayout());
  nv::Form form = *nv::symbolizeForm(layout.getForm());
  return nv::FragmentType::get(b.getContext(), tile.getRows(), tile.getCols(),
                               form == nv::Form::a ? element() : tile.getElt(),
                               form);
}

nv::FragmentType AmpereLowering::rowsOf(Type elt) {
  return nv::FragmentType::get(b.getContext(), schedule.getQTile(), 1, elt,
                               nv::Form::row);
}

void AmpereLowering::fill(Operation *op, TypeRange arguments,
                          llvm::function_ref<Values(ValueRange)> body) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(arguments.size(), b.getLoc());
  Block *block = b.createBlock(&op->getRegion(0), {}, arguments, locations);
  Values results = body(block->getArguments());
  nv::YieldOp::create(b, results);
}

SmallVector<Type> AmpereLowering::rowInputs(ValueRange sources) {
  SmallVector<Type> types{b.i32Type()};
  for (Value source : sources)
    types.push_back(cast<nv::FragmentType>(source.getType()).getElt());
  return types;
}

Values AmpereLowering::perRow(TypeRange results, ValueRange sources,
                              llvm::function_ref<Values(ValueRange)> body) {
  auto op = nv::PerRowOp::create(b, results, sources);
  fill(op, rowInputs(sources), body);
  return Values(op.getResults());
}

Value AmpereLowering::headOf(Value row) {
  return b.add(b.mul(item.headBegin, group), b.rem(row, group));
}

Value AmpereLowering::planEntry(Value token) {
  return b.add(item.rowMapOffset, b.min(token, b.sub(item.rowCount, 1)));
}

void AmpereLowering::lower(CoordsOp op) {
  Type rows = rowsOf(b.i32Type());
  coordinates[op.getCoords()] =
      perRow({rows, rows, rows}, {}, [&](ValueRange inputs) {
        Value row = inputs[0], entry = planEntry(tokenOf(row));
        auto load = [&](StringRef array) {
          return b.loadConstant(b.i32Type(), b.element(arg(array), entry));
        };
        return Values{load("row_seq"), headOf(row), load("row_pos")};
      });
}

//===----------------------------------------------------------------------===//
// Ranges and loops
//===----------------------------------------------------------------------===//

/// (lo, full_lo, full_hi, hi) for the positions qLo to qHi of sequence seq.
SmallVector<Value> AmpereLowering::visibleKeys(KvRangeOp op, Value seq,
                                               Value qLo, Value qHi) {
  IRMapping mapping(values);
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
    Value lo = op.getBody().front().getTerminator()->getOperand(0);
    if (!matchPattern(lo, m_Zero()))
      firstKey = keys[0];
  }
  // Rounded to tiles counted from the item's first key: `lo` and `full_hi`
  // down, `full_lo` up. Without a full run everything is masked tail; where no
  // key is seen, there is none.
  int64_t step = op.getStep();
  auto down = [&](Value key) {
    return b.add(begin, b.mul(b.div(b.sub(key, begin), step), step));
  };
  auto up = [&](Value key) { return down(b.add(key, step - 1)); };
  Value first = down(keys[0]);
  Value seen = b.compare(Predicate::slt, keys[0], keys[3]);
  Value last = b.select(seen, keys[3], first);
  Value fullBegin = b.max(up(keys[1]), first);
  Value fullEnd = down(b.min(keys[2], last));
  Value none = b.compare(Predicate::sge, fullBegin, fullEnd);
  fullBegin = b.select(none, first, fullBegin);
  fullEnd = b.select(none, first, fullEnd);
  values.map(op.getBegin(), first);
  values.map(op.getFullBegin(), fullBegin);
  values.map(op.getFullEnd(), fullEnd);
  values.map(op.getEnd(), last);
  startPipeline(first, last);
}

void AmpereLowering::lower(KvLoopOp op) {
  fetchQ();
  Block &body = op.getBody().front();
  auto all = [&](ValueRange tiles) {
    return llvm::map_to_vector(tiles,
                               [&](Value tile) { return lowered(tile); });
  };
  Values results =
      b.forLoop(lowered(op.getLo()), lowered(op.getHi()), int64_t(op.getStep()),
                all(op.getInits()), [&](Value j, ValueRange carried) {
                  values.map(op.getIndex(), j);
                  values.map(op.getCarried(), carried);
                  acquireTile(j);
                  lowerOps(body);
                  nv::ReleaseOp::create(b, kvPipeline);
                  return Values(all(body.getTerminator()->getOperands()));
                });
  values.map(op.getResults(), results);
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
