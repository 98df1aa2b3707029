//===- Products.cpp - Matrix products on tensor cores ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products by m16n8k16. Operands come from shared memory by ldmatrix, four 8x8
// matrices at a time; an accumulator turns into an operand in registers,
// because both maps give a lane the same rows and columns.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/fragments/Lowering.h"

using namespace mlir;
using namespace pagoda;

/// Matrices 0 and 1 are rows 0 to 15 of a chunk, 2 and 3 those of the next one.
/// So operand A and, transposed, operand B of two column octets.
FragmentLowering::LaneRows FragmentLowering::rowsThenChunks() {
  return {b.rem(lane, 16), b.div(lane, 16)};
}

/// Matrices 0 and 1 are two chunks of rows 0 to 7, 2 and 3 those of rows 8 to
/// 15. So operand B of two row octets whose rows are columns of B.
FragmentLowering::LaneRows FragmentLowering::chunksThenRows() {
  Value row = b.add(b.mul(b.div(lane, 16), 8), b.rem(lane, 8));
  return {row, b.rem(b.div(lane, 8), 2)};
}

Values FragmentLowering::loadMatrices(const SharedTile &tile, LaneRows lanes,
                                      int64_t row, int64_t chunk,
                                      bool transpose) {
  // The permutation repeats every eight rows and moves chunks within groups of
  // `period`, so only the lane's part and the chunk's place in its group are
  // computed; the rest is a constant offset.
  int64_t inGroup = chunk % tile.period();
  Value place = b.bitXor(tile.placeOf(b, lanes.row, lanes.chunk), inGroup);
  Value lanePart = b.add(b.mul(lanes.row, tile.chunks), place);
  int64_t constant = row * tile.chunks + chunk - inGroup;
  Value pointer = b.at(b.at(tile.base, b.mul(lanePart, SharedTile::chunkBytes)),
                       constant * SharedTile::chunkBytes);
  return b.loadMatrices(pointer, transpose);
}

Values FragmentLowering::loadOperand(SharedTile tile, int64_t step) {
  int64_t warpBytes =
      Fragment::rowsPerWarp * tile.chunks * SharedTile::chunkBytes;
  tile.base = b.at(tile.base, b.mul(warp, warpBytes));
  return loadMatrices(tile, rowsThenChunks(), 0, 2 * step, false);
}

void FragmentLowering::lower(nv::LoadOp op) {
  const SharedTile &tile = shared(op.getSource());
  Values loaded;
  for (int64_t step = 0; step < tile.chunks / 2; ++step)
    llvm::append_range(loaded, loadOperand(tile, step));
  registers(op.getResult()) = loaded;
}

void FragmentLowering::lower(nv::MmaOp op) {
  bool transposed = op.getTransposed();
  const SharedTile &tile = shared(op.getB());
  Type element = cast<nv::SharedType>(op.getB().getType()).getElt();
  LaneRows lanes = transposed ? chunksThenRows() : rowsThenChunks();
  Values sums = registers(op.getC());
  for (int64_t k = 0; k < op.getK(); k += 16) {
    Values left = isa<nv::SharedType>(op.getA().getType())
                      ? loadOperand(shared(op.getA()), k / 16)
                      : Values(ArrayRef(registers(op.getA())).slice(k / 4, 4));
    for (int64_t n = 0; n < op.getN(); n += 16) {
      Values right = transposed ? loadMatrices(tile, lanes, n, k / 8, false)
                                : loadMatrices(tile, lanes, k, n / 8, true);
      for (int64_t octet = 0; octet < 2; ++octet) {
        MutableArrayRef<Value> sum =
            MutableArrayRef(sums).slice(n / 2 + 4 * octet, 4);
        llvm::copy(
            b.multiply(element, left, ArrayRef(right).slice(2 * octet, 2), sum),
            sum.begin());
      }
    }
  }
  registers(op.getResult()) = sums;
}

void FragmentLowering::lower(nv::ConvertOp op) {
  Values source = registers(op.getSource()), pairs;
  Type element = op.getResult().getType().getElt();
  for (size_t i = 0; i < source.size(); i += 2)
    pairs.push_back(b.packPair(element, source[i], source[i + 1]));
  registers(op.getResult()) = pairs;
}
