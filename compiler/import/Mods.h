//===- Mods.h - A user's mask and score functions ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .mlir file with up to three functions, which become the regions of
// pagoda.attention:
//
//   func.func @kv_range(seq, q_lo, q_hi: i32) -> (i32, i32, i32, i32)
//   func.func @mask_mod(seq, head, q_pos, kv_pos: i32) -> i1
//   func.func @score_mod(score: f32, seq, head, q_pos, kv_pos: i32) -> f32
//
// each followed by auxiliary tensors (f32 or i32, rank 1 to 4), named by the
// argument attribute `pagoda.aux`. The same name is the same tensor. Bodies are
// one block of scalar arith and math and of tensor.extract; isSupportedInMod
// lists the operations.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_MODS_H
#define PAGODA_COMPILER_IMPORT_MODS_H

#include "compiler/import/AuxTensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda {

struct Mods {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp kvRange, maskMod, scoreMod; ///< null: not given
  std::vector<AuxTensor> aux;
  uint64_t hash = 0; ///< of the text; never 0

  /// For trailing argument `index` of `function`: its place in `aux`.
  int64_t auxOf(mlir::func::FuncOp function, unsigned index) const;
};

/// "file:line:column: " or "name: ", whichever the diagnostic's location has.
std::string diagnosticPrefix(const mlir::Diagnostic &diagnostic);

/// Whether a body may hold `op`.
bool isSupportedInMod(mlir::Operation *op);

/// Parses and checks `text`; `file` names it in diagnostics. Emits a diagnostic
/// with file and line, and fails, for text that does not parse, functions of
/// other names or signatures, and bodies with anything else in them.
mlir::FailureOr<Mods> parseMods(mlir::MLIRContext *context,
                                llvm::StringRef text, llvm::StringRef file);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_MODS_H
