//===- Lowering.h - Fragments on their way to registers ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files of this folder share: a walk over one kernel, with one method
// per op of the pagoda_nv dialect.
//
//   LowerFragments.cpp  the walk, loops, regions
//   Pipelines.cpp       slots, acquire, commit, wait, release; copy_rows
//   Products.cpp        load, mma, convert
//   Rows.cpp            splat, row_reduce, exp2, scale, per_row, map
//   Results.cpp         store, for_rows
//
// A fragment is a list of registers of one thread (Fragment.h), a shared tile
// an address (SharedTile.h). Ops that are not of the dialect stay where they
// are.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENTS_LOWERING_H
#define PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENTS_LOWERING_H

#include "compiler/target/nvidia/Fragment.h"
#include "compiler/target/nvidia/GpuBuilder.h"
#include "compiler/target/nvidia/fragments/SharedTile.h"
#include "compiler/target/nvidia/ir/FragmentDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace pagoda {

class FragmentLowering {
public:
  explicit FragmentLowering(mlir::LLVM::LLVMFuncOp kernel);

  void run();

private:
  //===--------------------------------------------------------------------===//
  // LowerFragments.cpp
  //===--------------------------------------------------------------------===//

  void lower(mlir::Block &block);
  void lower(mlir::Operation *op);
  /// The same loop, carrying registers.
  void lower(mlir::scf::ForOp loop);
  /// Copies an op's region to the insertion point; what it yields.
  Values inlined(mlir::Region &region, ValueRange inputs);

  Values &registers(Value fragment) { return fragments[fragment]; }
  SharedTile &shared(Value tile) { return tiles.find(tile)->second; }

  //===--------------------------------------------------------------------===//
  // Pipelines.cpp
  //===--------------------------------------------------------------------===//

  void lower(nv::PipelineOp op);
  void lower(nv::SlotOp op);
  void lower(nv::AcquireOp op);
  void lower(nv::CommitOp op);
  void lower(nv::WaitOp op);
  void lower(nv::ReleaseOp op);
  void lower(nv::CopyRowsOp op);
  /// Elements 8 chunk to 8 chunk + 7 of a row in global memory: where it
  /// begins, and whether it is there.
  struct GlobalRow {
    Value begin, exists;
  };
  void copyChunk(Value target, const GlobalRow &row, Value chunk, int64_t dim);
  Value gatherChunk(const GlobalRow &row, Value chunk, int64_t dim);

  //===--------------------------------------------------------------------===//
  // Products.cpp
  //===--------------------------------------------------------------------===//

  void lower(nv::LoadOp op);
  void lower(nv::MmaOp op);
  void lower(nv::ConvertOp op);
  /// The lane's part of the address of a matrix load.
  struct LaneRows {
    Value row, chunk; ///< rows 0 to 15, chunk 0 or 1
  };
  LaneRows rowsThenChunks();
  LaneRows chunksThenRows();
  /// Four matrices of `tile` from row `row` (a multiple of 8) and chunk `chunk`
  /// (even) on, as `lanes` spreads them.
  Values loadMatrices(const SharedTile &tile, LaneRows lanes, int64_t row,
                      int64_t chunk, bool transpose);
  /// Operand A for columns 16 step to 16 step + 15, of this warp's rows.
  Values loadOperand(SharedTile tile, int64_t step);

  //===--------------------------------------------------------------------===//
  // Rows.cpp
  //===--------------------------------------------------------------------===//

  void lower(nv::SplatOp op);
  void lower(nv::RowReduceOp op);
  void lower(nv::Exp2Op op);
  void lower(nv::ScaleOp op);
  void lower(nv::PerRowOp op);
  void lower(nv::MapOp op);
  /// The row that `half` of this lane is (i32).
  Value rowOf(int64_t half);
  /// What a region gets of row fragments: a value of each for `half`.
  void appendRow(Values &inputs, ValueRange rows, int64_t half);

  //===--------------------------------------------------------------------===//
  // Results.cpp
  //===--------------------------------------------------------------------===//

  void lower(nv::StoreOp op);
  void lower(nv::ForRowsOp op);
  void storeRow(nv::StoreOp op, Value begin, int64_t half);

  //===--------------------------------------------------------------------===//
  // State
  //===--------------------------------------------------------------------===//

  GpuBuilder b;
  mlir::LLVM::LLVMFuncOp kernel;
  int64_t threads;
  Value thread, lane, warp, memory;
  llvm::DenseMap<Value, Values> fragments;
  llvm::DenseMap<Value, SharedTile> tiles;
  llvm::DenseMap<Value, Value> pipelines; ///< the first slot's address
  mlir::SmallVector<mlir::Operation *> replaced;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENTS_LOWERING_H
