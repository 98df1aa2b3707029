//===- Results.cpp - What a kernel leaves behind --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// store for items, and merge kernels as a whole. A merge kernel multiplies no
// matrices: a warp joins the partial states of one query head of one row, its
// lanes are columns lane, lane + 32, ... of o, and m and l are the same in all
// lanes.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/Lowering.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

static constexpr float infinity = std::numeric_limits<float>::infinity();

//===----------------------------------------------------------------------===//
// Final values
//===----------------------------------------------------------------------===//

/// 1 / l; 0 for a row that saw no key.
Value AmpereLowering::inverseOf(Value l) {
  return b.select(b.equal(l, b.f32(0)), b.f32(0), b.divf(b.f32(1), l));
}

/// m c ln 2 + ln l; -inf for a row that saw no key.
Value AmpereLowering::logSumExp(Value m, Value l, Value factor) {
  constexpr float ln2 = 0.69314718055994531f;
  Value log = math::LogOp::create(b, l);
  Value lse = b.fma(m, b.mulf(factor, b.f32(ln2)), log);
  return b.select(b.equal(l, b.f32(0)), b.f32(-infinity), lse);
}

Value AmpereLowering::outputRow(Value row, Value head) {
  Value offset = b.add(b.mul(b.widen(row), arg("o_token_stride")),
                       b.mul(b.widen(head), arg("o_head_stride")));
  return b.at(arg("o"), b.mul(offset, elementBytes()));
}

void AmpereLowering::storeLse(Value row, Value head, Value value) {
  Value offset = b.add(b.mul(b.widen(row), arg("lse_token_stride")),
                       b.mul(b.widen(head), arg("lse_head_stride")));
  b.store(value, b.at(arg("lse"), b.mul(offset, 4)));
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void AmpereLowering::lower(StoreOp op) {
  if (isa<MergeType>(op.getItem().getType()))
    storeMerge(op);
  else
    storeItem(op);
}

void AmpereLowering::storeColumns(Value row, Type type, int64_t half,
                                  llvm::function_ref<Value(int64_t)> value) {
  int64_t columns = cache.getVDim(), bytes = type.getIntOrFloatBitWidth() / 8;
  Value lanePart = b.mul(b.rem(lane, 4), 2);
  Value target = b.at(row, b.mul(b.widen(lanePart), bytes));
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
        Value pair = b.pairOf(value(at), value(at + 1));
        b.store(b.convertPair(type, pair), b.at(target, column * bytes),
                unsigned(2 * bytes));
      });
    else
      for (int64_t i = 0; i < 2; ++i)
        ifInside(column + i, column + 8, [&] {
          Value single = value(at + i);
          if (!type.isF32())
            single = arith::TruncFOp::create(b, type, single);
          b.store(single, b.at(target, (column + i) * bytes), unsigned(bytes));
        });
  }
}

void AmpereLowering::storeItem(StoreOp op) {
  Values m = fragment(op.getM()).registers, l = fragment(op.getL()).registers;
  Values o = fragment(op.getO()).registers;
  Value leads = b.compare(Predicate::eq, b.rem(lane, 4), b.i32(0));
  Value factor = scalar(op.getFactor());

  auto writeFinal = [&](int64_t half, Value head) {
    Value row = b.loadConstant(
        b.i32Type(), b.element(arg("row_map"), planEntry(tokenOf(half))));
    Value inverse = inverseOf(l[half]);
    storeColumns(outputRow(row, head), element(), half,
                 [&](int64_t at) { return b.mulf(o[at], inverse); });
    b.ifThen(b.both(leads, b.isNotNull(arg("lse"))),
             [&] { storeLse(row, head, logSumExp(m[half], l[half], factor)); });
  };
  auto writePartial = [&](int64_t half, Value head) {
    Value slot = b.add(b.widen(item.partialSlot), b.widen(tokenOf(half)));
    Value row = b.add(b.mul(slot, int64_t(kernel.getQHeads())), b.widen(head));
    storeColumns(b.at(arg("partial_o"), b.mul(row, cache.getVDim() * 4)),
                 b.getF32Type(), half, [&](int64_t at) { return o[at]; });
    b.ifThen(leads, [&] {
      b.store(b.pairOf(m[half], l[half]),
              b.at(arg("partial_ml"), b.mul(row, 8)), /*alignment=*/8);
    });
  };
  Value isFinal = b.compare(Predicate::slt, item.partialSlot, b.i32(0));
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Value exists = b.compare(Predicate::slt, packedRow(half), item.packedRows);
    b.ifThen(exists, [&] {
      Value head = headOf(half);
      b.ifThenElse(
          isFinal, [&] { writeFinal(half, head); },
          [&] { writePartial(half, head); });
    });
  }
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

void AmpereLowering::lower(ForMergesOp op) {
  int64_t heads = kernel.getQHeads(), warps = schedule.getWarps();
  Value merges = arg("merges");
  Value count = b.loadConstant(b.i32Type(), b.at(arg("counts"), 4));
  // One index is one head of one merge.
  Value first = b.add(b.mul(b.blockId(), warps), warp);
  b.forLoop(
      first, b.mul(count, heads), b.mul(b.gridSize(), warps), [&](Value index) {
        Value number = b.div(index, heads);
        Value record = b.at(
            merges, b.mul(b.widen(number), int64_t(sizeof(pagoda_merge_item))));
        auto field = [&](StringRef name) {
          return b.loadConstant(b.i32Type(),
                                b.at(record, mergeField(name).offset));
        };
        merge = {field("q_row"), field("slots_begin"), field("slot_count"),
                 b.rem(index, heads)};
        lowerOps(op.getBody().front());
      });
}

void AmpereLowering::lower(MergePartialsOp op) {
  Value factor = scalar(op.getFactor());
  int64_t columns = cache.getVDim();
  Type f32 = b.getF32Type();
  auto stateRow = [&](Value index) {
    Value entry = b.add(merge.slotsBegin, index);
    Value slot =
        b.loadConstant(b.i32Type(), b.element(arg("merge_slots"), entry));
    return b.add(b.mul(b.widen(slot), int64_t(kernel.getQHeads())),
                 b.widen(merge.head));
  };
  auto state = [&](Value row, int64_t offset) {
    return b.load(f32, b.at(b.at(arg("partial_ml"), b.mul(row, 8)), offset));
  };
  Values largest =
      b.forLoop(b.i32(0), merge.slotCount, 1, ValueRange{b.f32(-infinity)},
                [&](Value index, ValueRange carried) {
                  return Values{b.maxf(carried[0], state(stateRow(index), 0))};
                });
  Value m = largest[0];
  Value reference = finiteOrZero(m);

  int64_t perLane = (columns + 31) / 32;
  Values zeros(1 + perLane, b.f32(0));
  Values sums = b.forLoop(
      b.i32(0), merge.slotCount, 1, zeros,
      [&](Value index, ValueRange carried) {
        Value row = stateRow(index);
        Value rowM = state(row, 0);
        // A state that saw no key has the weight 2^-inf = 0 and no values.
        Value empty = b.equal(rowM, b.f32(-infinity));
        Value weight = b.exp2(b.mulf(b.subf(rowM, reference), factor));
        auto counted = [&](Value value) {
          return b.select(empty, b.f32(0), value);
        };
        Values next{b.fma(counted(state(row, 4)), weight, carried[0])};
        Value source = b.at(arg("partial_o"), b.mul(row, columns * 4));
        for (int64_t n = 0; n < perLane; ++n) {
          // Lanes past the last column repeat it and store nothing.
          Value column = b.min(b.add(lane, 32 * n), b.i32(columns - 1));
          Value part = b.load(f32, b.element(source, column));
          next.push_back(b.fma(counted(part), weight, carried[1 + n]));
        }
        return next;
      });
  fragment(op.getM()).registers = {m};
  fragment(op.getL()).registers = {sums[0]};
  fragment(op.getO()).registers = Values(llvm::drop_begin(sums));
}

void AmpereLowering::storeMerge(StoreOp op) {
  Value m = fragment(op.getM()).registers[0];
  Value l = fragment(op.getL()).registers[0];
  Values o = fragment(op.getO()).registers;
  Value inverse = inverseOf(l);
  Value target = outputRow(merge.row, merge.head);
  for (auto [n, part] : llvm::enumerate(o)) {
    Value column = b.add(lane, 32 * int64_t(n));
    auto write = [&, part = part] {
      Value value =
          arith::TruncFOp::create(b, element(), b.mulf(part, inverse));
      b.store(value, b.at(target, b.mul(b.widen(column), elementBytes())),
              /*alignment=*/2);
    };
    if (int64_t(n + 1) * 32 <= cache.getVDim())
      write();
    else
      b.ifThen(b.compare(Predicate::slt, column, b.i32(cache.getVDim())),
               write);
  }
  Value leads = b.compare(Predicate::eq, lane, b.i32(0));
  b.ifThen(b.both(leads, b.isNotNull(arg("lse"))), [&] {
    storeLse(merge.row, merge.head, logSumExp(m, l, scalar(op.getFactor())));
  });
}
