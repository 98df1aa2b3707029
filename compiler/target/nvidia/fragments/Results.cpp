//===- Results.cpp - Fragments to global memory ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/fragments/Lowering.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

/// This lane's columns of the row that begins at `begin`.
void FragmentLowering::storeRow(nv::StoreOp op, Value begin, int64_t half) {
  const Values values = registers(op.getSource());
  Type type = op.getElt();
  int64_t columns = op.getSource().getType().getCols();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  Value lanePart = b.mul(b.rem(lane, 4), 2);
  Value target = b.at(begin, b.mul(b.widen(lanePart), bytes));
  auto ifInside = [&](int64_t column, int64_t last,
                      llvm::function_ref<void()> store) {
    if (last <= columns)
      store();
    else
      b.ifThen(
          b.compare(Predicate::slt, b.add(lanePart, column), b.i32(columns)),
          store);
  };
  for (int64_t column = 0; column < columns; column += 8) {
    int64_t at = column / 2 + 2 * half;
    // Pairs begin at their own size where every row does.
    if (columns % 2 == 0)
      ifInside(column, column + 8, [&] {
        Value pair = b.pairOf(values[at], values[at + 1]);
        b.store(b.convertPair(type, pair), b.at(target, column * bytes),
                unsigned(2 * bytes));
      });
    else
      for (int64_t i = 0; i < 2; ++i)
        ifInside(column + i, column + 8, [&] {
          Value single = values[at + i];
          if (!type.isF32())
            single = arith::TruncFOp::create(b, type, single);
          b.store(single, b.at(target, (column + i) * bytes), unsigned(bytes));
        });
  }
}

void FragmentLowering::lower(nv::StoreOp op) {
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Value row = rowOf(half);
    b.ifThen(b.compare(Predicate::slt, row, op.getLimit()),
             [&] { storeRow(op, inlined(op.getBody(), row)[0], half); });
  }
}

void FragmentLowering::lower(nv::ForRowsOp op) {
  Value leads = b.compare(Predicate::eq, b.rem(lane, 4), b.i32(0));
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Value row = rowOf(half);
    Values inputs{row};
    appendRow(inputs, op.getSources(), half);
    Value exists = b.compare(Predicate::slt, row, op.getLimit());
    b.ifThen(b.both(leads, exists), [&] { inlined(op.getBody(), inputs); });
  }
}
