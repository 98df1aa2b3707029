//===- Softmax.cpp - The online softmax on fragments ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything between the two products is elementwise in registers, but for the
// two reductions over a row, which the four lanes that share the row do by
// shuffles.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ampere/Lowering.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

static constexpr float infinity = std::numeric_limits<float>::infinity();

Value AmpereLowering::finiteOrZero(Value m) {
  return b.select(b.equal(m, b.f32(-infinity)), b.f32(0), m);
}

Value AmpereLowering::overRow(Value value,
                              llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t mask : {1, 2})
    value = combine(value, b.shuffleXor(value, mask));
  return value;
}

/// The key that an accumulator register holds the score of (i32).
Value AmpereLowering::keyOf(Value j, int64_t accRegister) {
  Value lanePart = b.mul(b.rem(lane, 4), 2);
  return b.add(b.add(j, lanePart), Fragment::columnOf(accRegister));
}

void AmpereLowering::lower(StateInitOp op) {
  Fragment m, l, o;
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Value rowM = b.f32(-infinity), rowL = b.f32(0);
    if (op.getSinks()) {
      // A key with that logit and no value: m * factor = logit * log2 e. A
      // logit of -inf is no key.
      constexpr float log2e = 1.4426950408889634f;
      Value logit =
          b.loadConstant(b.getF32Type(), b.element(arg("sinks"), headOf(half)));
      Value sink = b.divf(b.mulf(logit, b.f32(log2e)), scalar(op.getFactor()));
      Value bit = b.bitAnd(item.flags, PAGODA_ITEM_FIRST_SPLIT);
      Value first = b.compare(Predicate::ne, bit, b.i32(0));
      rowM = b.select(first, sink, rowM);
      rowL = b.select(b.equal(rowM, b.f32(-infinity)), rowL, b.f32(1));
    }
    m.registers.push_back(rowM);
    l.registers.push_back(rowL);
  }
  o.registers.assign(Fragment::registersOf(op.getO().getType()), b.f32(0));
  fragment(op.getM()) = m;
  fragment(op.getL()) = l;
  fragment(op.getO()) = o;
}

void AmpereLowering::lower(MapScoresOp op) {
  Values scores = fragment(op.getS()).registers;
  const RowCoordinates &rows = coordinates.find(op.getCoords())->second;
  Value scale = scalar(op.getScale()), j = scalar(op.getJ());
  for (auto [index, score] : llvm::enumerate(scores)) {
    const Coordinates &row = rows[Fragment::halfOf(index)];
    Value inputs[] = {b.mulf(score, scale), row.sequence, row.head,
                      row.position, keyOf(j, index)};
    score = emitRegion(op.getBody(), inputs);
  }
  fragment(op.getResult()).registers = scores;
}

void AmpereLowering::lower(MaskScoresOp op) {
  Values scores = fragment(op.getS()).registers;
  const RowCoordinates &rows = coordinates.find(op.getCoords())->second;
  Value limit = scalar(op.getLimit()), j = scalar(op.getJ());
  for (auto [index, score] : llvm::enumerate(scores)) {
    const Coordinates &row = rows[Fragment::halfOf(index)];
    Value key = keyOf(j, index);
    Value counts = b.compare(Predicate::slt, key, limit);
    if (!op.getBody().empty()) {
      Value inputs[] = {row.sequence, row.head, row.position, key};
      counts = b.both(counts, emitRegion(op.getBody(), inputs));
    }
    score = b.select(counts, score, b.f32(-infinity));
  }
  fragment(op.getResult()).registers = scores;
}

void AmpereLowering::lower(SoftmaxStepOp op) {
  Values scores = fragment(op.getS()).registers;
  Values m = fragment(op.getM()).registers, l = fragment(op.getL()).registers;
  Value factor = scalar(op.getFactor());

  Values largest = m;
  for (auto [index, score] : llvm::enumerate(scores)) {
    Value &row = largest[Fragment::halfOf(index)];
    row = b.maxf(row, score);
  }
  // The difference first: a score may be so large that s c - m c, rounded, is
  // nowhere near (s - m) c. The sum of a tile is taken by itself before it
  // joins the sum so far, so that rounding grows with the tiles, not with the
  // keys.
  Values references, alpha, sums;
  auto power = [&](Value score, int64_t half) {
    return b.exp2(b.mulf(b.subf(score, references[half]), factor));
  };
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    largest[half] =
        overRow(largest[half], [&](Value x, Value y) { return b.maxf(x, y); });
    references.push_back(finiteOrZero(largest[half]));
    alpha.push_back(power(m[half], half));
    sums.push_back(b.f32(0));
  }
  for (auto [index, score] : llvm::enumerate(scores)) {
    int64_t half = Fragment::halfOf(index);
    score = power(score, half);
    sums[half] = b.addf(sums[half], score);
  }
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Value sum =
        overRow(sums[half], [&](Value x, Value y) { return b.addf(x, y); });
    sums[half] = b.fma(l[half], alpha[half], sum);
  }
  fragment(op.getP()).registers = scores;
  fragment(op.getMOut()).registers = largest;
  fragment(op.getLOut()).registers = sums;
  fragment(op.getAlpha()).registers = alpha;
}

void AmpereLowering::lower(RescaleOp op) {
  Values sums = fragment(op.getO()).registers;
  Values alpha = fragment(op.getAlpha()).registers;
  for (auto [index, sum] : llvm::enumerate(sums))
    sum = b.mulf(sum, alpha[Fragment::halfOf(index)]);
  fragment(op.getResult()).registers = sums;
}
