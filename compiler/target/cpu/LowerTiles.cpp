//===- LowerTiles.cpp - Tiled level to vector, scf, arith and llvm --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns each pagoda.kernel into an llvm.func of type pagoda_kernel_fn, op by
// op. Lowers here what no layout matters for: the loop over items, coordinates,
// key ranges, KV loops, pointers to cache rows through the block table. Tiles
// are the emitters' business (TileEmitter.h). Stops at loops and vectors; the
// LLVM dialect is upstream's work.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LowerTiles.h"
#include "compiler/Passes.h"
#include "compiler/target/cpu/CheckKernel.h"
#include "compiler/target/cpu/KvLoops.h"
#include "compiler/target/cpu/PanelVisits.h"
#include "compiler/target/cpu/TileEmitter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

Value KernelContext::arg(StringRef field) {
  Value &value = loadedArgs[field];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    // After the entry block's argument loads, before everything that uses them.
    b.setInsertionPointToStart(cast<BlockArgument>(args).getOwner());
    AbiField abi = attentionField(field);
    value = b.load(fieldType(b.getContext(), abi.type), b.at(args, abi.offset));
  }
  return value;
}

Value KernelContext::aux(StringRef name, int64_t offset, Type type) {
  Value &value = loadedArgs[(name + "+" + Twine(offset)).str()];
  if (!value) {
    Value records = arg("aux");
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(records);
    unsigned number = 0;
    name.drop_front(strlen("aux.")).getAsInteger(10, number);
    int64_t record = int64_t(number) * int64_t(sizeof(pagoda_aux_tensor));
    value = b.load(type, b.at(records, record + offset));
  }
  return value;
}

ItemValues KernelContext::loadItem(Value pointer) {
  auto field = [&](StringRef name) {
    return b.load(b.i32Type(), b.at(pointer, itemField(name).offset));
  };
  ItemValues values = {
      field("table_row"),    field("row_map_offset"), field("row_count"),
      field("head_begin"),   field("kv_end"),         field("kv_begin"),
      field("partial_slot"), field("flags"),          {}};
  values.packedRows = b.mul(values.rowCount, group);
  return values;
}

namespace {

class KernelLowering {
public:
  KernelLowering(KernelOp kernel, CpuBuilder &b) : b(b), c(b, kernel) {}

  LogicalResult run();

private:
  void lowerBody(Block &block);
  void lowerForItems(ForItemsOp op);
  void lowerForMerges(ForMergesOp op);
  void lowerCoords(CoordsOp op);
  void lowerKvRange(KvRangeOp op);
  void computePanelRanges(KvRangeOp op);
  SmallVector<Value> visibleKeys(KvRangeOp op, Value seq, Value qLo, Value qHi);
  SmallVector<Value> keysOfRows(KvRangeOp op, Value firstRow, Value lastRow);
  KernelDescription describe();

  CpuBuilder &b;
  KernelContext c;
  std::unique_ptr<TileEmitter> emitter;
  std::optional<PanelVisits> visits;
  /// Panels may begin to see keys elsewhere than at key 0.
  bool rangeBegins = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::run() {
  b.setInsertionPoint(c.kernel);
  Type pointer = b.pointerType();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  {pointer, b.i64Type(), b.i64Type(), pointer});
  auto function = LLVM::LLVMFuncOp::create(b, c.kernel.getSymName(), type);
  function.setArgAttr(3, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  c.args = entry->getArgument(0);
  c.scratch = entry->getArgument(3);
  emitter = c.schedule.getLanes() == Lanes::queries
                ? TileEmitter::lanesAreQueries(c)
                : TileEmitter::lanesAreHeadDim(c);
  lowerBody(c.kernel.getBody().front());
  LLVM::ReturnOp::create(b, ValueRange{});
  // Slots are addressed by 32-bit constants.
  if (c.slots.bytes() > std::numeric_limits<int32_t>::max()) {
    function.erase();
    return c.kernel.emitOpError()
           << "needs " << c.slots.bytes()
           << " bytes of scratch memory, expected less than 2 GiB";
  }
  setDescription(function, describe());
  c.kernel.erase();
  return success();
}

KernelDescription KernelLowering::describe() {
  KernelDescription result;
  result.symbol = c.kernel.getSymName().str();
  result.target = ("cpu:" + c.kernel.getTarget()->getName()).str();
  llvm::raw_string_ostream(result.schedule) << c.schedule;
  pagoda_kernel_info &info = result.info;
  info.scratch_bytes = c.slots.bytes();
  info.cpu_features = uint64_t(c.kernel.getTarget()->getCpuFeatures());
  info.role = int32_t(c.kernel.getRole());
  info.features = uint32_t(c.kernel.getFeatures());
  if (auto hash = c.kernel->getAttrOfType<IntegerAttr>("pagoda.mods_hash"))
    info.mods_hash = uint64_t(hash.getInt());
  info.q_heads = int32_t(c.kernel.getQHeads());
  info.kv_heads = int32_t(c.cache.getHeads());
  info.head_dim = int32_t(c.cache.getKDim());
  info.v_head_dim = int32_t(c.cache.getVDim());
  info.block_size = int32_t(c.cache.getBlock());
  info.layout =
      c.cache.getLayout() == CacheLayout::nhd ? PAGODA_NHD : PAGODA_HND;
  info.q_dtype = info.o_dtype = dtypeOf(c.kernel.getQType());
  info.k_dtype = info.v_dtype = dtypeOf(c.cache.getElt());
  info.max_rows = int32_t(c.maxTokens());
  info.heads_per_item = int32_t(c.schedule.getHeads());
  info.kv_tile = int32_t(c.kvTile());
  info.threads = 1;
  return result;
}

/// Lowers ops that stand outside of a KV loop.
void KernelLowering::lowerBody(Block &block) {
  auto perPanel = [&](llvm::function_ref<void(const Panel &)> body) {
    emitter->forEachPanel(body);
  };
  for (Operation &op : block) {
    TypeSwitch<Operation *>(&op)
        .Case([&](ForItemsOp loop) { lowerForItems(loop); })
        .Case([&](ForMergesOp loop) { lowerForMerges(loop); })
        .Case([&](ArgOp arg) {
          c.scalars.map(arg.getResult(), c.arg(arg.getField()));
        })
        .Case([&](LoadQOp) {
          if (!emitter->visitsInTurn())
            perPanel([&](const Panel &panel) { emitter->loadQ(panel); });
        })
        .Case([&](CoordsOp coords) { lowerCoords(coords); })
        .Case([&](KvRangeOp range) { lowerKvRange(range); })
        .Case([&](StateInitOp init) {
          if (emitter->visitsInTurn()) {
            visits.emplace(
                c, *emitter,
                b.getBlock()->getParent()->getParentOfType<LLVM::LLVMFuncOp>(),
                init, *block.getOps<StoreOp>().begin());
            return visits->begin();
          }
          perPanel(
              [&](const Panel &panel) { emitter->initState(init, panel); });
        })
        .Case([&](KvLoopOp loop) {
          auto all = llvm::to_vector(block.getOps<KvLoopOp>());
          if (loop != all.front())
            return;
          KvLoops loops(c, *emitter, visits ? &*visits : nullptr, rangeBegins);
          if (emitter->pipelines())
            loops.lowerOverlapping(all);
          else
            loops.lower(all);
        })
        .Case([&](MergePartialsOp merge) {
          perPanel([&](const Panel &panel) {
            emitter->mergePartials(merge, panel);
          });
        })
        .Case([&](StoreOp store) {
          if (visits)
            return visits->finish();
          perPanel([&](const Panel &panel) { emitter->store(store, panel); });
        })
        .Case([&](YieldOp) {})
        .Default([&](Operation *scalar) { b.clone(*scalar, c.scalars); });
  }
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void KernelLowering::lowerForItems(ForItemsOp op) {
  Value items = c.arg("items");
  auto function = b.getBlock()->getParentOp();
  Block &entry = function->getRegion(0).front();
  b.forLoop(entry.getArgument(1), entry.getArgument(2), 1, [&](Value index) {
    auto pointerTo = [&](Value index) {
      return b.at(items, b.mul(index, int64_t(sizeof(pagoda_work_item))));
    };
    c.itemPointer = pointerTo(index);
    c.item = c.loadItem(c.itemPointer);
    c.next = c.loadItem(
        pointerTo(b.min(b.add(index, 1), b.sub(entry.getArgument(2), 1))));
    lowerBody(op.getBody().front());
  });
}

void KernelLowering::lowerForMerges(ForMergesOp op) {
  Value merges = c.arg("merges");
  auto function = b.getBlock()->getParentOp();
  Block &entry = function->getRegion(0).front();
  b.forLoop(entry.getArgument(1), entry.getArgument(2), 1, [&](Value index) {
    Value merge =
        b.at(merges, b.mul(index, int64_t(sizeof(pagoda_merge_item))));
    auto field = [&](StringRef name) {
      return b.load(b.i32Type(), b.at(merge, mergeField(name).offset));
    };
    // One row: all query heads of all KV heads. The slots of a merge take the
    // place of keys, the row of q stands for itself.
    Value zero = b.i32(0);
    c.item = {};
    c.item.rowMapOffset = field("q_row");
    c.item.rowCount = b.i32(1);
    c.item.headBegin = zero;
    c.item.kvBegin = field("slots_begin");
    c.item.kvEnd = b.add(c.item.kvBegin, field("slot_count"));
    c.item.partialSlot = b.i32(-1);
    c.item.packedRows = b.i32(c.group);
    lowerBody(op.getBody().front());
  });
}

void KernelLowering::lowerCoords(CoordsOp op) {
  // Positions, heads and sequences of packed rows. Rows past the last token
  // repeat it: they are computed and never stored.
  int64_t rows = emitter->panels() * emitter->panelRows();
  c.rowPositions = c.slots.reserve(rows * 4);
  c.rowHeads = c.slots.reserve(rows * 4);
  c.rowSequences = c.slots.reserve(rows * 4);
  Value positions = c.arg("row_pos"), sequences = c.arg("row_seq");
  Value last = b.sub(c.item.rowCount, 1);
  Value firstHead = b.mul(c.item.headBegin, c.group);
  b.forLoop(b.i32(0), b.i32(rows), 1, [&](Value row) {
    Value token = b.div(row, c.group);
    Value head = b.sub(row, b.mul(token, c.group));
    Value entry = b.add(c.item.rowMapOffset, b.min(token, last));
    Value offset = b.mul(b.widen(entry), 4);
    Value slot = b.mul(b.widen(row), 4);
    auto copy = [&](Value from, int64_t to) {
      b.store(b.load(b.i32Type(), b.at(from, offset)), b.at(c.slot(to), slot));
    };
    copy(positions, c.rowPositions);
    copy(sequences, c.rowSequences);
    b.store(b.add(firstHead, head), b.at(c.slot(c.rowHeads), slot));
  });
}

//===----------------------------------------------------------------------===//
// Ranges and loops
//===----------------------------------------------------------------------===//

/// (lo, full_lo, full_hi, hi) for the positions qLo to qHi of sequence seq.
SmallVector<Value> KernelLowering::visibleKeys(KvRangeOp op, Value seq,
                                               Value qLo, Value qHi) {
  return emitScalarRegion(c, op.getBody(), {seq, qLo, qHi});
}

/// The same for packed rows firstRow to lastRow of the item.
SmallVector<Value> KernelLowering::keysOfRows(KvRangeOp op, Value firstRow,
                                              Value lastRow) {
  auto coordinate = [&](int64_t array, Value row) {
    return b.load(b.i32Type(), b.at(c.slot(array), b.mul(b.widen(row), 4)));
  };
  return visibleKeys(op, coordinate(c.rowSequences, firstRow),
                     coordinate(c.rowPositions, firstRow),
                     coordinate(c.rowPositions, lastRow));
}

void KernelLowering::lowerKvRange(KvRangeOp op) {
  Value begin = c.item.kvBegin, end = c.item.kvEnd;
  SmallVector<Value> keys;
  if (op.getBody().empty()) {
    keys = {begin, begin, end, end};
  } else {
    auto plan = [&](StringRef array, Value token) {
      Value entry = b.widen(b.add(c.item.rowMapOffset, token));
      return b.load(b.i32Type(), b.at(c.arg(array), b.mul(entry, 4)));
    };
    keys = visibleKeys(op, plan("row_seq", b.i32(0)), plan("row_pos", b.i32(0)),
                       plan("row_pos", b.sub(c.item.rowCount, 1)));
    for (Value &key : keys)
      key = b.min(b.max(key, begin), end);
    computePanelRanges(op);
    Operation *yield = op.getBody().front().getTerminator();
    bool atZero = matchPattern(yield->getOperand(0), m_Zero());
    rangeBegins = yield->getOperand(0) != yield->getOperand(1) || !atZero;
    if (!atZero)
      c.firstKey = keys[0];
  }
  // Rounded to tiles counted from the item's first key: `lo` and `full_hi`
  // down, `full_lo` up. Without a full run everything is masked tail; where no
  // key is seen, there is none.
  int64_t step = op.getStep();
  auto down = [&](Value key) {
    return b.add(begin, b.mul(b.div(b.sub(key, begin), step), step));
  };
  auto up = [&](Value key) {
    return b.add(begin, b.mul(b.ceilDiv(b.sub(key, begin), step), step));
  };
  Value first = down(keys[0]);
  Value seen = b.compare(Predicate::slt, keys[0], keys[3]);
  Value last = b.select(seen, keys[3], first);
  Value fullBegin = b.max(up(keys[1]), first);
  Value fullEnd = down(b.min(keys[2], last));
  Value none = b.compare(Predicate::sge, fullBegin, fullEnd);
  fullBegin = b.select(none, first, fullBegin);
  fullEnd = b.select(none, first, fullEnd);
  c.scalars.map(op.getBegin(), first);
  c.scalars.map(op.getFullBegin(), fullBegin);
  c.scalars.map(op.getFullEnd(), fullEnd);
  c.scalars.map(op.getEnd(), last);
}

/// A panel holds fewer query positions than the item, so it sees fewer keys:
/// knowing which saves most of the work above the diagonal.
void KernelLowering::computePanelRanges(KvRangeOp op) {
  // Lanes of head dim mask all keys of a tile: a panel that is the whole item
  // has nothing to gain.
  bool masksAll = c.schedule.getLanes() == Lanes::head_dim;
  if ((emitter->panels() == 1 && masksAll) || c.maxTokens() == 1 ||
      emitter->pipelines())
    return;
  c.panelRanges = c.slots.reserve(emitter->panels() * 16);
  int64_t rows = emitter->panelRows();
  Value count = b.ceilDiv(c.item.packedRows, rows);
  Value last = b.sub(c.item.packedRows, 1);
  b.forLoop(b.i32(0), count, 1, [&](Value panel) {
    Value row = b.mul(panel, rows);
    SmallVector<Value> keys =
        keysOfRows(op, row, b.min(b.add(row, rows - 1), last));
    Value range = b.at(c.slot(*c.panelRanges), b.mul(b.widen(panel), 16));
    for (auto [i, key] : llvm::enumerate(keys))
      b.store(key, b.at(range, i * 4));
  });

  // The rows of a vector see even fewer.
  int64_t vectors = emitter->panelVectors(), lanes = rows / vectors;
  if (vectors == 1)
    return;
  c.vectorEnds = c.slots.reserve(emitter->panels() * vectors * 4);
  b.forLoop(b.i32(0), b.mul(count, vectors), 1, [&](Value vector) {
    Value row = b.min(b.mul(vector, lanes), last);
    Value end = keysOfRows(op, row, b.min(b.add(row, lanes - 1), last))[3];
    b.store(end, b.at(c.slot(*c.vectorEnds), b.mul(b.widen(vector), 4)));
  });
}

LogicalResult pagoda::lowerCpuTiles(KernelOp kernel) {
  if (failed(checkCpuKernel(kernel)))
    return failure();
  CpuBuilder b(kernel.getLoc(), kernel);
  return KernelLowering(kernel, b).run();
}

namespace pagoda {
#define GEN_PASS_DEF_CPULOWERTILES
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct CpuLowerTilesPass : pagoda::impl::CpuLowerTilesBase<CpuLowerTilesPass> {
  void runOnOperation() override {
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(lowerCpuTiles(kernel)))
        return signalPassFailure();
  }
};
} // namespace
