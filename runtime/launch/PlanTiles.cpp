//===- PlanTiles.cpp - Rows against runs of keys --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks a batch and cuts it into tiles, those of shared prefixes first. A tile
// reaches over the keys that at least one of its rows can see.
//
//===----------------------------------------------------------------------===//

#include "launch/PlanBuilder.h"

#include <algorithm>
#include <numeric>
#include <string>

using namespace pagoda;
using namespace pagoda::plan;

void AttentionPlan::Impl::clear() {
  tiles.clear();
  units.clear();
  segments.clear();
  items.clear();
  costs.clear();
  rowMap.clear();
  rowPos.clear();
  rowSeq.clear();
  merges.clear();
  mergeSlots.clear();
  rows.clear();
  rowStart.clear();
  sharedTable = nullptr;
  counts[0] = counts[1] = 0;
  numRows = longest = partialSlots = 0;
  scratchBytes = 0;
}

void AttentionPlan::Impl::check(const BatchShape &b) {
  size_t count = b.qLens.size();
  auto bad = [](const std::string &text) {
    throw Error(ErrorCode::InvalidArgument, "plan: " + text);
  };
  if (b.kvLens.size() != count)
    bad("kv_lens: expected " + std::to_string(count) + " as in q_lens, got " +
        std::to_string(b.kvLens.size()));
  if (!b.tableRows.empty() && b.tableRows.size() != count)
    bad("table_rows: expected 0 or " + std::to_string(count) + ", got " +
        std::to_string(b.tableRows.size()));
  int64_t total = 0;
  for (size_t s = 0; s != count; ++s) {
    int32_t q = b.qLens[s], kv = b.kvLens[s];
    if (q < 0 || kv < 0)
      bad((q < 0 ? "q_lens[" : "kv_lens[") + std::to_string(s) +
          "]: expected 0 or more, got " + std::to_string(q < 0 ? q : kv));
    total += q;
    longest = std::max(longest, q ? kv : 0);
  }
  if (total > INT32_MAX / 4)
    bad("q_lens: expected at most " + std::to_string(INT32_MAX / 4) +
        " rows in all, got " + std::to_string(total));
  for (size_t s = 0; s != b.tableRows.size(); ++s)
    if (b.tableRows[s] < 0)
      bad("table_rows[" + std::to_string(s) + "]: expected 0 or more, got " +
          std::to_string(b.tableRows[s]));
  if (options.cascade && count && !b.blockTable)
    bad("block_table: expected one for a cascade plan, got null");
  int64_t blockSize = kernels.front()->block_size;
  for (size_t s = 0; options.cascade && s != count; ++s)
    if (b.kvLens[s] > b.blockTableStride * blockSize)
      bad("kv_lens[" + std::to_string(s) + "]: expected at most " +
          std::to_string(b.blockTableStride * blockSize) +
          " tokens in a row of the block table, got " +
          std::to_string(b.kvLens[s]));
  batch = b;
  rowStart.resize(count + 1);
  std::inclusive_scan(b.qLens.begin(), b.qLens.end(), rowStart.begin() + 1);
  numRows = rowStart.back();
  rows.assign(b.tableRows.begin(), b.tableRows.end());
  if (rows.empty()) {
    rows.resize(count);
    std::iota(rows.begin(), rows.end(), 0);
  }
}

/// Puts all queries of all sequences, one sequence after the other, at the end
/// of the row map; returns where they begin.
int32_t AttentionPlan::Impl::addRows() {
  int32_t from = static_cast<int32_t>(rowMap.size());
  for (std::vector<int32_t> *map : {&rowMap, &rowPos, &rowSeq})
    map->resize(from + numRows);
  std::iota(rowMap.begin() + from, rowMap.end(), 0);
  int32_t *pos = rowPos.data() + from, *seq = rowSeq.data() + from;
  for (int32_t s = 0; s != int32_t(rows.size()); ++s) {
    int32_t count = batch.qLens[s], first = batch.kvLens[s] - count;
    for (int32_t i = 0; i != count; ++i) {
      *pos++ = first + i;
      *seq++ = s;
    }
  }
  return from;
}

/// Cuts the rows [rowsFrom, rowsEnd) of the row map into tiles against the keys
/// [begin, end), as far as each tile can see them.
void AttentionPlan::Impl::addTiles(int32_t tableRow, int32_t rowsFrom,
                                   int32_t rowsEnd, int32_t begin, int32_t end,
                                   bool first) {
  int32_t kernel = kernelFor(rowsEnd - rowsFrom);
  int32_t maxRows = kernels[kernel]->max_rows;
  int32_t kvTile = kernels[kernel]->kv_tile;
  for (int32_t at = rowsFrom; at < rowsEnd; at += maxRows) {
    int32_t count = std::min(maxRows, rowsEnd - at);
    int64_t low = begin, high = end;
    if (clips) {
      int64_t firstPos = rowPos[at], lastPos = rowPos[at + count - 1];
      // How far a prefix reaches is known to the kernel only.
      if (has(PAGODA_FEATURE_CAUSAL) && !has(PAGODA_FEATURE_PREFIX_LM))
        high = std::min(high, lastPos + 1);
      if (has(PAGODA_FEATURE_WINDOW) && options.window)
        low = std::max(low, firstPos - options.window + 1);
      if (has(PAGODA_FEATURE_CHUNK) && options.chunk)
        low = std::max(low, firstPos / options.chunk * options.chunk);
      low = std::max<int64_t>(begin, low / kvTile * kvTile);
      high = std::max(low, high);
    }
    tiles.push_back({itemCost(keyCosts[kernel], kvTile, high - low), kernel,
                     tableRow, at, count, static_cast<int32_t>(low),
                     static_cast<int32_t>(high), 1, first});
  }
}

bool AttentionPlan::Impl::worthSharing(std::span<const int32_t> members,
                                       int32_t blocks) const {
  int64_t keys = int64_t(blocks) * kernels.front()->block_size;
  auto cost = [&](int64_t rows) {
    int32_t kernel = kernelFor(rows);
    int64_t tiles =
        (rows + kernels[kernel]->max_rows - 1) / kernels[kernel]->max_rows;
    return tiles * headGroups(*kernels[kernel]) *
           itemCost(keyCosts[kernel], kernels[kernel]->kv_tile, keys);
  };
  int64_t apart = 0, rows = 0;
  for (int32_t s : members) {
    apart += cost(batch.qLens[s]);
    rows += batch.qLens[s];
  }
  // A row that was written at once now has two partial states.
  return cost(rows) + 2 * rows * partialCost(*kernels.front()) < apart;
}

void AttentionPlan::Impl::findShared() {
  int32_t blockSize = kernels.front()->block_size;
  shareable.clear();
  for (size_t s = 0; s != rows.size(); ++s) {
    // Every query of the group must see every key of the run.
    int32_t keys = batch.kvLens[s];
    if (has(PAGODA_FEATURE_CAUSAL))
      keys -= batch.qLens[s];
    shareable.push_back(batch.qLens[s] ? std::max(keys, 0) / blockSize : 0);
  }
  SharedPrefix::Input input = {batch.blockTable, batch.blockTableStride, rows,
                               shareable, align / blockSize};
  prefix.find(
      input,
      [](void *self, std::span<const int32_t> members, int32_t blocks) {
        return static_cast<Impl *>(self)->worthSharing(members, blocks);
      },
      this);
}

void AttentionPlan::Impl::addSharedTiles() {
  int32_t blockSize = kernels.front()->block_size;
  groupSeqs.resize(numRows);
  for (const SharedRun &run : prefix.runs()) {
    groupRows.clear();
    auto members = prefix.members().subspan(run.membersBegin,
                                            run.membersEnd - run.membersBegin);
    for (int32_t s : members)
      for (int32_t i = 0; i != batch.qLens[s]; ++i) {
        groupRows.push_back(
            {batch.kvLens[s] - batch.qLens[s] + i, rowStart[s] + i});
        groupSeqs[rowStart[s] + i] = s;
      }
    std::sort(groupRows.begin(), groupRows.end());
    int32_t from = static_cast<int32_t>(rowMap.size());
    for (auto [position, row] : groupRows) {
      rowMap.push_back(row);
      rowPos.push_back(position);
      rowSeq.push_back(groupSeqs[row]);
    }
    addTiles(rows[members.front()], from, static_cast<int32_t>(rowMap.size()),
             run.begin * blockSize, run.end * blockSize, run.begin == 0);
  }
}
