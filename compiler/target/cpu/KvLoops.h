//===- KvLoops.h - KV loops of a kernel -------------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_KVLOOPS_H
#define PAGODA_COMPILER_TARGET_CPU_KVLOOPS_H

#include "compiler/target/cpu/PanelVisits.h"
#include "compiler/target/cpu/TileEmitter.h"

namespace pagoda {

/// Lowers the KV loops of an item. `visits`: where panels take turns, else
/// null. `rangeBegins`: panels may begin to see keys elsewhere than at key 0.
class KvLoops {
public:
  KvLoops(KernelContext &context, TileEmitter &emitter, PanelVisits *visits,
          bool rangeBegins)
      : c(context), b(context.b), emitter(emitter), visits(visits),
        rangeBegins(rangeBegins) {}

  /// One tile after the other.
  void lower(llvm::ArrayRef<KvLoopOp> loops);
  /// All loops of an item as one, in which tiles overlap.
  void lowerOverlapping(llvm::ArrayRef<KvLoopOp> loops);

private:
  void lower(KvLoopOp loop, mlir::Value lo, mlir::Value hi);
  void scoresOf(llvm::ArrayRef<KvLoopOp> loops, Value j, const KvRows &keys,
                const KvRows &values);

  KernelContext &c;
  CpuBuilder &b;
  TileEmitter &emitter;
  PanelVisits *visits;
  bool rangeBegins;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_KVLOOPS_H
