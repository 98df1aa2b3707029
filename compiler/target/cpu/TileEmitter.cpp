//===- TileEmitter.cpp - What the two CPU emitters share ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/TileEmitter.h"
#include "compiler/target/cpu/NarrowFloat.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

void TileEmitter::forEachPanel(llvm::function_ref<void(const Panel &)> body,
                               llvm::function_ref<void(Value)> before) {
  Value panelCount = b.widen(b.ceilDiv(c.item.packedRows, panelRows()));
  auto perHead = [&](Value head) {
    if (before)
      before(head);
    if (panels() == 1)
      return body({head, b.i64(0), Value()});
    b.forLoop(b.i64(0), panelCount, 1,
              [&](Value index) { body({head, index, Value()}); });
  };
  int64_t heads = c.schedule.getHeads();
  if (heads == 1)
    return perHead(b.i64(0));
  b.forLoop(b.i64(0), b.i64(heads), 1, perHead);
}

Value TileEmitter::loadAsF32(Type type, Value pointer) {
  Value value = b.load(storedAs(type), pointer, bytesOf(type));
  return convertFloat(b, value, type, b.getF32Type());
}

Value TileEmitter::loadVectorAsF32(Type type, int64_t count, Value pointer) {
  Value value =
      b.load(VectorType::get({count}, storedAs(type)), pointer, bytesOf(type));
  return convertFloat(b, value, type, b.getF32Type());
}

void TileEmitter::storeFromF32(Type type, Value value, Value pointer) {
  b.store(convertFloat(b, value, b.getF32Type(), type, c.hasBf16()), pointer,
          bytesOf(type));
}

Value TileEmitter::queryHead(const ItemValues &item, Value head,
                             Value headInGroup) {
  Value kvHead = b.add(b.widen(item.headBegin), head);
  return b.add(b.mul(kvHead, c.group), b.widen(headInGroup));
}

static Value constantLike(CpuBuilder &b, Value like, float value) {
  Attribute attribute = b.getF32FloatAttr(value);
  if (auto type = dyn_cast<VectorType>(like.getType()))
    attribute = DenseElementsAttr::get(type, attribute);
  return arith::ConstantOp::create(b, cast<TypedAttr>(attribute));
}

Value TileEmitter::finiteOrZero(Value m) {
  Value lowest = constantLike(b, m, -std::numeric_limits<float>::infinity());
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, lowest);
  return arith::SelectOp::create(b, none, constantLike(b, m, 0.0f), m);
}

Value TileEmitter::logSumExp(Value m, Value l, Value factor) {
  constexpr float ln2 = 0.69314718055994531f;
  float infinity = std::numeric_limits<float>::infinity();
  Value zero = constantLike(b, l, 0.0f);
  Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, l, zero);
  Value log = math::LogOp::create(b, l);
  Value lse = b.fma(b.mulf(m, factor), b.f32(ln2), log);
  return arith::SelectOp::create(b, empty, constantLike(b, l, -infinity), lse);
}

void TileEmitter::writeRow(StoreOp op, Value token, Value head, Value m,
                           Value l,
                           llvm::function_ref<void(Value, Type, Value)> copy) {
  Type f32 = b.getF32Type(), oType = c.kernel.getQType();
  auto writeFinal = [&] {
    // A merge names its row of o; an item names it through the row map.
    Value row = c.item.rowMapOffset;
    if (isa<ItemType>(op.getItem().getType())) {
      Value entry = b.add(b.widen(c.item.rowMapOffset), b.widen(token));
      row = b.load(b.i32Type(), b.at(c.arg("row_map"), b.mul(entry, 4)));
    }
    row = b.widen(row);
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, l, b.f32(0));
    Value inverse = b.select(empty, b.f32(0), b.divf(b.f32(1), l));
    Value offset = b.add(b.mul(row, c.arg("o_token_stride")),
                         b.mul(head, c.arg("o_head_stride")));
    copy(b.at(c.arg("o"), b.mul(offset, bytesOf(oType))), oType, inverse);
    Value lse = c.arg("lse");
    Value null = LLVM::ZeroOp::create(b, b.pointerType());
    Value wanted = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, lse, null);
    b.ifThen(wanted, [&] {
      Value index = b.add(b.mul(row, c.arg("lse_token_stride")),
                          b.mul(head, c.arg("lse_head_stride")));
      b.store(logSumExp(m, l, c.scalars.lookup(op.getFactor())),
              b.at(lse, b.mul(index, 4)));
    });
  };
  auto writePartial = [&] {
    Value slot = b.add(b.widen(c.item.partialSlot), b.widen(token));
    Value row = b.add(b.mul(slot, int64_t(c.kernel.getQHeads())), head);
    Value state = b.at(c.arg("partial_ml"), b.mul(row, 8));
    b.store(m, state);
    b.store(l, b.at(state, 4));
    copy(b.at(c.arg("partial_o"), b.mul(row, c.cache.getVDim() * 4)), f32,
         Value());
  };
  if (isa<MergeType>(op.getItem().getType()))
    return writeFinal();
  Value isFinal =
      b.compare(arith::CmpIPredicate::slt, c.item.partialSlot, b.i32(0));
  b.ifThenElse(isFinal, writeFinal, writePartial);
}

void TileEmitter::ifFirstSplit(llvm::function_ref<void()> body) {
  Value bit =
      arith::AndIOp::create(b, c.item.flags, b.i32(PAGODA_ITEM_FIRST_SPLIT));
  b.ifThen(b.compare(arith::CmpIPredicate::ne, bit, b.i32(0)), body);
}

std::pair<Value, Value> TileEmitter::sinkState(const Panel &panel, Value packed,
                                               Value factor) {
  constexpr float log2e = 1.4426950408889634f;
  Value head =
      b.add(b.load(b.i32Type(), b.at(c.slot(c.rowHeads), b.mul(packed, 4))),
            headsBefore(panel));
  Value logit =
      b.load(b.getF32Type(), b.at(c.arg("sinks"), b.mul(b.widen(head), 4)));
  // m is in score units: m * factor = logit * log2 e.
  Value m = b.divf(b.mulf(logit, b.f32(log2e)), c.scalars.lookup(factor));
  Value none =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m,
                            b.f32(-std::numeric_limits<float>::infinity()));
  return {m, b.select(none, b.f32(0), b.f32(1))};
}
