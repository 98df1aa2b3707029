//===- Products.cpp - Matrix products on tensor cores ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// S = Q K^T and O += P V by m16n8k16. Operands come from shared memory by
// ldmatrix, four 8x8 matrices at a time; P is an accumulator that turns into an
// operand in registers, because both maps give a lane the same rows and
// columns.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/Lowering.h"

using namespace mlir;
using namespace pagoda;

/// Matrices 0 and 1 are rows 0 to 15 of a chunk, 2 and 3 those of the next one.
/// So operand A and, transposed, operand B of two column octets.
AmpereLowering::LaneRows AmpereLowering::rowsThenChunks() {
  return {b.rem(lane, 16), b.div(lane, 16)};
}

/// Matrices 0 and 1 are two chunks of rows 0 to 7, 2 and 3 those of rows 8 to
/// 15. So operand B of two row octets whose rows are columns of B.
AmpereLowering::LaneRows AmpereLowering::chunksThenRows() {
  Value row = b.add(b.mul(b.div(lane, 16), 8), b.rem(lane, 8));
  return {row, b.rem(b.div(lane, 8), 2)};
}

Values AmpereLowering::loadOperand(const SharedTile &tile, LaneRows lanes,
                                   int64_t row, int64_t chunk, bool transpose) {
  // The permutation repeats every eight rows and moves chunks within groups of
  // `period`, so only the lane's part and the chunk's place in its group are
  // computed; the rest is a constant offset.
  int64_t inGroup = chunk % tile.period();
  Value place = b.bitXor(tile.placeOf(b, lanes.row, lanes.chunk), inGroup);
  Value lanePart = b.add(b.mul(lanes.row, tile.chunks), place);
  int64_t constant = row * tile.chunks + chunk - inGroup;
  Value pointer = b.at(b.at(tile.base, b.mul(lanePart, 16)), constant * 16);
  return b.loadMatrices(pointer, transpose);
}

/// Q's operand for columns 16 step to 16 step + 15, of this warp's rows.
Values AmpereLowering::loadQOperand(int64_t step) {
  SharedTile tile = qTile();
  tile.base =
      b.at(tile.base, b.mul(warp, Fragment::rowsPerWarp * tile.chunks * 16));
  return loadOperand(tile, rowsThenChunks(), 0, 2 * step, false);
}

void AmpereLowering::lower(QkOp op) {
  SharedTile keys = kvTile(KvPart::key, pipeline.slot);
  LaneRows lanes = chunksThenRows();
  int64_t columns = schedule.getKvTile();
  Values sums(columns / 2, b.f32(0));
  for (int64_t step = 0; step < kColumns() / 16; ++step) {
    Values q = keepsQInRegisters()
                   ? Values(ArrayRef(qRegisters).slice(4 * step, 4))
                   : loadQOperand(step);
    for (int64_t column = 0; column < columns; column += 16) {
      Values k = loadOperand(keys, lanes, column, 2 * step, false);
      for (int64_t octet = 0; octet < 2; ++octet) {
        MutableArrayRef<Value> sum =
            MutableArrayRef(sums).slice(column / 2 + 4 * octet, 4);
        llvm::copy(
            b.multiply(element(), q, ArrayRef(k).slice(2 * octet, 2), sum),
            sum.begin());
      }
    }
  }
  fragment(op.getS()).registers = sums;
}

void AmpereLowering::lower(PvOp op) {
  SharedTile values = kvTile(KvPart::value, pipeline.slot);
  LaneRows lanes = rowsThenChunks();
  Values p = fragment(op.getP()).registers;
  Values sums = fragment(op.getO()).registers;
  for (int64_t key = 0; key < schedule.getKvTile(); key += 16) {
    Values operand;
    for (int64_t pair = 0; pair < 4; ++pair) {
      int64_t first = key / 2 + 2 * pair;
      operand.push_back(b.packPair(element(), p[first], p[first + 1]));
    }
    for (int64_t column = 0; column < vColumns(); column += 16) {
      Values v = loadOperand(values, lanes, key, column / 8, true);
      for (int64_t octet = 0; octet < 2; ++octet) {
        MutableArrayRef<Value> sum =
            MutableArrayRef(sums).slice(column / 2 + 4 * octet, 4);
        llvm::copy(b.multiply(element(), operand,
                              ArrayRef(v).slice(2 * octet, 2), sum),
                   sum.begin());
      }
    }
  }
  fragment(op.getResult()).registers = sums;
}
