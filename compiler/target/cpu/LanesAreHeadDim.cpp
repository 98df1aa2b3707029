//===- LanesAreHeadDim.cpp - Rows, scores and results ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of tiles with the head dim across lanes, everything but the products:
// queries, state, masks, softmax, results, merging of partial results.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LanesAreHeadDim.h"
#include "compiler/target/cpu/NarrowFloat.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

void LanesAreHeadDim::forEachRowOfItem(
    const Panel &panel, llvm::function_ref<void(Value, Value)> body) {
  Value first = b.mul(panel.index, panelRows());
  Value count = b.i64(panelRows());
  if (panelRows() != 1)
    count = b.min(count, b.sub(b.widen(c.item.packedRows), first));
  b.forLoop(b.i64(0), count, 1,
            [&](Value row) { body(row, b.add(first, row)); });
}

void LanesAreHeadDim::forRow(
    int64_t dims,
    llvm::function_ref<void(Value d, int64_t width, bool pair)> body) {
  int64_t paired = splitsPairs() ? wholeSteps(dims, loadUnit()) : 0;
  if (paired)
    b.forLoop(b.i64(0), b.i64(paired), loadUnit(),
              [&](Value d) { body(d, loadUnit(), true); });
  b.forPieces(paired, dims, c.lanes,
              [&](Value d, int64_t width) { body(d, width, false); });
}

/// Elements first, first + step, ... of two vectors.
static Value everyOther(CpuBuilder &b, Value x, Value y, int64_t first) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> lanesOfBoth;
  for (int64_t i = 0; i < lanes; ++i)
    lanesOfBoth.push_back(first + 2 * i);
  return vector::ShuffleOp::create(b, x, y, lanesOfBoth);
}

/// Lanes of two vectors in turns, from lane `first` on.
static Value inTurns(CpuBuilder &b, Value x, Value y, int64_t first) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> lanesOfBoth;
  for (int64_t i = 0; i < lanes; ++i)
    lanesOfBoth.push_back(first + i / 2 + i % 2 * lanes);
  return vector::ShuffleOp::create(b, x, y, lanesOfBoth);
}

void LanesAreHeadDim::loadQ(const Panel &panel) {
  Type type = c.kernel.getQType();
  // Zero first: padding, and rows that the item does not hold.
  Value zero = splat(0);
  forEachRow([&](Value row) {
    Value target = b.at(queryOf(panel, 0), b.mul(row, queryBytes()));
    b.forLoop(b.i64(0), b.i64(queryBytes() / 4), c.lanes,
              [&](Value d) { storeVector(zero, target, d); });
  });
  forEachRowOfItem(panel, [&](Value row, Value packed) {
    Value target = b.at(queryOf(panel, 0), b.mul(row, queryBytes()));
    Value token = b.div(packed, c.group);
    Value head = b.sub(packed, b.mul(token, c.group));
    Value entry = b.add(b.widen(c.item.rowMapOffset), token);
    Value index = b.load(b.i32Type(), b.at(c.arg("row_map"), b.mul(entry, 4)));
    Value offset = b.add(
        b.mul(b.widen(index), c.arg("q_token_stride")),
        b.mul(queryHead(c.item, panel.head, head), c.arg("q_head_stride")));
    Value source = b.at(c.arg("q"), b.mul(offset, bytesOf(type)));
    if (pairsKeys())
      return b.forLoop(b.i64(0), b.i64(kDim()), loadUnit(), [&](Value d) {
        Value at = b.mul(d, 2);
        auto pairs = VectorType::get({c.lanes}, b.i32Type());
        b.store(b.load(pairs, b.at(source, at), 2), b.at(target, at), 2);
      });
    auto elements = [&](Value d, int64_t count) {
      return loadVectorAsF32(type, count,
                             b.at(source, b.mul(d, bytesOf(type))));
    };
    forRow(kDim(), [&](Value d, int64_t width, bool pair) {
      if (!pair)
        return storeVector(elements(d, width), target, d);
      Value x = elements(d, c.lanes), y = elements(b.add(d, c.lanes), c.lanes);
      storeVector(everyOther(b, x, y, 0), target, d);
      storeVector(everyOther(b, x, y, 1), target, b.add(d, c.lanes));
    });
  });
}

void LanesAreHeadDim::initState(StateInitOp op, const Panel &panel) {
  Value lowest = b.f32(-std::numeric_limits<float>::infinity());
  Value none = b.f32(0), zero = splat(0);
  forEachRow([&](Value row) {
    b.store(lowest, rowOf(m, 1, panel, row));
    b.store(none, rowOf(l, 1, panel, row));
    b.store(none, rowOf(lost, 1, panel, row));
    Value target = rowOf(o, padded(vDim()), panel, row), added;
    if (pipelines())
      added = rowOf(recent, padded(vDim()), panel, row);
    b.forLoop(b.i64(0), b.i64(padded(vDim())), c.lanes, [&](Value d) {
      storeVector(zero, target, d);
      if (added)
        storeVector(zero, added, d);
    });
  });
  if (!op.getSinks())
    return;
  ifFirstSplit([&] {
    forEachRowOfItem(panel, [&](Value row, Value packed) {
      auto [sinkM, sinkL] = sinkState(panel, packed, op.getFactor());
      b.store(sinkM, rowOf(m, 1, panel, row));
      b.store(sinkL, rowOf(l, 1, panel, row));
    });
  });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// first, first + 1, ... as i32 lanes.
Value LanesAreHeadDim::iota(Value first) {
  SmallVector<int32_t> steps;
  for (int64_t lane = 0; lane < c.lanes; ++lane)
    steps.push_back(int32_t(lane));
  auto type = VectorType::get({c.lanes}, b.i32Type());
  Value constant = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<int32_t>(steps)));
  return b.add(b.splat(first, c.lanes), constant);
}

/// Rewrites all scores of the panel; `body(row, key, scores)` gets lanes keys.
void LanesAreHeadDim::forEachScore(
    const Panel &panel, llvm::function_ref<Value(Value, Value, Value)> body) {
  forEachRow([&](Value row) {
    Value target = scoresOf(panel, row);
    b.forLoop(b.i64(0), b.i64(padded(c.kvTile())), c.lanes, [&](Value key) {
      storeVector(body(row, key, vectorAt(target, key)), target, key);
    });
  });
}

void LanesAreHeadDim::mapScores(MapScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  Value scale = b.splat(c.scalars.lookup(op.getScale()), c.lanes);
  Value j = c.scalars.lookup(op.getJ());
  forEachScore(panel, [&](Value row, Value key, Value score) {
    Value first = b.add(j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {
        b.mulf(score, scale), coordinate(c.rowSequences, panel, row),
        b.add(coordinate(c.rowHeads, panel, row), headsBefore(panel)),
        coordinate(c.rowPositions, panel, row), iota(first)};
    return emitRegion(c, op.getBody(), inputs, c.lanes);
  });
}

void LanesAreHeadDim::maskScores(MaskScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  Value lowest = splat(-std::numeric_limits<float>::infinity());
  Value j = c.scalars.lookup(op.getJ());
  Value limit = b.splat(c.scalars.lookup(op.getLimit()), c.lanes);
  forEachScore(panel, [&](Value row, Value key, Value score) {
    Value first = b.add(j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value positions = iota(first);
    Value counts =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, positions, limit);
    if (!op.getBody().empty()) {
      Value inputs[] = {
          coordinate(c.rowSequences, panel, row),
          b.add(coordinate(c.rowHeads, panel, row), headsBefore(panel)),
          coordinate(c.rowPositions, panel, row), positions};
      Value seen = emitRegion(c, op.getBody(), inputs, c.lanes);
      counts = arith::AndIOp::create(b, counts, seen);
    }
    return Value(arith::SelectOp::create(b, counts, score, lowest));
  });
}

void LanesAreHeadDim::softmaxStep(SoftmaxStepOp op, const Panel &panel) {
  c.scores[op.getP()] = c.scores.lookup(op.getS());
  Value factor = c.scalars.lookup(op.getFactor());
  float infinity = std::numeric_limits<float>::infinity();
  int64_t keys = c.kvTile(), whole = keys / c.lanes * c.lanes;
  // A tile that is no multiple of the lanes has lanes that hold no key.
  auto scores = [&](Value row, int64_t key) -> Value {
    Value vector = vectorAt(scoresOf(panel, row), b.i64(key));
    if (key < whole)
      return vector;
    SmallVector<bool> mask(c.lanes, false);
    std::fill_n(mask.begin(), keys - whole, true);
    Value inside = arith::ConstantOp::create(
        b, DenseElementsAttr::get(VectorType::get({c.lanes}, b.getI1Type()),
                                  ArrayRef<bool>(mask)));
    return arith::SelectOp::create(b, inside, vector, splat(-infinity));
  };
  forEachRow([&](Value row) {
    Value rowM = rowOf(m, 1, panel, row), rowL = rowOf(l, 1, panel, row);
    Value before = scalarAt(rowM);
    Value most = scores(row, 0);
    for (int64_t key = c.lanes; key < keys; key += c.lanes)
      most = b.maxf(most, scores(row, key));
    for (int64_t stride = 1; stride < c.lanes; stride *= 2) {
      SmallVector<int64_t> swap;
      for (int64_t lane = 0; lane < c.lanes; ++lane)
        swap.push_back(lane ^ stride);
      most = b.maxf(most, vector::ShuffleOp::create(b, most, most, swap));
    }
    Value after = b.maxf(
        vector::ExtractOp::create(b, most, ArrayRef<int64_t>{0}), before);
    // The difference first, as in LanesAreQueries.cpp.
    Value reference = finiteOrZero(after);
    Value decay =
        b.exp2OfNonPositive(b.mulf(b.subf(before, reference), factor));
    Value factors = b.splat(factor, c.lanes);
    Value references = b.splat(reference, c.lanes);
    Value sum;
    for (int64_t key = 0; key < keys; key += c.lanes) {
      Value p = b.exp2OfNonPositive(
          b.mulf(b.subf(scores(row, key), references), factors));
      storeVector(p, scoresOf(panel, row), b.i64(key));
      sum = sum ? b.addf(sum, p) : p;
    }
    Value total = vector::ExtractOp::create(b, sumLanes(ArrayRef<Value>(sum)),
                                            ArrayRef<int64_t>{0});
    b.store(after, rowM);
    b.store(decay, rowOf(alpha, 1, panel, row));
    // What the sum rounds off is added with the next tile (Kahan): there may be
    // as many tiles as thousands of keys make small ones.
    Value rowLost = rowOf(lost, 1, panel, row);
    Value soFar = b.mulf(scalarAt(rowL), decay);
    Value added = b.fma(scalarAt(rowLost), decay, total);
    Value both = b.addf(soFar, added);
    b.store(both, rowL);
    b.store(b.subf(added, b.subf(both, soFar)), rowLost);
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void LanesAreHeadDim::store(StoreOp op, const Panel &panel) {
  forEachRowOfItem(panel, [&](Value row, Value packed) {
    Value source = rowOf(o, padded(vDim()), panel, row);
    Value token = b.div(packed, c.group);
    Value head =
        queryHead(c.item, panel.head, b.sub(packed, b.mul(token, c.group)));
    auto copy = [&](Value target, Type type, Value scale) {
      auto write = [&](Value elements, Value d) {
        if (scale) {
          int64_t count = cast<VectorType>(elements.getType()).getNumElements();
          elements = b.mulf(elements, b.splat(scale, count));
        }
        b.store(convertFloat(b, elements, b.getF32Type(), type),
                b.at(target, b.mul(d, bytesOf(type))), unsigned(bytesOf(type)));
      };
      auto elements = [&](Value d, int64_t count) {
        return b.load(b.vectorType(count), b.at(source, b.mul(d, 4)), 4);
      };
      forRow(vDim(), [&](Value d, int64_t width, bool pair) {
        if (!pair)
          return write(elements(d, width), d);
        Value next = b.add(d, c.lanes);
        Value even = elements(d, c.lanes), odd = elements(next, c.lanes);
        write(inTurns(b, even, odd, 0), d);
        write(inTurns(b, even, odd, c.lanes / 2), next);
      });
    };
    writeRow(op, token, head, scalarAt(rowOf(m, 1, panel, row)),
             scalarAt(rowOf(l, 1, panel, row)), copy);
  });
}

/// Two passes over the partial states: the largest m, then the sums.
void LanesAreHeadDim::mergePartials(MergePartialsOp op, const Panel &panel) {
  Value factor = c.scalars.lookup(op.getFactor());
  Value partialO = c.arg("partial_o"), partialMl = c.arg("partial_ml");
  Value slots = c.arg("merge_slots");
  Value begin = b.widen(c.item.kvBegin), end = b.widen(c.item.kvEnd);
  forEachRowOfItem(panel, [&](Value row, Value packed) {
    Value head = queryHead(c.item, panel.head, packed);
    auto stateRow = [&](Value index) {
      Value slot = b.load(b.i32Type(), b.at(slots, b.mul(index, 4)));
      return b.add(b.mul(b.widen(slot), int64_t(c.kernel.getQHeads())), head);
    };
    Value lowest = b.f32(-std::numeric_limits<float>::infinity());
    Value most =
        b.forLoop(begin, end, 1, lowest, [&](Value index, ValueRange carried) {
          Value state = b.at(partialMl, b.mul(stateRow(index), 8));
          return Values{b.maxf(scalarAt(state), carried[0])};
        })[0];
    Value reference = finiteOrZero(most);
    Value target = rowOf(o, padded(vDim()), panel, row);
    Value zero = splat(0);
    b.forLoop(b.i64(0), b.i64(padded(vDim())), c.lanes,
              [&](Value d) { storeVector(zero, target, d); });
    Value total = b.forLoop(
        begin, end, 1, b.f32(0), [&](Value index, ValueRange carried) {
          Value state = stateRow(index);
          Value ml = b.at(partialMl, b.mul(state, 8));
          Value weight = b.exp2OfNonPositive(
              b.mulf(b.subf(scalarAt(ml), reference), factor));
          Value source = b.at(partialO, b.mul(state, vDim() * 4));
          b.forPieces(0, vDim(), c.lanes, [&](Value d, int64_t width) {
            auto at = [&](Value row) {
              return b.load(b.vectorType(width), b.at(row, b.mul(d, 4)), 4);
            };
            storeVector(b.fma(at(source), b.splat(weight, width), at(target)),
                        target, d);
          });
          return Values{b.fma(scalarAt(b.at(ml, 4)), weight, carried[0])};
        })[0];
    b.store(most, rowOf(m, 1, panel, row));
    b.store(total, rowOf(l, 1, panel, row));
  });
}

std::unique_ptr<TileEmitter>
TileEmitter::lanesAreHeadDim(KernelContext &context) {
  return std::make_unique<LanesAreHeadDim>(context);
}
