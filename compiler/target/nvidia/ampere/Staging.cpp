//===- Staging.cpp - Q, K and V on their way to shared memory -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory holds Q and `stages` slots of one K and one V tile. All threads
// copy, 16 bytes at a time and, where rows are aligned, asynchronously, each
// row through the block table: blocks may be smaller or larger than a tile.
// Rows that do not exist are filled with zeros and never read, so that what
// lies in the unused part of a block (NaN, say) meets no product.
//
// With s stages the copy of tile t + s - 1 starts once tile t has been
// acquired, into the slot that tile t - 1 has left. The order of copy groups of
// a thread is Q, tile 0, tile 1, ...: waiting until s - 2 groups are under way
// is waiting for the tile at hand.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/Lowering.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Shared tiles
//===----------------------------------------------------------------------===//

// A phase of ldmatrix reads 16 bytes of eight consecutive rows; shared memory
// serves 128 bytes, eight chunks, at a time. Rows of c chunks begin in bank
// group c * row % 8, which takes 8 / p values, p the largest power of two (up
// to 8) that divides c. Permuting the chunks within groups of p by row / (8 /
// p) makes them eight.
static int64_t permuted(int64_t chunks) {
  return std::min<int64_t>(8, chunks & -chunks);
}

int64_t SharedTile::period() const { return permuted(chunks); }

Value SharedTile::placeOf(GpuBuilder &b, Value row, Value chunk) const {
  Value turn = b.rem(b.div(row, 8 / period()), period());
  return b.bitXor(chunk, turn);
}

Value SharedTile::chunkAt(GpuBuilder &b, Value row, Value chunk) const {
  Value index = b.add(b.mul(row, chunks), placeOf(b, row, chunk));
  return b.at(base, b.mul(index, 16));
}

int64_t AmpereLowering::bytesOf(KvPart part) const {
  int64_t columns = part == KvPart::key ? kColumns() : vColumns();
  return schedule.getKvTile() * columns * elementBytes();
}

int64_t AmpereLowering::slotBytes() const {
  return bytesOf(KvPart::key) + bytesOf(KvPart::value);
}

int64_t AmpereLowering::qBytes() const {
  return schedule.getQTile() * kColumns() * elementBytes();
}

int64_t AmpereLowering::sharedBytes() const {
  return qBytes() + schedule.getStages() * slotBytes();
}

SharedTile AmpereLowering::qTile() { return {shared, chunksOf(kColumns())}; }

SharedTile AmpereLowering::kvTile(KvPart part, Value slot) {
  bool key = part == KvPart::key;
  Value base = b.at(shared, b.mul(slot, slotBytes()));
  base = b.at(base, qBytes() + (key ? 0 : bytesOf(KvPart::key)));
  return {base, chunksOf(key ? kColumns() : vColumns())};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Elements 8 chunk to 8 chunk + 7 of a row that may begin anywhere.
Value AmpereLowering::gatherChunk(const GlobalRow &row, Value chunk,
                                  int64_t dim) {
  Type bits = b.getI16Type();
  Value zero = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
  Value result = LLVM::PoisonOp::create(b, VectorType::get({8}, bits));
  for (int64_t i = 0; i < 8; ++i) {
    Value column = b.add(b.mul(chunk, 8), i);
    // Columns past the last one repeat it, so that nothing beyond it is read.
    Value inside = b.min(column, b.i32(dim - 1));
    Value value = b.loadConstant(
        bits, b.at(row.begin, b.mul(b.widen(inside), elementBytes())));
    Value counts =
        b.both(row.exists, b.compare(Predicate::slt, column, b.i32(dim)));
    result = LLVM::InsertElementOp::create(
        b, result, b.select(counts, value, zero), b.i32(i));
  }
  return result;
}

/// Asynchronously where rows begin at multiples of 16 bytes, which they can if
/// they are that long; else through registers.
void AmpereLowering::copyChunk(Value target, const GlobalRow &row, Value chunk,
                               int64_t dim) {
  if (dim % 8 != 0)
    return b.store(gatherChunk(row, chunk, dim), target, /*alignment=*/16);
  Value exists = row.exists;
  if (dim % 16 != 0)
    exists = b.both(exists, b.compare(Predicate::slt, chunk, b.i32(dim / 8)));
  b.copy16(target, b.at(row.begin, b.mul(b.widen(chunk), 16)),
           b.select(exists, b.i32(16), b.i32(0)));
}

void AmpereLowering::copyRows(SharedTile tile, int64_t rows, int64_t dim,
                              llvm::function_ref<GlobalRow(Value row)> source) {
  // Whole rows at a time, so that a thread has the same chunk in every round: a
  // few threads may be left over.
  int64_t atOnce = threads() / tile.chunks;
  Value firstRow = b.div(thread, tile.chunks);
  Value chunk = b.rem(thread, tile.chunks);
  for (int64_t first = 0; first < rows; first += atOnce) {
    int64_t used = std::min(atOnce, rows - first) * tile.chunks;
    auto copy = [&] {
      Value row = b.add(firstRow, first);
      copyChunk(tile.chunkAt(b, row, chunk), source(row), chunk, dim);
    };
    if (used == threads())
      copy();
    else
      b.ifThen(b.compare(Predicate::ult, thread, b.i32(used)), copy);
  }
}

/// Packed row r of the item is head r % group of token r / group.
void AmpereLowering::lower(LoadQOp op) {
  Value base = arg("q"), rowMap = arg("row_map");
  Value tokenStride = b.mul(arg("q_token_stride"), elementBytes());
  Value headStride = b.mul(arg("q_head_stride"), elementBytes());
  Value firstHead = b.mul(item.headBegin, group);
  copyRows(qTile(), schedule.getQTile(), cache.getKDim(), [&](Value row) {
    Value token = b.div(row, group);
    Value head = b.add(firstHead, b.rem(row, group));
    Value index =
        b.loadConstant(b.i32Type(), b.element(rowMap, planEntry(token)));
    Value offset = b.add(b.mul(b.widen(index), tokenStride),
                         b.mul(b.widen(head), headStride));
    return GlobalRow{b.at(base, offset),
                     b.compare(Predicate::slt, row, item.packedRows)};
  });
  b.commitCopies();
  qRegisters.clear();
}

/// Position `position` of the item's sequence: its row in the cache.
AmpereLowering::GlobalRow AmpereLowering::cacheRow(StringRef part,
                                                   Value position) {
  auto field = [&](const char *name) { return arg((part + name).str()); };
  auto stride = [&](const char *name) {
    return b.mul(field(name), elementBytes());
  };
  Value table =
      b.at(arg("block_table"),
           b.mul(b.mul(b.widen(item.tableRow), arg("block_table_stride")), 4));
  // Positions past the last one repeat it, so that the block table is never
  // read beyond the item's keys.
  Value last = b.sub(pipeline.end, 1);
  Value inside = b.min(position, last);
  Value logical = b.div(inside, cache.getBlock());
  Value physical = b.loadConstant(b.i32Type(), b.element(table, logical));
  Value offset = b.add(
      b.mul(b.widen(physical), stride(".block_stride")),
      b.mul(b.widen(b.rem(inside, cache.getBlock())), stride(".token_stride")));
  offset =
      b.add(offset, b.mul(b.widen(item.headBegin), stride(".head_stride")));
  return {b.at(field(".base"), offset),
          b.compare(Predicate::slt, position, pipeline.end)};
}

void AmpereLowering::copyTile(Value j) {
  Value slot = slotOf(j);
  for (auto [part, name, dim] :
       {std::tuple(KvPart::key, "k", int64_t(cache.getKDim())),
        {KvPart::value, "v", int64_t(cache.getVDim())}})
    copyRows(
        kvTile(part, slot), schedule.getKvTile(), dim,
        [&, name = name](Value row) { return cacheRow(name, b.add(j, row)); });
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

Value AmpereLowering::slotOf(Value j) {
  Value tile = b.div(b.sub(j, pipeline.begin), schedule.getKvTile());
  return b.rem(tile, schedule.getStages());
}

void AmpereLowering::startPipeline(Value begin, Value end) {
  pipeline = {begin, end, {}};
  for (int64_t ahead = 0; ahead + 1 < schedule.getStages(); ++ahead) {
    Value j = b.add(begin, ahead * schedule.getKvTile());
    b.ifThen(b.compare(Predicate::slt, j, end), [&] { copyTile(j); });
    b.commitCopies();
  }
}

void AmpereLowering::acquireTile(Value j) {
  int64_t stages = schedule.getStages();
  if (stages == 1) {
    // One slot: everyone leaves it, it is filled, everyone sees it.
    b.barrier();
    copyTile(j);
    b.commitCopies();
    b.waitForCopies(0);
    b.barrier();
  } else {
    // The barrier says two things: every thread's copies of this tile have
    // landed, and every warp has left the tile before it.
    b.waitForCopies(stages - 2);
    b.barrier();
    Value later = b.add(j, (stages - 1) * schedule.getKvTile());
    b.ifThen(b.compare(Predicate::slt, later, pipeline.end),
             [&] { copyTile(later); });
    b.commitCopies();
  }
  pipeline.slot = slotOf(j);
}

void AmpereLowering::fetchQ() {
  if (!keepsQInRegisters() || !qRegisters.empty())
    return;
  // Younger than Q are the groups that startPipeline has closed.
  b.waitForCopies(schedule.getStages() - 1);
  b.barrier();
  for (int64_t step = 0; step < kColumns() / 16; ++step)
    llvm::append_range(qRegisters, loadQOperand(step));
}
