//===- AttentionPlan.cpp - The work of one step ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lengths -> tiles (rows against a run of keys) -> units (a tile's KV splits)
// -> items (a unit's head groups). The heuristic for splits: no item may cost
// more than a quarter of a thread's share of the total, so that handing out the
// longest first leaves the threads idle for less than that at the end; and no
// split is shorter than MinSplitKeys, below which joining it costs more than it
// helps.
//
//===----------------------------------------------------------------------===//

#include "pagoda/AttentionPlan.h"

#include "launch/PlanCost.h"
#include "launch/SharedPrefix.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace pagoda;

static constexpr int32_t MinSplitKeys = 256;
/// Items a thread should at least find, were all of them as long as the limit.
static constexpr int32_t ItemsPerThread = 4;

namespace {

/// Some query rows against the keys [begin, end).
struct Tile {
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

int32_t roundUp(int32_t value, int32_t to) {
  return (value + to - 1) / to * to;
}

} // namespace

struct AttentionPlan::Impl {
  std::vector<const pagoda_kernel_info *> kernels; ///< by rising max_rows
  std::vector<int64_t> keyCosts;                   ///< of an item, by kernel
  PlanOptions options;
  int32_t align = 1; ///< shared runs end at multiples of this many keys
  bool clips = true; ///< visible keys follow from causal, window and chunk

  std::vector<int32_t> rows, rowStart, shareable;
  std::vector<Tile> tiles;
  std::vector<Unit> units;
  std::vector<int32_t> order;    ///< of units
  std::vector<int32_t> rowParts; ///< partial states by row
  std::vector<int32_t> rowMerge; ///< next merge slot by row
  std::vector<std::pair<int32_t, int32_t>> groupRows; ///< position, row
  std::vector<int32_t> groupSeqs;                     ///< [rows] sequence
  SharedPrefix prefix;
  BatchShape batch;

  std::vector<PlanSegment> segments;
  std::vector<pagoda_work_item> items;
  std::vector<int64_t> costs;
  std::vector<int32_t> rowMap, rowPos, rowSeq;
  std::vector<pagoda_merge_item> merges;
  std::vector<int32_t> mergeSlots;
  int32_t counts[2] = {0, 0};
  int32_t numRows = 0;
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
  void clear();
  void check(const BatchShape &batch);
  void findShared();
  bool worthSharing(std::span<const int32_t> members, int32_t blocks) const;
  void addTiles(int32_t tableRow, int32_t rowsFrom, int32_t begin, int32_t end,
                bool first);
  void addSharedTiles();
  void splitTiles();
  void addUnits();
  void addMerges();
  void addItems();
};

/// Throws unless the options fit each other and the kernels are variants of
/// one.
static void checkKernels(std::span<const pagoda_kernel_info *const> kernels,
                         const PlanOptions &options) {
  auto bad = [](const std::string &text) {
    throw Error(ErrorCode::InvalidArgument, "plan: " + text);
  };
  if (kernels.empty())
    bad("kernels: expected 1 or more, got 0");
  for (const pagoda_kernel_info *kernel : kernels) {
    if (!kernel)
      bad("kernels: expected a kernel, got null");
    if (kernel->role != PAGODA_ROLE_ATTENTION)
      bad(std::string("kernels: expected attention kernels, got ") +
          kernel->name + " with role " + roleName(kernel->role));
    std::string why = mismatch(*kernel, KernelSpec::of(*kernels.front()));
    if (!why.empty())
      throw Error(ErrorCode::Mismatch,
                  std::string("plan: kernels ") + kernel->name + " and " +
                      kernels.front()->name +
                      " are not variants of one kernel:\n" + why);
  }
  if (options.threads < 1)
    bad("threads: expected 1 or more, got " + std::to_string(options.threads));
  if (options.deterministicSplit < 1)
    bad("deterministic_split: expected 1 or more, got " +
        std::to_string(options.deterministicSplit));
  if (options.window < 0 || options.chunk < 0)
    bad("window and chunk: expected 0 or more, got " +
        std::to_string(options.window) + " and " +
        std::to_string(options.chunk));
  if (options.deterministic && options.cascade)
    bad("cascade: expected off in the deterministic mode, got on: groups "
        "depend on the other sequences of the batch");
}

AttentionPlan::AttentionPlan(std::span<const pagoda_kernel_info *const> kernels,
                             const PlanOptions &options) {
  checkKernels(kernels, options);
  P = std::make_unique<Impl>();
  P->options = options;
  P->kernels.assign(kernels.begin(), kernels.end());
  std::sort(P->kernels.begin(), P->kernels.end(),
            [](auto *a, auto *b) { return a->max_rows < b->max_rows; });
  P->align = P->kernels.front()->block_size;
  for (const pagoda_kernel_info *kernel : P->kernels) {
    P->keyCosts.push_back(keyCost(*kernel));
    P->align = std::lcm(P->align, kernel->kv_tile);
  }
  P->clips = !P->has(PAGODA_FEATURE_PREFIX_LM | PAGODA_FEATURE_CUSTOM);
}

AttentionPlan::~AttentionPlan() = default;
AttentionPlan::AttentionPlan(AttentionPlan &&) noexcept = default;
AttentionPlan &AttentionPlan::operator=(AttentionPlan &&) noexcept = default;

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
  counts[0] = counts[1] = 0;
  numRows = partialSlots = 0;
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
  }
  if (total > INT32_MAX / 4)
    bad("q_lens: expected at most " + std::to_string(INT32_MAX / 4) +
        " rows in all, got " + std::to_string(total));
  if (options.cascade && count && !b.blockTable)
    bad("block_table: expected one for a cascade plan, got null");
  batch = b;
  rowStart.push_back(0);
  for (size_t s = 0; s != count; ++s) {
    rowStart.push_back(rowStart.back() + b.qLens[s]);
    rows.push_back(b.tableRows.empty() ? static_cast<int32_t>(s)
                                       : b.tableRows[s]);
  }
  numRows = rowStart.back();
}

/// Cuts the rows [rowsFrom, end of the row map) into tiles against the keys
/// [begin, end), as far as each tile can see them.
void AttentionPlan::Impl::addTiles(int32_t tableRow, int32_t rowsFrom,
                                   int32_t begin, int32_t end, bool first) {
  int32_t rowsEnd = static_cast<int32_t>(rowMap.size());
  int32_t kernel = kernelFor(rowsEnd - rowsFrom);
  int32_t maxRows = kernels[kernel]->max_rows;
  int32_t kvTile = kernels[kernel]->kv_tile;
  for (int32_t at = rowsFrom; at < rowsEnd; at += maxRows) {
    int32_t count = std::min(maxRows, rowsEnd - at);
    int64_t low = begin, high = end;
    if (clips) {
      int64_t firstPos = rowPos[at], lastPos = rowPos[at + count - 1];
      if (has(PAGODA_FEATURE_CAUSAL))
        high = std::min(high, lastPos + 1);
      if (has(PAGODA_FEATURE_WINDOW) && options.window)
        low = std::max(low, firstPos - options.window + 1);
      if (has(PAGODA_FEATURE_CHUNK) && options.chunk)
        low = std::max(low, firstPos / options.chunk * options.chunk);
      low = std::max<int64_t>(begin, low / kvTile * kvTile);
      high = std::max(low, high);
    }
    tiles.push_back({kernel, tableRow, at, count, static_cast<int32_t>(low),
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
    addTiles(rows[members.front()], from, run.begin * blockSize,
             run.end * blockSize, run.begin == 0);
  }
}

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
  auto cost = [&](const Tile &tile) {
    return itemCost(keyCosts[tile.kernel], kernels[tile.kernel]->kv_tile,
                    tile.end - tile.begin);
  };
  int64_t total = 0;
  for (const Tile &tile : tiles)
    total += cost(tile) * headGroups(*kernels[tile.kernel]);
  int64_t limit =
      std::max<int64_t>(1, total / (int64_t(options.threads) * ItemsPerThread));
  for (Tile &tile : tiles) {
    int64_t wanted = (cost(tile) + limit - 1) / limit;
    int32_t shortest = roundUp(MinSplitKeys, kernels[tile.kernel]->kv_tile);
    int64_t most = (tile.end - tile.begin) / shortest;
    tile.splits =
        static_cast<int32_t>(std::max<int64_t>(1, std::min(wanted, most)));
  }
}

void AttentionPlan::Impl::addUnits() {
  rowParts.assign(numRows, 0);
  for (const Tile &tile : tiles)
    for (int32_t i = 0; i != tile.rowCount; ++i)
      rowParts[rowMap[tile.rowOffset + i]] += tile.splits;
  for (size_t t = 0; t != tiles.size(); ++t) {
    const Tile &tile = tiles[t];
    const pagoda_kernel_info &kernel = *kernels[tile.kernel];
    bool partial = rowParts[rowMap[tile.rowOffset]] > 1;
    int32_t kvTile = kernel.kv_tile;
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
      units.push_back({itemCost(keyCosts[tile.kernel], kvTile, end - begin),
                       static_cast<int32_t>(t), begin, end,
                       partial ? partialSlots : -1, tile.first && i == 0});
      if (partial)
        partialSlots += tile.rowCount;
      begin = end;
    }
  }
}

/// Units come in the order of their keys, so each row joins its partial states
/// in that order, whatever order they were computed in.
void AttentionPlan::Impl::addMerges() {
  rowMerge.assign(numRows, 0);
  int32_t slots = 0;
  for (int32_t row = 0; row != numRows; ++row) {
    rowMerge[row] = slots;
    if (rowParts[row] < 2)
      continue;
    merges.push_back({row, slots, rowParts[row], 0});
    slots += rowParts[row];
  }
  mergeSlots.resize(slots);
  for (const Unit &unit : units) {
    if (unit.partialSlot < 0)
      continue;
    const Tile &tile = tiles[unit.tile];
    for (int32_t i = 0; i != tile.rowCount; ++i)
      mergeSlots[rowMerge[rowMap[tile.rowOffset + i]]++] = unit.partialSlot + i;
  }
}

void AttentionPlan::Impl::addItems() {
  order.resize(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::pair(-units[a].cost, a) < std::pair(-units[b].cost, b);
  });
  for (int32_t k = 0; k != int32_t(kernels.size()); ++k) {
    const pagoda_kernel_info &kernel = *kernels[k];
    int32_t from = static_cast<int32_t>(items.size());
    for (int32_t u : order) {
      const Unit &unit = units[u];
      const Tile &tile = tiles[unit.tile];
      if (tile.kernel != k)
        continue;
      for (int32_t h = 0; h != headGroups(kernel); ++h) {
        items.push_back({tile.tableRow, tile.rowOffset, tile.rowCount,
                         h * kernel.heads_per_item, kernel.heads_per_item,
                         unit.begin, unit.end, rowPos[tile.rowOffset],
                         unit.partialSlot,
                         unit.first ? PAGODA_ITEM_FIRST_SPLIT : 0});
        costs.push_back(unit.cost);
      }
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

void AttentionPlan::build(const BatchShape &batch) {
  Impl &p = *P;
  p.clear();
  try {
    p.check(batch);
  } catch (...) {
    p.clear();
    throw;
  }
  bool cascade =
      p.options.cascade && !p.has(PAGODA_FEATURE_WINDOW | PAGODA_FEATURE_CHUNK);
  if (cascade) {
    p.findShared();
    p.addSharedTiles();
  }
  int32_t blockSize = p.kernels.front()->block_size;
  for (int32_t s = 0; s != int32_t(p.rows.size()); ++s) {
    int32_t from = static_cast<int32_t>(p.rowMap.size());
    for (int32_t i = 0; i != batch.qLens[s]; ++i) {
      p.rowMap.push_back(p.rowStart[s] + i);
      p.rowPos.push_back(batch.kvLens[s] - batch.qLens[s] + i);
      p.rowSeq.push_back(s);
    }
    int32_t begin = cascade ? p.prefix.ownBegin()[s] * blockSize : 0;
    p.addTiles(p.rows[s], from, begin, batch.kvLens[s], begin == 0);
  }
  p.splitTiles();
  p.addUnits();
  p.addMerges();
  p.addItems();
  p.batch = {};
}

std::span<const PlanSegment> AttentionPlan::segments() const {
  return P->segments;
}
std::span<const pagoda_work_item> AttentionPlan::items() const {
  return P->items;
}
std::span<const int64_t> AttentionPlan::costs() const { return P->costs; }
std::span<const int32_t> AttentionPlan::rowMap() const { return P->rowMap; }
std::span<const int32_t> AttentionPlan::rowPos() const { return P->rowPos; }
std::span<const int32_t> AttentionPlan::rowSeq() const { return P->rowSeq; }
std::span<const pagoda_merge_item> AttentionPlan::merges() const {
  return P->merges;
}
std::span<const int32_t> AttentionPlan::mergeSlots() const {
  return P->mergeSlots;
}
int32_t AttentionPlan::numRows() const { return P->numRows; }
int32_t AttentionPlan::partialSlots() const { return P->partialSlots; }
int64_t AttentionPlan::scratchBytes() const { return P->scratchBytes; }
const PlanOptions &AttentionPlan::options() const { return P->options; }
const pagoda_kernel_info &AttentionPlan::kernel() const {
  return *P->kernels.front();
}

void AttentionPlan::fill(pagoda_attention_args &args) const {
  args.items = P->items.data();
  args.counts = P->counts;
  args.row_map = P->rowMap.data();
  args.row_pos = P->rowPos.data();
  args.row_seq = P->rowSeq.data();
  args.merges = P->merges.data();
  args.merge_slots = P->mergeSlots.data();
}
