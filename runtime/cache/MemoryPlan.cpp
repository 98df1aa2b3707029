//===- MemoryPlan.cpp - How much memory sequences take --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of MemoryPlan.h. The paged pool of the simulation is a real
// BlockManager with real tables; the contiguous one is a map of characters.
//
//===----------------------------------------------------------------------===//

#include "pagoda/MemoryPlan.h"

#include <algorithm>

using namespace pagoda;

static void positive(const char *what, int64_t value, int64_t low = 1) {
  if (value < low)
    throw Error(ErrorCode::InvalidArgument,
                std::string("memory plan: ") + what + ": expected " +
                    std::to_string(low) + " or more, got " +
                    std::to_string(value));
}

MemoryPlan pagoda::planPaged(const KvFormat &format, int32_t layers,
                             int32_t groups, std::span<const int32_t> lengths) {
  format.verify();
  positive("groups", groups);
  positive("layers", layers);
  if (layers % groups != 0)
    throw Error(ErrorCode::InvalidArgument,
                "memory plan: layers: expected a multiple of the " +
                    std::to_string(groups) + " table groups, got " +
                    std::to_string(layers));
  MemoryPlan plan;
  int64_t perTable = 0;
  for (int32_t length : lengths) {
    positive("length", length, 0);
    int64_t blocks =
        (int64_t(length) + format.blockSize - 1) / format.blockSize;
    perTable += blocks;
    plan.wastedTokens += blocks * format.blockSize - length;
  }
  plan.reservedTokens = perTable * format.blockSize;
  plan.blocks = perTable * groups;
  plan.bytes = plan.blocks * (layers / groups) * format.blockBytes();
  return plan;
}

MemoryPlan pagoda::planContiguous(const KvFormat &format, int32_t layers,
                                  int32_t maxLength,
                                  std::span<const int32_t> lengths) {
  format.verify();
  positive("layers", layers);
  positive("max_length", maxLength);
  MemoryPlan plan;
  for (int32_t length : lengths) {
    positive("length", length, 0);
    int64_t reserved = maxLength;
    while (reserved < length)
      reserved *= 2;
    plan.reservedTokens += reserved;
    plan.wastedTokens += reserved - length;
  }
  int64_t tokenBytes = format.blockBytes() / format.blockSize;
  plan.bytes = plan.reservedTokens * layers * tokenBytes;
  return plan;
}

PoolSimulation::PoolSimulation(Kind kind, int32_t tokens, int32_t blockSize)
    : TheKind(kind), BlockSize(blockSize),
      Blocks((positive("block_size", blockSize), tokens / blockSize)) {
  if (tokens % blockSize != 0)
    throw Error(ErrorCode::InvalidArgument,
                "memory plan: tokens: expected a multiple of the block size " +
                    std::to_string(blockSize) + ", got " +
                    std::to_string(tokens));
  Map.assign(tokens / blockSize, '.');
  PagedKVOptions options;
  options.blockSize = blockSize;
  options.maxSequences = 256;
  options.maxTokens = std::max(tokens, 1);
  Tables = std::make_unique<PagedKV>(Blocks, options);
}

PoolSimulation::~PoolSimulation() = default;

bool PoolSimulation::request(char name, int32_t tokens) {
  positive("tokens", tokens, 0);
  if (name == '.' || Map.find(name) != std::string::npos || Names.count(name))
    throw Error(ErrorCode::InvalidArgument,
                std::string("memory plan: request: expected a new name, got ") +
                    name);
  if (TheKind == Contiguous) {
    size_t blocks = (size_t(tokens) + BlockSize - 1) / BlockSize;
    size_t at = Map.find(std::string(blocks, '.'));
    if (at == std::string::npos)
      return false;
    std::fill_n(Map.begin() + at, blocks, name);
    return true;
  }
  SeqId seq = Tables->add();
  if (seq == NoSequence || tokens > Tables->maxTokens() ||
      !Tables->append(seq, tokens)) {
    Tables->remove(seq);
    return false;
  }
  Names[name] = seq;
  return true;
}

void PoolSimulation::release(char name) {
  if (TheKind == Contiguous) {
    std::replace(Map.begin(), Map.end(), name, '.');
    return;
  }
  auto it = Names.find(name);
  if (it == Names.end())
    return;
  Tables->remove(it->second);
  Names.erase(it);
}

std::string PoolSimulation::draw() const {
  if (TheKind == Contiguous)
    return Map;
  std::string map(Blocks.numBlocks(), '.');
  for (auto [name, seq] : Names)
    for (int32_t block : Tables->table(seq))
      map[block] = name;
  return map;
}

int32_t PoolSimulation::freeTokens() const {
  std::string map = draw();
  return static_cast<int32_t>(std::count(map.begin(), map.end(), '.')) *
         BlockSize;
}

int32_t PoolSimulation::largestHole() const {
  if (TheKind == Paged)
    return freeTokens();
  int32_t best = 0, run = 0;
  for (char owner : Map) {
    run = owner == '.' ? run + 1 : 0;
    best = std::max(best, run);
  }
  return best * BlockSize;
}
