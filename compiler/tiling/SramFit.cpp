//===- SramFit.cpp - The SRAM-fit formula ---------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts what a schedule keeps at each level of memory, turns that into a cost,
// and ranks the legal schedules by it. Three kinds of kernel count differently:
// lanes = queries, lanes = head dim (both CPU, here), and NVIDIA
// (SramFitNvidia). Every constant below is explained, with its measurement, in
// compiler/tiling/README.md.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/SramFitAccount.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace llvm;
using namespace pagoda;

int64_t pagoda::byteSize(DType type) {
  switch (type) {
  case DType::F32:
    return 4;
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::I8:
    return 1;
  }
  llvm_unreachable("not a data type");
}

namespace {

// Updating the state costs each KV tile as much as this many keys.
constexpr double stateKeys = 2.5, stateKeysDecode = 0.5;
// Bytes per cycle at which K and V come from beyond L2.
constexpr double streamBytesPerCycle = 4;
// Copying the values of a tile, in time of so many vectors of rows; walking
// them where they lie if they fall into too few sets of L1; ways that P and O
// need of a set.
constexpr double packLanes = 1.5, conflicts = 0.15;
// Values that are not copied come from memory column by column; several panels
// fetch them for each other. In the same unit.
constexpr double columnLanes = 3.4;
constexpr int64_t waysOfOthers = 3;
// Converting each element where it is broadcast (bench/results/cpu.md).
constexpr double widening = 0.45;
// Values that come when they are needed, not before.
constexpr double lateValues = 0.05;
// An accumulator count above this gains nothing and strains the allocator.
constexpr int64_t enoughAccumulators = 16;
// Decode: a tile of whole blocks has at least so many keys; fewer leave too
// little to hide the start of each behind.
constexpr int64_t leastTileKeys = 16;
// Decode: a contiguous run of this many bytes costs as much again.
constexpr double runBytes = 2048, worstRun = 2.0 / 3;
// The same for each of several streams; and what one stream costs.
constexpr double streamBytes = 3072, oneStream = 0.4;
constexpr int64_t pageBytes = 4096;
// Decode: of the L2 share that keys and values on their way take.
constexpr double crowding = 0.2;
// Decode with two stages: rows that nothing fetches on machines that gain by
// it, and that are fetched on others; those of a tile that are fetched at once.
constexpr double unfetched = 0.3, fetched = 0.1, fetchedTile = 0.15;
// The same, token by token: keys beside values where L1 does not hold what they
// need, and the two apart, which makes two walks of four.
constexpr double crowdedWalks = 0.2, apartBytes = 409.6;
// The same: the share of L1 in which Q and O of all heads stay, and what they
// cost beyond, for each byte of them that meets a byte of the cache.
constexpr double residentShare = 0.85, evicted = 0.1;

} // namespace

//===----------------------------------------------------------------------===//
// The two countings of a CPU
//===----------------------------------------------------------------------===//

/// Rows of `stride` bytes lie this many lines apart in the sets of L1 before
/// they come back to the first: a tile of `keys` rows puts keys / that many
/// lines into one set.
static int64_t linesPerSet(int64_t keys, int64_t stride,
                           const Machine &machine) {
  int64_t span = std::max<int64_t>(1, machine.l1Bytes / machine.l1Ways);
  int64_t rows = span / std::gcd(stride, span);
  return int64_t(divideCeil(keys, rows));
}

/// Lanes are queries. Scratch per item: Q^T [panels][head_dim][panel], O^T
/// [panels][v_head_dim][panel], m, l and alpha per row, S^T [kv_tile][panel]; V
/// if it is packed.
static TileCandidate evaluateQueries(const Schedule &s, const Machine &machine,
                                     const AttentionSpec &spec, bool explain) {
  Account a(s, spec, explain);
  int64_t lanes = machine.lanesF32(), panel = s.blockVectors * lanes;
  int64_t rows = alignTo(s.qTile, panel);
  a.paper(int64_t(machine.l2Bytes * l2Share) / f32Bytes);
  a.registerBlock(machine);
  a.step("panel", "block_vectors * lanes",
         {{"block_vectors", double(s.blockVectors)}, {"lanes", double(lanes)}},
         double(panel), "rows");
  int64_t dim = std::max(spec.headDim, spec.vHeadDim);
  // A pair of bf16 takes the place of an f32; its products come in half the
  // time, where there is an instruction for them, and all else does not.
  bool pairs = s.pack == 2;
  bool canPair = machine.addsPairProducts() && spec.qType == DType::BF16 &&
                 spec.kvType == DType::BF16 && spec.headDim % 2 == 0;
  double pace = pairs && canPair ? 2 : 1;
  a.l1({{"Q^T or O^T panel", dim * panel * f32Bytes},
        {"S^T panel", s.kvTile * panel * f32Bytes}},
       machine);
  int64_t vTile = s.kvTile * spec.vHeadDim;
  int64_t element = byteSize(spec.kvType);
  int64_t kTile = s.kvTile * spec.headDim;
  bool narrow = element < f32Bytes;
  int64_t copied = s.pack == 1 ? f32Bytes : element;
  int64_t qBytes = pairs ? element : f32Bytes;
  a.l2({{"K tile", kTile * copied},
        {"V tile", vTile * copied},
        {"next V tile", s.prefetch * vTile * element},
        {"next K tile",
         s.pack == 1 && narrow ? s.prefetch * kTile * element : 0},
        {"Q^T and O^T",
         rows * (spec.headDim * qBytes + spec.vHeadDim * f32Bytes)},
        {"S^T panel", s.kvTile * panel * f32Bytes},
        {"m, l, alpha", 3 * rows * f32Bytes}},
       machine);
  a.cost("loads",
         "0.3 * (1 / block_rows + 1 / block_vectors - 0.5), at least 0",
         {{"block_rows", double(s.blockRows)},
          {"block_vectors", double(s.blockVectors)}},
         0.3 * std::max(0.0, a.loadsPerFma() - 0.5));
  int64_t accumulators = s.blockRows * s.blockVectors;
  a.cost("register pressure", "0.06 * (accumulators - 16) / 8, at least 0",
         {{"accumulators", double(accumulators)}},
         0.06 *
             double(std::max<int64_t>(0, accumulators - enoughAccumulators)) /
             8);
  a.cost("K and V from beyond L2", "2 * lanes * element / (4 * q_tile)",
         {{"lanes", double(lanes)},
          {"element", double(byteSize(spec.kvType))},
          {"q_tile", double(s.qTile)}},
         pace * 2.0 * double(lanes * byteSize(spec.kvType)) /
             (streamBytesPerCycle * double(s.qTile)));
  a.cost("elements widened one by one",
         "0.45 if narrower than f32 and not packed",
         {{"element", double(element)}, {"pack", double(s.pack)}},
         narrow && !s.pack ? widening : 0);
  if (canPair || pairs)
    a.cost("products of elements, not pairs",
           "1 if pairs could be, or are but have no instruction",
           {{"pack", double(s.pack)}, {"instruction", double(canPair)}},
           pairs == canPair ? 0 : 1);
  if (s.pack) {
    a.cost("copy of V", "1.5 * lanes / q_tile",
           {{"lanes", double(lanes)}, {"q_tile", double(s.qTile)}},
           pace * packLanes * double(lanes) / double(s.qTile));
  } else {
    int64_t panels = rows / panel;
    a.cost("values fetched by columns", "3.4 * lanes / q_tile if one panel",
           {{"lanes", double(lanes)},
            {"q_tile", double(s.qTile)},
            {"panels", double(panels)}},
           panels == 1 ? columnLanes * double(lanes) / double(s.qTile) : 0);
    int64_t heads = spec.layout == KvLayout::NHD ? spec.kvHeads : 1;
    int64_t stride = heads * spec.vHeadDim * element;
    int64_t lines = linesPerSet(s.kvTile, stride, machine);
    // Lines of a page are fetched ahead by the hardware, and the products of a
    // key with many accumulators take as long as one comes from L2.
    bool hidden = accumulators >= enoughAccumulators && stride < pageBytes;
    a.cost(
        "values in too few sets of L1",
        "0.15 if lines > ways - 3, but not with 16 accumulators and rows less "
        "than 4096 apart",
        {{"lines", double(lines)},
         {"ways", double(machine.l1Ways)},
         {"accumulators", double(accumulators)},
         {"apart", double(stride)}},
        lines > machine.l1Ways - waysOfOthers && !hidden ? conflicts : 0);
  }
  a.cost("values that come late", "0.05 if nothing is prefetched",
         {{"prefetch", double(s.prefetch)}}, s.prefetch ? 0 : lateValues);
  a.stateUpdate(pace * stateKeys);
  // A panel stops at the keys that its last row sees.
  a.beyondDiagonal(std::max<int64_t>(1, panel / spec.group()), s.blockRows);
  a.cost("items too large to spread", "0.5 * tokens / length",
         {{"tokens", double(a.tokens())}, {"length", referenceLength}},
         0.5 * double(a.tokens()) / referenceLength);
  int64_t used = a.tokens() * spec.group();
  double padding =
      a.step("rows computed per row used", "whole panels / (tokens * group)",
             {{"whole panels", double(rows)},
              {"tokens", double(a.tokens())},
              {"group", double(spec.group())}},
             double(rows) / double(std::max<int64_t>(1, used)));
  a.candidate.cost *= padding;
  return a.finish();
}

/// With two stages, what it costs that rows are fetched, or are not. `resident`
/// bytes in L1 stand against `rows` bytes of Q and O that each key meets.
static void fetching(Account &a, const Machine &machine, int64_t resident,
                     int64_t rows) {
  const Schedule &s = a.s;
  // Vector width stands for how many prefetches a core keeps under way.
  bool gains = machine.vectorBits >= 512;
  a.cost("rows fetched",
         "0.3 if they are not and would gain, 0.1 if they are "
         "and do not",
         {{"prefetch", double(s.prefetch)}, {"gain", double(gains)}},
         fetchesRows(s.prefetch) == gains ? 0
         : gains                          ? unfetched
                                          : fetched);
  a.cost("a tile fetched at once", "0.15 with prefetch 3",
         {{"prefetch", double(s.prefetch)}},
         fetchesTiles(s.prefetch) ? fetchedTile : 0);
  double budget = double(machine.l1Bytes) * residentShare;
  bool leaves = fetchesRows(s.prefetch) && double(resident) > budget;
  a.cost("Q and O that leave L1", "0.1 * rows / a key and its value if over",
         {{"resident", double(resident)},
          {"budget", budget},
          {"rows", double(rows)},
          {"a key and its value", double(a.kvBytes())}},
         leaves ? evicted * double(rows) / double(a.kvBytes()) : 0);
}

/// Lanes are the head dim. Scratch per item: Q [heads][rows][head_dim], O
/// [heads][rows][v_head_dim], m, l, what l has rounded off and alpha per row, S
/// [heads][rows][kv_tile].
static TileCandidate evaluateHeadDim(const Schedule &s, const Machine &machine,
                                     const AttentionSpec &spec, bool explain) {
  Account a(s, spec, explain);
  int64_t lanes = machine.lanesF32(), element = byteSize(spec.kvType);
  int64_t row =
      int64_t(alignTo(spec.headDim, lanes) + alignTo(spec.vHeadDim, lanes)) *
      f32Bytes;
  a.paper(int64_t(machine.l1Bytes * l1Share) / f32Bytes);
  a.registerBlock(machine);
  // Keys are visited as they lie in memory: head after head, whose keys all
  // its rows meet, or token after token, which meets the rows of all heads.
  // With two stages two keys and two values, half a tile apart, pass by.
  bool headMajor = spec.layout == KvLayout::HND, overlap = s.stages == 2,
       byHead =
           headMajor || s.heads == 1 || (overlap && fetchesTiles(s.prefetch));
  int64_t streams = s.streams();
  // Queries meet keys as pairs of bf16 where one instruction multiplies them.
  bool pairs = machine.addsPairProducts() && spec.qType == DType::BF16 &&
               spec.kvType == DType::BF16 && spec.headDim % (2 * lanes) == 0;
  if (pairs)
    row -= spec.headDim * (f32Bytes - element);
  int64_t oRow = int64_t(alignTo(spec.vHeadDim, lanes)) * f32Bytes;
  // Of Q and O, keys meet the one and values the other.
  bool inTurns = overlap && walksApart(s.prefetch);
  int64_t walks = inTurns ? streams : 2 * streams;
  int64_t met = inTurns ? std::max(row - oRow, oRow) : row;
  int64_t ahead =
      overlap && fetchesRows(s.prefetch) && !fetchesTiles(s.prefetch)
          ? walks * fetchedAheadBytes
          : 0;
  int64_t scores = s.heads * s.qTile * s.kvTile * f32Bytes;
  if (overlap)
    a.l1({{byHead    ? "Q and O of a head"
           : inTurns ? "Q or O of all heads"
                     : "Q and O of all heads",
           (byHead ? 1 : s.heads) * s.qTile * met},
          {"S", scores},
          {"rows of K and V", streams * a.kvBytes() + ahead}},
         machine);
  else if (byHead)
    a.l1({{"Q and O of a head", s.qTile * row},
          {"S", scores},
          {"K and V of a head", s.kvTile * a.kvBytes()}},
         machine);
  else
    a.l1(
        {{"Q of all heads",
          s.heads * s.qTile * int64_t(alignTo(spec.headDim, lanes)) * f32Bytes},
         {"S", scores},
         {"V of a head", s.kvTile * spec.vHeadDim * element}},
        machine);
  int64_t tile = s.heads * s.kvTile * a.kvBytes();
  int64_t onTheirWay = !overlap ? std::max<int64_t>(1, s.prefetch) * tile
                       : fetchesTiles(s.prefetch) ? tile
                                                  : 0;
  a.l2({{"Q and O", s.heads * s.qTile * row},
        {"m, l, what it lost, alpha", 4 * s.heads * s.qTile * f32Bytes},
        {"K and V on their way", onTheirWay}},
       machine);
  // Blocks lie where they lie: the more of L2 they take, the more of its sets
  // are too full.
  double l2Budget = double(machine.l2Bytes) * l2Share;
  a.cost("K and V that crowd L2", "0.2 * on their way / budget",
         {{"on their way", double(onTheirWay)}, {"budget", l2Budget}},
         crowding * double(onTheirWay) / l2Budget);
  a.cost("one stream", "0.4 with one stage", {{"stages", double(s.stages)}},
         overlap ? 0 : oneStream);

  // How far a walk goes before it jumps: head after head if a tile is a block
  // (or as many small ones as make 16 keys); tiles of an only head, and of all
  // heads token after token, follow each other through their block. A stream
  // walks its part of a tile; each of its blocks goes on with the next head
  // where it stood.
  int64_t walked = s.kvTile / streams;
  int64_t wholeBlocks =
      int64_t(alignTo(std::max(leastTileKeys, spec.blockSize), spec.blockSize));
  bool together = !headMajor ? s.heads == spec.kvHeads
                  : overlap  ? walked % wholeBlocks == 0
                             : walked == wholeBlocks;
  int64_t keys = headMajor ? std::min(walked, spec.blockSize) : 1;
  // Two streams in one block: each skips what the other walks.
  if (spec.kvHeads == 1 || (!headMajor && together))
    keys = streams == 2 ? std::min(walked, spec.blockSize) : spec.blockSize;
  int64_t heads = !headMajor || together ? s.heads : 1;
  int64_t run = heads * keys * spec.headDim * element;
  a.step("contiguous run", "heads * keys * head_dim * element",
         {{"heads", double(heads)},
          {"keys", double(keys)},
          {"head_dim", double(spec.headDim)},
          {"element", double(element)}},
         double(run), "B");
  if (overlap) {
    // Rows that are fetched are found wherever they lie.
    double worst = fetchesRows(s.prefetch) ? worstRun : streamBytes;
    a.cost("short runs", "3072 / run, at most 2/3 if rows are fetched",
           {{"run", double(run)}, {"prefetch", double(s.prefetch)}},
           std::min(streamBytes / double(run), worst));
    // Head-major, blocks of a stream beyond the first; token-major, a tile's
    // scores lie further apart.
    bool blocks = headMajor || spec.kvHeads == 1;
    double whole = double(blocks ? wholeBlocks : leastTileKeys);
    a.cost("keys of a stream", "0.04 * log2(keys / whole blocks), at least 0",
           {{"keys", double(walked)}, {"whole blocks", whole}},
           0.04 * std::log2(std::max(1.0, double(walked) / whole)));
    // Streams that share a page are one to the hardware.
    int64_t apart =
        walked * spec.headDim * element * (headMajor ? 1 : spec.kvHeads);
    bool onePage = streams == 2 && walked < spec.blockSize && apart < pageBytes;
    a.cost("two streams in a page", "1 if less than 4096 apart",
           {{"apart", double(apart)}}, onePage ? 1 : 0);
    int64_t token = s.heads * spec.headDim * element;
    int64_t passing = inTurns ? std::max(ahead, walks * token) : ahead;
    fetching(a, machine,
             byHead ? 0 : s.heads * s.qTile * met + scores + passing,
             s.qTile * met);
    // Of each walk, a token at hand and one on its way.
    int64_t close = s.heads * s.qTile * row + 2 * 2 * streams * token;
    bool crowded =
        !byHead && fetchesRows(s.prefetch) && close >= machine.l1Bytes;
    a.cost(
        "keys beside values", "0.2 if Q, O and tokens of four walks fill L1",
        {{"Q, O and tokens", double(close)}, {"L1", double(machine.l1Bytes)}},
        crowded && !inTurns ? crowdedWalks : 0);
    a.cost("keys and values apart", "409.6 / token with prefetch 4",
           {{"token", double(token)}, {"prefetch", double(s.prefetch)}},
           inTurns ? apartBytes / double(token) : 0);
  } else {
    a.cost("short runs", "2048 / run, at most 2/3", {{"run", double(run)}},
           std::min(runBytes / double(run), worstRun));
    a.cost("no prefetch", "0.4 if nothing is prefetched",
           {{"prefetch", double(s.prefetch)}}, s.prefetch ? 0 : 0.4);
  }
  a.stateUpdate(stateKeysDecode);
  // Arithmetic hides behind the memory; what there is of it still decides ties.
  double padding = double(alignTo(s.qTile, s.blockRows)) / double(s.qTile);
  a.cost("arithmetic", "0.05 * padding / block_rows + 0.1 * (padding - 1)",
         {{"padding", padding}, {"block_rows", double(s.blockRows)}},
         0.05 * padding / double(s.blockRows) + 0.1 * (padding - 1));
  // Two vectors of keys per step, with one prefetch each, keep loads and
  // prefetches evenly mixed: on AVX2 72% of the bandwidth, where 4 vectors
  // reach 55% and 1 reaches 64% (bench/results/cpu.md).
  a.cost("mixed loads and prefetches", "0.1 * |log2(block_vectors) - 1|",
         {{"block_vectors", double(s.blockVectors)}},
         0.1 * std::abs(std::log2(double(s.blockVectors)) - 1));
  a.cost("rows without a token", "0.1 * (tokens - 1)",
         {{"tokens", double(a.tokens())}}, 0.1 * double(a.tokens() - 1));
  return a.finish();
}

TileCandidate pagoda::evaluate(const Schedule &schedule, const Machine &machine,
                               const AttentionSpec &spec, bool explain) {
  if (machine.kind == TargetKind::Nvidia)
    return evaluateNvidia(schedule, machine, spec, explain);
  if (schedule.lanes == Schedule::Lanes::Queries)
    return evaluateQueries(schedule, machine, spec, explain);
  return evaluateHeadDim(schedule, machine, spec, explain);
}

//===----------------------------------------------------------------------===//
// The paper's formula and sums
//===----------------------------------------------------------------------===//

PaperTiles pagoda::paperTiles(int64_t elements, int64_t headDim) {
  int64_t bc = int64_t(divideCeil(elements, 4 * headDim));
  return {bc, std::min(bc, headDim)};
}

int64_t LevelUse::total() const {
  int64_t sum = 0;
  for (const auto &part : parts)
    sum += part.second;
  return sum;
}
