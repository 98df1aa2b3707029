//===- OrderBytes.cpp - What each loop order moves ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows a kernel query tile by query tile, in it KV tile by KV tile (a round)
// and in a round panel by panel, and asks each time whether what is met again
// is still there: whether what passes in between finds room beside it.
//
// - Each query tile reads its Q and the K and V of its keys, and writes O.
// - A round that fits leaves Q^T, O^T and the state where they are. One that
//   does not brings them in, and O^T goes back, each time.
// - Panels of a tile share its K and V if a panel's own part fits beside them.
// - Scores are written, masked (where some row does not see all keys), searched
//   for their largest, turned into weights and multiplied with V. Where they do
//   not fit, each pass brings them in, and all that write send them back. The
//   product takes block_rows dims of V at a time: P is read once for each such
//   column, and where V's lines do not stay so long, each is fetched for every
//   column that it has a part of.
// - `gather` copies K and V first: its copy is written, and read in their
// place.
// - `naive` runs each op over all panels: all scores have to fit, not a
// panel's.
// - `kv_outer` is the paper's loop in the order of its operations, but an item
//   is one query tile, so O stays as it does in `q_outer`.
// - With lanes along the head dim K and V pass once; partial states of splits
//   are written and read.
//
// bench/orders checks this against a simulated cache.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/OrderBytes.h"

#include "compiler/tiling/SramFit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace llvm;
using namespace pagoda;

namespace {

constexpr double f32 = 4;
constexpr int64_t lineBytes = 64;

class QueryTiles {
public:
  QueryTiles(const Machine &machine, const AttentionSpec &spec,
             const Schedule &schedule, const SequenceWork &work,
             FastMemory memory)
      : spec(spec), s(schedule), work(work), memory(memory),
        panelRows(s.blockVectors * machine.lanesF32()),
        start(work.keys - work.queries) {}

  /// One KV head's share.
  MovedBytes move() {
    int64_t tokens = std::max<int64_t>(1, s.qTile / spec.group());
    for (int64_t q = 0; q < work.queries; q += tokens)
      moveTile(q, std::min(q + tokens, work.queries));
    return moved;
  }

private:
  /// Rows that are computed together, and the keys that they see.
  struct Panel {
    int64_t begin, end;
    int64_t keys; ///< in this round, from the KV tile's first on
  };

  using Order = Schedule::Order;
  /// Near the size of the memory some lines stay and some do not.
  double lost(double bytes) const {
    return std::clamp((bytes / double(memory.bytes) - 0.8) / 0.4, 0.0, 1.0);
  }
  double kRow() const { return double(spec.headDim * byteSize(spec.kvType)); }
  double vRow() const { return double(spec.vHeadDim * byteSize(spec.kvType)); }
  double panelQ() const { return double(panelRows * spec.headDim) * f32; }
  /// O^T, m, l and alpha.
  double panelO() const {
    return double(panelRows * (spec.vHeadDim + 3)) * f32;
  }
  double scoresOf(const Panel &panel) const {
    return double(panel.keys * panelRows) * f32;
  }

  void moveTile(int64_t first, int64_t last);
  void moveRound(MutableArrayRef<Panel> panels, int64_t keys, bool masked);
  double valuesAndWeights(const Panel &panel, double lostValues) const;

  const AttentionSpec &spec;
  const Schedule &s;
  const SequenceWork &work;
  FastMemory memory;
  int64_t panelRows;
  int64_t start; ///< position of the first query
  MovedBytes moved;
};

/// Queries [first, last).
void QueryTiles::moveTile(int64_t first, int64_t last) {
  double rows = double((last - first) * spec.group());
  double qSize = double(byteSize(spec.qType));
  moved.in += rows * double(spec.headDim + spec.vHeadDim) * qSize;
  moved.out += rows * double(spec.vHeadDim) * qSize;

  auto seen = [&](int64_t query) {
    return visibleKeys(spec, start + query, work.keys);
  };
  SmallVector<Panel> panels;
  int64_t packed = (last - first) * spec.group();
  for (int64_t row = 0; row < packed; row += panelRows) {
    int64_t lastRow = std::min(row + panelRows, packed) - 1;
    panels.push_back({seen(first + row / spec.group()).first,
                      seen(first + lastRow / spec.group()).second, 0});
  }
  int64_t end = panels.back().end;
  int64_t fullBegin = seen(last - 1).first, fullEnd = seen(first).second;
  for (int64_t j = panels.front().begin; j < end; j += s.kvTile) {
    int64_t keys = std::min(s.kvTile, end - j);
    for (Panel &panel : panels)
      panel.keys = panel.begin < j + keys
                       ? std::clamp<int64_t>(panel.end - j, 0, keys)
                       : 0;
    moveRound(panels, keys, j < fullBegin || j + keys > fullEnd);
  }
}

/// What a panel's second product brings in of V and P: `lostValues` of V for
/// its first column, and what each column leaves to be fetched by the next.
double QueryTiles::valuesAndWeights(const Panel &panel,
                                    double lostValues) const {
  double scores = scoresOf(panel), values = double(panel.keys) * vRow();
  auto columns = double(divideCeil(spec.vHeadDim, s.blockRows));
  if (s.pack) // the copy lies as it is read
    return lostValues * values + lost(scores) * columns * scores;
  // The lines of a column, one a key, fall into few sets of the memory.
  int64_t span = memory.bytes / memory.ways;
  int64_t heads = spec.layout == KvLayout::NHD ? spec.kvHeads : 1;
  int64_t sets = span / std::gcd(heads * int64_t(vRow()), span);
  double ways = double(divideCeil(panel.keys, sets)) +
                scores / double(memory.bytes) * double(memory.ways);
  double column = double(panel.keys * lineBytes);
  double all = std::max(columns * column, values);
  double lostScores = lost(scores + column), lostColumns = lostScores;
  if (ways > double(memory.ways)) {
    lostColumns = 1;
    lostScores = std::max(
        lostScores, std::min(1.0, double(sets * lineBytes) / double(span)));
  }
  return lostValues * values + lostColumns * (all - values) +
         lostScores * columns * scores;
}

/// One KV tile of `keys` keys.
void QueryTiles::moveRound(MutableArrayRef<Panel> panels, int64_t keys,
                           bool masked) {
  bool gathers = s.order == Order::Gather, naive = s.order == Order::Naive;
  bool maps = spec.softcap || !spec.alibiSlopes.empty();
  double k = double(keys) * kRow(), v = double(keys) * vRow();
  double copy = gathers       ? k + v
                : s.pack == 1 ? double(keys * spec.vHeadDim) * f32
                              : double(s.pack) / 2 * v;
  double all = 0, most = 0;
  for (const Panel &panel : panels) {
    all += scoresOf(panel);
    most = std::max(most, scoresOf(panel));
  }
  // What must be left of the scores when the next pass over them begins.
  double held = naive ? all : most;
  double states = double(panels.size()) * (panelQ() + panelO());
  double lostState = lost(k + v + copy + states + held);
  double lostTile = lost((naive ? std::max(k, v) : k + v + copy) + panelQ() +
                         panelO() + most);
  double queries = naive ? double(panels.size()) * panelQ() : panelQ();

  moved.in += k + v;
  if (copy) {
    // Where it was written last time is found again, or not.
    moved.in += lostState * copy;
    moved.out += lostState * copy;
  }
  for (const Panel &panel : panels) {
    if (!panel.keys)
      continue;
    bool first = &panel == panels.begin();
    double scores = scoresOf(panel);
    moved.in += lostState * (panelQ() + panelO());
    moved.out += lostState * panelO();
    // Keys: the first panel meets them as they come, or reads their copy.
    double lostKeys = first ? (gathers ? lostState : 0) : lostTile;
    moved.in += lostKeys * double(panel.keys) * kRow();
    // Written, then mapped, masked, searched for the largest, made weights.
    int passes = maps + masked + 2, writes = maps + masked + 1;
    double lostScores = lost(held);
    double lostFirst = std::max(
        lostScores, lost(held + queries + double(panel.keys) * kRow()));
    moved.in += scores * (lostTile + lostFirst + (passes - 1) * lostScores);
    moved.out += scores * (lostFirst + writes * lostScores);
    moved.in += valuesAndWeights(panel, first && !copy ? 0 : lostTile);
  }
}

} // namespace

MovedBytes pagoda::orderBytes(const Machine &machine, const AttentionSpec &spec,
                              const Schedule &schedule,
                              const SequenceWork &work, FastMemory memory,
                              int64_t splits) {
  MovedBytes moved;
  if (schedule.lanes == Schedule::Lanes::Queries) {
    moved = QueryTiles(machine, spec, schedule, work, memory).move();
  } else {
    double qSize = double(byteSize(spec.qType));
    double key =
        double(spec.headDim + spec.vHeadDim) * double(byteSize(spec.kvType));
    int64_t tokens = std::max<int64_t>(1, schedule.qTile / spec.group());
    int64_t start = work.keys - work.queries;
    for (int64_t q = 0; q < work.queries; q += tokens) {
      int64_t last = std::min(q + tokens, work.queries) - 1;
      double keys = double(visibleKeys(spec, start + last, work.keys).second -
                           visibleKeys(spec, start + q, work.keys).first);
      double rows = double((last - q + 1) * spec.group());
      moved.in +=
          keys * key + rows * double(spec.headDim + spec.vHeadDim) * qSize;
      moved.out += rows * double(spec.vHeadDim) * qSize;
    }
  }
  if (splits > 1) {
    double rows = double(work.queries * spec.group());
    double state = double(splits) * rows * double(spec.vHeadDim + 2) * f32;
    moved.in += state;
    moved.out += state;
  }
  double heads = double(spec.kvHeads);
  return {moved.in * heads, moved.out * heads};
}
