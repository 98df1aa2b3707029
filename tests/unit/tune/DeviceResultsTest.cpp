//===- DeviceResultsTest.cpp - Results that are believed, and not ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of results as a runner writes them, made by hand: what becomes a
// record, and each way in which a file does not match what was exported.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/DeviceResults.h"
#include "compiler/tiling/SramFit.h"
#include "tests/unit/tiling/Specs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace pagoda;
using namespace pagoda::test;
namespace json = llvm::json;

namespace {

constexpr int samples = 31;

class DeviceResultsTest : public ::testing::Test {
protected:
  DeviceResultsTest() {
    shape.qType = shape.kvType = DType::F16;
    exported.key = tuningKey(machine, shape, Variant::Decode);
    exported.workload = "4 x 1 of 64 tokens";
    for (int64_t keys : {int64_t(0), int64_t(32), int64_t(48)}) {
      Schedule schedule = standard;
      schedule.kvTile = keys ? keys : standard.kvTile;
      exported.schedules.push_back(schedule.str());
    }
  }

  /// A candidate that is `speed` times as fast as the default.
  static json::Object measured(llvm::StringRef schedule, double speed,
                               int count = samples) {
    json::Array own, other;
    for (int i = 0; i < count; ++i) { // noise of 1%
      own.push_back(1e-4 / speed * (1 + 0.01 * (i % 3 - 1)));
      other.push_back(1e-4);
    }
    return json::Object{{"schedule", schedule},
                        {"compared", 512},
                        {"worst_error", 0.25},
                        {"seconds", std::move(own)},
                        {"default_seconds", std::move(other)}};
  }
  json::Object results(std::initializer_list<double> speeds) {
    json::Array candidates;
    for (auto [speed, schedule] : llvm::zip(speeds, exported.schedules))
      candidates.push_back(measured(schedule, speed));
    return json::Object{
        {"device", "hand-made"},
        {"capability", 90},
        {"kernels",
         json::Array{json::Object{{"export", toJson(exported)},
                                  {"candidates", std::move(candidates)}}}}};
  }
  static json::Object &kernel(json::Object &file) {
    return *(*file.getArray("kernels"))[0].getAsObject();
  }
  static json::Object &candidate(json::Object &file, size_t index) {
    return *(*kernel(file).getArray("candidates"))[index].getAsObject();
  }
  static llvm::Expected<DeviceRecords>
  read(const json::Object &file, llvm::ArrayRef<TuningKey> wanted = {}) {
    return readDeviceResults(
        llvm::formatv("{0}", json::Value(json::Object(file))).str(), wanted);
  }
  DeviceRecords accepted(const json::Object &file) {
    llvm::Expected<DeviceRecords> records = read(file);
    if (records)
      return std::move(*records);
    ADD_FAILURE() << llvm::toString(records.takeError());
    return {{TuningRecord()}, {}};
  }
  void expectRefused(const json::Object &file, llvm::StringRef why,
                     llvm::ArrayRef<TuningKey> wanted = {}) {
    llvm::Expected<DeviceRecords> records = read(file, wanted);
    ASSERT_FALSE(bool(records)) << "expected: " << why.str();
    std::string text = llvm::toString(records.takeError());
    EXPECT_TRUE(llvm::StringRef(text).contains(why)) << text;
  }

  Machine machine = llvm::cantFail(Machine::named("sm_90a"));
  AttentionSpec shape = [] {
    AttentionSpec made = spec(16, 8, 128);
    made.qType = made.kvType = DType::F16;
    return made;
  }();
  Schedule standard =
      llvm::cantFail(selectTile(machine, shape, Variant::Decode)).schedule;
  DeviceExport exported;
};

} // namespace

TEST_F(DeviceResultsTest, TheFastestBecomesTheRecord) {
  DeviceRecords read = accepted(results({1, 1.2, 1.1}));
  const TuningRecord &record = read.records.front();
  EXPECT_EQ(record.key, exported.key);
  EXPECT_EQ(record.schedule, exported.schedules[1]);
  EXPECT_EQ(record.baseline, exported.schedules[0]);
  EXPECT_NEAR(record.speedup.median, 1.2, 0.02);
  EXPECT_GT(record.speedup.low, 1);
  EXPECT_EQ(record.samples, samples - 11); // 11 of 31 chose
  EXPECT_EQ(record.verified, 512);
  EXPECT_EQ(record.tried, 2);
  EXPECT_EQ(record.workload, "4 x 1 of 64 tokens on hand-made");
  EXPECT_TRUE(record.complete);
  EXPECT_TRUE(bool(usableSchedule(record, machine, shape)));
}

TEST_F(DeviceResultsTest, TheDefaultStandsWhereNothingIsProvenFaster) {
  for (auto speeds :
       {std::initializer_list<double>{1, 0.9, 0.99}, {1, 1.001, 0.9}}) {
    TuningRecord record = accepted(results(speeds)).records.front();
    EXPECT_EQ(record.schedule, exported.schedules[0]);
    EXPECT_EQ(record.speedup.median, 1);
  }
}

// Samples that chose the leader do not confirm it.
TEST_F(DeviceResultsTest, LuckInChoosingIsNoProof) {
  json::Object file = results({1, 1, 0.9});
  json::Array &own = *candidate(file, 1).getArray("seconds");
  for (size_t i = 0; i < own.size(); i += 3)
    own[i] = 0.5e-4;
  EXPECT_EQ(accepted(file).records.front().schedule, exported.schedules[0]);
}

TEST_F(DeviceResultsTest, FasterButWrongIsIgnored) {
  json::Object file = results({1, 1.2, 1.1});
  candidate(file, 1) =
      json::Object{{"schedule", exported.schedules[1]},
                   {"compared", 0},
                   {"fault", "element 5 is 3, expected 4 within 0.1"}};
  DeviceRecords read = accepted(file);
  EXPECT_EQ(read.records.front().schedule, exported.schedules[2]);
  ASSERT_EQ(read.ignored.size(), 1u);
  EXPECT_EQ(read.ignored[0], "decode: " + exported.schedules[1] +
                                 ": its output was wrong: element 5 is 3, "
                                 "expected 4 within 0.1");
}

TEST_F(DeviceResultsTest, UnverifiedIsIgnored) {
  for (auto [field, value, why] :
       {std::tuple{"compared", 0., "it was not verified: 0 elements"},
        {"worst_error", 1.5, "worst error 1.500 of its bound"}}) {
    json::Object file = results({1, 1.2, 1.1});
    if (llvm::StringRef(field) == "compared")
      candidate(file, 1)[field] = int64_t(value);
    else
      candidate(file, 1)[field] = value;
    DeviceRecords read = accepted(file);
    EXPECT_EQ(read.records.front().schedule, exported.schedules[2]);
    ASSERT_EQ(read.ignored.size(), 1u);
    EXPECT_TRUE(llvm::StringRef(read.ignored[0]).contains(why))
        << read.ignored[0];
  }
}

TEST_F(DeviceResultsTest, AWrongDefaultRefusesAll) {
  json::Object file = results({1, 1.2, 1.1});
  candidate(file, 0)["fault"] = "no such kernel";
  expectRefused(file, "kernels[0]: the default schedule was wrong: no such "
                      "kernel");
}

TEST_F(DeviceResultsTest, OtherSpecificationsAreRefused) {
  json::Object file = results({1, 1.2, 1.1});
  (*kernel(file).getObject("export"))["spec"] =
      llvm::StringRef(exported.key.spec).str() + " window=128";
  expectRefused(file, "digest of what was exported: expected ");
  (*kernel(file).getObject("export"))["spec"] = "q_heads=many";
  expectRefused(file, "spec: expected the fields of a key, got 'q_heads=many'");
  // The options ask for something else.
  AttentionSpec other = shape;
  other.blockSize = 32;
  TuningKey wanted = tuningKey(machine, other, Variant::Decode);
  expectRefused(results({1, 1.2, 1.1}), "expected what the options ask for",
                wanted);
  EXPECT_TRUE(bool(read(results({1, 1.2, 1.1}), exported.key)));
}

TEST_F(DeviceResultsTest, OtherVersionsAreRefused) {
  std::string mine = exported.key.toolchain;
  exported.key.toolchain = "pagoda 9.9.9, kernel abi 7, llvm 1";
  expectRefused(results({1, 1.2, 1.1}),
                "toolchain: expected " + mine +
                    ", got pagoda 9.9.9, kernel abi 7, llvm 1");
}

TEST_F(DeviceResultsTest, OtherMachinesAreRefused) {
  json::Object file = results({1, 1.2, 1.1});
  file["capability"] = 86;
  expectRefused(file, "capability: expected 90 for sm_90a, got 86");
  exported.key.machine = "sm_90a +ptx60";
  expectRefused(results({1, 1.2, 1.1}), "machine: expected sm_90a +ptx80, got "
                                        "sm_90a +ptx60");
  exported.key = tuningKey(Machine::host(), shape, Variant::Decode);
  expectRefused(results({1, 1.2, 1.1}), "unknown machine");
}

TEST_F(DeviceResultsTest, OtherCandidatesAreRefused) {
  json::Object file = results({1, 1.2, 1.1});
  candidate(file, 1)["schedule"] = exported.schedules[2];
  expectRefused(file, "digest of what was exported: expected ");
  file = results({1, 1.2, 1.1});
  kernel(file).getArray("candidates")->pop_back();
  expectRefused(file, "digest of what was exported: expected ");
  // Another default than this version has.
  std::swap(exported.schedules[0], exported.schedules[1]);
  expectRefused(results({1, 1.2, 1.1}), "default: expected ");
}

TEST_F(DeviceResultsTest, IllegalCandidatesAreIgnored) {
  Schedule schedule = standard;
  schedule.kvTile = 4096;
  exported.schedules[1] = schedule.str();
  DeviceRecords read = accepted(results({1, 1.2, 1.1}));
  EXPECT_EQ(read.records.front().schedule, exported.schedules[2]);
  ASSERT_EQ(read.ignored.size(), 1u);
  EXPECT_TRUE(llvm::StringRef(read.ignored[0]).contains("(M"))
      << read.ignored[0];
}

TEST_F(DeviceResultsTest, TooFewSamplesAreRefused) {
  json::Object file = results({1, 1.2, 1.1});
  candidate(file, 1) = measured(exported.schedules[1], 1.2, 6);
  expectRefused(file, exported.schedules[1] + ": expected 11 samples or more, "
                                              "got 6");
}

TEST_F(DeviceResultsTest, WhatIsNoFileOfResults) {
  for (const char *text : {"{}", "[]",
                           "{\"device\": \"x\", \"capability\": 90, "
                           "\"kernels\": []}"}) {
    auto read = readDeviceResults(text);
    ASSERT_FALSE(bool(read)) << text;
    EXPECT_EQ(llvm::toString(read.takeError()),
              "expected the device, its capability and kernels: no results of "
              "an export");
  }
  auto cut = readDeviceResults("{\"device\": ");
  EXPECT_FALSE(bool(cut));
  llvm::consumeError(cut.takeError());
  json::Object file = results({1, 1.2, 1.1});
  candidate(file, 2)["seconds"] = json::Array{1, 0};
  expectRefused(file, "expected as many seconds as default_seconds, all "
                      "greater than 0");
  file = results({1, 1.2, 1.1});
  kernel(file).erase("export");
  expectRefused(file, "kernels[0]: expected export and candidates");
}

// What a key says of a specification is enough to make the key again.
TEST(KeySpec, ComesBack) {
  AttentionSpec shape = spec(14, 2, 80);
  shape.vHeadDim = 96;
  shape.layout = KvLayout::NHD;
  shape.qType = DType::BF16;
  shape.window = 77;
  shape.chunk = 64;
  shape.softcap = 30;
  shape.sinks = shape.prefixLm = true;
  shape.causal = false;
  shape.alibiSlopes.assign(14, 0.5f);
  for (const AttentionSpec &one : {spec(4, 4, 64), shape}) {
    TuningKey key = tuningKey(Machine::host(), one, Variant::Decode);
    AttentionSpec back = llvm::cantFail(parseKeySpec(key.spec));
    EXPECT_EQ(tuningKey(Machine::host(), back, Variant::Decode), key);
  }
  for (const char *bad : {"", "q_heads=1", "nonsense"}) {
    auto parsed = parseKeySpec(bad);
    EXPECT_FALSE(bool(parsed)) << bad;
    llvm::consumeError(parsed.takeError());
  }
}
