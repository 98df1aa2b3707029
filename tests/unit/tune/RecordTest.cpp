//===- RecordTest.cpp - What a record is for, and when it is used ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Record.h"
#include "compiler/tiling/SramFit.h"
#include "tests/unit/tiling/Specs.h"

#include "gtest/gtest.h"

#include <cmath>
#include <set>

using namespace pagoda;
using namespace pagoda::test;

namespace {

/// A verified record of the default.
TuningRecord record(const Machine &on, const AttentionSpec &shape,
                    Variant variant) {
  TuningRecord result;
  result.key = tuningKey(on, shape, variant);
  result.schedule =
      llvm::cantFail(selectTile(on, shape, variant)).schedule.str();
  result.verified = 1000;
  result.worstRatio = 0.1;
  return result;
}

std::string refusal(const TuningRecord &record, const Machine &on,
                    const AttentionSpec &shape) {
  return text(usableSchedule(record, on, shape).takeError());
}

} // namespace

// CASES.md: tuned for block 16 and asked for block 32 is no match, and so on
// for all that can change which schedule is the fastest.
TEST(TuningKey, HoldsWhatChangesTheAnswer) {
  Machine host = Machine::host();
  AttentionSpec base = spec(16, 8, 128);
  std::set<std::string> keys;
  size_t count = 0;
  auto add = [&](const Machine &on, const AttentionSpec &shape,
                 Variant variant = Variant::Prefill) {
    keys.insert(tuningKey(on, shape, variant).str());
    EXPECT_EQ(keys.size(), ++count) << tuningKey(on, shape, variant).str();
  };
  add(host, base);
  add(host, base, Variant::Decode);
  for (int64_t kvLen : {200, 1000, 16384})
    keys.insert(tuningKey(host, base, Variant::Decode, kvLen).str());
  EXPECT_EQ(keys.size(), count += 3);
  auto with = [&](auto change) {
    AttentionSpec shape = base;
    change(shape);
    add(host, shape);
  };
  with([](AttentionSpec &s) { s.blockSize = 32; });
  with([](AttentionSpec &s) { s.layout = KvLayout::NHD; });
  with([](AttentionSpec &s) { s.qHeads = 32; });
  with([](AttentionSpec &s) { s.kvHeads = 4; });
  with([](AttentionSpec &s) { s.headDim = 64; });
  with([](AttentionSpec &s) { s.vHeadDim = 64; });
  with([](AttentionSpec &s) { s.qType = DType::F16; });
  with([](AttentionSpec &s) { s.kvType = DType::F16; });
  with([](AttentionSpec &s) { s.causal = false; });
  with([](AttentionSpec &s) { s.window = 128; });
  with([](AttentionSpec &s) { s.window = 4096; });
  with([](AttentionSpec &s) { s.chunk = 128; });
  with([](AttentionSpec &s) { s.softcap = 50; });
  with([](AttentionSpec &s) { s.sinks = true; });
  with([](AttentionSpec &s) { s.prefixLm = true; });
  with([](AttentionSpec &s) { s.alibiSlopes = {1}; });
  auto on = [&](auto change) {
    Machine other = host;
    change(other);
    add(other, base);
  };
  on([](Machine &m) { m.cpu += "x"; });
  on([](Machine &m) { m.features += ",+newest"; });
  on([](Machine &m) { m.l1Bytes *= 2; });
  on([](Machine &m) { m.l2Bytes *= 2; });
  on([](Machine &m) { m.l3Bytes *= 2; });
  on([](Machine &m) { m.cores += 1; });
  add(machine("x86-64-v3"), base);
  add(machine("x86-64-v4"), base);
  add(machine("sm_90a"), base);
  EXPECT_NE(tuningKey(host, base, Variant::Prefill).toolchain.find("llvm 22"),
            std::string::npos);
}

TEST(TuningKey, HoldsNothingElse) {
  Machine host = Machine::host();
  AttentionSpec a = spec(16, 8, 128), b = a;
  b.name = "other_layers";
  b.scale = 0.5;
  b.rotaryDim = 64;
  EXPECT_EQ(tuningKey(host, a, Variant::Decode),
            tuningKey(host, b, Variant::Decode));
}

TEST(TuningRecord, SchedulesReadBack) {
  for (const char *name : {"x86-64-v3", "neon", "sm_80"})
    for (Variant variant : {Variant::Prefill, Variant::Decode}) {
      Machine on = machine(name);
      AttentionSpec shape = spec(
          16, 8, 128, on.kind == TargetKind::Cpu ? DType::F32 : DType::BF16);
      TuningRecord good = record(on, shape, variant);
      EXPECT_EQ(refusal(good, on, shape), "");
      EXPECT_EQ(llvm::cantFail(usableSchedule(good, on, shape)).str(),
                good.schedule);
    }
}

TEST(TuningRecord, RefusedWhenItDoesNotFit) {
  Machine on = machine("x86-64-v3");
  AttentionSpec shape = spec(16, 8, 128);
  TuningRecord good = record(on, shape, Variant::Prefill);
  auto expect = [&](auto change, llvm::StringRef message) {
    TuningRecord bad = good;
    change(bad);
    std::string why = refusal(bad, on, shape);
    EXPECT_TRUE(llvm::StringRef(why).contains(message)) << why;
  };
  expect([](TuningRecord &r) { r.verified = 0; }, "it was not verified");
  expect([](TuningRecord &r) { r.worstRatio = 1.5; }, "1.500 of its bound");
  expect([](TuningRecord &r) { r.worstRatio = NAN; }, "it was not verified");
  expect([](TuningRecord &r) { r.schedule = ""; }, "must be key=value");
  expect([](TuningRecord &r) { r.schedule = "q_tile=64"; },
         "must hold every field once, got 'q_tile=64'");
  expect([](TuningRecord &r) { r.schedule += ",q_tile=64"; },
         "must hold every field once");
  expect([](TuningRecord &r) { r.schedule += ",colour=3"; },
         "unknown schedule key 'colour'");
  auto with = [&](llvm::StringRef from, llvm::StringRef to) {
    return [=](TuningRecord &r) {
      size_t at = r.schedule.find(from.str());
      ASSERT_NE(at, std::string::npos);
      r.schedule.replace(at, from.size(), to.str());
    };
  };
  expect(with("q_tile=288", "q_tile=1"), "(M5)");
  expect(with("kv_tile=96", "kv_tile=97"), "(M6)");
  expect(with("block_vectors=3", "block_vectors=9"), "(M7)");
  expect(with("heads=1", "heads=0"), "(M1)");
  // A schedule of another specification.
  EXPECT_NE(refusal(good, on, spec(1024, 2, 128)), "");
}

// Lengths of one range share a record, and prompts have no ranges.
TEST(TuningKey, BucketsOfLengths) {
  Machine host = Machine::host();
  auto bucket = [&](Variant variant, int64_t kvLen) {
    return tuningKey(host, spec(4, 4, 64), variant, kvLen).bucket;
  };
  EXPECT_EQ(bucket(Variant::Decode, usualKvLen), "rows=1 kv<=4096");
  for (auto [kvLen, most] : {std::pair{1, 256},
                             {256, 256},
                             {257, 1024},
                             {4096, 4096},
                             {4097, 16384}}) {
    std::string text = bucket(Variant::Decode, kvLen);
    EXPECT_EQ(kvLenOf(text), most) << kvLen;
    EXPECT_EQ(bucket(Variant::Decode, kvLenOf(text)), text);
  }
  EXPECT_EQ(bucket(Variant::Prefill, 1), "rows>1");
  EXPECT_EQ(bucket(Variant::Prefill, 9999), "rows>1");
  EXPECT_EQ(kvLenOf("rows>1"), 0);
}
