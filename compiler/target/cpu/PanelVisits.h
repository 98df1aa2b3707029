//===- PanelVisits.h - Panels begin and end with their visits ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A panel's queries are loaded before the first tile that it meets, and its
// results are stored after the last, instead of those of all panels before the
// first tile and after the last one. While one panel multiplies, the rows of q
// that the next will load and the rows of o that it will store to itself are
// fetched: they lie so far apart that the caches do not hold all rows of an
// item.
//
// Both pieces of code become functions of their own, since each loop over tiles
// calls them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_PANELVISITS_H
#define PAGODA_COMPILER_TARGET_CPU_PANELVISITS_H

#include "compiler/target/cpu/TileEmitter.h"

namespace pagoda {

class PanelVisits {
public:
  /// Emits the two functions of the kernel before `kernel`, its function.
  PanelVisits(KernelContext &context, TileEmitter &emitter,
              mlir::LLVM::LLVMFuncOp kernel, StateInitOp init, StoreOp store);

  /// At the start of an item: no panel has met a tile.
  void begin();
  /// Before a panel meets a tile. Returns (i1) whether it is its first.
  Value open(const Panel &panel);
  /// After it has: stores its results if this was the last.
  void close(const Panel &panel);
  /// At the end of an item: panels whose last tile was not known as such, or
  /// that met none.
  void finish();

private:
  enum Stage { Waiting, Opened, Closed };

  mlir::LLVM::LLVMFuncOp emitFunction(mlir::LLVM::LLVMFuncOp kernel,
                                      llvm::StringRef suffix, Value factor,
                                      llvm::function_ref<void(const Panel &)>);
  void call(mlir::LLVM::LLVMFuncOp function, Value factor, const Panel &panel);
  Value stageOf(const Panel &panel); ///< pointer to a panel's i32 Stage
  Value isAt(const Panel &panel, Stage stage);

  KernelContext &c;
  CpuBuilder &b;
  TileEmitter &emitter;
  StateInitOp init;
  StoreOp store;
  mlir::LLVM::LLVMFuncOp opening, closing;
  int64_t stages; ///< scratch offset
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_PANELVISITS_H
