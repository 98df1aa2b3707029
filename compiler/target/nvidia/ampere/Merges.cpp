//===- Merges.cpp - Merge kernels -----------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A merge kernel multiplies no matrices and has no fragments: a warp joins the
// partial states of one query head of one row, its lanes are columns lane, lane
// + 32, ... of o, and m and l are the same in all lanes.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/Lowering.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

static constexpr float infinity = std::numeric_limits<float>::infinity();

void AmpereLowering::lower(ForMergesOp op) {
  int64_t heads = kernel.getQHeads(), warps = schedule.getWarps();
  Value thread = b.threadId(threads());
  merge.lane = b.rem(thread, 32);
  merge.warp = b.div(thread, 32);
  Value merges = arg("merges");
  Value count = b.loadConstant(b.i32Type(), b.at(arg("counts"), 4));
  // One index is one head of one merge.
  Value first = b.add(b.mul(b.blockId(), warps), merge.warp);
  b.forLoop(
      first, b.mul(count, heads), b.mul(b.gridSize(), warps), [&](Value index) {
        Value number = b.div(index, heads);
        Value record = b.at(
            merges, b.mul(b.widen(number), int64_t(sizeof(pagoda_merge_item))));
        auto field = [&](StringRef name) {
          return b.loadConstant(b.i32Type(),
                                b.at(record, mergeField(name).offset));
        };
        merge.row = field("q_row");
        merge.slotsBegin = field("slots_begin");
        merge.slotCount = field("slot_count");
        merge.head = b.rem(index, heads);
        lowerOps(op.getBody().front());
      });
}

void AmpereLowering::lower(MergePartialsOp op) {
  Value factor = lowered(op.getFactor());
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
  Value reference = b.select(b.equal(m, b.f32(-infinity)), b.f32(0), m);

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
          Value column = b.min(b.add(merge.lane, 32 * n), b.i32(columns - 1));
          Value part = b.load(f32, b.element(source, column));
          next.push_back(b.fma(counted(part), weight, carried[1 + n]));
        }
        return next;
      });
  merge.m = m;
  merge.l = sums[0];
  merge.o = Values(llvm::drop_begin(sums));
}

void AmpereLowering::storeMerge(StoreOp op) {
  Value inverse = inverseOf(merge.l);
  Value target = outputRow(merge.row, merge.head);
  for (auto [n, part] : llvm::enumerate(merge.o)) {
    Value column = b.add(merge.lane, 32 * int64_t(n));
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
  Value leads = b.compare(Predicate::eq, merge.lane, b.i32(0));
  b.ifThen(b.both(leads, b.isNotNull(arg("lse"))), [&] {
    storeLse(merge.row, merge.head,
             logSumExp(merge.m, merge.l, lowered(op.getFactor())));
  });
}
