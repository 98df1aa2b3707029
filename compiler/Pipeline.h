//===- Pipeline.h - Phases and the passes of each ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The path of a kernel as an enum and one build function per phase. The driver
// runs phases one after the other; nothing else decides which passes run.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_PIPELINE_H
#define PAGODA_COMPILER_PIPELINE_H

#include "compiler/tiling/Machine.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

namespace pagoda {

/// Each phase leaves the module at the level it names.
enum class Phase {
  Attention, ///< features expanded into regions, schedules chosen
  Tiled,     ///< pagoda.kernel
  Fragments, ///< NVIDIA: gpu.module with pagoda_nv; no passes on a CPU
  Target,    ///< CPU: vector, scf, llvm; NVIDIA: gpu.module with nvvm
  Llvm,      ///< the LLVM dialect only
};

/// Every dialect that a module may hold between the first and the last phase,
/// with the interfaces that translation needs.
void registerDialects(mlir::DialectRegistry &registry);

/// Adds the passes of `phase` for `machine`.
void buildPhase(mlir::OpPassManager &passes, Phase phase,
                const Machine &machine,
                llvm::ArrayRef<std::string> scheduleOverrides);

/// Phase::Llvm of an NVIDIA machine's kernels for the emulator: host code.
void buildEmulatedLlvm(mlir::OpPassManager &passes);

} // namespace pagoda

#endif // PAGODA_COMPILER_PIPELINE_H
