//===- Roofline.cpp - What a kernel moves and computes --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks over the query tiles of a sequence and adds up what each one reads. A
// query tile reads the keys that any of its rows sees, in whole KV tiles, so
// larger tiles move fewer bytes; that is what the tile is chosen large for.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/Roofline.h"

#include "compiler/tiling/SramFit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace pagoda;

const Limit &Roofline::binding() const {
  return *llvm::max_element(limits, [](const Limit &a, const Limit &b) {
    return a.cycles() < b.cycles();
  });
}

std::pair<int64_t, int64_t>
pagoda::visibleKeys(const AttentionSpec &spec, int64_t position, int64_t keys) {
  int64_t first = 0, last = spec.causal ? position + 1 : keys;
  if (spec.window)
    first = std::max(first, position - *spec.window + 1);
  if (spec.chunk) {
    int64_t begin = position / *spec.chunk * *spec.chunk;
    first = std::max(first, begin);
    last = std::min(last, begin + *spec.chunk);
  }
  return {first, std::min(last, keys)};
}

/// Vector loads of a CPU's inner loops. Each product of a register block reads
/// its broadcast rows and its vectors once a step. With lanes along the head
/// dim, block_rows rows of queries share what is read of a key or value; in
/// K Q^T each brings a vector of its own, in P V one weight for all vectors.
/// With two stages the rows of a pass share it, the rows of O are in memory,
/// and each vector of them, as of Q, is for what passes by at the same time.
static double vectorLoads(const Machine &machine, const AttentionSpec &spec,
                          const Schedule &s, double pairs) {
  double fmas = pairs * double(spec.qHeads) / double(machine.lanesF32());
  double rows = 1 / double(s.blockRows), vectors = 1 / double(s.blockVectors);
  if (s.lanes == Schedule::Lanes::Queries)
    return fmas * double(spec.headDim + spec.vHeadDim) * (rows + vectors) /
           (s.pack == 2 ? 2 : 1);
  double streams = 1 / double(s.streams());
  if (s.stages == 2)
    rows =
        1 / double(rowsOfPass(s.blockRows, s.streams(), machine.vectorRegisters,
                              fetchesRows(s.prefetch)));
  return fmas *
         (double(spec.headDim) * (rows + streams) +
          double(spec.vHeadDim) * (rows + (s.stages == 2 ? streams : vectors)));
}

Roofline pagoda::roofline(const Machine &machine, const AttentionSpec &spec,
                          const Schedule &schedule, const SequenceWork &work) {
  bool nvidia = machine.kind == TargetKind::Nvidia;
  bool lanesAreQueries = schedule.lanes == Schedule::Lanes::Queries;
  double key =
      double(spec.headDim + spec.vHeadDim) * double(byteSize(spec.kvType));
  double row =
      double(spec.headDim + spec.vHeadDim) * double(byteSize(spec.qType));
  int64_t start = work.keys - work.queries;
  int64_t tokens = std::max<int64_t>(1, schedule.qTile / spec.group());

  // Of one KV head: keys that tiles read, and how often a KV tile is visited.
  double keysRead = 0, tilesVisited = 0, keysSeen = 0;
  Roofline result;
  int64_t seenTo = 0;
  for (int64_t q = 0; q < work.queries; q += tokens) {
    int64_t last = std::min(q + tokens, work.queries) - 1;
    int64_t begin = visibleKeys(spec, start + q, work.keys).first;
    int64_t end = visibleKeys(spec, start + last, work.keys).second;
    keysRead += double(end - begin);
    tilesVisited += double(divideCeil(end - begin, schedule.kvTile));
    keysSeen += double(std::max<int64_t>(0, end - std::max(seenTo, begin)));
    seenTo = std::max(seenTo, end);
    for (int64_t each = q; each <= last; ++each) {
      auto [from, to] = visibleKeys(spec, start + each, work.keys);
      result.pairs += double(to - from);
    }
  }
  double kvHeads = double(spec.kvHeads);
  double flops = 2 * double(spec.headDim + spec.vHeadDim) * result.pairs *
                 double(spec.qHeads);
  double rows = double(work.queries * spec.qHeads) * row;
  result.leastBytes = rows + kvHeads * keysSeen * key;

  // What is near: shared memory, which each warp reads whole; L2, from which
  // each panel of rows takes K, V and Q^T, and O^T twice; with lanes along the
  // head dim K and V pass through once.
  double near = keysRead * key;
  if (nvidia) {
    near = tilesVisited * double(schedule.warps * schedule.kvTile) * key;
  } else if (lanesAreQueries) {
    int64_t panel = schedule.blockVectors * machine.lanesF32();
    double state = double(panel * (spec.headDim + 2 * spec.vHeadDim)) * 4;
    near = tilesVisited * double(divideCeil(schedule.qTile, panel)) *
           (double(schedule.kvTile) * key + state);
  }
  double rate = machine.flopsPerCycle;
  StringRef arithmetic = nvidia ? "tensor cores" : "FMA";
  if (schedule.pack == 2) {
    arithmetic = "bf16 pairs";
    // Without the instruction each pair is two products.
    rate *= machine.addsPairProducts() ? 2 : 1;
  }
  result.limits = {{arithmetic, flops, rate, "flop"}};
  if (!nvidia)
    result.limits.push_back({"load ports",
                             vectorLoads(machine, spec, schedule, result.pairs),
                             machine.loadsPerCycle, "load"});
  result.limits.push_back({nvidia ? "shared memory" : "L2", kvHeads * near,
                           machine.nearBytesPerCycle, "B"});
  // A GPU's blocks visit a layer's K and V together, out of the cache that all
  // of them share if it has room.
  bool cached = nvidia && kvHeads * keysSeen * key <= double(machine.l3Bytes);
  result.limits.push_back(
      {"memory", rows + kvHeads * (cached ? keysSeen : keysRead) * key,
       machine.memoryBytesPerCycle, "B"});
  return result;
}
