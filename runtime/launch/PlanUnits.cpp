//===- PlanUnits.cpp - KV splits, merges and items ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The heuristic for splits: no item may cost more than a quarter of a thread's
// share of the total, so that handing out the longest first leaves the threads
// idle for less than that at the end; and no split is shorter than
// MinSplitKeys, below which joining it costs more than it helps.
//
//===----------------------------------------------------------------------===//

#include "launch/PlanBuilder.h"

#include <algorithm>
#include <numeric>

using namespace pagoda;
using namespace pagoda::plan;

static constexpr int32_t MinSplitKeys = 256;
/// Items a thread should at least find, were all of them as long as the limit.
static constexpr int32_t ItemsPerThread = 4;

void AttentionPlan::Impl::splitTiles() {
  if (options.deterministic) {
    for (Tile &tile : tiles) {
      int32_t step =
          roundUp(options.deterministicSplit, kernels[tile.kernel]->kv_tile);
      tile.splits =
          std::max(1, (tile.end + step - 1) / step - tile.begin / step);
    }
    return;
  }
  if (options.threads == 1)
    return;
  int64_t total = 0;
  for (const Tile &tile : tiles)
    total += tile.cost * headGroups(*kernels[tile.kernel]);
  int64_t limit =
      std::max<int64_t>(1, total / (int64_t(options.threads) * ItemsPerThread));
  for (Tile &tile : tiles) {
    if (tile.cost <= limit)
      continue;
    int64_t wanted = (tile.cost + limit - 1) / limit;
    int32_t shortest = roundUp(MinSplitKeys, kernels[tile.kernel]->kv_tile);
    int64_t most = (tile.end - tile.begin) / shortest;
    tile.splits =
        static_cast<int32_t>(std::max<int64_t>(1, std::min(wanted, most)));
  }
}

void AttentionPlan::Impl::addUnits() {
  rowParts.assign(numRows, 0);
  int32_t *parts = rowParts.data();
  for (const Tile &tile : tiles)
    for (int32_t row : rowsOf(tile))
      parts[row] += tile.splits;
  for (size_t t = 0; t != tiles.size(); ++t) {
    const Tile &tile = tiles[t];
    bool partial = rowParts[rowMap[tile.rowOffset]] > 1;
    auto add = [&](int64_t cost, int32_t begin, int32_t end) {
      bool first = tile.first && begin == tile.begin;
      units.push_back({cost, static_cast<int32_t>(t), begin, end,
                       partial ? partialSlots : -1, first});
      if (partial)
        partialSlots += tile.rowCount;
    };
    if (tile.splits == 1) {
      add(tile.cost, tile.begin, tile.end);
      continue;
    }
    int32_t kvTile = kernels[tile.kernel]->kv_tile;
    int32_t steps = (tile.end - tile.begin + kvTile - 1) / kvTile;
    int32_t fixed = roundUp(options.deterministicSplit, kvTile);
    int32_t begin = tile.begin;
    for (int32_t i = 0; i != tile.splits; ++i) {
      int64_t next =
          options.deterministic
              ? (int64_t(begin) / fixed + 1) * fixed
              : tile.begin + int64_t(steps) * (i + 1) / tile.splits * kvTile;
      int32_t end = static_cast<int32_t>(
          i + 1 == tile.splits ? tile.end : std::min<int64_t>(next, tile.end));
      add(itemCost(keyCosts[tile.kernel], kvTile, end - begin), begin, end);
      begin = end;
    }
  }
}

/// Units come in the order of their keys, so each row joins its partial states
/// in that order, whatever order they were computed in.
void AttentionPlan::Impl::addMerges() {
  rowMerge.resize(numRows);
  int32_t slots = 0;
  int32_t *slot = rowMerge.data();
  for (int32_t row = 0; row != numRows; ++row)
    if (int32_t parts = rowParts[row]; parts > 1) {
      merges.push_back({row, slots, parts, 0});
      slot[row] = slots;
      slots += parts;
    }
  mergeSlots.resize(slots);
  for (const Unit &unit : units) {
    if (unit.partialSlot < 0)
      continue;
    int32_t partial = unit.partialSlot;
    for (int32_t row : rowsOf(tiles[unit.tile]))
      mergeSlots[slot[row]++] = partial++;
  }
}

/// The longest first, so that threads end together. One thread waits for none:
/// it takes all units of a head before the next head, whose keys lie apart in
/// hnd, so that those of one head stay in the last cache.
void AttentionPlan::Impl::addItems() {
  order.resize(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::pair(-units[a].cost, a) < std::pair(-units[b].cost, b);
  });
  for (int32_t k = 0; k != int32_t(kernels.size()); ++k) {
    const pagoda_kernel_info &kernel = *kernels[k];
    int32_t from = static_cast<int32_t>(items.size());
    auto add = [&](int32_t u, int32_t head) {
      const Unit &unit = units[u];
      const Tile &tile = tiles[unit.tile];
      if (tile.kernel != k)
        return;
      items.push_back({tile.tableRow, tile.rowOffset, tile.rowCount,
                       head * kernel.heads_per_item, kernel.heads_per_item,
                       unit.begin, unit.end, rowPos[tile.rowOffset],
                       unit.partialSlot,
                       unit.first ? PAGODA_ITEM_FIRST_SPLIT : 0});
      costs.push_back(unit.cost);
    };
    if (options.threads == 1 && kernel.layout == PAGODA_HND) {
      for (int32_t h = 0; h != headGroups(kernel); ++h)
        for (int32_t u : order)
          add(u, h);
    } else {
      for (int32_t u : order)
        for (int32_t h = 0; h != headGroups(kernel); ++h)
          add(u, h);
    }
    int32_t to = static_cast<int32_t>(items.size());
    if (from == to)
      continue;
    segments.push_back({&kernel, from, to});
    scratchBytes = std::max(scratchBytes, kernel.scratch_bytes);
  }
  // The segment with the longest item is started first.
  std::sort(segments.begin(), segments.end(),
            [&](const PlanSegment &a, const PlanSegment &b) {
              return std::pair(-costs[a.begin], a.begin) <
                     std::pair(-costs[b.begin], b.begin);
            });
  counts[0] = static_cast<int32_t>(items.size());
  counts[1] = static_cast<int32_t>(merges.size());
}
