//===- LanesAreQueriesProducts.cpp - K Q^T and V^T P^T in register blocks -===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two products of LanesAreQueries, and how keys and values reach them in
// time. Keys are read row by row where they lie, the rows of the next register
// block prefetched meanwhile. Values are read down a column of the tile, one
// row after the other: at a stride that maps all of them to a few sets of the
// first-level cache. With `pack`, each tile's values are copied once, in the
// order in which all panels then read them; so are keys that would have to be
// widened one broadcast element at a time. In products of pairs of bf16, a
// 32-bit pair stands for an element everywhere: keys are pairs of dims where
// they lie, values are copied as pairs of two keys.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LanesAreQueries.h"
#include "compiler/target/cpu/NarrowFloat.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

Value LanesAreQueries::loadFactor(Value row, int64_t n) {
  Type element = c.takesPairs() ? b.i32Type() : Type(b.getF32Type());
  return b.load(VectorType::get({c.lanes}, element),
                b.at(row, n * vectorBytes()), vectorBytes());
}

Value LanesAreQueries::broadcastFactor(Type type, Value pointer) {
  if (!c.takesPairs())
    return b.splat(loadAsF32(type, pointer), c.lanes);
  Value pair = b.load(b.i32Type(), pointer, bytesOf(c.cache.getElt()));
  return b.splat(pair, c.lanes);
}

Value LanesAreQueries::multiplyAdd(Value x, Value y, Value sum) {
  if (!c.takesPairs())
    return b.fma(x, y, sum);
  return addPairProducts(b, x, y, sum, addsPairs());
}

/// Keys that exist, in whole steps of both products.
Value LanesAreQueries::keysToCopy(const KvRows &rows) {
  Value all = b.i64(c.kvTile());
  if (!rows.valid)
    return all;
  Value steps = b.ceilDiv(b.widen(rows.valid), keyStep());
  return b.min(b.mul(steps, keyStep()), all);
}

/// Copies the tile's keys for head `head` as f32, [key][dim].
void LanesAreQueries::packKeys(const KvRows &keys, Value head) {
  Type type = c.cache.getElt();
  Value headOffset = b.mul(head, keys.headStride);
  b.forLoop(b.i64(0), keysToCopy(keys), 1, [&](Value key) {
    Value row = rowOf(keys.pointers, key, headOffset);
    Value target = b.at(c.slot(packedKeys), b.mul(key, kDim() * 4));
    b.forPieces(0, kDim(), c.lanes, [&](Value d, int64_t count) {
      Value source = b.at(row, b.mul(d, bytesOf(type)));
      Value piece = count == 1 ? loadAsF32(type, source)
                               : loadVectorAsF32(type, count, source);
      b.store(piece, b.at(target, b.mul(d, 4)), 4);
    });
  });
}

/// `count` columns of a key from byte `offset` on as f32, one vector; or those
/// of a pair of keys in turns, vectors of `lanes` columns and what is left.
Values LanesAreQueries::loadColumns(ArrayRef<Value> keys, Value offset,
                                    int64_t count) {
  Type type = c.cache.getElt();
  if (!c.takesPairs()) {
    Value source = b.at(keys[0], offset);
    return {count == 1 ? loadAsF32(type, source)
                       : loadVectorAsF32(type, count, source)};
  }
  Type bits = VectorType::get({count}, b.getI16Type());
  Value first = b.load(bits, b.at(keys[0], offset), 2);
  Value second = b.load(bits, b.at(keys[1], offset), 2);
  Values result;
  for (int64_t begin = 0; begin < count; begin += c.lanes) {
    int64_t width = std::min(count - begin, c.lanes);
    SmallVector<int64_t> inTurns;
    for (int64_t column = begin; column < begin + width; ++column)
      inTurns.append({column, count + column});
    Value both = vector::ShuffleOp::create(b, first, second, inTurns);
    result.push_back(vector::BitCastOp::create(
        b, VectorType::get({width}, b.i32Type()), both));
  }
  return result;
}

/// Copies the tile's values for head `head`, as f32 or as pairs of two keys,
/// [d / block_rows][row][d % block_rows], where a row is a key or a pair.
void LanesAreQueries::packValues(const KvRows &values, Value head) {
  int64_t bytes = bytesOf(c.cache.getElt());
  int64_t keysOfRow = c.takesPairs() ? 2 : 1;
  Value headOffset = b.mul(head, values.headStride);
  Value rows = b.div(keysToCopy(values), keysOfRow);
  auto keysAt = [&](Value row) {
    Values keys;
    for (int64_t i = 0; i < keysOfRow; ++i)
      keys.push_back(
          rowOf(values.pointers, b.add(b.mul(row, keysOfRow), i), headOffset));
    return keys;
  };
  auto target = [&](Value row, Value d) {
    Value block = b.div(d, blockRows());
    Value column = b.sub(d, b.mul(block, blockRows()));
    Value before = b.add(b.mul(block, packedBlock()), b.mul(row, blockRows()));
    return b.at(c.slot(packed), b.mul(b.add(before, column), 4));
  };

  // As many rows at once as blocks of columns fill a vector make a square, of
  // which whole vectors are stored instead of pieces.
  int64_t square = std::max<int64_t>(1, c.lanes / blockRows());
  bool squares = blockRows() % 4 == 0 && square * blockRows() == c.lanes &&
                 keyStep() % (square * keysOfRow) == 0;
  int64_t columns = c.lanes * keysOfRow;
  int64_t whole = squares ? vDim() / columns * columns : 0;
  if (whole)
    b.forLoop(b.i64(0), rows, square, [&](Value row) {
      SmallVector<Values> keys;
      for (int64_t i = 0; i < square; ++i)
        keys.push_back(keysAt(b.add(row, i)));
      b.forLoop(b.i64(0), b.i64(whole), columns, [&](Value d) {
        SmallVector<Values> loaded;
        for (const Values &pair : keys)
          loaded.push_back(loadColumns(pair, b.mul(d, bytes), columns));
        for (int64_t v = 0; v < keysOfRow; ++v) {
          Values pieces;
          for (const Values &row : loaded)
            pieces.push_back(row[v]);
          for (Value block : transposed(pieces, blockRows())) {
            b.store(block, target(row, d), 4);
            d = b.add(d, blockRows());
          }
        }
      });
    });
  if (whole < vDim())
    b.forLoop(b.i64(0), rows, 1, [&](Value row) {
      Values keys = keysAt(row);
      b.forPieces(whole, vDim(), blockRows(), [&](Value d, int64_t count) {
        Values columns = loadColumns(keys, b.mul(d, bytes), count);
        for (auto [i, part] : llvm::enumerate(columns))
          b.store(part, target(row, b.add(d, int64_t(i) * c.lanes)), 4);
      });
    });
}

void LanesAreQueries::prepareTile(const KvRows &keys, const KvRows &values,
                                  Value head) {
  if (c.packsKeys())
    packKeys(keys, head);
  if (packs())
    packValues(values, head);
}

/// Each panel fetches its share of what is copied from the next tile into the
/// second-level cache.
void LanesAreQueries::prefetchNext(const KvRows &keys, const KvRows &values,
                                   const Panel &panel) {
  int64_t share = llvm::divideCeil(c.kvTile(), panels());
  auto fetch = [&](const KvRows &rows, int64_t dim) {
    if (!rows.nextPointers)
      return;
    Value headOffset = b.mul(panel.head, rows.headStride);
    Value first = b.mul(panel.index, share);
    Value last = b.min(b.add(first, share), b.i64(c.kvTile()));
    b.forLoop(first, last, 1, [&](Value key) {
      Value row = rowOf(*rows.nextPointers, key, headOffset);
      for (int64_t byte = 0; byte < dim * bytesOf(c.cache.getElt());
           byte += lineBytes)
        b.prefetch(b.at(row, byte), /*locality=*/2);
    });
  };
  fetch(keys, kDim());
  fetch(values, vDim());
}

/// Rows see more keys the later they are, so that the keys of a masked tile
/// form a staircase: the first vectors of rows are done while the last still
/// see some. Where a range ends earlier the later its row, vectors go on to the
/// end of those before them. Steps begin at whole steps of both products.
void LanesAreQueries::forEachStep(
    const Panel &panel, llvm::function_ref<void(int64_t, Value, Value)> body) {
  Value first = firstKey(panel), end = keyCount(panel);
  for (auto [n, seen] : llvm::enumerate(panel.vectorEnds)) {
    Value whole = b.mul(b.ceilDiv(b.widen(seen), keyStep()), keyStep());
    Value last = b.min(b.max(whole, first), end);
    body(int64_t(n), first, last);
    first = last;
  }
  body(int64_t(panel.vectorEnds.size()), first, end);
}

void LanesAreQueries::qk(QkOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getK())->second;
  Scores &scores = c.scores[op.getS()] = {s, panel.valid};
  // Where nothing comes between, softmax takes the largest scores of a tile
  // while they are in registers.
  bool asTheyAre =
      !naive() && llvm::all_of(op.getS().getUsers(), [](Operation *user) {
        return isa<SoftmaxStepOp>(user);
      });
  if (asTheyAre && !panel.valid)
    scores.largest = splats(-std::numeric_limits<float>::infinity(), vectors());
  forEachStep(panel, [&](int64_t vector, Value first, Value last) {
    scores.largest = qkRows(rows, panel, vector, first, last, scores.largest);
  });
}

/// Keys [first, last) with vector `firstVector` of the panel and those after
/// it. Vectors before it see none of them. Returns the larger of `largest` and
/// the rows' scores, where it is given.
Values LanesAreQueries::qkRows(const KvRows &rows, const Panel &panel,
                               int64_t firstVector, Value first, Value last,
                               Values largest) {
  Type type = c.packsKeys() ? b.getF32Type() : c.cache.getElt();
  int64_t block = blockRows(), columns = qColumns();
  int64_t width = vectors() - firstVector;
  int64_t bytes = c.takesPairs() ? 4 : bytesOf(type);
  Value queries = panelOf(q, columns, panel);
  Value headOffset = b.mul(panel.head, rows.headStride);
  Value lowest = splats(-std::numeric_limits<float>::infinity(), 1)[0];
  auto rowAt = [&](Value key) {
    return c.packsKeys() ? b.at(c.slot(packedKeys), b.mul(key, kDim() * 4))
                         : rowOf(rows.pointers, key, headOffset);
  };

  // Key rows in groups of block_rows; those past the valid count of a last
  // group point at a row that exists, and what they give is not looked at.
  return b.forLoop(
      first, last, block, largest, [&](Value key, ValueRange soFar) {
        SmallVector<Value> pointers, nextRows;
        for (int64_t r = 0; r < block; ++r) {
          Value index = b.add(key, r);
          if (c.kvTile() % block)
            index = b.min(index, b.i64(c.kvTile() - 1));
          pointers.push_back(rowAt(index));
          Value later = b.min(b.add(key, block + r), b.i64(c.kvTile() - 1));
          nextRows.push_back(rowAt(later));
        }
        auto step = [&](Value d, int64_t ahead, Values sums) {
          Value row =
              b.at(b.at(queries, b.mul(d, rowBytes())), ahead * rowBytes());
          Values vectorsOfQ;
          for (int64_t n = 0; n < width; ++n)
            vectorsOfQ.push_back(loadFactor(row, firstVector + n));
          for (int64_t r = 0; r < block; ++r) {
            Value splat = broadcastFactor(
                type, b.at(b.at(pointers[r], b.mul(d, bytes)), ahead * bytes));
            for (int64_t n = 0; n < width; ++n) {
              Value &sum = sums[r * width + n];
              sum = multiplyAdd(splat, vectorsOfQ[n], sum);
            }
          }
          return sums;
        };
        // A cache line of f32 at a time, and of the next rows meanwhile. Masked
        // tiles are few and get by with less code: generating it takes time.
        const int64_t unroll = panel.valid ? 8 : lineBytes / 4;
        int64_t whole = columns / unroll * unroll;
        Values sums = splats(0, block * width);
        if (whole)
          sums =
              b.forLoop(b.i64(0), b.i64(whole), unroll, sums,
                        [&](Value d, ValueRange carried) {
                          Values next(carried);
                          for (int64_t ahead = 0; ahead < unroll; ++ahead) {
                            // The block's prefetches, spread over the line's
                            // steps.
                            for (int64_t r = 0; r < block; ++r)
                              if (r * unroll / block == ahead)
                                b.prefetch(b.at(nextRows[r], b.mul(d, bytes)),
                                           /*locality=*/3);
                            next = step(d, ahead, next);
                          }
                          return next;
                        });
        for (int64_t d = whole; d < columns; ++d)
          sums = step(b.i64(d), 0, sums);
        for (int64_t r = 0; r < block; ++r) {
          Value index = b.add(key, r);
          if (c.kvTile() % block)
            index = b.min(index, b.i64(c.kvTile() - 1));
          Value target = scoresOf(panel, index);
          for (int64_t n = 0; n < vectors(); ++n)
            storeRow(n < firstVector ? lowest
                                     : sums[r * width + n - firstVector],
                     target, n);
        }
        Values next(soFar);
        for (auto [n, value] : llvm::enumerate(next))
          for (int64_t r = 0; r < block; ++r)
            value = b.maxf(sums[r * width + int64_t(n)], value);
        return next;
      });
}

/// Fetches rows that will be waited for otherwise, a share with each block of
/// columns: in a panel's last visit those that its results go to; in its first,
/// the queries of the panel after it; in the last visit of an item's last panel
/// those of the next item's first.
void LanesAreQueries::fetchRows(const Panel &panel, Value column) {
  auto share = [&](Value column) {
    return b.div(b.mul(column, panelRows()), vDim());
  };
  Value first = share(column);
  Value last = share(b.min(b.add(column, blockRows()), b.i64(vDim())));
  auto fetch = [&](StringRef tensor, const ItemValues &item, Value index,
                   int64_t dim) {
    Value before = b.mul(index, panelRows());
    b.forLoop(first, last, 1, [&](Value row) {
      Value pointer = rowPointer(tensor, item, panel.head, b.add(before, row));
      int64_t bytes = dim * bytesOf(c.kernel.getQType());
      for (int64_t byte = 0; byte < bytes; byte += lineBytes)
        b.prefetch(b.at(pointer, byte), /*locality=*/2);
    });
  };
  Value after = b.add(panel.index, 1);
  auto isAfter = [&](arith::CmpIPredicate predicate) {
    return b.compare(predicate, b.mul(after, panelRows()),
                     b.widen(c.item.packedRows));
  };
  if (panel.isFirst)
    b.ifThen(arith::AndIOp::create(b, panel.isFirst,
                                   isAfter(arith::CmpIPredicate::slt)),
             [&] { fetch("q", c.item, after, kDim()); });
  if (panel.isLast)
    b.ifThen(panel.isLast, [&] {
      fetch("o", c.item, panel.index, vDim());
      b.ifThen(isAfter(arith::CmpIPredicate::sge),
               [&] { fetch("q", c.next, b.i64(0), kDim()); });
    });
}

/// Columns `column` to `column + count - 1` of O: one register block.
void LanesAreQueries::pvColumns(const KvRows &rows, const Panel &panel,
                                Value column, int64_t count, ValueRange scale) {
  Type type = packs() ? b.getF32Type() : c.cache.getElt();
  int64_t bytes = bytesOf(type), rowOfBlock = blockRows() * 4;
  Value p = scoresOf(panel, b.i64(0));
  Value target = b.at(panelOf(o, vDim(), panel), b.mul(column, rowBytes()));
  Value offset =
      b.add(b.mul(panel.head, rows.headStride), b.mul(column, bytes));
  Value block = b.at(c.slot(packed),
                     b.mul(b.div(column, blockRows()), packedBlock() * 4));
  // `key`: a key, or a pair of them.
  auto step = [&](int64_t firstVector, Value key, int64_t ahead, Values next) {
    Value row = b.at(b.at(p, b.mul(key, rowBytes())), ahead * rowBytes());
    Values vectorsOfP;
    for (int64_t n = firstVector; n < vectors(); ++n)
      vectorsOfP.push_back(loadFactor(row, n));
    Value values =
        packs() ? b.at(b.at(block, b.mul(key, rowOfBlock)), ahead * rowOfBlock)
                : rowOf(rows.pointers + ahead * 8, key, offset);
    for (int64_t r = 0; r < count; ++r) {
      Value splat = broadcastFactor(type, b.at(values, r * bytes));
      for (int64_t n = firstVector; n < vectors(); ++n) {
        Value &sum = next[r * vectors() + n];
        sum = multiplyAdd(splat, vectorsOfP[n - firstVector], sum);
      }
    }
    return next;
  };
  Values sums = splats(0, count * vectors());
  forEachStep(panel, [&](int64_t firstVector, Value first, Value last) {
    // Vectors that the step leaves alone are not carried through its loop.
    auto taken = [&](int64_t sum) { return sum % vectors() >= firstVector; };
    Values some;
    for (auto [i, sum] : llvm::enumerate(sums))
      if (taken(int64_t(i)))
        some.push_back(sum);
    int64_t perColumn = c.takesPairs() ? 2 : 1;
    auto columnOf = [&](Value key) {
      return b.mul(b.ceilDiv(key, weightStep() * perColumn), weightStep());
    };
    some =
        b.forLoop(columnOf(first), columnOf(last), weightStep(), some,
                  [&](Value key, ValueRange carried) {
                    Values next = sums;
                    for (int64_t i = 0, at = 0; i < int64_t(next.size()); ++i)
                      if (taken(i))
                        next[i] = carried[at++];
                    for (int64_t ahead = 0; ahead < weightStep(); ++ahead)
                      next = step(firstVector, key, ahead, next);
                    Values kept;
                    for (auto [i, sum] : llvm::enumerate(next))
                      if (taken(int64_t(i)))
                        kept.push_back(sum);
                    return kept;
                  });
    for (int64_t i = 0, at = 0; i < int64_t(sums.size()); ++i)
      if (taken(i))
        sums[i] = some[at++];
  });
  auto finish = [&](bool isFirst) {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t n = 0; n < vectors(); ++n) {
        Value row = b.at(target, r * rowBytes());
        Value tile = sums[r * vectors() + n];
        if (normalises())
          tile = b.mulf(tile, loadRow(panelOf(share, 1, panel), n));
        if (!isFirst) {
          Value soFar = loadRow(row, n);
          tile = scale.empty() ? b.addf(soFar, tile)
                               : b.fma(soFar, scale[n], tile);
        }
        storeRow(tile, row, n);
      }
  };
  if (!panel.isFirst)
    return finish(false);
  b.ifThenElse(panel.isFirst, [&] { finish(true); }, [&] { finish(false); });
}

void LanesAreQueries::pv(PvOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getV())->second;
  Values scale;
  if (c.pendingRescale.contains(op.getO()))
    for (int64_t n = 0; n < vectors(); ++n)
      scale.push_back(loadRow(panelOf(alpha, 1, panel), n));
  int64_t whole = vDim() / blockRows() * blockRows();
  if (whole)
    b.forLoop(b.i64(0), b.i64(whole), blockRows(), [&](Value column) {
      fetchRows(panel, column);
      pvColumns(rows, panel, column, blockRows(), scale);
    });
  if (whole < vDim())
    pvColumns(rows, panel, b.i64(whole), vDim() - whole, scale);
}
