//===- Staging.cpp - Q, K and V on their way to shared memory -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory holds Q and `stages` slots of one K and one V tile. Each row
// comes through the block table: blocks may be smaller or larger than a tile.
// Rows that do not exist are filled with zeros and never read, so that what
// lies in the unused part of a block (NaN, say) meets no product.
//
// With s stages the copy of tile t + s - 1 starts once tile t has been waited
// for, into the slot that tile t - 1 has left. The order of groups of copies is
// Q, tile 0, tile 1, ...: waiting until s - 2 groups are under way is waiting
// for the tile at hand.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/Lowering.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

nv::PipelineType AmpereLowering::qPipelineType() {
  MLIRContext *context = b.getContext();
  auto tile = nv::SharedType::get(context, schedule.getQTile(), cache.getKDim(),
                                  element());
  return nv::PipelineType::get(context, 1, tile);
}

nv::PipelineType AmpereLowering::kvPipelineType() {
  MLIRContext *context = b.getContext();
  auto tile = [&](int64_t dim) {
    return nv::SharedType::get(context, schedule.getKvTile(), dim, element());
  };
  return nv::PipelineType::get(context, schedule.getStages(),
                               {tile(cache.getKDim()), tile(cache.getVDim())});
}

void AmpereLowering::createPipelines() {
  nv::PipelineType ofQ = qPipelineType();
  qPipeline = nv::PipelineOp::create(b, ofQ, uint64_t(0));
  kvPipeline =
      nv::PipelineOp::create(b, kvPipelineType(), uint64_t(ofQ.getBytes()));
}

static nv::SlotOp slot(GpuBuilder &b, Value pipeline, Value index) {
  ArrayRef<nv::SharedType> tiles =
      cast<nv::PipelineType>(pipeline.getType()).getTiles();
  return nv::SlotOp::create(b, SmallVector<Type>(tiles), pipeline, index);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AmpereLowering::copyRows(Value tile, Value limit,
                              llvm::function_ref<Value(Value row)> begin) {
  auto copy = nv::CopyRowsOp::create(b, tile, limit);
  fill(copy, b.i32Type(),
       [&](ValueRange inputs) { return Values{begin(inputs[0])}; });
}

/// Packed row r of the item is head r % group of token r / group.
void AmpereLowering::lower(LoadQOp op) {
  Value base = arg("q"), rowMap = arg("row_map");
  Value tokenStride = b.mul(arg("q_token_stride"), elementBytes());
  Value headStride = b.mul(arg("q_head_stride"), elementBytes());
  Value tile = slot(b, qPipeline, b.i32(0)).getTiles()[0];
  copyRows(tile, item.packedRows, [&](Value row) {
    Value index =
        b.loadConstant(b.i32Type(), b.element(rowMap, planEntry(tokenOf(row))));
    Value offset = b.add(b.mul(b.widen(index), tokenStride),
                         b.mul(b.widen(headOf(row)), headStride));
    return b.at(base, offset);
  });
  nv::CommitOp::create(b, qPipeline);
  q = {};
}

Value AmpereLowering::cacheRow(StringRef part, Value position) {
  auto field = [&](const char *name) { return arg((part + name).str()); };
  auto stride = [&](const char *name) {
    return b.mul(field(name), elementBytes());
  };
  Value table =
      b.at(arg("block_table"),
           b.mul(b.mul(b.widen(item.tableRow), arg("block_table_stride")), 4));
  // Positions past the last one repeat it, so that the block table is never
  // read beyond the item's keys; those before the first that is seen repeat
  // that, as their blocks may have been let go of.
  Value inside = position;
  if (firstKey)
    inside = b.max(inside, firstKey);
  inside = b.min(inside, b.sub(pipeline.end, 1));
  Value logical = b.div(inside, cache.getBlock());
  Value physical = b.loadConstant(b.i32Type(), b.element(table, logical));
  // What all positions share comes first: loops over tiles have it once.
  Value head = b.at(field(".base"),
                    b.mul(b.widen(item.headBegin), stride(".head_stride")));
  return b.at(head, b.add(b.mul(b.widen(physical), stride(".block_stride")),
                          b.mul(b.widen(b.rem(inside, cache.getBlock())),
                                stride(".token_stride"))));
}

void AmpereLowering::copyTile(Value j) {
  nv::SlotOp tiles = slot(b, kvPipeline, slotOf(j));
  Value limit = b.sub(pipeline.end, j);
  for (auto [tile, part] :
       llvm::zip_equal(tiles.getTiles(), ArrayRef<StringRef>{"k", "v"}))
    copyRows(tile, limit, [&, part = part](Value row) {
      return cacheRow(part, b.add(j, row));
    });
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

Value AmpereLowering::slotOf(Value j) {
  Value tile = b.div(b.sub(j, pipeline.begin), schedule.getKvTile());
  return b.rem(tile, schedule.getStages());
}

void AmpereLowering::startPipeline(Value begin, Value end) {
  pipeline = {begin, end, {}, {}};
  for (int64_t ahead = 0; ahead + 1 < schedule.getStages(); ++ahead) {
    Value j = b.add(begin, ahead * schedule.getKvTile());
    b.ifThen(b.compare(Predicate::slt, j, end), [&] { copyTile(j); });
    nv::CommitOp::create(b, kvPipeline);
  }
}

void AmpereLowering::acquireTile(Value j) {
  int64_t stages = schedule.getStages();
  if (stages == 1) {
    nv::AcquireOp::create(b, kvPipeline);
    copyTile(j);
    nv::CommitOp::create(b, kvPipeline);
    nv::WaitOp::create(b, kvPipeline, 0);
  } else {
    nv::WaitOp::create(b, kvPipeline, uint64_t(stages - 2));
    nv::AcquireOp::create(b, kvPipeline);
    Value later = b.add(j, (stages - 1) * schedule.getKvTile());
    b.ifThen(b.compare(Predicate::slt, later, pipeline.end),
             [&] { copyTile(later); });
    nv::CommitOp::create(b, kvPipeline);
  }
  nv::SlotOp tiles = slot(b, kvPipeline, slotOf(j));
  pipeline.key = tiles.getTiles()[0];
  pipeline.value = tiles.getTiles()[1];
}

void AmpereLowering::fetchQ() {
  if (q)
    return;
  q = slot(b, qPipeline, b.i32(0)).getTiles()[0];
  if (!keepsQInRegisters())
    return; // the wait for the first tile of keys is one for Q
  // Younger than Q are the groups that startPipeline has closed.
  nv::WaitOp::create(b, qPipeline, uint64_t(schedule.getStages() - 1));
  auto tile = cast<nv::SharedType>(q.getType());
  q = nv::LoadOp::create(b,
                         nv::FragmentType::get(b.getContext(), tile.getRows(),
                                               tile.getCols(), tile.getElt(),
                                               nv::Form::a),
                         q);
}
