//===- PoolSimulation.cpp - A pool, request by request --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PoolSimulation.h. Contiguous memory is a map of cells, first fit.
//
//===----------------------------------------------------------------------===//

#include "pagoda/PoolSimulation.h"

#include <algorithm>
#include <string>

using namespace pagoda;

static Error bad(const std::string &text) {
  return Error(ErrorCode::InvalidArgument, "pool simulation: " + text);
}

PoolSimulation::PoolSimulation(const PoolOptions &options)
    : Options(options), Blocks(options.blocks) {
  if (options.blockSize < 1 || options.blocks < 0 ||
      int64_t(options.blocks) * options.blockSize > INT32_MAX)
    throw bad("blocks: expected at most " + std::to_string(INT32_MAX) +
              " tokens in blocks of 1 or more, got " +
              std::to_string(options.blocks) + " blocks of " +
              std::to_string(options.blockSize));
  if (options.kind == PoolOptions::Contiguous) {
    Map.resize(options.blocks);
    return;
  }
  PagedKVOptions with;
  with.blockSize = options.blockSize;
  with.maxSequences = options.maxRequests + 1;
  with.maxTokens = options.maxTokens
                       ? options.maxTokens
                       : std::max(options.blocks, 1) * options.blockSize;
  with.groups = {options.keeps};
  Tables = std::make_unique<PagedKV>(Blocks, with);
  int32_t full = options.sharedPrefix / options.blockSize * options.blockSize;
  if (!full)
    return;
  Prefix = Tables->add();
  if (!extend(Prefix, full))
    endPrefix(); // nobody shares what there is no room for
}

PoolSimulation::~PoolSimulation() = default;

/// Appends up to \p tokens tokens in all, and lets go of what the last of them
/// does not see.
bool PoolSimulation::extend(SeqId seq, int32_t tokens) {
  if (tokens > Tables->maxTokens())
    return false;
  while (Tables->length(seq) < tokens) {
    int32_t length = Tables->length(seq);
    int32_t slots = Options.blockSize - length % Options.blockSize;
    if (!Tables->append(seq, std::min(slots, tokens - length)))
      return false;
    // The query of the last token may be the next one.
    Tables->releaseWindow(seq, Tables->length(seq) - 1);
  }
  return true;
}

bool PoolSimulation::take(int32_t name, int32_t tokens, int32_t reserve) {
  int32_t blockSize = Options.blockSize;
  int64_t blocks =
      (int64_t(std::max(tokens, reserve)) + blockSize - 1) / blockSize;
  auto hole = std::search_n(
      Map.begin(), Map.end(), blocks, Free,
      [](const Cell &cell, int32_t owner) { return cell.owner == owner; });
  if (hole == Map.end() && blocks)
    return false;
  for (int64_t i = 0; i != blocks; ++i, tokens -= blockSize)
    *hole++ = {name, std::clamp(tokens, 0, blockSize)};
  return true;
}

bool PoolSimulation::request(int32_t name, int32_t tokens, int32_t reserve,
                             bool share) {
  if (name < 0 || Names.count(name))
    throw bad("request: expected a new name from 0, got " +
              std::to_string(name));
  if (tokens < 0 || reserve < 0)
    throw bad("request: expected 0 tokens or more, got " +
              std::to_string(std::min(tokens, reserve)));
  if (share && tokens < Options.sharedPrefix)
    throw bad("request: expected the " + std::to_string(Options.sharedPrefix) +
              " tokens of the shared prefix or more, got " +
              std::to_string(tokens));
  if (Options.kind == PoolOptions::Contiguous) {
    if (!take(name, tokens, reserve))
      return false;
    Names[name] = NoSequence;
    return true;
  }
  SeqId seq =
      share && Prefix != NoSequence ? Tables->fork(Prefix) : Tables->add();
  if (seq == NoSequence)
    return false;
  if (!extend(seq, tokens)) {
    Tables->remove(seq);
    return false;
  }
  Names[name] = seq;
  return true;
}

void PoolSimulation::release(int32_t name) {
  auto it = Names.find(name);
  if (it == Names.end())
    return;
  if (Tables)
    Tables->remove(it->second);
  for (Cell &cell : Map)
    if (cell.owner == name)
      cell = Cell{};
  Names.erase(it);
}

void PoolSimulation::endPrefix() {
  if (Prefix != NoSequence)
    Tables->remove(Prefix);
  Prefix = NoSequence;
}

std::vector<PoolSimulation::Cell> PoolSimulation::cells() const {
  if (!Tables)
    return Map;
  std::vector<Cell> cells(Blocks.numBlocks());
  auto fill = [&](int32_t name, SeqId seq) {
    int32_t left = Tables->length(seq);
    for (int32_t block : Tables->table(seq)) {
      if (block >= 0)
        cells[block] = {Blocks.refs(block) > 1 ? Shared : name,
                        std::min(left, Options.blockSize)};
      left -= Options.blockSize;
    }
  };
  for (auto [name, seq] : Names)
    fill(name, seq);
  if (Prefix != NoSequence)
    fill(Shared, Prefix);
  return cells;
}

int32_t PoolSimulation::freeBlocks() const {
  if (Tables)
    return Blocks.numFree();
  return static_cast<int32_t>(
      std::count_if(Map.begin(), Map.end(),
                    [](const Cell &cell) { return cell.owner == Free; }));
}

int32_t PoolSimulation::largestHole() const {
  if (Tables)
    return Blocks.numFree();
  int32_t best = 0, run = 0;
  for (const Cell &cell : Map) {
    run = cell.owner == Free ? run + 1 : 0;
    best = std::max(best, run);
  }
  return best;
}
