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
// widened one broadcast element at a time.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/LanesAreQueries.h"

using namespace mlir;
using namespace pagoda;

/// Bytes of a cache line.
constexpr int64_t lineBytes = 64;

/// Copies the tile for head `head`, as f32.
void LanesAreQueries::prepareTile(const KvRows &keys, const KvRows &values,
                                  Value head) {
  if (!packs())
    return;
  Type type = c.cache.getElt();
  // Dims [d, d + width) of each row go to target(key, d).
  auto copy = [&](const KvRows &rows, int64_t dim, int64_t width,
                  llvm::function_ref<Value(Value, Value)> target) {
    Value headOffset = b.mul(head, rows.headStride);
    b.forLoop(b.i64(0), b.i64(c.kvTile()), 1, [&](Value key) {
      Value row = rowOf(rows.pointers, key, headOffset);
      b.forPieces(0, dim, width, [&](Value d, int64_t count) {
        Value source = b.at(row, b.mul(d, bytesOf(type)));
        Value piece = count == 1 ? loadAsF32(type, source)
                                 : loadVectorAsF32(type, count, source);
        b.store(piece, target(key, d), 4);
      });
    });
  };
  if (c.packsKeys())
    copy(keys, kDim(), c.lanes, [&](Value key, Value d) {
      return b.at(c.slot(packedKeys), b.mul(b.add(b.mul(key, kDim()), d), 4));
    });
  // [d / block_rows][key][d % block_rows]
  copy(values, vDim(), blockRows(), [&](Value key, Value d) {
    Value block = b.div(d, blockRows());
    Value column = b.sub(d, b.mul(block, blockRows()));
    Value row = b.add(b.mul(block, c.kvTile()), key);
    return b.at(c.slot(packed),
                b.mul(b.add(b.mul(row, blockRows()), column), 4));
  });
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

void LanesAreQueries::qk(QkOp op, const Panel &panel) {
  const KvRows &rows = c.kvRows.find(op.getK())->second;
  Type type = c.packsKeys() ? b.getF32Type() : c.cache.getElt();
  int64_t block = blockRows(), bytes = bytesOf(type);
  Value queries = panelOf(q, kDim(), panel);
  Value headOffset = b.mul(panel.head, rows.headStride);
  c.scores[op.getS()] = {s, panel.valid};
  auto rowAt = [&](Value key) {
    return c.packsKeys() ? b.at(c.slot(packedKeys), b.mul(key, kDim() * 4))
                         : rowOf(rows.pointers, key, headOffset);
  };

  // Key rows in groups of block_rows; those past the valid count of a last
  // group point at a row that exists, and what they give is not looked at.
  b.forLoop(b.i64(0), keyCount(panel), block, [&](Value key) {
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
    // A cache line of f32 at a time, and of the next rows meanwhile. Masked
    // tiles are few and get by with less code: generating it takes time.
    const int64_t unroll = panel.valid ? 4 : lineBytes / 4;
    int64_t whole = kDim() / unroll * unroll;
    Values sums = splats(0, block * vectors());
    if (whole)
      sums = b.forLoop(b.i64(0), b.i64(whole), unroll, sums,
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
    for (int64_t d = whole; d < kDim(); ++d)
      sums = step(b.i64(d), 0, sums);
    for (int64_t r = 0; r < block; ++r) {
      Value index = b.add(key, r);
      if (c.kvTile() % block)
        index = b.min(index, b.i64(c.kvTile() - 1));
      Value target = scoresOf(panel, index);
      for (int64_t n = 0; n < vectors(); ++n)
        storeRow(sums[r * vectors() + n], target, n);
    }
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
  Value block = b.at(c.slot(packed), b.mul(column, c.kvTile() * 4));
  auto step = [&](Value key, int64_t ahead, Values next) {
    Value row = b.at(b.at(p, b.mul(key, rowBytes())), ahead * rowBytes());
    Values vectorsOfP;
    for (int64_t n = 0; n < vectors(); ++n)
      vectorsOfP.push_back(loadRow(row, n));
    Value values =
        packs() ? b.at(b.at(block, b.mul(key, rowOfBlock)), ahead * rowOfBlock)
                : rowOf(rows.pointers + ahead * 8, key, offset);
    for (int64_t r = 0; r < count; ++r) {
      Value splat = b.splat(loadAsF32(type, b.at(values, r * bytes)), c.lanes);
      for (int64_t n = 0; n < vectors(); ++n) {
        Value &sum = next[r * vectors() + n];
        sum = b.fma(splat, vectorsOfP[n], sum);
      }
    }
    return next;
  };
  // Whole tiles have a known number of keys: several at a time.
  int64_t unroll = !panel.valid && c.kvTile() % 4 == 0 ? 4 : 1;
  Values sums =
      b.forLoop(b.i64(0), keyCount(panel), unroll, splats(0, count * vectors()),
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
      if (normalises())
        tile = b.mulf(tile, loadRow(panelOf(share, 1, panel), n));
      storeRow(scale.empty() ? b.addf(soFar, tile)
                             : b.fma(soFar, scale[n], tile),
               row, n);
    }
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
      pvColumns(rows, panel, column, blockRows(), scale);
    });
  if (whole < vDim())
    pvColumns(rows, panel, b.i64(whole), vDim() - whole, scale);
}
