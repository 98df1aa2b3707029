//===- LanesAreQueries.cpp - Tiles with query rows across lanes -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For prefill. A panel is block_vectors vectors of packed query rows. Q and O are
// kept transposed, [dim][row]; scores are [key][row]. Then
//
//   S^T = K Q^T       one key element, broadcast from the cache, meets a vector of Q
//   softmax           elementwise across vectors: no reductions over lanes
//   O^T += V^T P^T    one value element, broadcast, meets a vector of P
//
// Both products keep block_rows x block_vectors accumulators in registers. Keys
// and values are read straight from the cache: nothing is packed or copied.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/TileEmitter.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

namespace {

class LanesAreQueries final : public TileEmitter {
public:
  LanesAreQueries(KernelContext &context) : TileEmitter(context) {
    int64_t heads = c.schedule.getHeads(), rows = panels() * panelRows();
    q = c.slots.reserve(heads * rows * kDim() * 4);
    o = c.slots.reserve(heads * rows * vDim() * 4);
    m = c.slots.reserve(heads * rows * 4);
    l = c.slots.reserve(heads * rows * 4);
    alpha = c.slots.reserve(heads * rows * 4);
    s = c.slots.reserve(c.kvTile() * panelRows() * 4);
  }

  int64_t panelRows() const override { return vectors() * c.lanes; }
  void loadQ(const Panel &panel) override;
  void initState(StateInitOp op, const Panel &panel) override;
  void qk(QkOp op, const Panel &panel) override;
  void mapScores(MapScoresOp op, const Panel &panel) override;
  void maskScores(MaskScoresOp op, const Panel &panel) override;
  void softmaxStep(SoftmaxStepOp op, const Panel &panel) override;
  void pv(PvOp op, const Panel &panel) override;
  void store(StoreOp op, const Panel &panel) override;
  void mergePartials(MergePartialsOp op, const Panel &) override {
    llvm_unreachable("merges are scheduled with head dim across lanes");
  }

private:
  int64_t vectors() const { return c.schedule.getBlockVectors(); }
  int64_t kDim() const { return c.cache.getKDim(); }
  int64_t vDim() const { return c.cache.getVDim(); }
  int64_t vectorBytes() const { return c.lanes * 4; }
  int64_t rowBytes() const { return panelRows() * 4; } ///< of one dim or key

  /// Start of this panel's part of a tile with `cols` columns.
  Value panelOf(int64_t slot, int64_t cols, const Panel &panel) {
    Value index = b.add(b.mul(panel.head, panels()), panel.index);
    return b.at(c.slot(slot), b.mul(index, cols * rowBytes()));
  }
  /// Vector n of the row of vectors at `row`.
  Value loadRow(Value row, int64_t n) {
    return b.load(b.vectorType(c.lanes), b.at(row, n * vectorBytes()),
                  vectorBytes());
  }
  void storeRow(Value value, Value row, int64_t n) {
    b.store(value, b.at(row, n * vectorBytes()), vectorBytes());
  }
  Values splats(float value, int64_t count) {
    return Values(count, b.splat(b.f32(value), c.lanes));
  }
  Value keyCount(const Panel &panel) {
    return panel.valid ? b.widen(panel.valid) : b.i64(c.kvTile());
  }
  Value scoresOf(Value index) {
    return b.at(c.slot(s), b.mul(index, rowBytes()));
  }
  /// Rewrites the panel's scores key by key: `body(key, vector, score)`.
  void
  forEachScore(const Panel &panel,
               llvm::function_ref<Value(Value, int64_t, Value)> body);
  /// Vector n of a coordinate array (i32), for this panel's rows.
  Value coordinates(int64_t slot, const Panel &panel, int64_t n) {
    Value row = b.at(c.slot(slot), b.mul(panel.index, panelRows() * 4));
    return b.load(VectorType::get({c.lanes}, b.i32Type()),
                  b.at(row, n * vectorBytes()), vectorBytes());
  }
  void pvColumns(Value p, Value values, Value headOffset, Value accumulator,
                 Value keys, Value column, int64_t count, ValueRange scale);

  int64_t q, o, m, l, alpha, s; ///< scratch offsets
};

} // namespace

/// Packed row r of the item is head r % group of token r / group.
void LanesAreQueries::loadQ(const Panel &panel) {
  Type type = c.kernel.getQType();
  Value target = panelOf(q, kDim(), panel);
  Value tokenStride = c.arg("q_token_stride");
  Value headStride = c.arg("q_head_stride");
  Value firstRow = b.mul(panel.index, panelRows());
  b.forLoop(b.i64(0), b.i64(panelRows()), 1, [&](Value row) {
    Value packed = b.add(firstRow, row);
    Value column = b.at(target, b.mul(row, 4));
    Value present = b.compare(arith::CmpIPredicate::slt, packed,
                              b.widen(c.item.packedRows));
    auto fill = [&](llvm::function_ref<Value(Value)> element) {
      b.forLoop(b.i64(0), b.i64(kDim()), 1, [&](Value d) {
        b.store(element(d), b.at(column, b.mul(d, rowBytes())));
      });
    };
    b.ifThenElse(
        present,
        [&] {
          Value token = b.div(packed, c.group);
          Value head = b.sub(packed, b.mul(token, c.group));
          Value entry = b.add(b.widen(c.item.rowMapOffset), token);
          Value index = b.load(b.i32Type(),
                               b.at(c.arg("row_map"), b.mul(entry, 4)));
          Value offset =
              b.add(b.mul(b.widen(index), tokenStride),
                    b.mul(queryHead(panel.head, head), headStride));
          Value source = b.at(c.arg("q"), b.mul(offset, bytesOf(type)));
          fill([&](Value d) {
            return loadAsF32(type, b.at(source, b.mul(d, bytesOf(type))));
          });
        },
        [&] {
          Value zero = b.f32(0);
          fill([&](Value) { return zero; });
        });
  });
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
        auto [sinkM, sinkL] = sinkState(packed, op.getFactor());
        b.store(sinkM, b.at(rowsM, b.mul(row, 4)));
        b.store(sinkL, b.at(rowsL, b.mul(row, 4)));
      });
    });
  Value rowsO = panelOf(o, vDim(), panel);
  b.forLoop(b.i64(0), b.i64(vDim()), 1, [&](Value d) {
    Value row = b.at(rowsO, b.mul(d, rowBytes()));
    for (int64_t n = 0; n < vectors(); ++n)
      storeRow(zero, row, n);
  });
}

void LanesAreQueries::qk(QkOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getK())->second;
  Type type = c.cache.getElt();
  int64_t block = c.schedule.getBlockRows(), bytes = bytesOf(type);
  Value queries = panelOf(q, kDim(), panel);
  Value headOffset = b.mul(panel.head, rows.headStride);
  c.scores[op.getS()] = {s, panel.valid};

  // Key rows in groups of block_rows; those past the valid count of a last
  // group point at a row that exists, and what they give is not looked at.
  b.forLoop(b.i64(0), keyCount(panel), block, [&](Value key) {
    SmallVector<Value> pointers;
    for (int64_t r = 0; r < block; ++r) {
      Value index = b.add(key, r);
      if (c.kvTile() % block)
        index = b.min(index, b.i64(c.kvTile() - 1));
      Value slot = b.at(c.slot(rows.pointers), b.mul(index, 8));
      pointers.push_back(b.at(b.load(b.pointerType(), slot), headOffset));
    }
    auto step = [&](Value d, int64_t ahead, Values sums) {
      Value row = b.at(b.at(queries, b.mul(d, rowBytes())), ahead * rowBytes());
      Values vectorsOfQ;
      for (int64_t n = 0; n < vectors(); ++n)
        vectorsOfQ.push_back(loadRow(row, n));
      for (int64_t r = 0; r < block; ++r) {
        Value element = loadAsF32(
            type, b.at(b.at(pointers[r], b.mul(d, bytes)), ahead * bytes));
        Value splat = b.splat(element, c.lanes);
        for (int64_t n = 0; n < vectors(); ++n) {
          Value &sum = sums[r * vectors() + n];
          sum = b.fma(splat, vectorsOfQ[n], sum);
        }
      }
      return sums;
    };
    constexpr int64_t unroll = 4;
    int64_t whole = kDim() / unroll * unroll;
    Values sums = splats(0, block * vectors());
    if (whole)
      sums = b.forLoop(b.i64(0), b.i64(whole), unroll, sums,
                       [&](Value d, ValueRange carried) {
                         Values next(carried);
                         for (int64_t ahead = 0; ahead < unroll; ++ahead)
                           next = step(d, ahead, next);
                         return next;
                       });
    for (int64_t d = whole; d < kDim(); ++d)
      sums = step(b.i64(d), 0, sums);
    for (int64_t r = 0; r < block; ++r) {
      Value index = b.add(key, r);
      if (c.kvTile() % block)
        index = b.min(index, b.i64(c.kvTile() - 1));
      Value target = scoresOf(index);
      for (int64_t n = 0; n < vectors(); ++n)
        storeRow(sums[r * vectors() + n], target, n);
    }
  });
}

void LanesAreQueries::forEachScore(
    const Panel &panel,
    llvm::function_ref<Value(Value, int64_t, Value)> body) {
  b.forLoop(b.i64(0), keyCount(panel), 1, [&](Value key) {
    Value row = scoresOf(key);
    for (int64_t n = 0; n < vectors(); ++n)
      storeRow(body(key, n, loadRow(row, n)), row, n);
  });
}

void LanesAreQueries::mapScores(MapScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  Value scale = b.splat(c.scalars.lookup(op.getScale()), c.lanes);
  Value j = c.scalars.lookup(op.getJ());
  forEachScore(panel, [&](Value key, int64_t n, Value score) {
    Value position = b.add(
        j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {b.mulf(score, scale),
                      coordinates(c.rowSequences, panel, n),
                      coordinates(c.rowHeads, panel, n),
                      coordinates(c.rowPositions, panel, n), position};
    return emitRegion(c, op.getBody(), inputs, c.lanes);
  });
}

void LanesAreQueries::maskScores(MaskScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  // Keys past the limit are past the valid count: no loop below reaches them.
  if (op.getBody().empty())
    return;
  Value lowest = splats(-std::numeric_limits<float>::infinity(), 1)[0];
  Value j = c.scalars.lookup(op.getJ());
  forEachScore(panel, [&](Value key, int64_t n, Value score) {
    Value position = b.add(
        j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {coordinates(c.rowSequences, panel, n),
                      coordinates(c.rowHeads, panel, n),
                      coordinates(c.rowPositions, panel, n), position};
    Value counts = emitRegion(c, op.getBody(), inputs, c.lanes);
    return Value(arith::SelectOp::create(b, counts, score, lowest));
  });
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
  Values after = b.forLoop(
      b.i64(0), keys, 1, before, [&](Value key, ValueRange carried) {
        Value row = scoresOf(key);
        Values next;
        for (int64_t n = 0; n < vectors(); ++n)
          next.push_back(b.maxf(loadRow(row, n), carried[n]));
        return next;
      });

  // 2^((s - m) c) = 2^(s c - m c), one FMA. Rounding m c is the same factor in
  // every term of a row, o and l included, so it cancels.
  Values offsets, sums;
  for (int64_t n = 0; n < vectors(); ++n) {
    Value offset = b.negf(b.mulf(finiteOrZero(after[n]), factor));
    Value decay = b.exp2(b.fma(before[n], factor, offset));
    storeRow(after[n], rowsM, n);
    storeRow(decay, rowsAlpha, n);
    offsets.push_back(offset);
    sums.push_back(b.mulf(loadRow(rowsL, n), decay));
  }
  sums = b.forLoop(b.i64(0), keys, 1, sums,
                   [&](Value key, ValueRange carried) {
                     Value row = scoresOf(key);
                     Values next;
                     for (int64_t n = 0; n < vectors(); ++n) {
                       Value p = b.exp2(b.fma(loadRow(row, n), factor,
                                              offsets[n]));
                       storeRow(p, row, n);
                       next.push_back(b.addf(carried[n], p));
                     }
                     return next;
                   });
  for (int64_t n = 0; n < vectors(); ++n)
    storeRow(sums[n], rowsL, n);
}

/// Columns `column` to `column + count - 1` of O: one register block.
void LanesAreQueries::pvColumns(Value p, Value values, Value headOffset,
                                Value accumulator, Value keys, Value column,
                                int64_t count, ValueRange scale) {
  Type type = c.cache.getElt();
  int64_t bytes = bytesOf(type);
  Value target = b.at(accumulator, b.mul(column, rowBytes()));
  Value offset = b.add(headOffset, b.mul(column, bytes));
  Values sums;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t n = 0; n < vectors(); ++n) {
      Value sum = loadRow(b.at(target, r * rowBytes()), n);
      sums.push_back(scale.empty() ? sum : b.mulf(sum, scale[n]));
    }
  sums = b.forLoop(
      b.i64(0), keys, 1, sums, [&](Value key, ValueRange carried) {
        Value row = b.at(p, b.mul(key, rowBytes()));
        Values vectorsOfP;
        for (int64_t n = 0; n < vectors(); ++n)
          vectorsOfP.push_back(loadRow(row, n));
        Value pointer =
            b.at(b.load(b.pointerType(), b.at(values, b.mul(key, 8))), offset);
        Values next(carried);
        for (int64_t r = 0; r < count; ++r) {
          Value splat =
              b.splat(loadAsF32(type, b.at(pointer, r * bytes)), c.lanes);
          for (int64_t n = 0; n < vectors(); ++n) {
            Value &sum = next[r * vectors() + n];
            sum = b.fma(splat, vectorsOfP[n], sum);
          }
        }
        return next;
      });
  for (int64_t r = 0; r < count; ++r)
    for (int64_t n = 0; n < vectors(); ++n)
      storeRow(sums[r * vectors() + n], b.at(target, r * rowBytes()), n);
}

void LanesAreQueries::pv(PvOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getV())->second;
  Value headOffset = b.mul(panel.head, rows.headStride);
  Value accumulator = panelOf(o, vDim(), panel);
  Value p = c.slot(s), values = c.slot(rows.pointers);
  Value keys = keyCount(panel);
  Values scale;
  if (c.pendingRescale.contains(op.getO()))
    for (int64_t n = 0; n < vectors(); ++n)
      scale.push_back(loadRow(panelOf(alpha, 1, panel), n));

  int64_t block = c.schedule.getBlockRows(), whole = vDim() / block * block;
  if (whole)
    b.forLoop(b.i64(0), b.i64(whole), block, [&](Value column) {
      pvColumns(p, values, headOffset, accumulator, keys, column, block, scale);
    });
  if (whole < vDim())
    pvColumns(p, values, headOffset, accumulator, keys, b.i64(whole),
              vDim() - whole, scale);
}

void LanesAreQueries::store(StoreOp op, const Panel &panel) {
  Value rowsM = panelOf(m, 1, panel), rowsL = panelOf(l, 1, panel),
        rowsO = panelOf(o, vDim(), panel);
  Value firstRow = b.mul(panel.index, panelRows());
  Value count =
      b.min(b.sub(b.widen(c.item.packedRows), firstRow), b.i64(panelRows()));
  b.forLoop(b.i64(0), count, 1, [&](Value row) {
    Value packed = b.add(firstRow, row);
    Value token = b.div(packed, c.group);
    Value head = queryHead(panel.head, b.sub(packed, b.mul(token, c.group)));
    Value lane = b.mul(row, 4);
    Value rowM = b.load(b.getF32Type(), b.at(rowsM, lane));
    Value rowL = b.load(b.getF32Type(), b.at(rowsL, lane));
    auto copy = [&](Value target, Type targetType, Value scale) {
      b.forLoop(b.i64(0), b.i64(vDim()), 1, [&](Value d) {
        Value value = b.load(b.getF32Type(),
                             b.at(b.at(rowsO, lane), b.mul(d, rowBytes())));
        if (scale)
          value = b.mulf(value, scale);
        storeFromF32(targetType, value,
                     b.at(target, b.mul(d, bytesOf(targetType))));
      });
    };
    writeRow(op, token, head, rowM, rowL, copy);
  });
}

std::unique_ptr<TileEmitter>
TileEmitter::lanesAreQueries(KernelContext &context) {
  return std::make_unique<LanesAreQueries>(context);
}
