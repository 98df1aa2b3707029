//===- Lowering.h - One kernel on its way to fragments ----------*- C++ -*-===//
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
//   Attention.cpp   the two products and the online softmax between them
//   Results.cpp     store of items
//   Merges.cpp      merge kernels
//
// Tiles become fragments of the pagoda_nv dialect, one value each. K and V go
// through a pipeline that runs over all tiles that kv_range names, whichever
// loop visits them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERING_H
#define PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERING_H

#include "compiler/target/KernelAbi.h"
#include "compiler/target/nvidia/GpuBuilder.h"
#include "compiler/target/nvidia/ir/FragmentDialect.h"
#include "compiler/tiling/Machine.h"
#include "dialect/Dialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace pagoda {

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
  /// Blocks that a multiprocessor is to hold at once.
  int64_t claimedBlocks();
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

  /// Token within the item and query head within the tensor of a packed row
  /// (i32); rows past the last token keep counting.
  Value tokenOf(Value row) { return b.div(row, group); }
  Value headOf(Value row);
  /// Entry of the item's token in row_map, row_pos and row_seq; the last one
  /// for tokens past it.
  Value planEntry(Value token);

  /// The fragment that a tile becomes.
  nv::FragmentType fragmentOf(TileType tile);
  nv::FragmentType rowsOf(Type elt);
  /// Fills the region of a pagoda_nv op: `body` gets its arguments and says
  /// what it yields.
  void fill(mlir::Operation *op, mlir::TypeRange arguments,
            llvm::function_ref<Values(ValueRange)> body);
  /// What a region gets of a row: its number, and a value of each source.
  mlir::SmallVector<Type> rowInputs(ValueRange sources);
  /// Values of each row from its number and those of `sources`.
  Values perRow(mlir::TypeRange results, ValueRange sources,
                llvm::function_ref<Values(ValueRange)> body);

  //===--------------------------------------------------------------------===//
  // Staging.cpp
  //===--------------------------------------------------------------------===//

  void createPipelines();
  void lower(LoadQOp op);
  /// Waits for Q and reads its registers, if they are kept there.
  void fetchQ();
  /// Names the tiles that the pipeline will visit and starts the first copies.
  void startPipeline(Value begin, Value end);
  /// Makes the tile of keys from `j` on readable and starts the copy of a later
  /// one.
  void acquireTile(Value j);
  void copyTile(Value j);
  Value slotOf(Value j);
  /// Where a row of `part` begins: that of position `position`.
  Value cacheRow(llvm::StringRef part, Value position);
  void copyRows(Value tile, Value limit,
                llvm::function_ref<Value(Value row)> begin);

  nv::PipelineType qPipelineType();
  nv::PipelineType kvPipelineType();
  int64_t elementBytes() const { return 2; }
  bool keepsQInRegisters() const { return cache.getKDim() <= 64; }

  //===--------------------------------------------------------------------===//
  // Attention.cpp
  //===--------------------------------------------------------------------===//

  void lower(StateInitOp op);
  void lower(QkOp op);
  void lower(MapScoresOp op);
  void lower(MaskScoresOp op);
  void lower(SoftmaxStepOp op);
  void lower(RescaleOp op);
  void lower(PvOp op);
  /// Each score from (score, sequence, head, position, key).
  Value mapElements(Value scores, Value coords, Value j,
                    llvm::function_ref<Value(ValueRange)> body);

  //===--------------------------------------------------------------------===//
  // Results.cpp, Merges.cpp
  //===--------------------------------------------------------------------===//

  void lower(StoreOp op);
  void storeItem(StoreOp op);
  void storeFinal(StoreOp op);
  void storePartial(StoreOp op);
  void storeRows(Value fragment, Type elt,
                 llvm::function_ref<Value(Value row)> begin);
  void forRows(ValueRange sources, llvm::function_ref<void(ValueRange)> body);
  Value inverseOf(Value l);
  Value logSumExp(Value m, Value l, Value factor);
  /// Where head `head` of row `row` of o is, and its lse.
  Value outputRow(Value row, Value head);
  void storeLse(Value row, Value head, Value value);

  void lower(ForMergesOp op);
  void lower(MergePartialsOp op);
  void storeMerge(StoreOp op);

  //===--------------------------------------------------------------------===//
  // State
  //===--------------------------------------------------------------------===//

  /// What a scalar or tile of the kernel has become.
  Value lowered(Value value) { return values.lookup(value); }
  int64_t threads() const { return schedule.getWarps() * 32; }
  Type element() { return kernel.getQType(); }

  GpuBuilder &b;
  KernelOp kernel;
  ScheduleAttr schedule;
  Machine machine;
  KvCacheType cache;
  int64_t group; ///< query heads per KV head

  Value args;
  llvm::StringMap<Value> loadedArgs;
  mlir::IRMapping values;
  /// Sequence, query head and position of each row, as row fragments.
  llvm::DenseMap<Value, Values> coordinates;

  /// The current item: i32 fields, and what follows from them.
  struct {
    Value tableRow, rowMapOffset, rowCount, headBegin, kvBegin, kvEnd;
    Value partialSlot, flags;
    Value packedRows; ///< rowCount * group
  } item;
  /// The first key (i32) that a row of the item sees; null: its first one.
  Value firstKey;
  Value qPipeline, kvPipeline;
  /// The tiles that the pipeline visits: keys from `begin` on, while below
  /// `end`; `key` and `value` are those that were acquired last.
  struct {
    Value begin, end, key, value;
  } pipeline;
  /// Q as operand A: a fragment, or the shared tile; null while it is on its
  /// way.
  Value q;
  /// A merge kernel's thread, the current merge, the head that this warp joins,
  /// and what it has joined: o has one register per 32 columns.
  struct {
    Value lane, warp;
    Value row, slotsBegin, slotCount, head;
    Value m, l;
    Values o;
  } merge;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_AMPERE_LOWERING_H
