//===- Lowering.h - One kernel on its way to the Ampere path ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files of this folder share: the state of a walk over one kernel,
// with one method per op of the tiled level.
//
//   Support.cpp     what is refused, and the description for callers
//   LowerTiles.cpp  the function, items, coordinates, ranges, loops
//   Staging.cpp     Q, K and V on their way to shared memory: load_q, kv_ref
//   Products.cpp    qk, pv
//   Softmax.cpp     state_init, map_scores, mask_scores, softmax_step, rescale
//   Results.cpp     store, and merge kernels
//
// Tiles are fragments: registers of one thread (Fragment.h). K and V go through
// a pipeline of `stages` slots in shared memory that runs over all tiles that
// kv_range names, whichever loop visits them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERING_H
#define PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERING_H

#include "compiler/target/KernelAbi.h"
#include "compiler/target/nvidia/Fragment.h"
#include "compiler/target/nvidia/GpuBuilder.h"
#include "dialect/Dialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace pagoda {

/// Rows of 16-bit elements in shared memory, in 16-byte chunks whose places are
/// permuted so that the eight rows that one ldmatrix phase reads lie in eight
/// different bank groups.
struct SharedTile {
  Value base;     ///< of the first row
  int64_t chunks; ///< per row; even

  /// Rows after which the permutation repeats, and chunks that it permutes.
  int64_t period() const;
  /// i32 chunk number at which chunk `chunk` of row `row` is kept.
  Value placeOf(GpuBuilder &b, Value row, Value chunk) const;
  /// Address of chunk `chunk` of row `row`.
  Value chunkAt(GpuBuilder &b, Value row, Value chunk) const;
};

class AmpereLowering {
public:
  AmpereLowering(KernelOp kernel, GpuBuilder &b);

  /// Replaces the kernel by a function at the builder's insertion point.
  mlir::LogicalResult run();

private:
  //===--------------------------------------------------------------------===//
  // Support.cpp
  //===--------------------------------------------------------------------===//

  mlir::LogicalResult checkSupported();
  KernelDescription describe();

  //===--------------------------------------------------------------------===//
  // LowerTiles.cpp
  //===--------------------------------------------------------------------===//

  void lowerOps(mlir::Block &block);
  void lower(ForItemsOp op);
  void lower(CoordsOp op);
  void lower(KvRangeOp op);
  void lower(KvLoopOp op);
  /// An indexed argument is a load, any other one is there already.
  void lower(ArgOp op, mlir::IRMapping &scalars);
  Value loadAux(ArgOp op, ValueRange indices);
  mlir::SmallVector<Value> visibleKeys(KvRangeOp op, Value seq, Value qLo,
                                       Value qHi);
  /// Evaluates a mask or score region for one element.
  Value emitRegion(mlir::Region &region, ValueRange inputs);

  /// A field of pagoda_attention_args, loaded at the top of the kernel.
  Value arg(llvm::StringRef field);
  Value global(Value pointer);

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// The packed row that `half` of this lane is; its token within the item and
  /// its query head within the tensor. All i32; rows past the last token keep
  /// counting.
  Value packedRow(int64_t half);
  Value tokenOf(int64_t half) { return b.div(packedRow(half), group); }
  Value headOf(int64_t half);
  /// Entry of the item's token in row_map, row_pos and row_seq; the last one
  /// for tokens past it.
  Value planEntry(Value token);

  struct Coordinates {
    Value sequence, head, position;
  };
  using RowCoordinates = std::array<Coordinates, Fragment::halves>;

  //===--------------------------------------------------------------------===//
  // Staging.cpp
  //===--------------------------------------------------------------------===//

  void lower(LoadQOp op);
  /// Waits for Q and reads its registers, if they are kept there.
  void fetchQ();
  /// Names the tiles that the pipeline will visit and starts the first copies.
  void startPipeline(Value begin, Value end);
  /// Makes the tile of keys from `j` on readable and starts the copy of a later
  /// one.
  void acquireTile(Value j);
  void copyTile(Value j);
  /// A row in global memory: where it begins, and whether it is there. One that
  /// is not names another that may be read.
  struct GlobalRow {
    Value begin, exists;
  };
  /// Spreads the chunks of a tile of `rows` rows of `dim` elements over the
  /// threads. Columns past `dim` and rows that are not there become zeros.
  void copyRows(SharedTile tile, int64_t rows, int64_t dim,
                llvm::function_ref<GlobalRow(Value row)> source);
  void copyChunk(Value target, const GlobalRow &row, Value chunk, int64_t dim);
  Value gatherChunk(const GlobalRow &row, Value chunk, int64_t dim);
  GlobalRow cacheRow(llvm::StringRef part, Value position);
  SharedTile qTile();
  SharedTile kvTile(KvPart part, Value slot);
  Value slotOf(Value j);

  int64_t elementBytes() const { return 2; }
  /// Head dims as shared memory and registers hold them.
  int64_t kColumns() const { return Fragment::paddedColumns(cache.getKDim()); }
  int64_t vColumns() const { return Fragment::paddedColumns(cache.getVDim()); }
  int64_t chunksOf(int64_t columns) const {
    return columns * elementBytes() / 16;
  }
  int64_t bytesOf(KvPart part) const;
  int64_t slotBytes() const;
  int64_t qBytes() const;
  int64_t sharedBytes() const;

  //===--------------------------------------------------------------------===//
  // Products.cpp
  //===--------------------------------------------------------------------===//

  void lower(QkOp op);
  void lower(PvOp op);
  /// Four matrices of `tile` from row `row` (a multiple of 8) and chunk `chunk`
  /// (even) on, as `lanes` spreads them.
  struct LaneRows {
    Value row, chunk; ///< the lane's part: rows 0 to 15, chunk 0 or 1
  };
  Values loadOperand(const SharedTile &tile, LaneRows lanes, int64_t row,
                     int64_t chunk, bool transpose);
  Values loadQOperand(int64_t step);
  LaneRows rowsThenChunks();
  LaneRows chunksThenRows();
  bool keepsQInRegisters() const { return cache.getKDim() <= 64; }

  //===--------------------------------------------------------------------===//
  // Softmax.cpp
  //===--------------------------------------------------------------------===//

  void lower(StateInitOp op);
  void lower(MapScoresOp op);
  void lower(MaskScoresOp op);
  void lower(SoftmaxStepOp op);
  void lower(RescaleOp op);
  Value keyOf(Value j, int64_t accRegister);
  Value finiteOrZero(Value m);
  /// Reduces over the four lanes that share a row.
  Value overRow(Value value, llvm::function_ref<Value(Value, Value)> combine);

  //===--------------------------------------------------------------------===//
  // Results.cpp
  //===--------------------------------------------------------------------===//

  void lower(StoreOp op);
  void lower(ForMergesOp op);
  void lower(MergePartialsOp op);
  void storeItem(StoreOp op);
  /// Writes this lane's columns of a row whose first is at `row`, in elements
  /// of `type`: `value(register)` is one of them.
  void storeColumns(Value row, Type type, int64_t half,
                    llvm::function_ref<Value(int64_t)> value);
  void storeMerge(StoreOp op);
  Value inverseOf(Value l);
  Value logSumExp(Value m, Value l, Value factor);
  /// Where head `head` of row `row` of o is, and its lse.
  Value outputRow(Value row, Value head);
  void storeLse(Value row, Value head, Value value);

  //===--------------------------------------------------------------------===//
  // State
  //===--------------------------------------------------------------------===//

  Fragment &fragment(Value tile) { return fragments[tile]; }
  Value scalar(Value value) { return scalars.lookup(value); }
  int64_t threads() const { return schedule.getWarps() * 32; }
  Type element() { return kernel.getQType(); }

  GpuBuilder &b;
  KernelOp kernel;
  ScheduleAttr schedule;
  KvCacheType cache;
  int64_t group; ///< query heads per KV head

  Value args, shared, thread, lane, warp;
  llvm::StringMap<Value> loadedArgs;
  mlir::IRMapping scalars;
  llvm::DenseMap<Value, Fragment> fragments;
  llvm::DenseMap<Value, RowCoordinates> coordinates;

  /// The current item: i32 fields, and what follows from them.
  struct {
    Value tableRow, rowMapOffset, rowCount, headBegin, kvBegin, kvEnd;
    Value partialSlot, flags;
    Value packedRows; ///< rowCount * group
  } item;
  /// The tiles that the pipeline visits: keys from `begin` on, while below
  /// `end`; `slot` holds the tile that was acquired last.
  struct {
    Value begin, end, slot;
  } pipeline;
  /// Q's registers; empty while Q is on its way or read from shared memory.
  Values qRegisters;
  /// The current merge and the head that this warp joins.
  struct {
    Value row, slotsBegin, slotCount, head;
  } merge;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERING_H
