//===- LanesAreHeadDimBeside.cpp - QK beside PV ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of tiles with the head dim across lanes, with two stages: the
// keys of the next tile beside the values of this one.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LanesAreHeadDim.h"

using namespace mlir;
using namespace pagoda;

/// The row of `rows` that is fetched while the one of key `begin + key` is
/// read. A walk covers `count` keys of a tile from `begin` on, of all heads,
/// and goes on in the next tile: the row is the one that it meets some rows
/// later, or the next tile's that has the same place in memory as this one has
/// in the walk.
Value LanesAreHeadDim::rowAhead(const KvRows &rows, const Panel &panel,
                                Value key, Value begin, Value count,
                                int64_t dims) {
  int64_t heads = c.schedule.getHeads();
  int64_t distance = std::max<int64_t>(
      1, fetchedAheadBytes / (dims * bytesOf(c.cache.getElt())));
  auto isPast = [&](Value at, Value end) {
    return b.compare(arith::CmpIPredicate::sge, at, end);
  };
  Value later, head, leaves;
  if (fetchesTiles(prefetch())) {
    bool byToken = c.cache.getLayout() == CacheLayout::nhd;
    Value place = b.add(b.mul(panel.head, count), key);
    later = byToken ? b.div(place, heads) : key;
    head = byToken ? b.sub(place, b.mul(later, heads)) : panel.head;
  } else if (visitsByToken()) {
    head = b.add(panel.head, distance % heads);
    Value past = isPast(head, b.i64(heads));
    head = b.select(past, b.sub(head, heads), head);
    later = b.add(key, distance / heads);
    later = b.select(past, b.add(later, 1), later);
    leaves = isPast(later, count);
    later = b.select(leaves, b.sub(later, count), later);
  } else {
    later = b.add(key, distance);
    Value past = isPast(later, count);
    later = b.select(past, b.sub(later, count), later);
    head = b.select(past, b.add(panel.head, 1), panel.head);
    leaves = isPast(head, b.i64(heads));
    head = b.select(leaves, b.i64(0), head);
  }
  // Of a short tile, which a walk leaves at once, the last row is near enough.
  later = b.add(begin, b.min(later, b.sub(count, 1)));
  Value table = c.slot(*rows.nextPointers);
  if (leaves)
    table = b.select(leaves, table, c.slot(rows.pointers));
  Value row = b.load(b.pointerType(), b.at(table, b.mul(later, 8)));
  return b.at(row, b.mul(head, rows.headStride));
}

/// Key `key` of the next tile and value `key` of this one, of one panel; and
/// the same half a tile later, mostly in another page: more streams, and Q and
/// sums are read once for both. The score of the next tile's key takes
/// the place of this one's weight. O stays in scratch memory: a row of it and
/// one of V do not fit the registers.
///
/// The panel's rows go in passes. Where nothing fetches the rows to come, the
/// first one waits for memory; the others find keys and values in the
/// first-level cache, and fetch what comes next.
void LanesAreHeadDim::rowsBeside(const KvRows *keys, const KvRows *values,
                                 const Panel &panel, Value key, Value apart) {
  SmallVector<KeyBesideValue> pairs;
  for (int64_t k = 0; k < keysTogether(); ++k) {
    Value begin = b.mul(apart, k), place = b.add(key, begin);
    KeyBesideValue pair;
    pair.place = b.mul(place, 4);
    auto point = [&](const KvRows *rows, int64_t dims, Value &row, Value &due) {
      if (!rows)
        return;
      row = TileEmitter::rowOf(rows->pointers, place,
                               b.mul(panel.head, rows->headStride));
      if (fetchesRows(prefetch()))
        due = rowAhead(*rows, panel, key, begin, apart, dims);
    };
    point(keys, kDim(), pair.keyRow, pair.keyDue);
    point(values, vDim(), pair.valueRow, pair.valueDue);
    pairs.push_back(pair);
  }
  int64_t step =
      rowsOfPass(panelRows(), keysTogether(),
                 c.kernel.getTarget()->getRegisters(), fetchesRows(prefetch()));
  int64_t whole = wholeSteps(panelRows(), step);
  Value ahead = fetchesRows(prefetch()) ? Value() : b.i64(8 * lineBytes);
  if (whole == step)
    passBeside(pairs, panel, b.i64(0), step, nullptr);
  else
    b.forLoop(b.i64(0), b.i64(whole), step, [&](Value row) {
      Value isFirst = b.compare(arith::CmpIPredicate::eq, row, b.i64(0));
      passBeside(pairs, panel, row, step,
                 ahead ? b.select(isFirst, b.i64(0), ahead) : Value());
    });
  if (whole < panelRows())
    passBeside(pairs, panel, b.i64(whole), panelRows() - whole, ahead);
}

/// Rows `first` to `first + rows - 1` of the panel. With each line of a row one
/// of the row that is due is fetched, or what lies `ahead` bytes after it,
/// mostly the row after this one.
void LanesAreHeadDim::passBeside(ArrayRef<KeyBesideValue> pairs,
                                 const Panel &panel, Value first, int64_t rows,
                                 Value ahead) {
  int64_t count = int64_t(pairs.size()), bytes = bytesOf(c.cache.getElt());
  auto row = [&](int64_t slot, int64_t cols, int64_t index) {
    Value start = rowOf(slot, cols, panel, index);
    return b.at(start, b.mul(first, cols * 4));
  };
  bool key = bool(pairs.front().keyRow), value = bool(pairs.front().valueRow);
  Values scoreRows, queryRows, results, weights;
  for (int64_t r = 0; r < rows; ++r) {
    scoreRows.push_back(row(s, padded(c.kvTile()), r));
    queryRows.push_back(row(q, queryBytes() / 4, r));
    results.push_back(row(recent, padded(vDim()), r));
  }
  for (const KeyBesideValue &pair : pairs)
    for (Value scores : scoreRows)
      if (value)
        weights.push_back(b.splat(scalarAt(b.at(scores, pair.place)), c.lanes));

  auto addKeys = [&](Value d, int64_t dims, Values &sums) {
    for (int64_t k = 0; k < count; ++k)
      for (auto [n, elements] :
           llvm::enumerate(keyVectors(pairs[k].keyRow, d, dims)))
        for (int64_t r = 0; r < rows; ++r) {
          Value column = b.add(d, int64_t(n) * keyUnit());
          Value &sum = sums[k * rows + r];
          sum = addKey(elements, queryRows[r], column, sum);
        }
  };
  auto addValues = [&](Value d, int64_t dims) {
    SmallVector<Values> elements;
    for (const KeyBesideValue &pair : pairs)
      elements.push_back(cacheVectors(pair.valueRow, d, dims));
    for (size_t n = 0; n < elements[0].size(); ++n)
      for (int64_t r = 0; r < rows; ++r) {
        Value column = b.add(d, int64_t(n) * c.lanes);
        Value sum = vectorAt(results[r], column);
        for (int64_t k = 0; k < count; ++k)
          sum = b.fma(elements[k][n], weights[k * rows + r], sum);
        storeVector(sum, results[r], column);
      }
  };
  // A few elements at a time, so that few of them take registers.
  auto add = [&](Value d, int64_t dims, bool key, bool value, Values &sums) {
    for (int64_t at = 0; at < dims; at += loadUnit()) {
      int64_t some = std::min(loadUnit(), dims - at);
      if (key)
        addKeys(b.add(d, at), some, sums);
      if (value)
        addValues(b.add(d, at), some);
    }
  };
  int64_t step = std::max(lineBytes / bytes, loadUnit());
  int64_t wholeKeys = key ? wholeSteps(kDim(), step) : 0;
  int64_t wholeValues = value ? wholeSteps(vDim(), step) : 0;
  int64_t both = std::min(wholeKeys, wholeValues);
  Values sums(key ? count * rows : 0, splat(0));
  auto walk = [&](int64_t from, int64_t to, bool key, bool value) {
    if (from == to)
      return;
    sums = b.forLoop(
        b.i64(from), b.i64(to), step, sums, [&](Value d, ValueRange carried) {
          Values next(carried);
          Value offset = b.mul(d, bytes);
          if (ahead)
            offset = b.add(offset, ahead);
          for (const KeyBesideValue &pair : pairs) {
            if (Value row = ahead ? pair.keyRow : pair.keyDue; row && key)
              b.prefetch(b.at(row, offset), 3);
            if (Value row = ahead ? pair.valueRow : pair.valueDue; row && value)
              b.prefetch(b.at(row, offset), 3);
          }
          add(d, step, key, value, next);
          return next;
        });
  };
  walk(0, both, true, true);
  walk(both, wholeKeys, true, false);
  walk(both, wholeValues, false, true);
  if (key)
    add(b.i64(wholeKeys), kDim() - wholeKeys, true, false, sums);
  if (value)
    add(b.i64(wholeValues), vDim() - wholeValues, false, true, sums);

  for (size_t at = 0; at < sums.size(); at += mostTogether()) {
    Values some(ArrayRef(sums).slice(at).take_front(mostTogether()));
    size_t own = some.size();
    some.resize(llvm::PowerOf2Ceil(own), some.back());
    Value scores = sumLanes(some);
    for (size_t i = 0; i < own; ++i)
      b.store(
          vector::ExtractOp::create(b, scores, ArrayRef<int64_t>(int64_t(i))),
          b.at(scoreRows[(at + i) % size_t(rows)],
               pairs[(at + i) / size_t(rows)].place));
  }
}

/// Adds a row's sums of the last tiles to O, which is then multiplied by
/// `scale` unless that is null.
void LanesAreHeadDim::addRecentToO(const Panel &panel, Value row, Value scale) {
  Value sums = rowOf(o, padded(vDim()), panel, row);
  Value added = rowOf(recent, padded(vDim()), panel, row);
  Value zero = splat(0), factor;
  if (scale)
    factor = b.splat(scale, c.lanes);
  b.forLoop(b.i64(0), b.i64(padded(vDim())), c.lanes, [&](Value d) {
    Value sum = b.addf(vectorAt(sums, d), vectorAt(added, d));
    storeVector(scale ? b.mulf(sum, factor) : sum, sums, d);
    storeVector(zero, added, d);
  });
}

/// Rows that the walks come to after those that have been fetched: while scores
/// become weights, memory would have nothing to do.
void LanesAreHeadDim::fetchMeanwhile(const KvRows &keys, const KvRows &values,
                                     const Panel &panel) {
  if (!fetchesRows(prefetch()))
    return;
  constexpr int64_t bytesOfPanel = 512; // of each walk
  int64_t count = c.kvTile() / keysTogether();
  int64_t inner = visitsByToken() ? int64_t(c.schedule.getHeads()) : count;
  Value panelsBefore = b.add(b.mul(panel.head, panels()), panel.index);
  auto fetch = [&](const KvRows &rows, int64_t dims) {
    int64_t bytes = dims * bytesOf(c.cache.getElt());
    int64_t some = std::max<int64_t>(1, bytesOfPanel / bytes);
    Value first = b.mul(panelsBefore, some);
    b.forLoop(first, b.add(first, some), 1, [&](Value place) {
      Value head = b.div(place, inner), key = b.sub(place, b.mul(head, inner));
      if (visitsByToken())
        std::swap(head, key);
      for (int64_t k = 0; k < keysTogether(); ++k) {
        Value row = rowAhead(rows, {head, {}}, key, b.i64(count * k),
                             b.i64(count), dims);
        for (int64_t byte = 0; byte < bytes; byte += lineBytes)
          b.prefetch(b.at(row, byte), 3);
      }
    });
  };
  fetch(keys, kDim());
  fetch(values, vDim());
}

/// Where the scale of O changes, which it mostly does not, and now and then, so
/// that no sum grows long.
void LanesAreHeadDim::rescale(const Panel &panel, Value j) {
  Value isDue = b.compare(arith::CmpIPredicate::slt,
                          arith::AndIOp::create(b, j, b.i32(keysOfSum - 1)),
                          b.i32(c.kvTile()));
  forEachRow([&](Value row) {
    Value scale = scalarAt(rowOf(alpha, 1, panel, row));
    Value changes =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, scale, b.f32(1));
    b.ifThen(arith::OrIOp::create(b, changes, isDue),
             [&] { addRecentToO(panel, row, scale); });
  });
}

/// A first tile may be short, and so may a last one: a pointer past its rows
/// repeats one that exists, the score there is masked and the weight 0.
void LanesAreHeadDim::pvBesideQk(PvOp pv, QkOp qk) {
  auto rowsOf = [&](Value ref) { return &c.kvRows.find(ref)->second; };
  const KvRows *keys = qk ? rowsOf(qk.getK()) : nullptr;
  const KvRows *values = pv ? rowsOf(pv.getV()) : nullptr;
  Value half = b.i64(c.kvTile() / keysTogether());
  if (!keys || !values)
    if (Value valid = (keys ? keys : values)->valid)
      half = b.ceilDiv(b.widen(valid), keysTogether());
  if (!pv)
    c.scores[qk.getS()] = {s, keys->valid};
  auto walk = [&](const KvRows *keys, const KvRows *values) {
    auto rows = [&](const Panel &panel, Value key) {
      rowsBeside(keys, values, panel, key, half);
    };
    if (visitsByToken())
      b.forLoop(b.i64(0), half, 1, [&](Value key) {
        forEachPanel([&](const Panel &panel) { rows(panel, key); });
      });
    else
      forEachPanel([&](const Panel &panel) {
        b.forLoop(b.i64(0), half, 1, [&](Value key) { rows(panel, key); });
      });
  };
  // Values first: scores take the places of their weights.
  if (keys && values && walksApart(prefetch())) {
    walk(nullptr, values);
    walk(keys, nullptr);
  } else {
    walk(keys, values);
  }
  if (!qk)
    forEachPanel([&](const Panel &panel) {
      forEachRow([&](Value row) { addRecentToO(panel, row, {}); });
    });
}
