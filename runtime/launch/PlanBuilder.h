//===- PlanBuilder.h - From lengths to work items ------------- -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The working state of an AttentionPlan. Lengths -> tiles (rows against a run
// of keys, PlanTiles.cpp) -> units (a tile's KV splits) -> items (a unit's head
// groups, both PlanUnits.cpp). All vectors keep their memory from step to step.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_LAUNCH_PLANBUILDER_H
#define PAGODA_LAUNCH_PLANBUILDER_H

#include "launch/PlanCost.h"
#include "launch/SharedPrefix.h"
#include "pagoda/AttentionPlan.h"

#include <utility>
#include <vector>

namespace pagoda {

namespace plan {

/// Some query rows against the keys [begin, end).
struct Tile {
  int64_t cost; ///< unsplit, of each of its items
  int32_t kernel;
  int32_t tableRow;
  int32_t rowOffset; ///< into the row map
  int32_t rowCount;
  int32_t begin;
  int32_t end;
  int32_t splits;
  bool first; ///< holds the first keys of its rows
};

/// One KV split of a tile.
struct Unit {
  int64_t cost;
  int32_t tile;
  int32_t begin;
  int32_t end;
  int32_t partialSlot;
  bool first;
};

inline int32_t roundUp(int32_t value, int32_t to) {
  return (value + to - 1) / to * to;
}

} // namespace plan

struct AttentionPlan::Impl {
  std::vector<const pagoda_kernel_info *> kernels; ///< by rising max_rows
  std::vector<int64_t> keyCosts;                   ///< of an item, by kernel
  PlanOptions options;
  int32_t align = 1; ///< shared runs end at multiples of this many keys
  bool clips = true; ///< visible keys follow from causal, window and chunk

  std::vector<int32_t> rows, rowStart, shareable;
  std::vector<plan::Tile> tiles;
  std::vector<plan::Unit> units;
  std::vector<int32_t> order;    ///< of units
  std::vector<int32_t> rowParts; ///< partial states by row
  std::vector<int32_t> rowMerge; ///< next merge slot by row
  std::vector<std::pair<int32_t, int32_t>> groupRows; ///< position, row
  std::vector<int32_t> groupSeqs;                     ///< [rows] sequence
  SharedPrefix prefix;
  BatchShape batch;
  const int32_t *sharedTable = nullptr; ///< that the prefixes were found in

  std::vector<PlanSegment> segments;
  std::vector<pagoda_work_item> items;
  std::vector<int64_t> costs;
  std::vector<int32_t> rowMap, rowPos, rowSeq;
  std::vector<pagoda_merge_item> merges;
  std::vector<int32_t> mergeSlots;
  int32_t counts[2] = {0, 0};
  int32_t numRows = 0;
  int32_t longest = 0;
  int32_t partialSlots = 0;
  int64_t scratchBytes = 0;

  bool has(uint32_t feature) const {
    return kernels.front()->features & feature;
  }
  int32_t kernelFor(int64_t rows) const {
    for (size_t k = 0; k != kernels.size(); ++k)
      if (kernels[k]->max_rows >= rows)
        return static_cast<int32_t>(k);
    return static_cast<int32_t>(kernels.size()) - 1;
  }
  std::span<const int32_t> rowsOf(const plan::Tile &tile) const {
    return {rowMap.data() + tile.rowOffset, size_t(tile.rowCount)};
  }
  void clear();
  void check(const BatchShape &batch);
  void findShared();
  bool worthSharing(std::span<const int32_t> members, int32_t blocks) const;
  int32_t addRows();
  void addTiles(int32_t tableRow, int32_t rowsFrom, int32_t rowsEnd,
                int32_t begin, int32_t end, bool first);
  void addSharedTiles();
  void splitTiles();
  void addUnits();
  void addMerges();
  void addItems();
};

} // namespace pagoda

#endif // PAGODA_LAUNCH_PLANBUILDER_H
