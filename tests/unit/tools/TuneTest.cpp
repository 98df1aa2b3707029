//===- TuneTest.cpp - Tuning and what comes of its records ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pagoda executable with databases that a test makes: tuning and
// resuming, records that gen, explain and run use, and records that are of no
// use. No time is asserted.
//
//===----------------------------------------------------------------------===//

#include "CliTesting.h"
#include "compiler/tiling/SramFit.h"
#include "compiler/tune/Database.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace llvm;
using namespace pagoda;
using namespace pagoda::test;

namespace {

constexpr const char *shape = "--heads 2 --kv-heads 1 --head-dim 16 ";

AttentionSpec specification() {
  AttentionSpec spec;
  spec.qHeads = 2;
  spec.kvHeads = 1;
  spec.headDim = spec.vHeadDim = 16;
  return spec;
}

class TuneTest : public ::testing::Test {
protected:
  TuneTest() {
    (void)sys::fs::createUniqueDirectory("pagoda-tune", folder);
    path = (folder + "/tune.db").str();
  }
  ~TuneTest() override { sys::fs::remove_directories(folder); }

  std::string db() const { return "--db " + path + " "; }
  std::string output() const { return "-o " + (folder + "/out ").str(); }
  Database open(Database::Mode mode = Database::Mode::Read) {
    return cantFail(Database::open(path, mode));
  }

  /// A verified record of the default with other values of some fields.
  TuningRecord record(Variant variant,
                      std::vector<std::string> overrides = {}) {
    Machine host = Machine::host();
    AttentionSpec spec = specification();
    TuningRecord result;
    result.key = tuningKey(host, spec, variant);
    Schedule schedule = cantFail(selectTile(host, spec, variant)).schedule;
    result.baseline = schedule.str();
    cantFail(applyOverrides(schedule, host, variant, overrides));
    result.schedule = schedule.str();
    result.speedup = {1.25, 1.2, 1.3};
    result.verified = 1000;
    result.workload = "1 x 1 of 64 tokens";
    return result;
  }
  void put(const TuningRecord &record) {
    cantFail(open(Database::Mode::Write).put(record));
  }

  SmallString<128> folder;
  std::string path;
};

bool says(const Outcome &outcome, StringRef text) {
  return StringRef(outcome.out).contains(text);
}

json::Object parsed(const Outcome &outcome) {
  Expected<json::Value> value = json::parse(outcome.out);
  if (!value || !value->getAsObject()) {
    ADD_FAILURE() << "no JSON object: " << outcome.out;
    consumeError(value.takeError());
    return {};
  }
  return std::move(*value->getAsObject());
}

} // namespace

TEST_F(TuneTest, RecordsAreVerifiedAndFoundAgain) {
  std::string command = "tune --budget 4s --json " + std::string(shape) + db();
  json::Object first = parsed(pagodaTool(command, false));
  json::Array *kernels = first.getArray("kernels");
  ASSERT_TRUE(kernels && kernels->size() == 2);
  int tuned = 0;
  for (const json::Value &value : *kernels) {
    const json::Object &kernel = *value.getAsObject();
    EXPECT_EQ(kernel.getBoolean("from_database"), false);
    // On a busy machine the first kernel may take all of the time.
    if (kernel.getBoolean("tuned") == false)
      continue;
    ++tuned;
    EXPECT_GT(kernel.getInteger("verified_elements"), 0);
    EXPECT_LE(kernel.getNumber("worst_error"), 1);
    const json::Object &speedup = *kernel.getObject("speedup");
    if (kernel.getString("schedule") == kernel.getString("default"))
      EXPECT_EQ(speedup.getNumber("median"), 1);
    else
      EXPECT_GT(speedup.getNumber("low"), 1);
  }
  EXPECT_GE(tuned, 1);
  // What gen makes is what the records say.
  Outcome made = pagodaTool("gen --json " + (shape + db()) + output(), false);
  ASSERT_EQ(made.code, 0);
  json::Object manifest = parsed(made);
  for (const TuningRecord &record : cantFail(open().records())) {
    Schedule schedule = cantFail(parseSchedule(record.schedule));
    bool found = false;
    for (const json::Value &value : *manifest.getArray("kernels")) {
      const json::Object &kernel = *value.getAsObject();
      found |= kernel.getString("role") == StringRef(record.key.variant) &&
               kernel.getInteger("kv_tile") == schedule.kvTile &&
               kernel.getInteger("q_tile") == schedule.qTile;
    }
    EXPECT_TRUE(found) << record.schedule;
  }
}

TEST_F(TuneTest, ASecondCallUsesTheDatabase) {
  put(record(Variant::Prefill, {"kv_tile=64"}));
  put(record(Variant::Decode));
  Outcome again = pagodaTool("tune " + (shape + db()));
  EXPECT_EQ(again.code, 0) << again.out;
  EXPECT_TRUE(says(again, "all in the database for host: " + path))
      << again.out;
  EXPECT_TRUE(cantFail(open().trials(record(Variant::Decode).key)).empty());
}

TEST_F(TuneTest, MatchingRecordsAreUsedAndNamed) {
  put(record(Variant::Prefill, {"kv_tile=32", "q_tile=24"}));
  put(record(Variant::Decode, {"kv_tile=64"}));
  std::string note =
      "note: 2 of 2 schedules are from the tuning database " + path;
  Outcome made = pagodaTool("gen -v " + (shape + db()) + output());
  EXPECT_EQ(made.code, 0) << made.out;
  EXPECT_TRUE(says(made, note)) << made.out;
  EXPECT_TRUE(says(made, "q_tile = 24, kv_tile = 32")) << made.out;
  EXPECT_TRUE(says(made, "note: attention prefill: tuned, 1.25 times as fast "
                         "as the default (1.20 to 1.30)"))
      << made.out;
  Outcome ran = pagodaTool("run --verify --prompt-len 70 --decode-steps 3 " +
                           (shape + db()));
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(says(ran, note)) << ran.out;
  EXPECT_TRUE(says(ran, "q_tile 24, kv_tile 32")) << ran.out;
  // Both look into the same database.
  EXPECT_EQ(pagodaTool("gen --json " + (shape + db()) + output(), false).out,
            pagodaTool("explain --json " + (shape + db()), false).out);
  // The environment names it, too.
  EXPECT_TRUE(
      says(pagodaTool("explain " + std::string(shape), true, path), note));
  EXPECT_FALSE(says(
      pagodaTool("explain --db none " + std::string(shape), true, path), note));
}

// A tuner that had no time to find anything has decided nothing, either.
TEST_F(TuneTest, RecordsThatWereCutShort) {
  for (int64_t tried : {0, 3}) {
    TuningRecord cut = record(Variant::Prefill);
    cut.complete = false;
    cut.tried = tried;
    put(cut);
    Outcome made = pagodaTool("gen -v " + (shape + db()) + output());
    EXPECT_EQ(made.code, 0) << made.out;
    EXPECT_TRUE(says(made, "note: attention prefill: the default so far, "
                           "tuning was cut short after " +
                               std::to_string(tried) + " schedules"))
        << made.out;
    EXPECT_FALSE(says(made, "from the tuning database")) << made.out;
  }
  put(record(Variant::Prefill));
  Outcome made = pagodaTool("gen -v " + (shape + db()) + output());
  EXPECT_TRUE(says(made, "the default stands, 0 schedules tried")) << made.out;
  EXPECT_TRUE(says(made, "1 of 2 schedules are from")) << made.out;
}

TEST_F(TuneTest, OtherSpecificationsDoNotMatch) {
  put(record(Variant::Prefill, {"kv_tile=32"}));
  put(record(Variant::Decode, {"kv_tile=64"}));
  for (const char *other :
       {"--block-size 32", "--layout nhd", "--window 64", "--no-causal",
        "--target x86-64-v3", "--schedule kv_tile=16"}) {
    Outcome made = pagodaTool("explain " + (shape + db()) + other);
    EXPECT_EQ(made.code, 0) << made.out;
    EXPECT_FALSE(says(made, "tuning database")) << other;
  }
}

// A record of other lengths is for those who ask for them.
TEST_F(TuneTest, RecordsAreForARangeOfLengths) {
  TuningRecord one = record(Variant::Decode, {"kv_tile=64"});
  one.key = tuningKey(Machine::host(), specification(), Variant::Decode, 16384);
  put(one);
  std::string command = "explain " + (shape + db());
  EXPECT_FALSE(says(pagodaTool(command), "tuning database"));
  for (const char *length : {"--context 16384", "--context 5000"})
    EXPECT_TRUE(says(pagodaTool(command + length),
                     "1 of 2 schedules are from the tuning database"))
        << length;
  for (const char *length : {"0", "-5", "99999999"})
    expectError(command + "--context=" + length,
                "--context " + std::string(length) +
                    ": expected a number from 1 to 1048576");
}

// CASES.md H3: what does not fit is named, and the default stands.
TEST_F(TuneTest, RecordsThatDoNotFitAreIgnored) {
  std::string plain =
      pagodaTool("explain --json --db none " + std::string(shape), false).out;
  auto expect = [&](auto change, StringRef why) {
    TuningRecord bad = record(Variant::Decode);
    change(bad);
    put(bad);
    std::string command = "explain --json " + (shape + db());
    Outcome made = pagodaTool(command);
    EXPECT_EQ(made.code, 0) << made.out;
    EXPECT_TRUE(
        says(made, "warning: database " + path +
                       ": record of attention decode is ignored: " + why.str()))
        << made.out;
    EXPECT_EQ(pagodaTool(command, false).out, plain);
  };
  expect([](TuningRecord &r) { r.verified = 0; }, "it was not verified");
  expect([](TuningRecord &r) { r.worstRatio = 3; }, "it was not verified");
  expect([](TuningRecord &r) { r.schedule = "garbage"; },
         "schedule override must be key=value, got 'garbage'");
  expect(
      [](TuningRecord &r) {
        Schedule schedule = cantFail(parseSchedule(r.schedule));
        schedule.qTile = 1;
        r.schedule = schedule.str();
      },
      "schedule q_tile must be at least the 2 query heads of a kv head, got 1");
}

TEST_F(TuneTest, AnUnusableDatabase) {
  expectError("gen " + (shape + db()) + output(),
              "database " + path + ": no such file");
  std::error_code code;
  raw_fd_ostream(path, code) << std::string(5000, 'x');
  expectError("gen " + (shape + db()) + output(), "not a database");
  expectError("tune " + (shape + db()), "not a database");
}

TEST_F(TuneTest, MistakesAreNamed) {
  for (const char *budget : {"soon", "0", "-3s", "1e9", "nan"})
    expectError("tune --budget=" + std::string(budget) + " " + (shape + db()),
                "--budget " + std::string(budget) + ": expected a time");
  expectError("tune --candidates 3 " + (shape + db()),
              "--candidates: expected --export beside it");
  Outcome brief = pagodaTool("tune --budget 0.5s " + (shape + db()));
  EXPECT_TRUE(says(brief, "not tuned: less than 1 s were left")) << brief.out;
  expectError("tune --db none " + std::string(shape),
              "--db none: expected a file to keep records in");
  expectError("tune --threads 5000 " + (shape + db()),
              "--threads 5000: expected a number from 0 to 1024");
  expectError("tune --target sm_80 --dtype bf16 " + (shape + db()),
              "--target sm_80: this machine cannot run its code");
}

TEST_F(TuneTest, Bench) {
  std::string file = (folder + "/rows.json").str();
  std::string command =
      "bench --budget 1s " + (shape + db()) + "--json=" + file;
  put(record(Variant::Decode, {"kv_tile=33"}));
  Outcome first = pagodaTool(command);
  EXPECT_EQ(first.code, 0) << first.out;
  for (const char *text : {"attention prefill", "attention decode", "tuned",
                           "attention append", "attention copy"})
    EXPECT_TRUE(says(first, text)) << text << " in\n" << first.out;
  // Slower or not is for the machine to say.
  Outcome again = pagodaTool(command + " --compare=" + file);
  EXPECT_TRUE(says(again, "against " + file + ": 8 of 8 rows")) << again.out;
  EXPECT_TRUE(again.code == 0 || says(again, "rows are slower than in"));
  // Rows that are asked for, and nothing else.
  Outcome append = pagodaTool("bench --no-peers --only append --budget 1s " +
                              (shape + db()));
  EXPECT_EQ(append.code, 0) << append.out;
  EXPECT_TRUE(says(append, "attention append"));
  for (const char *text : {"attention copy", "attention decode", "peers"})
    EXPECT_FALSE(says(append, text)) << text << " in\n" << append.out;
  Outcome orders = pagodaTool("bench --orders --budget 1s " + (shape + db()));
  EXPECT_EQ(orders.code, 0) << orders.out;
  for (const char *text :
       {"naive", "gather", "kv_outer", "q_outer", "split_kv", "bytes moved"})
    EXPECT_TRUE(says(orders, text)) << text << " in\n" << orders.out;
  expectError("bench --compare /no/such/file " + (shape + db()),
              "/no/such/file: ");
}

// Stopped by its user half way: what was measured is there, and the same
// command goes on from it.
TEST_F(TuneTest, InterruptedKeepsWhatItFound) {
  pid_t child = fork();
  if (child == 0) {
    int null = ::open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl(PAGODA_TOOL, "pagoda", "tune", "--budget=300s", "--heads=2",
          "--kv-heads=1", "--head-dim=16", ("--db=" + path).c_str(), nullptr);
    _exit(127);
  }
  TuningKey key = record(Variant::Prefill).key;
  auto samples = [&] {
    size_t count = 0;
    if (!sys::fs::exists(path))
      return count;
    Expected<Database> database = Database::open(path, Database::Mode::Read);
    if (!database) {
      consumeError(database.takeError()); // it is being made
      return count;
    }
    for (const Trial &trial : cantFail(database->trials(key)))
      count += trial.ratios.size();
    return count;
  };
  int status = 0;
  while (samples() < 4 && waitpid(child, &status, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  size_t before = samples();
  ASSERT_GE(before, 4u) << "ended by itself: " << status;
  kill(child, SIGINT);
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_GE(samples(), before);
  Expected<std::optional<TuningRecord>> record = open().find(key);
  ASSERT_TRUE(bool(record) && record->has_value());
  EXPECT_FALSE((*record)->complete);
}
