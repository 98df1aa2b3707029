//===- Results.cpp - What an item leaves behind ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

void AmpereLowering::storeRows(Value fragment, Type elt,
                               llvm::function_ref<Value(Value row)> begin) {
  auto store = nv::StoreOp::create(b, fragment, elt, item.packedRows);
  fill(store, b.i32Type(),
       [&](ValueRange inputs) { return Values{begin(inputs[0])}; });
}

void AmpereLowering::forRows(ValueRange sources,
                             llvm::function_ref<void(ValueRange)> body) {
  auto loop = nv::ForRowsOp::create(b, sources, item.packedRows);
  fill(loop, rowInputs(sources), [&](ValueRange inputs) {
    body(inputs);
    return Values{};
  });
}

void AmpereLowering::storeItem(StoreOp op) {
  Value isFinal = b.compare(Predicate::slt, item.partialSlot, b.i32(0));
  b.ifThenElse(isFinal, [&] { storeFinal(op); }, [&] { storePartial(op); });
}

void AmpereLowering::storeFinal(StoreOp op) {
  Value m = lowered(op.getM()), l = lowered(op.getL());
  auto tokenRow = [&](Value row) {
    return b.loadConstant(b.i32Type(),
                          b.element(arg("row_map"), planEntry(tokenOf(row))));
  };
  Value inverse = perRow(rowsOf(b.getF32Type()), l, [&](ValueRange inputs) {
    return Values{inverseOf(inputs[1])};
  })[0];
  Value o = lowered(op.getO());
  Value y = nv::ScaleOp::create(b, o.getType(), o, inverse);
  storeRows(y, element(),
            [&](Value row) { return outputRow(tokenRow(row), headOf(row)); });
  Value factor = lowered(op.getFactor());
  b.ifThen(b.isNotNull(arg("lse")), [&] {
    forRows({m, l}, [&](ValueRange inputs) {
      Value row = inputs[0];
      storeLse(tokenRow(row), headOf(row),
               logSumExp(inputs[1], inputs[2], factor));
    });
  });
}

void AmpereLowering::storePartial(StoreOp op) {
  auto stateRow = [&](Value row) {
    Value slot = b.add(b.widen(item.partialSlot), b.widen(tokenOf(row)));
    return b.add(b.mul(slot, int64_t(kernel.getQHeads())),
                 b.widen(headOf(row)));
  };
  storeRows(lowered(op.getO()), b.getF32Type(), [&](Value row) {
    return b.at(arg("partial_o"), b.mul(stateRow(row), cache.getVDim() * 4));
  });
  forRows({lowered(op.getM()), lowered(op.getL())}, [&](ValueRange inputs) {
    b.store(b.pairOf(inputs[1], inputs[2]),
            b.at(arg("partial_ml"), b.mul(stateRow(inputs[0]), 8)),
            /*alignment=*/8);
  });
}
