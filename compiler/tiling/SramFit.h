//===- SramFit.h - The SRAM-fit formula -------------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a machine and a specification to tile sizes: pure functions, no MLIR.
// The formula of the FlashAttention paper; its generalisation, which counts
// what is really resident at each level of memory; and a ranking of the tiles
// that are legal. The first candidate is the default, the list is the tuner's
// search space, and the steps are what `pagoda explain` prints, so that what is
// explained is what is generated. compiler/tiling/README.md tells the reasons.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TILING_SRAMFIT_H
#define PAGODA_COMPILER_TILING_SRAMFIT_H

#include "compiler/tiling/Occupancy.h"
#include "compiler/tiling/Schedule.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <utility>
#include <vector>

namespace pagoda {

/// Of K and of V: what fragments and registers of a GPU kernel hold.
inline constexpr int64_t mostGpuHeadDim = 256;

/// Tile sizes of the FlashAttention paper, Algorithm 1, line 1: rows of K and V
/// per tile, rows of Q per tile.
struct PaperTiles {
  int64_t bc;
  int64_t br;
};

/// Bc = ceil(M / 4d), Br = min(ceil(M / 4d), d). `elements`: M, the size of the
/// fast memory in elements; `headDim`: d. Both at least 1.
PaperTiles paperTiles(int64_t elements, int64_t headDim);

/// Bytes of one element.
int64_t byteSize(DType type);

/// One line of a derivation. The texts are constants.
struct Step {
  llvm::StringRef name;
  llvm::StringRef formula;
  /// The formula's inputs, by the names it uses.
  llvm::SmallVector<std::pair<llvm::StringRef, double>, 6> inputs;
  double result = 0;
  llvm::StringRef unit; ///< may be empty

  /// "name: formula = result unit (input value, ...)".
  std::string str() const;
};

/// What a schedule keeps at one level of memory.
struct LevelUse {
  llvm::StringRef level; ///< "registers", "L1", "L2", "shared memory"
  llvm::StringRef unit;  ///< "B", or "" for registers
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>, 6> parts;
  int64_t budget = 0; ///< the share of the level that tiles may take
  bool hard = false;  ///< over the budget: does not work, rather than is slower

  int64_t total() const;
  bool fits() const { return total() <= budget; }
};

/// A schedule, what it costs and why.
struct TileCandidate {
  Schedule schedule;
  /// Estimated time relative to a kernel at the machine's limit (1): the FMA
  /// peak for prefill, the memory bandwidth for decode. It ranks tiles of one
  /// machine and variant; it predicts no time.
  double cost = 0;
  std::vector<LevelUse> levels;
  std::vector<Step> steps;
  std::optional<RegisterClaim> claim; ///< of a GPU kernel

  /// One line: the tile and how much of each level it takes.
  std::string reason() const;
};

/// Counts and costs any schedule, whether it fits or not. Without `explain` the
/// steps are left out.
TileCandidate evaluate(const Schedule &schedule, const Machine &machine,
                       const AttentionSpec &spec, bool explain = true);

/// Legal candidates, best first, at most 32. Empty if the machine has no legal
/// tile for the specification (GPU: head dims too large). `tokens`: query
/// tokens of a sequence that a decode kernel takes at most (CPU).
std::vector<TileCandidate> rankTiles(const Machine &machine,
                                     const AttentionSpec &spec, Variant variant,
                                     int64_t tokens = 1);

/// The default schedule with the overrides applied and checked. Errors: those
/// of applyOverrides and checkSchedule, and a machine that has no legal tile.
llvm::Expected<TileCandidate>
selectTile(const Machine &machine, const AttentionSpec &spec, Variant variant,
           llvm::ArrayRef<std::string> overrides = {}, int64_t tokens = 1);

} // namespace pagoda

#endif // PAGODA_COMPILER_TILING_SRAMFIT_H
