//===- LanesAreQueries.h - Tiles with query rows across lanes ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For prefill. A panel is block_vectors vectors of packed query rows. Q and O
// are kept transposed, [dim][row]; scores are [key][row]. Then
//
//   S^T = K Q^T       one key element, broadcast, meets a vector of Q
//   softmax           elementwise across vectors: no reductions over lanes
//   O^T += V^T P^T    one value element, broadcast, meets a vector of P
//
// Both products (LanesAreQueriesProducts.cpp) keep block_rows x block_vectors
// accumulators in registers; everything else is in LanesAreQueries.cpp. Keys
// are read straight from the cache; so are values. Where the schedule packs, a
// tile's values, and keys narrower than f32, are first copied as f32.
//
// With pairs of bf16 (pack = 2) the same shape holds with 32-bit pairs for
// elements: Q^T is [dim pair][row] and meets pairs of a key's dims, as they lie
// in the cache; P^T is [key pair][row] and meets pairs of two keys' values, of
// which the tile's copy consists.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_LANESAREQUERIES_H
#define PAGODA_COMPILER_TARGET_CPU_LANESAREQUERIES_H

#include "compiler/target/cpu/TileEmitter.h"

#include <numeric>

namespace pagoda {

class LanesAreQueries final : public TileEmitter {
public:
  LanesAreQueries(KernelContext &context) : TileEmitter(context) {
    int64_t heads = c.schedule.getHeads(), rows = panels() * panelRows();
    q = c.slots.reserve(heads * rows * qColumns() * 4);
    o = c.slots.reserve(heads * rows * vDim() * 4);
    m = c.slots.reserve(heads * rows * 4);
    l = c.slots.reserve(heads * rows * 4);
    alpha = c.slots.reserve(heads * rows * 4);
    // The whole matrix in the naive order, else one panel at a time.
    s = c.slots.reserve(c.kvTile() * (naive() ? heads * rows : panelRows()) *
                        4);
    if (normalises())
      share = c.slots.reserve(heads * rows * 4);
    targets = c.slots.reserve(panelRows() * 8);
    scales = c.slots.reserve(panelRows() * 4);
    nowhere = c.slots.reserve(vDim() * 4);
    if (packs())
      packed = c.slots.reserve(llvm::divideCeil(vDim(), blockRows()) *
                               packedBlock() * 4);
    if (c.packsKeys())
      packedKeys = c.slots.reserve(c.kvTile() * kDim() * 4);
  }

  bool visitsInTurn() const override { return !naive(); }
  int64_t panelRows() const override { return vectors() * c.lanes; }
  int64_t panelVectors() const override { return naive() ? 1 : vectors(); }
  void prepareTile(const KvRows &keys, const KvRows &values,
                   Value head) override;
  void prefetchNext(const KvRows &keys, const KvRows &values,
                    const Panel &panel) override;
  void loadQ(const Panel &panel) override;
  void initState(StateInitOp op, const Panel &panel) override;
  void clearO(const Panel &panel) override;
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
  bool naive() const { return c.schedule.getOrder() == LoopOrder::naive; }
  /// FlashAttention's first form keeps O divided by l after every tile.
  bool normalises() const {
    return c.schedule.getOrder() == LoopOrder::kv_outer;
  }
  bool packs() const { return c.schedule.getPack(); }
  /// 32-bit columns of Q and of P.
  int64_t qColumns() const { return c.takesPairs() ? kDim() / 2 : kDim(); }
  int64_t pColumns() const {
    return c.takesPairs() ? c.kvTile() / 2 : c.kvTile();
  }
  int64_t blockRows() const { return c.schedule.getBlockRows(); }
  /// 32-bit elements from one block of columns of a packed V to the next: a
  /// line more than they are, since those of a power of two fall into a few
  /// sets of the first-level cache, and a copied row meets all blocks.
  int64_t packedBlock() const {
    return pColumns() * blockRows() + lineBytes / 4;
  }
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
  /// Runs `body` for each vector of a row, given its number and its offset in
  /// bytes: a loop, since transpositions are long.
  void forEachVector(llvm::function_ref<void(Value, Value)> body) {
    b.forLoop(b.i64(0), b.i64(vectors()), 1,
              [&](Value n) { body(n, b.mul(n, vectorBytes())); });
  }
  /// Vector n of the row of vectors at `row`.
  Value loadRow(Value row, int64_t n) {
    return b.load(b.vectorType(c.lanes), b.at(row, n * vectorBytes()),
                  vectorBytes());
  }
  /// Vector n of a row of Q or P, as multiplyAdd takes it.
  Value loadFactor(Value row, int64_t n);
  /// What is at `pointer` (of `type`, or a pair) in all lanes, likewise.
  Value broadcastFactor(Type type, Value pointer);
  bool addsPairs() const { return c.takesPairs() && c.hasBf16(); }
  Value multiplyAdd(Value x, Value y, Value sum);
  void storeRow(Value value, Value row, int64_t n) {
    b.store(value, b.at(row, n * vectorBytes()), vectorBytes());
  }
  Values splats(float value, int64_t count) {
    return Values(count, b.splat(b.f32(value), c.lanes));
  }
  Value keyCount(const Panel &panel) {
    return panel.valid ? b.widen(panel.valid) : b.i64(c.kvTile());
  }
  /// Columns of P that the second product takes at a time, and how many it
  /// takes in all.
  int64_t weightStep() const { return pColumns() % 4 == 0 ? 4 : 1; }
  Value weightCount(const Panel &panel) {
    if (!panel.valid)
      return b.i64(pColumns());
    Value keys = keyCount(panel);
    return b.mul(b.ceilDiv(keys, weightStep() * (c.takesPairs() ? 2 : 1)),
                 weightStep());
  }
  /// Keys in whole steps of both products.
  int64_t keyStep() const {
    return std::lcm(blockRows(), weightStep() * (c.takesPairs() ? 2 : 1));
  }
  /// Where a panel's keys begin, rounded down to whole steps.
  Value firstKey(const Panel &panel) {
    if (!panel.begin)
      return b.i64(0);
    return b.mul(b.div(b.widen(panel.begin), keyStep()), keyStep());
  }
  /// Calls body(n, first, last) for the keys that meet vectors n and those
  /// after it.
  void forEachStep(const Panel &panel,
                   llvm::function_ref<void(int64_t, Value, Value)> body);
  /// The panel's part of S^T, from row `index` (a key) on.
  Value scoresOf(const Panel &panel, Value index) {
    Value scores = naive() ? panelOf(s, c.kvTile(), panel) : c.slot(s);
    return b.at(scores, b.mul(index, rowBytes()));
  }
  /// Rewrites the panel's scores of keys [first, last), key by key: `body(key,
  /// vector, score)`.
  void forEachScore(const Panel &panel, Value first, Value last,
                    llvm::function_ref<Value(Value, int64_t, Value)> body);
  /// Vector n of a coordinate array (i32), for this panel's rows.
  Value coordinates(int64_t slot, const Panel &panel, int64_t n) {
    Value row = b.at(c.slot(slot), b.mul(panel.index, panelRows() * 4));
    return b.load(mlir::VectorType::get({c.lanes}, b.i32Type()),
                  b.at(row, n * vectorBytes()), vectorBytes());
  }
  Value headsOf(const Panel &panel, int64_t n) {
    return b.add(coordinates(c.rowHeads, panel, n),
                 b.splat(headsBefore(panel), c.lanes));
  }
  Values transposed(Values rows, int64_t width = 1);
  /// Where packed row `row` (i64) of an item lies in tensor q or o.
  Value rowPointer(llvm::StringRef tensor, const ItemValues &item, Value head,
                   Value row);
  /// Pointers to the rows of vector n of a panel, from `targets`.
  Values rowPointers(Value n);
  void storeRows(const Panel &panel, Type type);
  void fetchRows(const Panel &panel, Value column);
  Value keysToCopy(const KvRows &rows);
  void packKeys(const KvRows &keys, Value head);
  Values loadColumns(llvm::ArrayRef<Value> keys, Value offset, int64_t count);
  void packValues(const KvRows &values, Value head);
  Values qkRows(const KvRows &rows, const Panel &panel, int64_t firstVector,
                Value first, Value last, Values largest);
  void pvColumns(const KvRows &rows, const Panel &panel, Value column,
                 int64_t count, ValueRange scale);

  int64_t q, o, m, l, alpha, s; ///< scratch offsets
  int64_t targets;              ///< where each row of a panel comes from
                                ///< or goes to
  int64_t scales;               ///< and what it is multiplied by
  int64_t nowhere;              ///< a row that nobody reads
  int64_t share = 0;            ///< of the tile in a normalised O: 1 / l
  int64_t packed = 0; ///< V of a tile: [v_dim / block_rows][key][block_rows],
                      ///< or with [key pair]
  int64_t packedKeys = 0; ///< K of a tile: [key][k_dim]
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_LANESAREQUERIES_H
