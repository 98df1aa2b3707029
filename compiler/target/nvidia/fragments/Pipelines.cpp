//===- Pipelines.cpp - Slots of shared memory and copies into them --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ampere style: every thread copies by cp.async and counts its own groups. One
// barrier of the block says two things: every thread's copies of a tile have
// landed, and every warp has left the tile before it.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/fragments/Lowering.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Slots and steps
//===----------------------------------------------------------------------===//

void FragmentLowering::lower(nv::PipelineOp op) {
  pipelines[op.getPipeline()] = b.at(memory, int64_t(op.getOffset()));
}

void FragmentLowering::lower(nv::SlotOp op) {
  nv::PipelineType type = op.getPipeline().getType();
  Value base = pipelines.lookup(op.getPipeline());
  base = b.at(base, b.mul(op.getIndex(), type.getSlotBytes()));
  int64_t offset = 0;
  for (auto [tile, value] : llvm::zip_equal(type.getTiles(), op.getTiles())) {
    int64_t chunks = tile.getPaddedCols() * 2 / SharedTile::chunkBytes;
    tiles.try_emplace(value, SharedTile{b.at(base, offset), chunks});
    offset += tile.getBytes();
  }
}

void FragmentLowering::lower(nv::AcquireOp op) {
  if (op.getPipeline().getType().getStages() == 1)
    b.barrier();
}

void FragmentLowering::lower(nv::CommitOp) { b.commitCopies(); }

void FragmentLowering::lower(nv::WaitOp op) {
  b.waitForCopies(int64_t(op.getPending()));
  b.barrier();
}

void FragmentLowering::lower(nv::ReleaseOp) {}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// For a row that may begin anywhere.
Value FragmentLowering::gatherChunk(const GlobalRow &row, Value chunk,
                                    int64_t dim) {
  Type bits = b.getI16Type();
  Value zero = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
  Value result = LLVM::PoisonOp::create(b, VectorType::get({8}, bits));
  for (int64_t i = 0; i < 8; ++i) {
    Value column = b.add(b.mul(chunk, 8), i);
    // Columns past the last one repeat it, so that nothing beyond it is read.
    Value inside = b.min(column, b.i32(dim - 1));
    Value value =
        b.loadConstant(bits, b.at(row.begin, b.mul(b.widen(inside), 2)));
    Value counts =
        b.both(row.exists, b.compare(Predicate::slt, column, b.i32(dim)));
    result = LLVM::InsertElementOp::create(
        b, result, b.select(counts, value, zero), b.i32(i));
  }
  return result;
}

/// Asynchronously where rows begin at multiples of 16 bytes, which they can if
/// they are that long; else through registers.
void FragmentLowering::copyChunk(Value target, const GlobalRow &row,
                                 Value chunk, int64_t dim) {
  if (dim % 8 != 0)
    return b.store(gatherChunk(row, chunk, dim), target,
                   /*alignment=*/SharedTile::chunkBytes);
  Value exists = row.exists;
  if (dim % 16 != 0)
    exists = b.both(exists, b.compare(Predicate::slt, chunk, b.i32(dim / 8)));
  b.copy16(target,
           b.at(row.begin, b.mul(b.widen(chunk), SharedTile::chunkBytes)),
           b.select(exists, b.i32(SharedTile::chunkBytes), b.i32(0)));
}

void FragmentLowering::lower(nv::CopyRowsOp op) {
  const SharedTile &tile = shared(op.getTarget());
  nv::SharedType type = op.getTarget().getType();
  // Whole rows at a time, so that a thread has the same chunk in every round: a
  // few threads may be left over.
  int64_t rows = type.getRows(), atOnce = threads / tile.chunks;
  Value firstRow = b.div(thread, tile.chunks);
  Value chunk = b.rem(thread, tile.chunks);
  for (int64_t first = 0; first < rows; first += atOnce) {
    int64_t used = std::min(atOnce, rows - first) * tile.chunks;
    auto copy = [&] {
      Value target = tile.chunkAt(b, firstRow, chunk, first);
      Value begin = inlined(op.getBody(), b.add(firstRow, first))[0];
      // A limit per round takes no register of its own in loops, a row does.
      Value exists =
          b.compare(Predicate::slt, firstRow, b.sub(op.getLimit(), first));
      copyChunk(target, {begin, exists}, chunk, type.getCols());
    };
    if (used == threads)
      copy();
    else
      b.ifThen(b.compare(Predicate::ult, thread, b.i32(used)), copy);
  }
}
