//===- MemoryPlan.cpp - How much memory sequences take --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of MemoryPlan.h. Sums and products are checked: a plan is for
// loads that no machine holds, too.
//
//===----------------------------------------------------------------------===//

#include "pagoda/MemoryPlan.h"

#include <algorithm>

using namespace pagoda;

static void inRange(const char *what, int64_t value, int64_t low,
                    int64_t high) {
  if (value < low || value > high)
    throw Error(ErrorCode::InvalidArgument,
                std::string("memory plan: ") + what + ": expected " +
                    std::to_string(low) + " to " + std::to_string(high) +
                    ", got " + std::to_string(value));
}

namespace {

/// An int64_t that throws instead of overflowing.
struct Checked {
  int64_t value = 0;
  friend Checked operator+(Checked a, Checked b) {
    return of(__builtin_add_overflow(a.value, b.value, &a.value), a);
  }
  friend Checked operator*(Checked a, Checked b) {
    return of(__builtin_mul_overflow(a.value, b.value, &a.value), a);
  }
  void operator+=(Checked other) { *this = *this + other; }

private:
  static Checked of(bool overflow, Checked result) {
    if (overflow)
      throw Error(
          ErrorCode::InvalidArgument,
          "memory plan: slots or bytes in all: expected less than 2^63, "
          "got more");
    return result;
  }
};

/// What one sequence keeps in one table.
struct Kept {
  int64_t sinks = 0; ///< blocks [0, sinks) and [first, end)
  int64_t first = 0;
  int64_t end = 0;
  int64_t firstKey = 0; ///< tokens [0, sinkTokens) and [firstKey, tokens)
  int64_t blocks() const { return sinks + end - first; }
};

} // namespace

static Kept keptBy(const CacheLayers &layers, int64_t tokens) {
  int32_t blockSize = layers.format.blockSize;
  const TableGroup &keeps = layers.keeps;
  Kept kept;
  kept.end = (tokens + blockSize - 1) / blockSize;
  if (!keeps.window || !tokens)
    return kept;
  int32_t query = static_cast<int32_t>(tokens - 1);
  kept.first =
      std::min<int64_t>(keeps.firstVisible(query, blockSize), kept.end);
  kept.sinks = std::min<int64_t>(keeps.sinkBlocks(blockSize), kept.first);
  kept.firstKey = std::max<int64_t>(0, tokens - keeps.window);
  return kept;
}

/// Tokens in blocks [0, blocks) of a sequence that a query sees whose oldest
/// key but for sinks is \p firstKey.
static int64_t seenTokens(const CacheLayers &layers, int64_t tokens,
                          int64_t firstKey, int64_t blocks) {
  int64_t end = std::min(tokens, blocks * layers.format.blockSize);
  int64_t sinks = layers.keeps.window ? layers.keeps.sinkTokens : 0;
  int64_t seen = std::max<int64_t>(0, end - firstKey);
  return seen + std::min({sinks, firstKey, end});
}

void CacheLayers::verify() const {
  format.verify();
  keeps.verify();
  inRange("layers", layers, 1, 1 << 20);
  inRange("tables", tables, 1, layers);
  if (layers % tables)
    throw Error(ErrorCode::InvalidArgument,
                "memory plan: tables: expected a divisor of the " +
                    std::to_string(layers) + " layers, got " +
                    std::to_string(tables));
}

/// The shortest sequence that is there, -1 when there is none.
static int64_t checkLoad(std::span<const SequenceLoad> load) {
  int64_t shortest = -1;
  for (const SequenceLoad &some : load) {
    inRange("sequence tokens", some.tokens, 0, INT32_MAX);
    inRange("sequence count", some.count, 0, INT64_MAX);
    if (some.count && (shortest < 0 || some.tokens < shortest))
      shortest = some.tokens;
  }
  return shortest;
}

MemoryPlan pagoda::planPaged(const CacheLayers &layers,
                             std::span<const SequenceLoad> load,
                             int32_t sharedPrefix) {
  layers.verify();
  int64_t shortest = checkLoad(load);
  inRange("shared prefix", sharedPrefix, 0,
          shortest < 0 ? INT32_MAX : shortest);
  int64_t blockSize = layers.format.blockSize;
  int64_t shared = shortest < 0 ? 0 : sharedPrefix / blockSize;
  Checked blocks, seen;
  // Of the shared blocks the shortest sequence keeps all that any keeps.
  if (shared) {
    Kept kept = keptBy(layers, shortest);
    kept.end = shared;
    kept.first = std::min(kept.first, shared);
    kept.sinks = std::min(kept.sinks, kept.first);
    blocks += {kept.blocks()};
    seen += {seenTokens(layers, shortest, kept.firstKey, shared)};
  }
  for (const SequenceLoad &some : load) {
    Kept kept = keptBy(layers, some.tokens);
    int64_t all = seenTokens(layers, some.tokens, kept.firstKey, kept.end);
    seen += Checked{some.count} *
            Checked{all - seenTokens(layers, some.tokens, kept.firstKey,
                                     std::min(shared, kept.end))};
    kept.sinks -= std::min(kept.sinks, shared);
    kept.first = std::max(kept.first, std::min(shared, kept.end));
    blocks += Checked{some.count} * Checked{kept.blocks()};
  }
  MemoryPlan plan;
  plan.blocks = (blocks * Checked{layers.tables}).value;
  plan.bytes = (Checked{plan.blocks} * Checked{layers.blockBytes()}).value;
  plan.reservedSlots = (blocks * Checked{blockSize}).value;
  plan.wastedSlots = plan.reservedSlots - seen.value;
  return plan;
}

/// Tokens that a contiguous sequence reserves.
static int64_t reserved(int64_t tokens, int64_t maxLength) {
  while (maxLength < tokens)
    maxLength *= 2;
  return maxLength;
}

MemoryPlan pagoda::planContiguous(const CacheLayers &layers,
                                  std::span<const SequenceLoad> load,
                                  int32_t maxLength) {
  layers.verify();
  checkLoad(load);
  inRange("max_length", maxLength, 1, INT32_MAX);
  Checked slots, wasted;
  for (const SequenceLoad &some : load) {
    int64_t piece = reserved(some.tokens, maxLength);
    Kept kept = keptBy(layers, some.tokens);
    int64_t seen = seenTokens(layers, some.tokens, kept.firstKey, kept.end);
    slots += Checked{some.count} * Checked{piece};
    wasted += Checked{some.count} * Checked{piece - seen};
  }
  MemoryPlan plan;
  int64_t slotBytes = layers.format.blockBytes() / layers.format.blockSize;
  plan.bytes = (slots * Checked{layers.layers} * Checked{slotBytes}).value;
  plan.reservedSlots = slots.value;
  plan.wastedSlots = wasted.value;
  return plan;
}

/// How often \p more goes into \p bytes after \p once has been taken.
static int64_t howOften(int64_t bytes, Checked once, Checked more) {
  if (bytes < once.value)
    return 0;
  return more.value ? (bytes - once.value) / more.value : INT64_MAX;
}

int64_t pagoda::sequencesPaged(std::span<const CacheLayers> kinds,
                               int64_t bytes, int32_t tokens,
                               int32_t sharedPrefix) {
  Checked one, two;
  SequenceLoad load{tokens, 1}, twice{tokens, 2};
  for (const CacheLayers &layers : kinds) {
    one += {planPaged(layers, {&load, 1}, sharedPrefix).bytes};
    two += {planPaged(layers, {&twice, 1}, sharedPrefix).bytes};
  }
  // The second sequence takes what each after it takes.
  int64_t own = two.value - one.value;
  return howOften(bytes, {one.value - own}, {own});
}

int64_t pagoda::sequencesContiguous(std::span<const CacheLayers> kinds,
                                    int64_t bytes, int32_t tokens,
                                    int32_t maxLength) {
  Checked one;
  SequenceLoad load{tokens, 1};
  for (const CacheLayers &layers : kinds)
    one += {planContiguous(layers, {&load, 1}, maxLength).bytes};
  return howOften(bytes, {0}, one);
}
