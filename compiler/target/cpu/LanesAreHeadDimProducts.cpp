//===- LanesAreHeadDimProducts.cpp - QK and PV of streamed rows -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of tiles with the head dim across lanes, with one stage: the
// keys of a tile, then its values. Elements of the cache, sums of lanes.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LanesAreHeadDim.h"
#include "compiler/target/cpu/NarrowFloat.h"

#include <numeric>

using namespace mlir;
using namespace pagoda;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// `lanes` elements of a cache row from dim `column` on; dims from `count` on,
/// which belong to other rows or to nobody, are 0.
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

/// Vectors of `count` elements of a cache row from dim `column` on, a multiple
/// of what is loaded together.
Values LanesAreHeadDim::cacheVectors(Value row, Value column, int64_t count) {
  Type type = c.cache.getElt();
  Values vectors;
  int64_t d = 0;
  if (splitsPairs()) {
    for (; d + loadUnit() <= count; d += loadUnit()) {
      Value pointer = b.at(row, b.mul(b.add(column, d), bytesOf(type)));
      auto pairs = VectorType::get({c.lanes}, b.i32Type());
      auto [even, odd] = splitPairs(b, b.load(pairs, pointer, bytesOf(type)));
      vectors.append({even, odd});
    }
  }
  for (; d < count; d += c.lanes)
    vectors.push_back(
        cacheVector(row, b.add(column, d), std::min(c.lanes, count - d)));
  return vectors;
}

/// The same of a key, for addKey: each of keyUnit() dims.
Values LanesAreHeadDim::keyVectors(Value row, Value column, int64_t count) {
  if (!pairsKeys())
    return cacheVectors(row, column, count);
  Values vectors;
  auto pairs = VectorType::get({c.lanes}, b.i32Type());
  for (int64_t d = 0; d < count; d += loadUnit())
    vectors.push_back(b.load(pairs, b.at(row, b.mul(b.add(column, d), 2)), 2));
  return vectors;
}

/// sum + the products of a key's elements and those of a row of Q, from dim
/// `column` on.
Value LanesAreHeadDim::addKey(Value elements, Value queryRow, Value column,
                              Value sum) {
  if (!pairsKeys())
    return b.fma(elements, vectorAt(queryRow, column), sum);
  Value query = b.load(elements.getType(), b.at(queryRow, b.mul(column, 2)), 2);
  return addPairProducts(b, query, elements, sum, /*hasInstruction=*/true);
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
  int64_t stride = round * std::max<int64_t>(1, lineBytes / (round * bytes));
  stride = std::lcm(stride, loadUnit());
  int64_t whole = wholeSteps(kDim(), stride);
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
      queryRows.push_back(queryOf(panel, row));
    auto step = [&](Value d, int64_t dims, Values &next) {
      for (auto [i, elements] : llvm::enumerate(keyVectors(keyRow, d, dims))) {
        Value column = b.add(d, int64_t(i) * keyUnit());
        for (int64_t row = 0; row < panelRows(); ++row) {
          Value &sum = next[row * partials + int64_t(i) % partials];
          sum = addKey(elements, queryRows[row], column, sum);
        }
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
                      step(d, stride, sums);
                      return sums;
                    });
    if (whole < kDim())
      step(b.i64(whole), kDim() - whole, parts);
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
  int64_t most = int64_t(mostTogether());
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
  visitsByToken() ? qkByToken(rows, values, count)
                  : qkByHead(rows, values, count);
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
        for (auto [n, value] :
             llvm::enumerate(cacheVectors(values, column, count)))
          for (int64_t row = 0; row < panelRows(); ++row) {
            Value &sum = next[row * vectors + int64_t(n)];
            sum = b.fma(value, weights[row], sum);
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
  int64_t vectors = fits && isStream ? row : c.schedule.getBlockVectors();
  return int64_t(llvm::alignTo(vectors, loadUnit() / c.lanes));
}

void LanesAreHeadDim::pv(PvOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getV())->second;
  bool rescale = c.pendingRescale.contains(op.getO());
  int64_t block = valueVectors() * c.lanes;
  int64_t whole = wholeSteps(vDim(), block);
  if (whole)
    b.forLoop(b.i64(0), b.i64(whole), block, [&](Value column) {
      pvColumns(rows, panel, column, block, rescale);
    });
  if (whole < vDim())
    pvColumns(rows, panel, b.i64(whole), vDim() - whole, rescale);
}
