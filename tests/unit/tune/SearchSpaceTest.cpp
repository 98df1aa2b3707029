//===- SearchSpaceTest.cpp - Schedules that may be faster -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/SearchSpace.h"
#include "tests/unit/tiling/Specs.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <set>

using namespace pagoda;
using namespace pagoda::test;

namespace {

struct Where {
  const char *machine;
  AttentionSpec spec;
  Variant variant;
};

std::vector<Where> everywhere() {
  std::vector<Where> result;
  for (const char *on : {"x86-64-v3", "x86-64-v4", "neon", "sm_80", "sm_90a"})
    for (auto [q, kv, dim] : {std::tuple{16, 8, 128},
                              {32, 1, 64},
                              {5, 5, 80},
                              {71, 1, 64},
                              {3, 3, 1},
                              {8, 2, 256}})
      for (Variant variant : {Variant::Prefill, Variant::Decode}) {
        bool gpu = llvm::StringRef(on).starts_with("sm");
        result.push_back(
            {on, spec(q, kv, dim, gpu ? DType::BF16 : DType::F32), variant});
      }
  return result;
}

std::set<std::string> texts(const std::vector<Schedule> &schedules) {
  std::set<std::string> result;
  for (const Schedule &schedule : schedules)
    result.insert(schedule.str());
  return result;
}

} // namespace

TEST(SearchSpace, LegalAndEachOnce) {
  for (const Where &at : everywhere()) {
    Machine on = machine(at.machine);
    std::vector<Schedule> space = tuningSpace(on, at.spec, at.variant, 64);
    for (const Schedule &schedule : space)
      EXPECT_EQ(text(checkSchedule(schedule, on, at.spec)), "")
          << at.machine << ": " << schedule.str();
    EXPECT_EQ(texts(space).size(), space.size());
    EXPECT_LE(space.size(), 64u);
  }
}

TEST(SearchSpace, TheDefaultIsFirst) {
  for (const Where &at : everywhere()) {
    Machine on = machine(at.machine);
    std::vector<TileCandidate> ranked = rankTiles(on, at.spec, at.variant);
    std::vector<Schedule> space = tuningSpace(on, at.spec, at.variant, 8);
    EXPECT_EQ(space.empty(), ranked.empty());
    if (!space.empty())
      EXPECT_EQ(space.front().str(), ranked.front().schedule.str());
  }
}

TEST(SearchSpace, TheSameEachTime) {
  Machine on = machine("x86-64-v3");
  AttentionSpec shape = spec(16, 8, 128);
  for (Variant variant : {Variant::Prefill, Variant::Decode})
    EXPECT_EQ(tuningSpace(on, shape, variant, 64),
              tuningSpace(on, shape, variant, 64));
}

// A shorter space is the beginning of a longer one: what time allows is worth
// measuring alone.
TEST(SearchSpace, AnyFirstPart) {
  Machine on = machine("x86-64-v3");
  std::vector<Schedule> all =
      tuningSpace(on, spec(16, 8, 128), Variant::Prefill, 40);
  std::vector<Schedule> some =
      tuningSpace(on, spec(16, 8, 128), Variant::Prefill, 12);
  all.resize(12);
  EXPECT_EQ(all, some);
  // Not twelve tiles next to the default.
  std::set<int64_t> qTiles, kvTiles;
  for (const Schedule &schedule : some) {
    qTiles.insert(schedule.qTile);
    kvTiles.insert(schedule.kvTile);
  }
  EXPECT_GE(qTiles.size(), 3u);
  EXPECT_GE(kvTiles.size(), 3u);
}

TEST(SearchSpace, HopelessOnesAreLeftOut) {
  Machine on = machine("x86-64-v3");
  AttentionSpec shape = spec(16, 8, 128);
  std::vector<Schedule> space = tuningSpace(on, shape, Variant::Decode, 1000);
  double first = evaluate(space.front(), on, shape, false).cost;
  for (const Schedule &schedule : space)
    EXPECT_LE(evaluate(schedule, on, shape, false).cost, 1.5 * first);
}

TEST(SearchSpace, NeighboursReachEveryChoice) {
  Machine on = machine("x86-64-v3");
  AttentionSpec shape = spec(16, 8, 128);
  auto changed = [&](Variant variant) {
    Schedule from = rankTiles(on, shape, variant).front().schedule;
    std::set<std::string> fields;
    for (const Schedule &near : neighbours(from, on, shape, variant)) {
      auto add = [&](const char *name, auto member) {
        if (near.*member != from.*member)
          fields.insert(name);
      };
      add("q_tile", &Schedule::qTile);
      add("kv_tile", &Schedule::kvTile);
      add("heads", &Schedule::heads);
      add("block_rows", &Schedule::blockRows);
      add("block_vectors", &Schedule::blockVectors);
      add("prefetch", &Schedule::prefetch);
      add("pack", &Schedule::pack);
      add("stages", &Schedule::stages);
      add("lanes", &Schedule::lanes);
    }
    return fields;
  };
  EXPECT_EQ(changed(Variant::Prefill),
            (std::set<std::string>{"q_tile", "kv_tile", "block_rows",
                                   "block_vectors", "prefetch", "pack"}));
  EXPECT_EQ(changed(Variant::Decode),
            (std::set<std::string>{"q_tile", "kv_tile", "heads", "block_rows",
                                   "block_vectors", "prefetch", "pack",
                                   "stages", "lanes"}));
}

TEST(SearchSpace, SamplesAreLegalDifferentAndSeeded) {
  for (const Where &at : everywhere()) {
    Machine on = machine(at.machine);
    std::vector<Schedule> a = sampleSchedules(on, at.spec, at.variant, 20, 1);
    std::vector<Schedule> b = sampleSchedules(on, at.spec, at.variant, 20, 1);
    EXPECT_EQ(a, b);
    EXPECT_EQ(texts(a).size(), a.size());
    for (const Schedule &schedule : a)
      EXPECT_EQ(text(checkSchedule(schedule, on, at.spec)), "");
  }
  Machine on = machine("x86-64-v3");
  EXPECT_EQ(
      sampleSchedules(on, spec(16, 8, 128), Variant::Prefill, 20, 1).size(),
      20u);
  EXPECT_NE(sampleSchedules(on, spec(16, 8, 128), Variant::Prefill, 20, 1),
            sampleSchedules(on, spec(16, 8, 128), Variant::Prefill, 20, 2));
}

// A machine without a legal tile has nothing to tune: head dims too large.
TEST(SearchSpace, NothingLegal) {
  EXPECT_TRUE(tuningSpace(machine("sm_86"), spec(128, 1, 2048, DType::BF16),
                          Variant::Decode, 8)
                  .empty());
}
