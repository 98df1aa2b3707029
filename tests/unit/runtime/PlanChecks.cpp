//===- PlanChecks.cpp - Is a plan complete and balanced -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanChecks.h.
//
//===----------------------------------------------------------------------===//

#include "PlanChecks.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <queue>
#include <set>

using namespace pagoda;
using namespace pagoda::test;

static int64_t checkCover(const AttentionPlan &plan, const Ints &qLens,
                          const Ints &kvLens, const int32_t *tables,
                          int64_t stride, const Ints &tableRows) {
  const pagoda_kernel_info &any = plan.kernel();
  std::vector<int32_t> seqOf, posOf;
  for (size_t s = 0; s != qLens.size(); ++s)
    for (int32_t i = 0; i != qLens[s]; ++i) {
      seqOf.push_back(static_cast<int32_t>(s));
      posOf.push_back(kvLens[s] - qLens[s] + i);
    }
  int32_t rows = static_cast<int32_t>(seqOf.size());
  EXPECT_EQ(plan.numRows(), rows);
  // Per row and KV head: key ranges, direct writes, slots, first splits.
  using Range = std::pair<int32_t, int32_t>;
  std::map<std::pair<int32_t, int32_t>, std::vector<Range>> ranges;
  std::map<std::pair<int32_t, int32_t>, int> direct, first;
  std::map<int32_t, std::set<int32_t>> slots;
  std::map<std::pair<int32_t, int32_t>, int> slotWrites;
  int64_t visits = 0;
  int32_t itemsSeen = 0;
  for (const PlanSegment &segment : plan.segments()) {
    const pagoda_kernel_info &kernel = *segment.kernel;
    EXPECT_LT(segment.begin, segment.end);
    itemsSeen += segment.end - segment.begin;
    for (int32_t n = segment.begin; n != segment.end; ++n) {
      const pagoda_work_item &item = plan.items()[n];
      // The longest first: of all, or one thread's, of a head (hnd).
      bool byHead = plan.options().threads == 1 && kernel.layout == PAGODA_HND;
      if (n != segment.begin) {
        const pagoda_work_item &before = plan.items()[n - 1];
        if (byHead) {
          EXPECT_GE(item.head_begin, before.head_begin);
        }
        if (!byHead || item.head_begin == before.head_begin) {
          EXPECT_LE(plan.costs()[n], plan.costs()[n - 1]);
        }
      }
      EXPECT_GE(item.row_count, 1);
      EXPECT_LE(item.row_count, kernel.max_rows);
      EXPECT_EQ(item.head_count, kernel.heads_per_item);
      EXPECT_EQ(item.head_begin % kernel.heads_per_item, 0);
      EXPECT_LE(item.kv_begin, item.kv_end);
      EXPECT_EQ(item.q_pos0, plan.rowPos()[item.row_map_offset]);
      visits += item.kv_end - item.kv_begin;
      for (int32_t i = 0; i != item.row_count; ++i) {
        int32_t at = item.row_map_offset + i;
        int32_t row = plan.rowMap()[at];
        int32_t seq = plan.rowSeq()[at];
        EXPECT_EQ(seq, seqOf.at(row));
        EXPECT_EQ(plan.rowPos()[at], posOf.at(row));
        if (i) {
          EXPECT_GE(plan.rowPos()[at], plan.rowPos()[at - 1]);
        }
        EXPECT_LE(item.kv_end, kvLens[seq]);
        // The item's table names the same blocks as the row's own.
        for (int32_t b = item.kv_begin / kernel.block_size;
             tables && b * kernel.block_size < item.kv_end; ++b)
          EXPECT_EQ(tables[item.table_row * stride + b],
                    tables[tableRows[seq] * stride + b]);
        if (!tables) {
          EXPECT_EQ(item.table_row, tableRows[seq]);
        }
        for (int32_t h = item.head_begin;
             h != item.head_begin + item.head_count; ++h) {
          std::pair<int32_t, int32_t> key(row, h);
          ranges[key].push_back({item.kv_begin, item.kv_end});
          first[key] += item.flags & PAGODA_ITEM_FIRST_SPLIT ? 1 : 0;
          if (item.partial_slot < 0) {
            ++direct[key];
          } else {
            EXPECT_LT(item.partial_slot + i, plan.partialSlots());
            slots[row].insert(item.partial_slot + i);
            ++slotWrites[{item.partial_slot + i, h}];
          }
        }
      }
    }
  }
  EXPECT_EQ(itemsSeen, int32_t(plan.items().size()));
  std::map<int32_t, int> merged;
  for (const pagoda_merge_item &merge : plan.merges()) {
    ++merged[merge.q_row];
    std::set<int32_t> joined;
    for (int32_t i = 0; i != merge.slot_count; ++i)
      joined.insert(plan.mergeSlots()[merge.slots_begin + i]);
    EXPECT_EQ(joined, slots[merge.q_row]);
    EXPECT_EQ(int32_t(joined.size()), merge.slot_count);
  }
  for (auto [slot, writes] : slotWrites)
    EXPECT_EQ(writes, 1) << "slot " << slot.first;
  for (int32_t row = 0; row != rows; ++row)
    for (int32_t h = 0; h != any.kv_heads; ++h) {
      std::pair<int32_t, int32_t> key(row, h);
      EXPECT_EQ(direct[key] + merged[row], 1) << "row " << row;
      EXPECT_EQ(first[key], 1) << "row " << row;
      auto &list = ranges[key];
      std::sort(list.begin(), list.end());
      int32_t at = list.empty() ? -1 : list.front().first;
      for (Range range : list) {
        EXPECT_EQ(range.first, at) << "row " << row;
        at = range.second;
      }
      int32_t seen = std::max(0, std::min(kvLens[seqOf[row]], posOf[row] + 1));
      EXPECT_GE(at, seen) << "row " << row;
      int32_t window = plan.options().window;
      int32_t low = window ? std::max(0, posOf[row] - window + 1) : 0;
      EXPECT_LE(list.front().first, std::min(low, at)) << "row " << row;
    }
  return visits;
}

int64_t test::build(AttentionPlan &plan, const Ints &qLens, const Ints &kvLens,
                    const int32_t *tables, int64_t stride) {
  Ints rows(qLens.size());
  std::iota(rows.begin(), rows.end(), 0);
  plan.build({qLens, kvLens, rows, tables, stride});
  return checkCover(plan, qLens, kvLens, tables, stride, rows);
}

int64_t test::makespan(const AttentionPlan &plan, int threads) {
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> busy;
  for (int t = 0; t != threads; ++t)
    busy.push(0);
  int64_t last = 0;
  for (const PlanSegment &segment : plan.segments())
    for (int32_t n = segment.begin; n != segment.end; ++n) {
      int64_t end = busy.top() + plan.costs()[n];
      busy.pop();
      busy.push(end);
      last = std::max(last, end);
    }
  return last;
}

int64_t test::totalCost(const AttentionPlan &plan) {
  return std::accumulate(plan.costs().begin(), plan.costs().end(), int64_t(0));
}
