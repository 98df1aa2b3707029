//===- LanesAreHeadDim.h - Tiles with the head dim across lanes -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For decode, which is bound by memory: each key and value row is streamed once
// and meets all query heads of its group. A panel is block_rows packed rows. Q,
// O are [row][dim] with dims padded to whole vectors, scores [row][key] with
// keys padded.
//
//   S = Q K^T     a vector of a key meets a vector of each row; sums of lanes,
//                 several of them by one transposing reduction
//   softmax       a row at a time
//   O += P V      a weight, broadcast, meets a vector of its value
//
// Products visit the keys of a tile in the order in which they lie, head by
// head or token by token. With one stage (LanesAreHeadDimProducts.cpp), all
// keys of a tile come first, while its values are prefetched: only the block
// table knows where they are. With two (LanesAreHeadDimBeside.cpp), the keys of
// the next tile and the values of this one come together, row by row: several
// streams keep more of the memory busy than one does; or the values and then
// the keys, where together they need more than L1 holds. Either way, the
// products of a tile, or of a few, are summed by themselves and then added to
// O, so that rounding errors do not grow with each key.
//
// bf16 comes two elements to 32 bits, which a shift and a mask widen: so in Q
// and O, the even dims of two vectors come before the odd ones. Where an
// instruction adds up the products of such pairs, Q stays as it was.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_LANESAREHEADDIM_H
#define PAGODA_COMPILER_TARGET_CPU_LANESAREHEADDIM_H

#include "compiler/target/cpu/TileEmitter.h"
#include "compiler/tiling/Schedule.h"

namespace pagoda {

class LanesAreHeadDim final : public TileEmitter {
public:
  LanesAreHeadDim(KernelContext &context) : TileEmitter(context) {
    int64_t rows = c.schedule.getHeads() * panels() * panelRows();
    q = c.slots.reserve(rows * queryBytes());
    o = c.slots.reserve(rows * padded(vDim()) * 4);
    if (pipelines())
      recent = c.slots.reserve(rows * padded(vDim()) * 4);
    m = c.slots.reserve(rows * 4);
    l = c.slots.reserve(rows * 4);
    lost = c.slots.reserve(rows * 4);
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
  bool pipelines() const override { return c.schedule.getStages() == 2; }
  void pvBesideQk(PvOp pv, QkOp qk) override;
  void fetchMeanwhile(const KvRows &keys, const KvRows &values,
                      const Panel &panel) override;
  void rescale(const Panel &panel, Value j) override;
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
  Value rowOf(int64_t slot, int64_t cols, const Panel &panel, Value row) {
    return b.at(rowOf(slot, cols, panel, 0), b.mul(row, cols * 4));
  }
  template <typename Row> Value scoresOf(const Panel &panel, Row row) {
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
  /// Elements of a cache row that are loaded together: two vectors of bf16,
  /// where all of them exist.
  int64_t loadUnit() const { return splitsPairs() ? 2 * c.lanes : c.lanes; }
  bool splitsPairs() const {
    return c.cache.getElt().isBF16() && c.kernel.getRole() == Role::attention;
  }
  /// Whether keys meet queries as pairs of bf16, the way they lie in memory.
  bool pairsKeys() const {
    return splitsPairs() && c.kernel.getQType().isBF16() &&
           kDim() % loadUnit() == 0 && c.hasBf16();
  }
  /// Bytes of a row of Q.
  int64_t queryBytes() const {
    return pairsKeys() ? kDim() * 2 : padded(kDim()) * 4;
  }
  Value queryOf(const Panel &panel, int64_t row) {
    return rowOf(q, queryBytes() / 4, panel, row);
  }
  int64_t keyUnit() const { return pairsKeys() ? loadUnit() : c.lanes; }
  Values keyVectors(Value row, Value column, int64_t count);
  Value addKey(Value elements, Value queryRow, Value column, Value sum);
  /// Pieces of a row of `dims` elements, in the order of memory: body gets the
  /// first dim and a width; where `pair`, that of two vectors whose even dims
  /// come before the odd ones in Q and O.
  void forRow(int64_t dims,
              llvm::function_ref<void(Value d, int64_t width, bool pair)> body);
  /// Whole steps of `step` elements.
  static int64_t wholeSteps(int64_t count, int64_t step) {
    return count / step * step;
  }
  Value cacheVector(Value row, Value column, int64_t count);
  Values cacheVectors(Value row, Value column, int64_t count);
  Value sumLanes(llvm::ArrayRef<Value> vectors);
  Values sumTogether(Values vectors);
  using KeyOfHead = std::pair<Panel, Value>;
  Values qkTogether(const KvRows &rows, const KvRows &values,
                    llvm::ArrayRef<KeyOfHead> keys);
  void qkByHead(const KvRows &rows, const KvRows &values, Value count);
  void qkByToken(const KvRows &rows, const KvRows &values, Value count);
  int64_t together(int64_t count) const;
  size_t mostTogether() const { return size_t(std::min<int64_t>(4, c.lanes)); }
  /// Keys, and values, that are walked side by side with two stages.
  int64_t keysTogether() const { return c.kvTile() % 2 == 0 ? 2 : 1; }
  /// Rows of a token lie together, of several heads; they are visited as they
  /// lie where they come from memory, head by head where they were fetched.
  bool visitsByToken() const {
    return c.cache.getLayout() == CacheLayout::nhd &&
           c.schedule.getHeads() > 1 &&
           !(pipelines() && fetchesTiles(prefetch()));
  }
  /// Keys after which a sum is added to O, with two stages; a power of two.
  static constexpr int64_t keysOfSum = 256;
  int64_t valueVectors() const;
  int64_t prefetch() const { return c.schedule.getPrefetch(); }
  Value rowAhead(const KvRows &rows, const Panel &panel, Value key, Value begin,
                 Value count, int64_t dims);
  /// A key of the next tile and a value of this one: where the weight is, which
  /// the score replaces (i64, bytes in a row of S), their rows in the cache, of
  /// which one may be null, and the rows that are fetched meanwhile, or null.
  struct KeyBesideValue {
    Value place, keyRow, valueRow, keyDue, valueDue;
  };
  void rowsBeside(const KvRows *keys, const KvRows *values, const Panel &panel,
                  Value key, Value apart);
  void passBeside(llvm::ArrayRef<KeyBesideValue> pairs, const Panel &panel,
                  Value first, int64_t rows, Value ahead);
  void addRecentToO(const Panel &panel, Value row, Value scale);
  void pvColumns(const KvRows &rows, const Panel &panel, Value column,
                 int64_t count, bool rescale);
  void prefetch(Value pointer, int64_t bytes);
  void forEachScore(const Panel &panel,
                    llvm::function_ref<Value(Value, Value, Value)> body);
  Value iota(Value first);
  Value coordinate(int64_t slot, const Panel &panel, Value row) {
    Value packed = b.add(b.mul(panel.index, panelRows()), row);
    return b.load(b.i32Type(), b.at(c.slot(slot), b.mul(packed, 4)));
  }
  /// Runs `body` for each row of the panel, in a loop: unrolled, it would be
  /// most of the kernel's code.
  void forEachRow(llvm::function_ref<void(Value)> body) {
    b.forLoop(b.i64(0), b.i64(panelRows()), 1, body);
  }
  /// For each that the item holds, with its number among the item's rows.
  void forEachRowOfItem(const Panel &panel,
                        llvm::function_ref<void(Value, Value)> body);

  int64_t q, o, m, l, alpha, s; ///< scratch offsets
  int64_t lost;                 ///< what l has rounded off
  int64_t recent; ///< with two stages, [row][dim]: what the last tiles add to O
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_LANESAREHEADDIM_H
