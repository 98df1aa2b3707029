//===- PlanReport.cpp - What a load takes of memory -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of kinds and the lines below it, and the same as JSON.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/PlanReport.h"

#include "tools/pagoda/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;

namespace pagoda {

int32_t PlanLoad::longest() const {
  int32_t longest = 0;
  for (const SequenceLoad &some : sequences)
    longest = std::max(longest, some.tokens);
  return longest;
}

int64_t PlanLoad::count() const {
  int64_t count = 0;
  for (const SequenceLoad &some : sequences)
    count += some.count;
  return count;
}

void planKinds(MemoryReport &report) {
  const PlanLoad &load = report.load;
  for (KindPlan &kind : report.kinds) {
    kind.apart = planPaged(kind.layers, load.sequences);
    kind.shared = planPaged(kind.layers, load.sequences, load.sharedPrefix);
    if (load.reserveMax) {
      kind.contiguous =
          planContiguous(kind.layers, load.sequences, load.maxLength);
      continue;
    }
    for (const SequenceLoad &some : load.sequences) {
      if (!some.tokens)
        continue;
      MemoryPlan plan = planContiguous(kind.layers, {&some, 1}, some.tokens);
      kind.contiguous.bytes += plan.bytes;
      kind.contiguous.reservedSlots += plan.reservedSlots;
    }
  }
}

std::string memoryText(int64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = double(bytes);
  const char *unit = "";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    if (value < 1023.5)
      break;
    value /= 1024;
    unit = next;
  }
  std::string text = numberText(value);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text + ' ' + unit;
}

std::string countText(int64_t count) {
  std::string text = std::to_string(count);
  for (int64_t at = int64_t(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

namespace {

/// "1 sequence", "2 sequences".
std::string plural(int64_t count, const char *what) {
  return countText(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string lengths(const PlanLoad &load) {
  constexpr size_t Shown = 8;
  std::string text;
  for (size_t i = 0; i != std::min(load.sequences.size(), Shown); ++i)
    text += (i ? ", " : "") + countText(load.sequences[i].tokens);
  if (load.sequences.size() > Shown)
    text += ", ...";
  return text;
}

struct Totals {
  int64_t contiguous = 0, apart = 0, shared = 0; ///< bytes
};

Totals totalsOf(const MemoryReport &report) {
  Totals totals;
  for (const KindPlan &kind : report.kinds) {
    totals.contiguous += kind.contiguous.bytes;
    totals.apart += kind.apart.bytes;
    totals.shared += kind.shared.bytes;
  }
  return totals;
}

/// What the shared prefix alone takes in a layer that sees everything.
struct PrefixSlots {
  int64_t apart = 0, shared = 0;
};

PrefixSlots prefixSlots(const MemoryReport &report) {
  CacheLayers layers = report.kinds.front().layers;
  layers.keeps = {};
  SequenceLoad prefix{report.load.sharedPrefix, report.load.count()};
  return {planPaged(layers, {&prefix, 1}).reservedSlots,
          planPaged(layers, {&prefix, 1}, prefix.tokens).reservedSlots};
}

struct Fits {
  int64_t contiguous = 0, apart = 0, shared = 0; ///< sequences
};

Fits fitsOf(const MemoryReport &report) {
  std::vector<CacheLayers> kinds;
  for (const KindPlan &kind : report.kinds)
    kinds.push_back(kind.layers);
  int32_t tokens = report.load.longest();
  int64_t bytes = *report.memory;
  return {sequencesContiguous(kinds, bytes, tokens,
                              std::max(1, report.load.reserve(tokens))),
          sequencesPaged(kinds, bytes, tokens),
          sequencesPaged(kinds, bytes, tokens, report.load.sharedPrefix)};
}

void printTable(raw_ostream &os, const MemoryReport &report) {
  Table table({"layers", ">window", "cache", ">slots", ">wasted", ">waste",
               ">blocks", ">a block", ">memory"});
  bool sharing = report.load.sharedPrefix > 0;
  for (const KindPlan &kind : report.kinds) {
    auto row = [&](std::string layers, std::string window, const char *cache,
                   const MemoryPlan &plan, bool paged) {
      table.row({std::move(layers), std::move(window), cache,
                 countText(plan.reservedSlots), countText(plan.wastedSlots),
                 formatv("{0:F2}%", plan.waste() * 100).str(),
                 paged ? countText(plan.blocks) : "",
                 paged ? memoryText(kind.layers.blockBytes()) : "",
                 memoryText(plan.bytes)});
    };
    int32_t window = kind.layers.keeps.window;
    row(std::to_string(kind.layers.layers) + ' ' + kind.name,
        window ? countText(window) : "all", "contiguous", kind.contiguous,
        false);
    row("", "", "paged", kind.apart, true);
    if (sharing)
      row("", "", "paged, shared", kind.shared, true);
  }
  if (report.kinds.size() > 1) {
    Totals totals = totalsOf(report);
    auto row = [&](const char *layers, const char *cache, int64_t bytes) {
      table.row({layers, "", cache, "", "", "", "", "", memoryText(bytes)});
    };
    row("all", "contiguous", totals.contiguous);
    row("", "paged", totals.apart);
    if (sharing)
      row("", "paged, shared", totals.shared);
  }
  table.print(os);
}

std::string fitText(int64_t count) {
  return count == INT64_MAX ? "any number" : countText(count);
}

json::Object planJson(const MemoryPlan &plan, bool paged) {
  json::Object object{{"reserved_slots", plan.reservedSlots},
                      {"wasted_slots", plan.wastedSlots},
                      {"waste", plan.waste()},
                      {"bytes", plan.bytes}};
  if (paged)
    object["blocks"] = plan.blocks;
  return object;
}

} // namespace

void printReport(raw_ostream &os, const MemoryReport &report) {
  const PlanLoad &load = report.load;
  os << report.title << '\n'
     << plural(load.count(), "sequence") << " of " << lengths(load)
     << " tokens";
  if (load.sharedPrefix)
    os << ", the first " << countText(load.sharedPrefix) << " shared";
  os << "; contiguous memory reserves ";
  if (load.reserveMax)
    os << plural(load.maxLength, "token") << " each\n\n";
  else
    os << "what each takes\n\n";
  printTable(os, report);
  os << '\n';
  if (!report.without.empty()) {
    os << "no cache of their own:";
    const char *separator = " ";
    for (const auto &[what, count] : report.without) {
      os << separator << count << ' ' << what;
      separator = ", ";
    }
    os << '\n';
  }
  os << "a slot holds one token in one layer; a wasted slot holds none that a "
        "query may still see\n";
  if (any_of(report.kinds, [](const KindPlan &kind) { return kind.chunks; }))
    os << "chunks keep what a window of their length keeps\n";
  if (any_of(report.kinds,
             [](const KindPlan &kind) { return kind.layers.format.vInsideK; }))
    os << "latent: one row for all heads; kernels of gen read the heads' K and "
          "V, which --mla expanded plans\n";
  if (load.sharedPrefix) {
    PrefixSlots slots = prefixSlots(report);
    os << "shared prefix: " << countText(slots.apart) << " slots apart, "
       << countText(slots.shared) << " shared; only full blocks are shared\n";
  }
  if (report.memory) {
    Fits fits = fitsOf(report);
    os << "sequences of " << plural(load.longest(), "token") << " that fit in "
       << memoryText(*report.memory) << ": " << fitText(fits.contiguous)
       << " contiguous, " << fitText(fits.apart) << " paged";
    if (load.sharedPrefix)
      os << ", " << fitText(fits.shared) << " paged and shared";
    os << '\n';
  }
  const ScoreMatrix &scores = report.scores;
  os << "scores of one head over " << countText(scores.tokens)
     << " tokens, f32: " << memoryText(scores.elements * 4) << " as a matrix";
  if (scores.qTile)
    os << ", " << memoryText(scores.qTile * scores.kvTile * 4)
       << " as a tile of " << scores.qTile << " x " << scores.kvTile;
  os << '\n';
}

json::Object toJson(const MemoryReport &report) {
  const PlanLoad &load = report.load;
  json::Array sequences, kinds;
  for (const SequenceLoad &some : load.sequences)
    sequences.push_back(
        json::Object{{"tokens", some.tokens}, {"count", some.count}});
  for (const KindPlan &kind : report.kinds)
    kinds.push_back(
        json::Object{{"name", kind.name},
                     {"layers", kind.layers.layers},
                     {"tables", kind.layers.tables},
                     {"window", kind.layers.keeps.window},
                     {"kv_heads", kind.layers.format.kvHeads},
                     {"head_dim", kind.layers.format.headDim},
                     {"v_head_dim", kind.layers.format.vHeadDim},
                     {"v_inside_k", kind.layers.format.vInsideK},
                     {"kv_dtype", dtypeName(kind.layers.format.kType)},
                     {"block_size", kind.layers.format.blockSize},
                     {"block_bytes", kind.layers.blockBytes()},
                     {"contiguous", planJson(kind.contiguous, false)},
                     {"paged", planJson(kind.apart, true)},
                     {"paged_shared", planJson(kind.shared, true)}});
  Totals totals = totalsOf(report);
  PrefixSlots slots = prefixSlots(report);
  json::Object without;
  for (const auto &[what, count] : report.without)
    without[what] = count;
  json::Object object{
      {"title", report.title},
      {"load", json::Object{{"sequences", std::move(sequences)},
                            {"shared_prefix", load.sharedPrefix},
                            {"max_length", load.maxLength},
                            {"reserve", load.reserveMax ? "max" : "length"}}},
      {"kinds", std::move(kinds)},
      {"layers_without_cache", std::move(without)},
      {"bytes", json::Object{{"contiguous", totals.contiguous},
                             {"paged", totals.apart},
                             {"paged_shared", totals.shared}}},
      {"prefix_slots",
       json::Object{{"apart", slots.apart}, {"shared", slots.shared}}},
      {"score_matrix",
       json::Object{
           {"tokens", report.scores.tokens},
           {"elements", report.scores.elements},
           {"bytes", report.scores.elements * 4},
           {"tile_bytes", report.scores.qTile * report.scores.kvTile * 4}}}};
  if (report.memory) {
    Fits fits = fitsOf(report);
    auto count = [](int64_t n) {
      return n == INT64_MAX ? json::Value(nullptr) : json::Value(n);
    };
    object["fits"] = json::Object{{"memory_bytes", *report.memory},
                                  {"tokens", load.longest()},
                                  {"contiguous", count(fits.contiguous)},
                                  {"paged", count(fits.apart)},
                                  {"paged_shared", count(fits.shared)}};
  }
  return object;
}

} // namespace pagoda
