//===- LanesAreHeadDim.cpp - Tiles with the head dim across lanes ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For decode, which is bound by memory: each key and value row is streamed once
// and meets all query heads of its group. A panel is block_rows packed rows. Q,
// O are [row][dim] with dims padded to whole vectors, scores [row][key] with
// keys padded. QK sums along lanes; four sums are reduced together by a
// transposing reduction. All keys of a tile come first, in the order in which
// they lie, head by head or token by token, while the rows of V that follow are
// prefetched: only the block table knows where they are. One file over 500
// lines: its steps share the layout of every buffer.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/NarrowFloat.h"
#include "compiler/target/cpu/TileEmitter.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

namespace {

class LanesAreHeadDim final : public TileEmitter {
public:
  LanesAreHeadDim(KernelContext &context) : TileEmitter(context) {
    int64_t rows = c.schedule.getHeads() * panels() * panelRows();
    q = c.slots.reserve(rows * padded(kDim()) * 4);
    o = c.slots.reserve(rows * padded(vDim()) * 4);
    m = c.slots.reserve(rows * 4);
    l = c.slots.reserve(rows * 4);
    alpha = c.slots.reserve(rows * 4);
    s = c.slots.reserve(rows * padded(c.kvTile()) * 4);
  }

  int64_t panelRows() const override { return c.schedule.getBlockRows(); }
  void loadQ(const Panel &panel) override;
  void initState(StateInitOp op, const Panel &panel) override;
  void qk(QkOp op, const Panel &) override {
    llvm_unreachable("scores of a tile are computed together");
  }
  bool qkWhole(QkOp op, const KvRows &values, Value valid) override;
  void mapScores(MapScoresOp op, const Panel &panel) override;
  void maskScores(MaskScoresOp op, const Panel &panel) override;
  void softmaxStep(SoftmaxStepOp op, const Panel &panel) override;
  void pv(PvOp op, const Panel &panel) override;
  void store(StoreOp op, const Panel &panel) override;
  void mergePartials(MergePartialsOp op, const Panel &panel) override;

private:
  int64_t kDim() const { return c.cache.getKDim(); }
  int64_t vDim() const { return c.cache.getVDim(); }
  int64_t padded(int64_t count) const {
    return (count + c.lanes - 1) / c.lanes * c.lanes;
  }
  /// Start of row `row` of this panel in a tile of `cols` columns.
  Value rowOf(int64_t slot, int64_t cols, const Panel &panel, int64_t row) {
    Value index = b.add(b.mul(panel.head, panels()), panel.index);
    return b.at(b.at(c.slot(slot), b.mul(index, panelRows() * cols * 4)),
                row * cols * 4);
  }
  Value scoresOf(const Panel &panel, int64_t row) {
    return rowOf(s, padded(c.kvTile()), panel, row);
  }
  Value vectorAt(Value row, Value column) {
    return b.load(b.vectorType(c.lanes), b.at(row, b.mul(column, 4)), 4);
  }
  void storeVector(Value value, Value row, Value column) {
    b.store(value, b.at(row, b.mul(column, 4)), 4);
  }
  Value scalarAt(Value row) { return b.load(b.getF32Type(), row); }
  Value splat(float value) { return b.splat(b.f32(value), c.lanes); }
  /// Number of keys of this tile that take part, at most.
  Value keyCount(const Panel &panel) {
    return panel.valid ? b.widen(panel.valid) : b.i64(c.kvTile());
  }
  /// `lanes` elements of a cache row from dim `column` on; dims from `dims` on,
  /// which belong to other rows or to nobody, are 0.
  Value cacheVector(Value row, Value column, int64_t count);
  Value sumLanes(ArrayRef<Value> vectors);
  Values sumTogether(Values vectors);
  using KeyOfHead = std::pair<Panel, Value>;
  Values qkTogether(const KvRows &rows, const KvRows &values,
                    ArrayRef<KeyOfHead> keys);
  void qkByHead(const KvRows &rows, const KvRows &values, Value count);
  void qkByToken(const KvRows &rows, const KvRows &values, Value count);
  int64_t together(int64_t count) const;
  int64_t valueVectors() const;
  void pvColumns(const KvRows &rows, const Panel &panel, Value column,
                 int64_t count, bool rescale);
  void prefetch(Value pointer, int64_t bytes);
  void forEachScore(const Panel &panel,
                    llvm::function_ref<Value(int64_t, Value, Value)> body);
  Value iota(Value first);
  Value coordinate(int64_t slot, const Panel &panel, int64_t row) {
    Value packed = b.add(b.mul(panel.index, panelRows()), row);
    return b.load(b.i32Type(), b.at(c.slot(slot), b.mul(packed, 4)));
  }
  /// Emits `body` for each row of the panel that the item holds.
  void forEachRow(const Panel &panel,
                  llvm::function_ref<void(int64_t, Value)> body);

  int64_t q, o, m, l, alpha, s; ///< scratch offsets
};

} // namespace

void LanesAreHeadDim::forEachRow(
    const Panel &panel, llvm::function_ref<void(int64_t, Value)> body) {
  for (int64_t row = 0; row < panelRows(); ++row) {
    Value packed = b.add(b.mul(panel.index, panelRows()), row);
    if (panelRows() == 1) {
      body(row, packed);
      continue;
    }
    Value present = b.compare(arith::CmpIPredicate::slt, packed,
                              b.widen(c.item.packedRows));
    b.ifThen(present, [&] { body(row, packed); });
  }
}

void LanesAreHeadDim::loadQ(const Panel &panel) {
  Type type = c.kernel.getQType();
  // Zero first: padding, and rows that the item does not hold.
  Value zero = splat(0);
  for (int64_t row = 0; row < panelRows(); ++row) {
    Value target = rowOf(q, padded(kDim()), panel, row);
    b.forLoop(b.i64(0), b.i64(padded(kDim())), c.lanes,
              [&](Value d) { storeVector(zero, target, d); });
  }
  forEachRow(panel, [&](int64_t row, Value packed) {
    Value target = rowOf(q, padded(kDim()), panel, row);
    Value token = b.div(packed, c.group);
    Value head = b.sub(packed, b.mul(token, c.group));
    Value entry = b.add(b.widen(c.item.rowMapOffset), token);
    Value index = b.load(b.i32Type(), b.at(c.arg("row_map"), b.mul(entry, 4)));
    Value offset = b.add(
        b.mul(b.widen(index), c.arg("q_token_stride")),
        b.mul(queryHead(c.item, panel.head, head), c.arg("q_head_stride")));
    Value source = b.at(c.arg("q"), b.mul(offset, bytesOf(type)));
    b.forLoop(b.i64(0), b.i64(kDim()), 1, [&](Value d) {
      b.store(loadAsF32(type, b.at(source, b.mul(d, bytesOf(type)))),
              b.at(target, b.mul(d, 4)));
    });
  });
}

void LanesAreHeadDim::initState(StateInitOp op, const Panel &panel) {
  Value lowest = b.f32(-std::numeric_limits<float>::infinity());
  Value none = b.f32(0), zero = splat(0);
  for (int64_t row = 0; row < panelRows(); ++row) {
    b.store(lowest, rowOf(m, 1, panel, row));
    b.store(none, rowOf(l, 1, panel, row));
    Value target = rowOf(o, padded(vDim()), panel, row);
    b.forLoop(b.i64(0), b.i64(padded(vDim())), c.lanes,
              [&](Value d) { storeVector(zero, target, d); });
  }
  if (!op.getSinks())
    return;
  ifFirstSplit([&] {
    forEachRow(panel, [&](int64_t row, Value packed) {
      auto [sinkM, sinkL] = sinkState(panel, packed, op.getFactor());
      b.store(sinkM, rowOf(m, 1, panel, row));
      b.store(sinkL, rowOf(l, 1, panel, row));
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value LanesAreHeadDim::cacheVector(Value row, Value column, int64_t count) {
  Type type = c.cache.getElt();
  Value pointer = b.at(row, b.mul(column, bytesOf(type)));
  if (count == c.lanes)
    return loadVectorAsF32(type, c.lanes, pointer);
  SmallVector<bool> mask(c.lanes, false);
  std::fill_n(mask.begin(), count, true);
  auto maskType = VectorType::get({c.lanes}, b.getI1Type());
  Value enabled = arith::ConstantOp::create(
      b, DenseElementsAttr::get(maskType, ArrayRef<bool>(mask)));
  auto vectorType = VectorType::get({c.lanes}, storedAs(type));
  Value zero =
      arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(vectorType)));
  Value value = LLVM::MaskedLoadOp::create(b, vectorType, pointer, enabled,
                                           zero, uint32_t(bytesOf(type)));
  return convertFloat(b, value, type, b.getF32Type());
}

/// Lanes of the result: the sums of the lanes of each vector. A power of two of
/// vectors; halves are folded until one vector holds all sums (repeated where
/// there are fewer vectors than lanes).
Values LanesAreHeadDim::sumTogether(Values vectors) {
  // Round k pairs vectors and adds lanes that differ in bit k, so that lane i
  // of the last vector belongs to vector i.
  for (int64_t stride = 1; vectors.size() > 1; stride *= 2) {
    Values next;
    for (size_t i = 0; i + 1 < vectors.size(); i += 2) {
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < c.lanes; ++lane) {
        // Lanes with the bit clear come from the first vector.
        bool second = lane & stride;
        int64_t base = second ? c.lanes : 0;
        low.push_back(base + (lane & ~stride));
        high.push_back(base + (lane | stride));
      }
      Value a = vectors[i], d = vectors[i + 1];
      Value x = vector::ShuffleOp::create(b, a, d, low);
      Value y = vector::ShuffleOp::create(b, a, d, high);
      next.push_back(b.addf(x, y));
    }
    vectors = next;
  }
  return vectors;
}

/// A vector whose lane i is the sum of the lanes of vector i.
Value LanesAreHeadDim::sumLanes(ArrayRef<Value> vectors) {
  int64_t count = int64_t(vectors.size());
  Value sum = sumTogether(Values(vectors.begin(), vectors.end()))[0];
  // What is left to add: lanes that differ in the higher bits.
  for (int64_t stride = count; stride < c.lanes; stride *= 2) {
    SmallVector<int64_t> swap;
    for (int64_t lane = 0; lane < c.lanes; ++lane)
      swap.push_back(lane ^ stride);
    sum = b.addf(sum, vector::ShuffleOp::create(b, sum, sum, swap));
  }
  return sum;
}

/// Scores of some keys, each of the head of its panel: lane i of vector r is
/// that of key i and row r. Key rows are read one after the other, as they lie
/// in memory, so that the hardware's prefetchers see one stream; several
/// partial sums of one row keep the FMA units busy instead of several rows.
/// Beside that stream, rows of V that are due later are prefetched, which no
/// hardware can foresee. (Panels after the first of a head prefetch rows that
/// are there.)
Values LanesAreHeadDim::qkTogether(const KvRows &rows, const KvRows &values,
                                   ArrayRef<KeyOfHead> keys) {
  int64_t bytes = bytesOf(c.cache.getElt()), count = int64_t(keys.size());
  int64_t partials = std::max<int64_t>(
      1, std::min(c.schedule.getBlockVectors(), kDim() / c.lanes));
  // Narrow elements take several rounds to a cache line.
  int64_t round = partials * c.lanes;
  int64_t rounds = std::max<int64_t>(1, lineBytes / (round * bytes));
  int64_t stride = rounds * round, whole = kDim() / stride * stride;
  Values sums(panelRows() * count);
  for (auto [k, entry] : llvm::enumerate(keys)) {
    auto &[panel, key] = entry;
    Value keyRow = TileEmitter::rowOf(rows.pointers, key,
                                      b.mul(panel.head, rows.headStride));
    Value due;
    if (values.nextPointers)
      due = TileEmitter::rowOf(*values.nextPointers, key,
                               b.mul(panel.head, values.headStride));
    Values queryRows;
    for (int64_t row = 0; row < panelRows(); ++row)
      queryRows.push_back(rowOf(q, padded(kDim()), panel, row));
    // Vector `i` of the dims from `d` on, of which `dims` exist.
    auto step = [&](Value d, int64_t i, int64_t dims, Values &next) {
      Value column = b.add(d, i * c.lanes);
      Value elements = cacheVector(keyRow, column, dims);
      for (int64_t row = 0; row < panelRows(); ++row) {
        Value &sum = next[row * partials + i % partials];
        sum = b.fma(elements, vectorAt(queryRows[row], column), sum);
      }
    };
    Values parts(panelRows() * partials, splat(0));
    if (whole)
      parts =
          b.forLoop(b.i64(0), b.i64(whole), stride, parts,
                    [&](Value d, ValueRange carried) {
                      Values sums(carried);
                      if (due)
                        prefetch(b.at(due, b.mul(d, bytes)), stride * bytes);
                      for (int64_t i = 0; i < rounds * partials; ++i)
                        step(d, i, c.lanes, sums);
                      return sums;
                    });
    for (int64_t d = whole; d < kDim(); d += c.lanes)
      step(b.i64(whole), (d - whole) / c.lanes, std::min(c.lanes, kDim() - d),
           parts);
    for (int64_t row = 0; row < panelRows(); ++row) {
      Value sum = parts[row * partials];
      for (int64_t partial = 1; partial < partials; ++partial)
        sum = b.addf(sum, parts[row * partials + partial]);
      sums[row * count + k] = sum;
    }
  }
  Values scores;
  for (int64_t row = 0; row < panelRows(); ++row)
    scores.push_back(sumLanes(ArrayRef(sums).slice(row * count, count)));
  return scores;
}

void LanesAreHeadDim::prefetch(Value pointer, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += lineBytes)
    b.prefetch(b.at(pointer, byte), /*locality=*/2);
}

/// How many sums are reduced together: a power of two that divides `count`.
int64_t LanesAreHeadDim::together(int64_t count) const {
  int64_t most = std::min<int64_t>(4, c.lanes);
  while (count % most)
    most /= 2;
  return most;
}

/// Keys in the order in which they lie in a block. Pointers past the valid
/// count repeat a row that exists.
bool LanesAreHeadDim::qkWhole(QkOp op, const KvRows &values, Value valid) {
  const KvRows &rows = c.kvRows.find(op.getK())->second;
  c.scores[op.getS()] = {s, valid};
  Value count = keyCount({{}, {}, valid});
  bool byToken =
      c.cache.getLayout() == CacheLayout::nhd && c.schedule.getHeads() > 1;
  byToken ? qkByToken(rows, values, count) : qkByHead(rows, values, count);
  return true;
}

void LanesAreHeadDim::qkByHead(const KvRows &rows, const KvRows &values,
                               Value count) {
  int64_t step = together(c.kvTile());
  forEachPanel([&](const Panel &panel) {
    b.forLoop(b.i64(0), count, step, [&](Value key) {
      SmallVector<KeyOfHead> keys;
      for (int64_t k = 0; k < step; ++k)
        keys.emplace_back(panel, b.add(key, k));
      auto firstLanes = llvm::to_vector(llvm::seq<int64_t>(0, step));
      for (auto [row, sums] : llvm::enumerate(qkTogether(rows, values, keys)))
        b.store(vector::ShuffleOp::create(b, sums, sums, firstLanes),
                b.at(scoresOf(panel, row), b.mul(key, 4)), 4);
    });
  });
}

void LanesAreHeadDim::qkByToken(const KvRows &rows, const KvRows &values,
                                Value count) {
  int64_t step = together(c.schedule.getHeads());
  Value panelCount = b.widen(b.ceilDiv(c.item.packedRows, panelRows()));
  b.forLoop(b.i64(0), count, 1, [&](Value key) {
    b.forLoop(b.i64(0), b.i64(c.schedule.getHeads()), step, [&](Value head) {
      b.forLoop(b.i64(0), panelCount, 1, [&](Value index) {
        SmallVector<KeyOfHead> keys;
        for (int64_t h = 0; h < step; ++h)
          keys.emplace_back(Panel{b.add(head, h), index, {}}, key);
        for (auto [row, sums] : llvm::enumerate(qkTogether(rows, values, keys)))
          for (int64_t h = 0; h < step; ++h)
            b.store(vector::ExtractOp::create(b, sums, ArrayRef<int64_t>{h}),
                    b.at(scoresOf(keys[h].first, row), b.mul(key, 4)));
      });
    });
  });
}

/// Columns `column` to `column + count - 1` of O, at most valueVectors()
/// vectors.
void LanesAreHeadDim::pvColumns(const KvRows &rows, const Panel &panel,
                                Value column, int64_t count, bool rescale) {
  int64_t vectors = (count + c.lanes - 1) / c.lanes;
  Value headOffset = b.mul(panel.head, rows.headStride);
  // The sum of this tile by itself, then added to the rescaled sum so far.
  Values sums = b.forLoop(
      b.i64(0), keyCount(panel), 1, Values(panelRows() * vectors, splat(0)),
      [&](Value key, ValueRange carried) {
        Value pointer =
            b.load(b.pointerType(), b.at(c.slot(rows.pointers), b.mul(key, 8)));
        Value values = b.at(pointer, headOffset);
        Values weights, next(carried);
        for (int64_t row = 0; row < panelRows(); ++row)
          weights.push_back(b.splat(
              scalarAt(b.at(scoresOf(panel, row), b.mul(key, 4))), c.lanes));
        for (int64_t n = 0; n < vectors; ++n) {
          int64_t dims = std::min(c.lanes, count - n * c.lanes);
          Value value = cacheVector(values, b.add(column, n * c.lanes), dims);
          for (int64_t row = 0; row < panelRows(); ++row) {
            Value &sum = next[row * vectors + n];
            sum = b.fma(value, weights[row], sum);
          }
        }
        return next;
      });
  for (int64_t row = 0; row < panelRows(); ++row) {
    Value target = rowOf(o, padded(vDim()), panel, row);
    Value scale;
    if (rescale)
      scale = b.splat(scalarAt(rowOf(alpha, 1, panel, row)), c.lanes);
    for (int64_t n = 0; n < vectors; ++n) {
      Value at = b.add(column, n * c.lanes);
      Value soFar = vectorAt(target, at), tile = sums[row * vectors + n];
      storeVector(scale ? b.fma(soFar, scale, tile) : b.addf(soFar, tile),
                  target, at);
    }
  }
}

/// Vectors of a row of V that are taken at a time: the whole row where rows lie
/// one after the other and the sums fit the registers, as one stream; otherwise
/// a line or so of all keys.
int64_t LanesAreHeadDim::valueVectors() const {
  int64_t row = vDim() / c.lanes;
  bool fits = row && row * panelRows() <= c.kernel.getTarget()->getRegisters();
  bool isStream = c.cache.getLayout() == CacheLayout::hnd;
  return fits && isStream ? row : c.schedule.getBlockVectors();
}

void LanesAreHeadDim::pv(PvOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getV())->second;
  bool rescale = c.pendingRescale.contains(op.getO());
  int64_t block = valueVectors() * c.lanes;
  int64_t whole = vDim() / block * block;
  if (whole)
    b.forLoop(b.i64(0), b.i64(whole), block, [&](Value column) {
      pvColumns(rows, panel, column, block, rescale);
    });
  if (whole < vDim())
    pvColumns(rows, panel, b.i64(whole), vDim() - whole, rescale);
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
    const Panel &panel, llvm::function_ref<Value(int64_t, Value, Value)> body) {
  b.forLoop(b.i64(0), b.i64(padded(c.kvTile())), c.lanes, [&](Value key) {
    for (int64_t row = 0; row < panelRows(); ++row) {
      Value target = scoresOf(panel, row);
      storeVector(body(row, key, vectorAt(target, key)), target, key);
    }
  });
}

void LanesAreHeadDim::mapScores(MapScoresOp op, const Panel &panel) {
  c.scores[op.getResult()] = c.scores.lookup(op.getS());
  Value scale = b.splat(c.scalars.lookup(op.getScale()), c.lanes);
  Value j = c.scalars.lookup(op.getJ());
  forEachScore(panel, [&](int64_t row, Value key, Value score) {
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
  forEachScore(panel, [&](int64_t row, Value key, Value score) {
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
  auto scores = [&](int64_t row, int64_t key) -> Value {
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
  for (int64_t row = 0; row < panelRows(); ++row) {
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
    Value decay = b.exp2(b.mulf(b.subf(before, reference), factor));
    Value factors = b.splat(factor, c.lanes);
    Value references = b.splat(reference, c.lanes);
    Value sum;
    for (int64_t key = 0; key < keys; key += c.lanes) {
      Value p = b.exp2(b.mulf(b.subf(scores(row, key), references), factors));
      storeVector(p, scoresOf(panel, row), b.i64(key));
      sum = sum ? b.addf(sum, p) : p;
    }
    Value total = vector::ExtractOp::create(b, sumLanes(ArrayRef<Value>(sum)),
                                            ArrayRef<int64_t>{0});
    b.store(after, rowM);
    b.store(decay, rowOf(alpha, 1, panel, row));
    b.store(b.fma(scalarAt(rowL), decay, total), rowL);
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void LanesAreHeadDim::store(StoreOp op, const Panel &panel) {
  forEachRow(panel, [&](int64_t row, Value packed) {
    Value source = rowOf(o, padded(vDim()), panel, row);
    Value token = b.div(packed, c.group);
    Value head =
        queryHead(c.item, panel.head, b.sub(packed, b.mul(token, c.group)));
    auto copy = [&](Value target, Type type, Value scale) {
      b.forLoop(b.i64(0), b.i64(vDim()), 1, [&](Value d) {
        Value value = b.load(b.getF32Type(), b.at(source, b.mul(d, 4)));
        if (scale)
          value = b.mulf(value, scale);
        storeFromF32(type, value, b.at(target, b.mul(d, bytesOf(type))));
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
  forEachRow(panel, [&](int64_t row, Value packed) {
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
          Value weight =
              b.exp2(b.mulf(b.subf(scalarAt(ml), reference), factor));
          Value source = b.at(partialO, b.mul(state, vDim() * 4));
          b.forLoop(b.i64(0), b.i64(vDim()), 1, [&](Value d) {
            Value place = b.at(target, b.mul(d, 4));
            Value part = scalarAt(b.at(source, b.mul(d, 4)));
            b.store(b.fma(part, weight, scalarAt(place)), place);
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
