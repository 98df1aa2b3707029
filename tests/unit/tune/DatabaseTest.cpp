//===- DatabaseTest.cpp - Records in a file -------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Database.h"
#include "tests/unit/tiling/Specs.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <csignal>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pagoda;
using namespace pagoda::test;

namespace {

class DatabaseTest : public ::testing::Test {
protected:
  DatabaseTest() {
    (void)llvm::sys::fs::createUniqueDirectory("pagoda-db", folder);
    path = (folder + "/some/where/tune.db").str();
  }
  ~DatabaseTest() override { llvm::sys::fs::remove_directories(folder); }

  Database open(Database::Mode mode = Database::Mode::Write) {
    return llvm::cantFail(Database::open(path, mode));
  }
  std::string refusal(Database::Mode mode) {
    return text(Database::open(path, mode).takeError());
  }
  void sql(const char *statement) {
    sqlite3 *handle = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(handle, statement, nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(handle);
  }

  llvm::SmallString<128> folder;
  std::string path;
};

TuningKey key(int number) {
  return {"machine", "toolchain", "spec " + std::to_string(number), "decode",
          "rows=1 kv<=4096"};
}

TuningRecord record(int number) {
  TuningRecord r;
  r.key = key(number);
  r.schedule = Schedule().str();
  r.baseline = "baseline";
  r.speedup = {1.25, 1.125, 1.5};
  r.samples = 31;
  r.seconds = 0.015;
  r.workload = "2 x 1 of 2048 tokens";
  r.verified = 12345;
  r.worstRatio = 0.25;
  r.tried = 17;
  r.complete = true;
  r.tunedAt = 1700000000 + number;
  return r;
}

void expectSame(const TuningRecord &a, const TuningRecord &b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.schedule, b.schedule);
  EXPECT_EQ(a.baseline, b.baseline);
  EXPECT_EQ(a.speedup.median, b.speedup.median);
  EXPECT_EQ(a.speedup.low, b.speedup.low);
  EXPECT_EQ(a.speedup.high, b.speedup.high);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.workload, b.workload);
  EXPECT_EQ(a.verified, b.verified);
  EXPECT_EQ(a.worstRatio, b.worstRatio);
  EXPECT_EQ(a.tried, b.tried);
  EXPECT_EQ(a.complete, b.complete);
  EXPECT_EQ(a.tunedAt, b.tunedAt);
}

/// Runs `body` in another process.
template <typename Body> pid_t elsewhere(Body body) {
  pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

void expectGood(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

} // namespace

TEST_F(DatabaseTest, RecordsReadBack) {
  {
    Database database = open();
    EXPECT_FALSE(llvm::cantFail(database.find(key(1))).has_value());
    llvm::cantFail(database.put(record(1)));
    llvm::cantFail(database.put(record(2)));
  }
  Database database = open(Database::Mode::Read);
  expectSame(*llvm::cantFail(database.find(key(1))), record(1));
  EXPECT_FALSE(llvm::cantFail(database.find(key(3))).has_value());
  EXPECT_EQ(llvm::cantFail(database.records()).size(), 2u);
}

TEST_F(DatabaseTest, KeysMatchInEveryPart) {
  Database database = open();
  llvm::cantFail(database.put(record(1)));
  for (auto part : {&TuningKey::machine, &TuningKey::toolchain,
                    &TuningKey::spec, &TuningKey::variant}) {
    TuningKey other = key(1);
    other.*part += " ";
    EXPECT_FALSE(llvm::cantFail(database.find(other)).has_value());
  }
}

TEST_F(DatabaseTest, LaterRecordsTakeThePlace) {
  Database database = open();
  TuningRecord first = record(1), second = record(1);
  first.complete = false;
  llvm::cantFail(database.put(first));
  expectSame(*llvm::cantFail(database.find(key(1))), first);
  second.tried = 99;
  llvm::cantFail(database.put(second));
  expectSame(*llvm::cantFail(database.find(key(1))), second);
  llvm::cantFail(database.put(first)); // cut short: not in place of a whole one
  expectSame(*llvm::cantFail(database.find(key(1))), second);
  llvm::cantFail(database.forget(key(1)));
  EXPECT_FALSE(llvm::cantFail(database.find(key(1))).has_value());
}

TEST_F(DatabaseTest, SamplesAddUp) {
  Schedule a, b;
  b.kvTile = 32;
  {
    Database database = open();
    llvm::cantFail(database.addSamples(key(1), a, {1.5, 0.5}));
    llvm::cantFail(database.addSamples(key(1), b, {2}));
    llvm::cantFail(database.addSamples(key(2), b, {3}));
    llvm::cantFail(database.addSamples(key(1), a, {0.25}));
  }
  std::vector<Trial> trials =
      llvm::cantFail(open(Database::Mode::Read).trials(key(1)));
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].schedule, a);
  EXPECT_EQ(trials[0].ratios, (std::vector<double>{1.5, 0.5, 0.25}));
  EXPECT_EQ(trials[1].schedule, b);
  EXPECT_EQ(trials[1].ratios, (std::vector<double>{2}));
}

TEST_F(DatabaseTest, TwoTunersAtOnceLoseNothing) {
  constexpr int each = 40;
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child)
    children.push_back(elsewhere([&] {
      Database database = open(); // all find no file
      for (int i = 0; i < each; ++i) {
        llvm::cantFail(database.put(record(child * each + i)));
        llvm::cantFail(
            database.addSamples(key(1000), Schedule(), {double(child), 1}));
      }
    }));
  for (pid_t child : children)
    expectGood(child);
  Database database = open();
  EXPECT_EQ(llvm::cantFail(database.records()).size(), size_t(3 * each));
  EXPECT_EQ(llvm::cantFail(database.trials(key(1000))).front().ratios.size(),
            size_t(2 * 3 * each));
}

TEST_F(DatabaseTest, AKilledTunerLosesNothingRecorded) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = elsewhere([&] {
    Database database = open();
    for (int i = 0;; ++i) {
      llvm::cantFail(database.put(record(i)));
      if (write(ends[1], &i, sizeof(i)) != sizeof(i))
        _exit(1);
    }
  });
  int last = 0;
  while (last < 20)
    ASSERT_EQ(read(ends[0], &last, sizeof(last)), ssize_t(sizeof(last)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  Database database = open();
  for (int i = 0; i <= last; ++i)
    EXPECT_TRUE(llvm::cantFail(database.find(key(i))).has_value()) << i;
  close(ends[0]);
  close(ends[1]);
}

TEST_F(DatabaseTest, WhatIsNotADatabaseIsNamed) {
  EXPECT_EQ(refusal(Database::Mode::Read),
            "database " + path + ": no such file");
  {
    open();
  }
  sql("PRAGMA user_version = 7");
  for (Database::Mode mode : {Database::Mode::Read, Database::Mode::Write})
    EXPECT_EQ(refusal(mode),
              "database " + path + ": expected schema version 2, got 7");
  std::error_code code;
  llvm::raw_fd_ostream(path, code) << std::string(5000, 'x');
  for (Database::Mode mode : {Database::Mode::Read, Database::Mode::Write})
    EXPECT_TRUE(llvm::StringRef(refusal(mode)).contains("not a database"))
        << refusal(mode);
}

TEST(DefaultDatabase, IsInTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(defaultDatabasePath(), "/somewhere/pagoda/tune.db");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(defaultDatabasePath(), "/home/someone/.cache/pagoda/tune.db");
  unsetenv("HOME");
  EXPECT_EQ(defaultDatabasePath(), "");
}
