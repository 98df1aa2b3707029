//===- Attention.cpp - The two products and the softmax between -----------===//
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

void AmpereLowering::lower(StateInitOp op) {
  Type rows = rowsOf(b.getF32Type());
  Value m, l;
  if (op.getSinks()) {
    Values state = perRow({rows, rows}, {}, [&](ValueRange inputs) {
      // A key with that logit and no value: m * factor = logit * log2 e. A
      // logit of -inf is no key.
      constexpr float log2e = 1.4426950408889634f;
      Value logit = b.loadConstant(b.getF32Type(),
                                   b.element(arg("sinks"), headOf(inputs[0])));
      Value sink = b.divf(b.mulf(logit, b.f32(log2e)), lowered(op.getFactor()));
      Value bit = b.bitAnd(item.flags, PAGODA_ITEM_FIRST_SPLIT);
      Value first = b.compare(Predicate::ne, bit, b.i32(0));
      Value rowM = b.select(first, sink, b.f32(-infinity));
      Value none = b.equal(rowM, b.f32(-infinity));
      return Values{rowM, b.select(none, b.f32(0), b.f32(1))};
    });
    m = state[0];
    l = state[1];
  } else {
    m = nv::SplatOp::create(b, rows, b.f32(-infinity));
    l = nv::SplatOp::create(b, rows, b.f32(0));
  }
  values.map(op.getM(), m);
  values.map(op.getL(), l);
  Value o = nv::SplatOp::create(b, fragmentOf(op.getO().getType()), b.f32(0));
  values.map(op.getO(), o);
}

void AmpereLowering::lower(QkOp op) {
  nv::FragmentType type = fragmentOf(op.getS().getType());
  Value zero = nv::SplatOp::create(b, type, b.f32(0));
  values.map(op.getS(), nv::MmaOp::create(b, type, q, pipeline.key,
                                          /*transposed=*/true, zero));
}

Value AmpereLowering::mapElements(Value scores, Value coords, Value j,
                                  llvm::function_ref<Value(ValueRange)> body) {
  const Values &rows = coordinates.find(coords)->second;
  auto map = nv::MapOp::create(b, scores.getType(), scores, rows, j);
  Type i32 = b.i32Type();
  fill(map, {b.getF32Type(), i32, i32, i32, i32},
       [&](ValueRange inputs) { return Values{body(inputs)}; });
  return map;
}

void AmpereLowering::lower(MapScoresOp op) {
  Value scale = lowered(op.getScale());
  auto score = [&](ValueRange inputs) {
    Values scaled(inputs);
    scaled[0] = b.mulf(inputs[0], scale);
    return emitRegion(op.getBody(), scaled);
  };
  values.map(op.getResult(), mapElements(lowered(op.getS()), op.getCoords(),
                                         lowered(op.getJ()), score));
}

void AmpereLowering::lower(MaskScoresOp op) {
  Value limit = lowered(op.getLimit());
  auto mask = [&](ValueRange inputs) {
    Value counts = b.compare(Predicate::slt, inputs.back(), limit);
    if (!op.getBody().empty())
      counts = b.both(counts, emitRegion(op.getBody(), inputs.drop_front()));
    return b.select(counts, inputs[0], b.f32(-infinity));
  };
  values.map(op.getResult(), mapElements(lowered(op.getS()), op.getCoords(),
                                         lowered(op.getJ()), mask));
}

void AmpereLowering::lower(SoftmaxStepOp op) {
  Value s = lowered(op.getS()), m = lowered(op.getM()), l = lowered(op.getL());
  Value factor = lowered(op.getFactor());
  Type rows = m.getType();
  auto reduce = [&](nv::RowReduction reduction, Value source) -> Value {
    return nv::RowReduceOp::create(b, rows, reduction, source);
  };
  auto exp2 = [&](Value source, Value reference) -> Value {
    return nv::Exp2Op::create(b, source.getType(), source, reference, factor);
  };
  Value largest = reduce(nv::RowReduction::max, s);
  Value next = perRow(rows, {m, largest}, [&](ValueRange inputs) {
    return Values{b.maxf(inputs[1], inputs[2])};
  })[0];
  Value alpha = exp2(m, next), p = exp2(s, next);
  // The sum of a tile is taken by itself before it joins the sum so far, so
  // that rounding grows with the tiles, not with the keys.
  Value sum = reduce(nv::RowReduction::add, p);
  Value sums = perRow(rows, {l, alpha, sum}, [&](ValueRange inputs) {
    return Values{b.fma(inputs[1], inputs[2], inputs[3])};
  })[0];
  values.map(op.getP(), p);
  values.map(op.getMOut(), next);
  values.map(op.getLOut(), sums);
  values.map(op.getAlpha(), alpha);
}

void AmpereLowering::lower(RescaleOp op) {
  Value o = lowered(op.getO());
  values.map(op.getResult(),
             nv::ScaleOp::create(b, o.getType(), o, lowered(op.getAlpha())));
}

void AmpereLowering::lower(PvOp op) {
  Value o = lowered(op.getO()), p = lowered(op.getP());
  auto type = cast<nv::FragmentType>(p.getType());
  Value operand = nv::ConvertOp::create(
      b,
      nv::FragmentType::get(b.getContext(), type.getRows(), type.getCols(),
                            element(), nv::Form::a),
      p);
  values.map(op.getResult(),
             nv::MmaOp::create(b, o.getType(), operand, pipeline.value,
                               /*transposed=*/false, o));
}
