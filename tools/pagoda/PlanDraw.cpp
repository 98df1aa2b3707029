//===- PlanDraw.cpp - Pools, block by block -------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replays a load on a contiguous and on a paged pool and draws what is in them.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/PlanReport.h"

#include "tools/pagoda/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"

#include <algorithm>

using namespace llvm;

namespace pagoda {

ReplayedPool replay(const PlanLoad &load, const Replay &what,
                    const std::string &title) {
  bool paged = what.pool.kind == PoolOptions::Paged;
  PoolSimulation pool(what.pool);
  ReplayedPool result;
  result.title = title;
  result.blockSize = what.pool.blockSize;
  int32_t name = 0;
  for (const SequenceLoad &some : load.sequences)
    for (int64_t i = 0; i != some.count; ++i)
      result.refused +=
          !pool.request(name++, some.tokens, load.reserve(some.tokens), paged);
  pool.endPrefix();
  for (int32_t ended : what.ended)
    pool.release(ended);
  if (what.next)
    result.nextFits = pool.request(name, *what.next, load.reserve(*what.next));
  result.cells = pool.cells();
  result.freeBlocks = pool.freeBlocks();
  result.largestHole = pool.largestHole();
  return result;
}

void printPools(raw_ostream &os, const std::vector<ReplayedPool> &pools,
                std::optional<int32_t> next) {
  std::vector<std::string> titles = {"pool", ">blocks", ">free",
                                     ">largest hole", ">no room"};
  if (next)
    titles.push_back("a request of " + countText(*next));
  Table table(std::move(titles));
  for (const ReplayedPool &pool : pools) {
    std::vector<std::string> row = {
        pool.title, countText(int64_t(pool.cells.size())),
        countText(pool.freeBlocks), countText(pool.largestHole),
        countText(pool.refused)};
    if (next)
      row.push_back(*pool.nextFits ? "fits" : "does not fit");
    table.row(std::move(row));
  }
  table.print(os);
}

/// See the legend.
static char letterOf(const PoolSimulation::Cell &cell, int32_t blockSize) {
  if (cell.owner == PoolSimulation::Free)
    return '.';
  if (cell.owner == PoolSimulation::Shared)
    return '#';
  if (!cell.tokens)
    return '-';
  return char((cell.tokens == blockSize ? 'A' : 'a') + cell.owner % 26);
}

static std::string textOf(const ReplayedPool &pool) {
  std::string text;
  for (const PoolSimulation::Cell &cell : pool.cells)
    text += letterOf(cell, pool.blockSize);
  return text;
}

static void drawCell(raw_ostream &os, char letter) {
  static constexpr raw_ostream::Colors colors[] = {
      raw_ostream::RED,  raw_ostream::GREEN,   raw_ostream::YELLOW,
      raw_ostream::BLUE, raw_ostream::MAGENTA, raw_ostream::CYAN};
  bool colored = os.has_colors() && letter != '.';
  if (colored && isAlpha(letter))
    os.changeColor(colors[(toUpper(letter) - 'A') % std::size(colors)]);
  else if (colored)
    os.changeColor(raw_ostream::SAVEDCOLOR, letter == '#');
  os << letter;
  if (colored)
    os.resetColor();
}

static void drawPool(raw_ostream &os, const ReplayedPool &pool) {
  constexpr size_t Columns = 64, Group = 16;
  os << '\n' << pool.title << '\n';
  std::string text = textOf(pool);
  StringRef before;
  size_t repeated = 0;
  auto flush = [&] {
    if (repeated)
      os << format("%8s  ", "*") << countText(int64_t(repeated))
         << (repeated == 1 ? " line" : " lines") << " like the one above\n";
    repeated = 0;
  };
  for (size_t at = 0; at < text.size(); at += Columns) {
    StringRef line = StringRef(text).substr(at, Columns);
    if (line == before) {
      ++repeated;
      continue;
    }
    flush();
    before = line;
    os << format("%8zu ", at);
    for (size_t i = 0; i != line.size(); ++i) {
      if (i % Group == 0)
        os << ' ';
      drawCell(os, line[i]);
    }
    os << '\n';
  }
  flush();
}

void drawPools(raw_ostream &os, const std::vector<ReplayedPool> &pools) {
  int32_t blockSize = pools.front().blockSize;
  os << "one character: a block of " << blockSize
     << (blockSize == 1 ? " slot" : " slots")
     << " in one layer; one letter: a sequence (after Z comes A again)\n"
        "A full  a partly filled  - reserved, empty  # shared  . free\n";
  for (const ReplayedPool &pool : pools)
    drawPool(os, pool);
}

json::Array toJson(const std::vector<ReplayedPool> &pools) {
  json::Array array;
  for (const ReplayedPool &pool : pools) {
    json::Object object{{"name", pool.title},
                        {"blocks", int64_t(pool.cells.size())},
                        {"free_blocks", pool.freeBlocks},
                        {"largest_hole", pool.largestHole},
                        {"refused", pool.refused},
                        {"cells", textOf(pool)}};
    if (pool.nextFits)
      object["next_fits"] = *pool.nextFits;
    array.push_back(std::move(object));
  }
  return array;
}

} // namespace pagoda
