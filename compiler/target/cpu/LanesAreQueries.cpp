//===- LanesAreQueries.cpp - Tiles with query rows across lanes -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For prefill. A panel is block_vectors vectors of packed query rows. Q and O
// are kept transposed, [dim][row]; scores are [key][row]. Then
//
//   S^T = K Q^T       one key element, broadcast from the cache, meets a vector
//   of Q softmax           elementwise across vectors: no reductions over lanes
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
    targets = c.slots.reserve(panelRows() * 8);
    scales = c.slots.reserve(panelRows() * 4);
    nowhere = c.slots.reserve(vDim() * 4);
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
  void forEachScore(const Panel &panel,
                    llvm::function_ref<Value(Value, int64_t, Value)> body);
  /// Vector n of a coordinate array (i32), for this panel's rows.
  Value coordinates(int64_t slot, const Panel &panel, int64_t n) {
    Value row = b.at(c.slot(slot), b.mul(panel.index, panelRows() * 4));
    return b.load(VectorType::get({c.lanes}, b.i32Type()),
                  b.at(row, n * vectorBytes()), vectorBytes());
  }
  Value headsOf(const Panel &panel, int64_t n) {
    return b.add(coordinates(c.rowHeads, panel, n),
                 b.splat(headsBefore(panel), c.lanes));
  }
  Values transposed(Values rows);
  void storeRows(const Panel &panel, Type type);
  void pvColumns(Value p, Value values, Value headOffset, Value accumulator,
                 Value keys, bool whole, Value column, int64_t count,
                 ValueRange scale);

  int64_t q, o, m, l, alpha, s; ///< scratch offsets
  int64_t targets;              ///< where each row of a panel is stored to
  int64_t scales;               ///< and what it is multiplied by
  int64_t nowhere;              ///< a row that nobody reads
};

} // namespace

/// Packed row r of the item is head r % group of token r / group. Rows past the
/// item's last repeat it: they are computed and never stored.
void LanesAreQueries::loadQ(const Panel &panel) {
  Type type = c.kernel.getQType();
  Value target = panelOf(q, kDim(), panel);
  Value lastRow = b.sub(b.widen(c.item.packedRows), 1);
  for (int64_t n = 0; n < vectors(); ++n) {
    Values sources;
    for (int64_t lane = 0; lane < c.lanes; ++lane) {
      Value row = b.add(b.mul(panel.index, panelRows()), n * c.lanes + lane);
      Value packed = b.min(row, lastRow);
      Value token = b.div(packed, c.group);
      Value head = b.sub(packed, b.mul(token, c.group));
      Value entry = b.add(b.widen(c.item.rowMapOffset), token);
      Value index =
          b.load(b.i32Type(), b.at(c.arg("row_map"), b.mul(entry, 4)));
      Value offset =
          b.add(b.mul(b.widen(index), c.arg("q_token_stride")),
                b.mul(queryHead(panel.head, head), c.arg("q_head_stride")));
      sources.push_back(b.at(c.arg("q"), b.mul(offset, bytesOf(type))));
    }
    int64_t whole = kDim() / c.lanes * c.lanes;
    if (whole)
      b.forLoop(b.i64(0), b.i64(whole), c.lanes, [&](Value d) {
        Values block;
        for (Value source : sources)
          block.push_back(loadVectorAsF32(
              type, c.lanes, b.at(source, b.mul(d, bytesOf(type)))));
        Value row = b.at(target, b.mul(d, rowBytes()));
        for (auto [i, column] : llvm::enumerate(transposed(block)))
          storeRow(column, b.at(row, i * rowBytes()), n);
      });
    for (int64_t d = whole; d < kDim(); ++d) {
      Value column = b.splat(b.f32(0), c.lanes);
      for (auto [lane, source] : llvm::enumerate(sources)) {
        Value element = loadAsF32(type, b.at(source, d * bytesOf(type)));
        column = vector::InsertOp::create(b, element, column,
                                          ArrayRef<int64_t>{int64_t(lane)});
      }
      storeRow(column, b.at(target, d * rowBytes()), n);
    }
  }
}

/// `lanes` vectors as a square matrix, transposed by exchanging blocks of 1, 2,
/// 4, ... lanes between pairs of vectors.
Values LanesAreQueries::transposed(Values rows) {
  for (int64_t stride = 1; stride < c.lanes; stride *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < c.lanes; ++lane) {
      bool second = lane & stride;
      low.push_back(second ? c.lanes + (lane ^ stride) : lane);
      high.push_back(second ? c.lanes + lane : lane ^ stride);
    }
    for (int64_t i = 0; i < c.lanes; ++i) {
      if (i & stride)
        continue;
      Value x = rows[i], y = rows[i | stride];
      rows[i] = vector::ShuffleOp::create(b, x, y, low);
      rows[i | stride] = vector::ShuffleOp::create(b, x, y, high);
    }
  }
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
    const Panel &panel, llvm::function_ref<Value(Value, int64_t, Value)> body) {
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
    Value position =
        b.add(j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {b.mulf(score, scale),
                      coordinates(c.rowSequences, panel, n), headsOf(panel, n),
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
    Value position =
        b.add(j, Value(arith::TruncIOp::create(b, b.i32Type(), key)));
    Value inputs[] = {coordinates(c.rowSequences, panel, n), headsOf(panel, n),
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
  Values after =
      b.forLoop(b.i64(0), keys, 1, before, [&](Value key, ValueRange carried) {
        Value row = scoresOf(key);
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
    decays.push_back(b.exp2(b.mulf(b.subf(before[n], most[n]), factor)));
    storeRow(after[n], rowsM, n);
    storeRow(decays[n], rowsAlpha, n);
  }
  Values sums = b.forLoop(b.i64(0), keys, 1, splats(0, vectors()),
                          [&](Value key, ValueRange carried) {
                            Value row = scoresOf(key);
                            Values next;
                            for (int64_t n = 0; n < vectors(); ++n) {
                              Value distance = b.subf(loadRow(row, n), most[n]);
                              Value p = b.exp2(b.mulf(distance, factor));
                              storeRow(p, row, n);
                              next.push_back(b.addf(carried[n], p));
                            }
                            return next;
                          });
  for (int64_t n = 0; n < vectors(); ++n)
    storeRow(b.fma(loadRow(rowsL, n), decays[n], sums[n]), rowsL, n);
}

/// Columns `column` to `column + count - 1` of O: one register block.
void LanesAreQueries::pvColumns(Value p, Value values, Value headOffset,
                                Value accumulator, Value keys, bool whole,
                                Value column, int64_t count, ValueRange scale) {
  Type type = c.cache.getElt();
  int64_t bytes = bytesOf(type);
  Value target = b.at(accumulator, b.mul(column, rowBytes()));
  Value offset = b.add(headOffset, b.mul(column, bytes));
  auto step = [&](Value key, int64_t ahead, Values next) {
    Value row = b.at(b.at(p, b.mul(key, rowBytes())), ahead * rowBytes());
    Values vectorsOfP;
    for (int64_t n = 0; n < vectors(); ++n)
      vectorsOfP.push_back(loadRow(row, n));
    Value slot = b.at(b.at(values, b.mul(key, 8)), ahead * 8);
    Value pointer = b.at(b.load(b.pointerType(), slot), offset);
    for (int64_t r = 0; r < count; ++r) {
      Value splat = b.splat(loadAsF32(type, b.at(pointer, r * bytes)), c.lanes);
      for (int64_t n = 0; n < vectors(); ++n) {
        Value &sum = next[r * vectors() + n];
        sum = b.fma(splat, vectorsOfP[n], sum);
      }
    }
    return next;
  };
  // Whole tiles have a known number of keys: several at a time.
  int64_t unroll = whole && c.kvTile() % 4 == 0 ? 4 : 1;
  Values sums = b.forLoop(b.i64(0), keys, unroll, splats(0, count * vectors()),
                          [&](Value key, ValueRange carried) {
                            Values next(carried);
                            for (int64_t ahead = 0; ahead < unroll; ++ahead)
                              next = step(key, ahead, next);
                            return next;
                          });
  for (int64_t r = 0; r < count; ++r)
    for (int64_t n = 0; n < vectors(); ++n) {
      Value row = b.at(target, r * rowBytes());
      Value soFar = loadRow(row, n), tile = sums[r * vectors() + n];
      storeRow(scale.empty() ? b.addf(soFar, tile)
                             : b.fma(soFar, scale[n], tile),
               row, n);
    }
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
      pvColumns(p, values, headOffset, accumulator, keys, !panel.valid, column,
                block, scale);
    });
  if (whole < vDim())
    pvColumns(p, values, headOffset, accumulator, keys, !panel.valid,
              b.i64(whole), vDim() - whole, scale);
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
    Value head = queryHead(panel.head, b.sub(packed, b.mul(token, c.group)));
    Value lane = b.mul(row, 4);
    writeRow(op, token, head, b.load(b.getF32Type(), b.at(rowsM, lane)),
             b.load(b.getF32Type(), b.at(rowsL, lane)),
             [&](Value target, Type, Value scale) {
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
  Value rowsO = panelOf(o, vDim(), panel);
  for (int64_t n = 0; n < vectors(); ++n) {
    Value scale = loadRow(c.slot(scales), n);
    Values pointers;
    for (int64_t lane = 0; lane < c.lanes; ++lane)
      pointers.push_back(
          b.load(b.pointerType(), c.slot(targets + (n * c.lanes + lane) * 8)));
    int64_t whole = vDim() / c.lanes * c.lanes;
    if (whole)
      b.forLoop(b.i64(0), b.i64(whole), c.lanes, [&](Value d) {
        Value row = b.at(rowsO, b.mul(d, rowBytes()));
        Values block;
        for (int64_t i = 0; i < c.lanes; ++i)
          block.push_back(b.mulf(loadRow(b.at(row, i * rowBytes()), n), scale));
        for (auto [pointer, value] : llvm::zip(pointers, transposed(block)))
          storeFromF32(type, value, b.at(pointer, b.mul(d, bytesOf(type))));
      });
    for (int64_t d = whole; d < vDim(); ++d) {
      Value column = b.mulf(loadRow(b.at(rowsO, d * rowBytes()), n), scale);
      for (auto [lane, pointer] : llvm::enumerate(pointers)) {
        Value element = vector::ExtractOp::create(
            b, column, ArrayRef<int64_t>{int64_t(lane)});
        storeFromF32(type, element, b.at(pointer, d * bytesOf(type)));
      }
    }
  }
}

std::unique_ptr<TileEmitter>
TileEmitter::lanesAreQueries(KernelContext &context) {
  return std::make_unique<LanesAreQueries>(context);
}
