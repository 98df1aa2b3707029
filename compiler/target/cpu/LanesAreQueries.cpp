//===- LanesAreQueries.cpp - Tiles with query rows across lanes -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything but the two products: loading and transposing Q, the state, score
// and mask regions, softmax, storing O. LanesAreQueries.h says how tiles lie.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LanesAreQueries.h"
#include "compiler/target/cpu/NarrowFloat.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

/// Pairs are moved as they are.
void LanesAreQueries::loadQ(const Panel &panel) {
  bool pairs = c.takesPairs();
  Type type = c.kernel.getQType(), moved = pairs ? b.i32Type() : type;
  int64_t bytes = bytesOf(moved);
  Value panelQ = panelOf(q, qColumns(), panel);
  b.forLoop(b.i64(0), b.i64(panelRows()), 1, [&](Value index) {
    Value row = b.add(b.mul(panel.index, panelRows()), index);
    b.store(rowPointer("q", c.item, panel.head, row),
            b.at(c.slot(targets), b.mul(index, 8)));
  });
  forEachVector([&](Value n, Value vectorOffset) {
    Value target = b.at(panelQ, vectorOffset);
    Values sources = rowPointers(n);
    auto load = [&](int64_t count, Value pointer) {
      Type piece = count == 1 ? moved : VectorType::get({count}, moved);
      if (pairs)
        return b.load(piece, pointer, bytesOf(type));
      return count == 1 ? loadAsF32(type, pointer)
                        : loadVectorAsF32(type, count, pointer);
    };
    int64_t whole = qColumns() / c.lanes * c.lanes;
    if (whole)
      b.forLoop(b.i64(0), b.i64(whole), c.lanes, [&](Value d) {
        Values block;
        for (Value source : sources)
          block.push_back(load(c.lanes, b.at(source, b.mul(d, bytes))));
        Value row = b.at(target, b.mul(d, rowBytes()));
        for (auto [i, column] : llvm::enumerate(transposed(block)))
          storeRow(column, b.at(row, i * rowBytes()), 0);
      });
    for (int64_t d = whole; d < qColumns(); ++d) {
      Value column = b.splat(pairs ? b.i32(0) : b.f32(0), c.lanes);
      for (auto [lane, source] : llvm::enumerate(sources)) {
        Value element = load(1, b.at(source, d * bytes));
        column = vector::InsertOp::create(b, element, column,
                                          ArrayRef<int64_t>{int64_t(lane)});
      }
      storeRow(column, b.at(target, d * rowBytes()), 0);
    }
  });
}

/// Packed row r of the item is head r % group of token r / group. Rows past the
/// item's last repeat it: they are computed and never stored.
Value LanesAreQueries::rowPointer(StringRef tensor, const ItemValues &item,
                                  Value head, Value row) {
  auto arg = [&](StringRef field) { return c.arg((tensor + field).str()); };
  Value packed = b.min(row, b.sub(b.widen(item.packedRows), 1));
  Value token = b.div(packed, c.group);
  Value inGroup = b.sub(packed, b.mul(token, c.group));
  Value entry = b.add(b.widen(item.rowMapOffset), token);
  Value index = b.load(b.i32Type(), b.at(c.arg("row_map"), b.mul(entry, 4)));
  Value offset =
      b.add(b.mul(b.widen(index), arg("_token_stride")),
            b.mul(queryHead(item, head, inGroup), arg("_head_stride")));
  return b.at(arg(""), b.mul(offset, bytesOf(c.kernel.getQType())));
}

Values LanesAreQueries::rowPointers(Value n) {
  Value slots = b.at(c.slot(targets), b.mul(n, c.lanes * 8));
  Values pointers;
  for (int64_t lane = 0; lane < c.lanes; ++lane)
    pointers.push_back(b.load(b.pointerType(), b.at(slots, lane * 8)));
  return pointers;
}

/// Vectors of as many pieces of `width` lanes as there are vectors, a square
/// matrix of pieces, transposed by exchanges between pairs of vectors. Within
/// 128 bits an exchange interleaves, for which every target has an instruction;
/// that leaves two bits of the columns' numbers swapped.
Values LanesAreQueries::transposed(Values rows, int64_t width) {
  constexpr int64_t group = 4; // f32 in 128 bits
  for (int64_t stride = width; stride < c.lanes; stride *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < c.lanes; ++lane) {
      if (stride >= group) {
        bool second = lane & stride;
        low.push_back(second ? c.lanes + (lane ^ stride) : lane);
        high.push_back(second ? c.lanes + lane : lane ^ stride);
        continue;
      }
      // Pieces of `stride` lanes come from both vectors in turns.
      int64_t inGroup = lane % group, piece = inGroup / stride;
      int64_t source = lane - inGroup + piece / 2 * stride + inGroup % stride +
                       (piece % 2 ? c.lanes : 0);
      low.push_back(source);
      high.push_back(source + group / 2);
    }
    int64_t apart = stride / width;
    for (int64_t i = 0; i < int64_t(rows.size()); ++i) {
      if (i & apart)
        continue;
      Value x = rows[i], y = rows[i | apart];
      rows[i] = vector::ShuffleOp::create(b, x, y, low);
      rows[i | apart] = vector::ShuffleOp::create(b, x, y, high);
    }
  }
  for (int64_t i = 0; width == 1 && i + 2 < c.lanes; i += group)
    std::swap(rows[i + 1], rows[i + 2]);
  return rows;
}

void LanesAreQueries::initState(StateInitOp op, const Panel &panel) {
  Value zero = splats(0, 1)[0];
  Value lowest = splats(-std::numeric_limits<float>::infinity(), 1)[0];
  Value rowsM = panelOf(m, 1, panel), rowsL = panelOf(l, 1, panel);
  for (int64_t n = 0; n < vectors(); ++n) {
    storeRow(lowest, rowsM, n);
    storeRow(zero, rowsL, n);
  }
  if (op.getSinks())
    ifFirstSplit([&] {
      b.forLoop(b.i64(0), b.i64(panelRows()), 1, [&](Value row) {
        Value packed = b.add(b.mul(panel.index, panelRows()), row);
        auto [sinkM, sinkL] = sinkState(panel, packed, op.getFactor());
        b.store(sinkM, b.at(rowsM, b.mul(row, 4)));
        b.store(sinkL, b.at(rowsL, b.mul(row, 4)));
      });
    });
  if (!visitsInTurn())
    clearO(panel);
}

void LanesAreQueries::clearO(const Panel &panel) {
  Value zero = splats(0, 1)[0], rowsO = panelOf(o, vDim(), panel);
  b.forLoop(b.i64(0), b.i64(vDim()), 1, [&](Value d) {
    Value row = b.at(rowsO, b.mul(d, rowBytes()));
    for (int64_t n = 0; n < vectors(); ++n)
      storeRow(zero, row, n);
  });
}

void LanesAreQueries::forEachScore(
    const Panel &panel, Value first, Value last,
    llvm::function_ref<Value(Value, int64_t, Value)> body) {
  b.forLoop(first, last, 1, [&](Value key) {
    Value row = scoresOf(panel, key);
    for (int64_t n = 0; n < vectors(); ++n)
      storeRow(body(key, n, loadRow(row, n)), row, n);
  });
}

void LanesAreQueries::mapScores(MapScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  Value scale = b.splat(c.scalars.lookup(op.getScale()), c.lanes);
  Value j = c.scalars.lookup(op.getJ());
  auto map = [&](Value key, int64_t n, Value score) {
    Value position =
        b.add(j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {b.mulf(score, scale),
                      coordinates(c.rowSequences, panel, n), headsOf(panel, n),
                      coordinates(c.rowPositions, panel, n), position};
    return emitRegion(c, op.getBody(), inputs, c.lanes);
  };
  forEachScore(panel, firstKey(panel), keyCount(panel), map);
}

void LanesAreQueries::maskScores(MaskScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  // Keys past the limit are past the valid count: no loop below reaches them.
  if (op.getBody().empty())
    return;
  Value lowest = splats(-std::numeric_limits<float>::infinity(), 1)[0];
  Value j = c.scalars.lookup(op.getJ());
  auto mask = [&](Value key, int64_t n, Value score) {
    Value position =
        b.add(j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {coordinates(c.rowSequences, panel, n), headsOf(panel, n),
                      coordinates(c.rowPositions, panel, n), position};
    Value counts = emitRegion(c, op.getBody(), inputs, c.lanes);
    return Value(arith::SelectOp::create(b, counts, score, lowest));
  };
  if (!panel.clearEnd)
    return forEachScore(panel, b.i64(0), keyCount(panel), mask);
  if (panel.clearBegin)
    forEachScore(panel, firstKey(panel), b.widen(panel.clearBegin), mask);
  forEachScore(panel, b.widen(panel.clearEnd), keyCount(panel), mask);
}

void LanesAreQueries::softmaxStep(SoftmaxStepOp op, const Panel &panel) {
  c.scores[op.getP()] = c.scores.lookup(op.getS());
  Value factor = b.splat(c.scalars.lookup(op.getFactor()), c.lanes);
  Value rowsM = panelOf(m, 1, panel), rowsL = panelOf(l, 1, panel),
        rowsAlpha = panelOf(alpha, 1, panel);
  Value keys = keyCount(panel);

  Values before;
  for (int64_t n = 0; n < vectors(); ++n)
    before.push_back(loadRow(rowsM, n));
  Values after;
  Values largest = c.scores.lookup(op.getS()).largest;
  for (auto [score, state] : llvm::zip(largest, before))
    after.push_back(b.maxf(score, state));
  if (largest.empty())
    after = b.forLoop(firstKey(panel), keys, 1, before,
                      [&](Value key, ValueRange carried) {
                        Value row = scoresOf(panel, key);
                        Values next;
                        for (int64_t n = 0; n < vectors(); ++n)
                          next.push_back(b.maxf(loadRow(row, n), carried[n]));
                        return next;
                      });

  // The difference first: a score may be so large that s c - m c, rounded, is
  // nowhere near (s - m) c. The sum of a tile is taken by itself before it
  // joins the sum so far, so that rounding grows with the tiles, not with the
  // keys.
  Values decays, most;
  for (int64_t n = 0; n < vectors(); ++n) {
    most.push_back(finiteOrZero(after[n]));
    decays.push_back(
        b.exp2OfNonPositive(b.mulf(b.subf(before[n], most[n]), factor)));
    storeRow(after[n], rowsM, n);
    storeRow(decays[n], rowsAlpha, n);
  }
  // Weights take the place of scores; pairs of them half of it. A last pair
  // may lack its second.
  bool pairs = c.takesPairs();
  auto weight = [&](Value row, int64_t n) {
    return b.exp2OfNonPositive(b.mulf(b.subf(loadRow(row, n), most[n]), factor),
                               pairs);
  };
  Value zero = splats(0, 1)[0];
  Values sums = b.forLoop(
      firstKey(panel), keys, pairs ? 2 : 1, splats(0, vectors()),
      [&](Value key, ValueRange carried) {
        Value row = scoresOf(panel, key);
        Values next;
        for (int64_t n = 0; n < vectors(); ++n) {
          Value p = weight(row, n), sum = b.addf(carried[n], p);
          if (pairs) {
            Value second = weight(scoresOf(panel, b.add(key, 1)), n);
            if (panel.valid)
              second = b.select(
                  b.compare(arith::CmpIPredicate::slt, b.add(key, 1), keys),
                  second, zero);
            sum = b.addf(sum, second);
            p = pairsOfBf16(b, p, second, addsPairs());
          }
          storeRow(p, pairs ? scoresOf(panel, b.div(key, 2)) : row, n);
          next.push_back(sum);
        }
        return next;
      });
  // The product takes a few keys at a time: those past the last weigh nothing.
  if (panel.valid) {
    Value written = pairs ? b.ceilDiv(keys, 2) : keys;
    b.forLoop(written, weightCount(panel), 1, [&](Value key) {
      for (int64_t n = 0; n < vectors(); ++n)
        storeRow(zero, scoresOf(panel, key), n);
    });
  }
  for (int64_t n = 0; n < vectors(); ++n) {
    Value kept = b.mulf(loadRow(rowsL, n), decays[n]);
    Value total = b.addf(kept, sums[n]);
    storeRow(total, rowsL, n);
    if (!normalises())
      continue;
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, zero);
    Value inverse =
        b.select(none, zero, b.divf(b.splat(b.f32(1), c.lanes), total));
    storeRow(b.mulf(kept, inverse), rowsAlpha, n);
    storeRow(inverse, panelOf(share, 1, panel), n);
  }
}

/// First where each row goes, then all rows through one transposition. Rows
/// that the item does not hold go nowhere.
void LanesAreQueries::store(StoreOp op, const Panel &panel) {
  Value rowsM = panelOf(m, 1, panel), rowsL = panelOf(l, 1, panel);
  Value firstRow = b.mul(panel.index, panelRows());
  Value count =
      b.min(b.sub(b.widen(c.item.packedRows), firstRow), b.i64(panelRows()));
  auto send = [&](Value row, Value target, Value scale) {
    b.store(target, b.at(c.slot(targets), b.mul(row, 8)));
    b.store(scale, b.at(c.slot(scales), b.mul(row, 4)));
  };
  b.forLoop(b.i64(0), count, 1, [&](Value row) {
    Value packed = b.add(firstRow, row);
    Value token = b.div(packed, c.group);
    Value head =
        queryHead(c.item, panel.head, b.sub(packed, b.mul(token, c.group)));
    Value lane = b.mul(row, 4);
    Value l = b.load(b.getF32Type(), b.at(rowsL, lane));
    writeRow(op, token, head, b.load(b.getF32Type(), b.at(rowsM, lane)), l,
             [&](Value target, Type, Value scale) {
               // A final row is divided by l, a partial one is not.
               if (normalises())
                 scale = scale ? b.f32(1) : l;
               send(row, target, scale ? scale : b.f32(1));
             });
  });
  b.forLoop(count, b.i64(panelRows()), 1,
            [&](Value row) { send(row, c.slot(nowhere), b.f32(0)); });
  Type type = c.kernel.getQType();
  if (type.isF32())
    return storeRows(panel, type);
  Value isFinal =
      b.compare(arith::CmpIPredicate::slt, c.item.partialSlot, b.i32(0));
  b.ifThenElse(
      isFinal, [&] { storeRows(panel, type); },
      [&] { storeRows(panel, b.getF32Type()); });
}

void LanesAreQueries::storeRows(const Panel &panel, Type type) {
  Value panelO = panelOf(o, vDim(), panel);
  forEachVector([&](Value n, Value bytes) {
    Value rowsO = b.at(panelO, bytes);
    Value scale = loadRow(b.at(c.slot(scales), bytes), 0);
    Values pointers = rowPointers(n);
    int64_t whole = vDim() / c.lanes * c.lanes;
    if (whole)
      b.forLoop(b.i64(0), b.i64(whole), c.lanes, [&](Value d) {
        Value row = b.at(rowsO, b.mul(d, rowBytes()));
        Values block;
        for (int64_t i = 0; i < c.lanes; ++i)
          block.push_back(b.mulf(loadRow(b.at(row, i * rowBytes()), 0), scale));
        for (auto [pointer, value] : llvm::zip(pointers, transposed(block)))
          storeFromF32(type, value, b.at(pointer, b.mul(d, bytesOf(type))));
      });
    for (int64_t d = whole; d < vDim(); ++d) {
      Value column = b.mulf(loadRow(b.at(rowsO, d * rowBytes()), 0), scale);
      for (auto [lane, pointer] : llvm::enumerate(pointers)) {
        Value element = vector::ExtractOp::create(
            b, column, ArrayRef<int64_t>{int64_t(lane)});
        storeFromF32(type, element, b.at(pointer, d * bytesOf(type)));
      }
    }
  });
}

std::unique_ptr<TileEmitter>
TileEmitter::lanesAreQueries(KernelContext &context) {
  return std::make_unique<LanesAreQueries>(context);
}
