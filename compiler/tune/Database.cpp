//===- Database.cpp - Tuning records in a file ----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables and their statements.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Database.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <sqlite3.h>
#include <utility>

using namespace llvm;
using namespace pagoda;

/// Raised with every change of the tables, so that no version misreads
/// another's.
static constexpr int64_t schemaVersion = 2;

/// How long a statement waits for another process, milliseconds.
static constexpr int patience = 30000;

static constexpr const char *tables = R"(
CREATE TABLE keys (
  id INTEGER PRIMARY KEY,
  machine TEXT NOT NULL, toolchain TEXT NOT NULL, spec TEXT NOT NULL,
  variant TEXT NOT NULL, bucket TEXT NOT NULL,
  UNIQUE (machine, toolchain, spec, variant, bucket));
CREATE TABLE records (
  key INTEGER PRIMARY KEY REFERENCES keys,
  schedule TEXT NOT NULL, baseline TEXT NOT NULL,
  speedup REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  samples INTEGER NOT NULL, seconds REAL NOT NULL, workload TEXT NOT NULL,
  verified INTEGER NOT NULL, worst_ratio REAL NOT NULL,
  tried INTEGER NOT NULL, complete INTEGER NOT NULL,
  tuned_at INTEGER NOT NULL);
CREATE TABLE samples (
  key INTEGER NOT NULL REFERENCES keys,
  schedule TEXT NOT NULL, ratio REAL NOT NULL);
CREATE INDEX samples_by_key ON samples (key);
PRAGMA user_version = 2;
)";

/// A prepared statement. Values are bound and read in order.
class Database::Statement {
public:
  Statement(const Database &database, const char *sql) : database(database) {
    ok = sqlite3_prepare_v2(database.handle, sql, -1, &statement, nullptr) ==
         SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement); }
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

  Statement &bind(StringRef text) {
    ok = ok &&
         sqlite3_bind_text(statement, ++bound, text.data(), int(text.size()),
                           SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  Statement &bind(int64_t value) {
    ok = ok && sqlite3_bind_int64(statement, ++bound, value) == SQLITE_OK;
    return *this;
  }
  Statement &bind(double value) {
    ok = ok && sqlite3_bind_double(statement, ++bound, value) == SQLITE_OK;
    return *this;
  }
  Statement &bind(const TuningKey &key) {
    return bind(key.machine)
        .bind(key.toolchain)
        .bind(key.spec)
        .bind(key.variant)
        .bind(key.bucket);
  }

  /// True: a row is there. False: no more rows.
  Expected<bool> step() {
    int code = ok ? sqlite3_step(statement) : SQLITE_ERROR;
    column = 0;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
      return code == SQLITE_ROW;
    return database.fail("cannot be used");
  }
  Error run() { return step().takeError(); }

  std::string text() {
    auto *value = sqlite3_column_text(statement, column++);
    return value ? reinterpret_cast<const char *>(value) : "";
  }
  int64_t integer() { return sqlite3_column_int64(statement, column++); }
  double number() { return sqlite3_column_double(statement, column++); }

private:
  const Database &database;
  sqlite3_stmt *statement = nullptr;
  bool ok = false;
  int bound = 0, column = 0;
};

Error Database::fail(StringRef doing) const {
  return createStringError("database " + file + ": " + doing + ": " +
                           (handle ? sqlite3_errmsg(handle) : "no memory"));
}

Error Database::execute(const char *sql) {
  if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail("cannot be used");
  return Error::success();
}

Error Database::checkVersion(bool &empty) const {
  Statement version(*this, "PRAGMA user_version");
  if (Error error = version.run())
    return error;
  int64_t found = version.integer();
  Statement count(*this, "SELECT count(*) FROM sqlite_master");
  if (Error error = count.run())
    return error;
  empty = count.integer() == 0;
  if (empty && found == 0)
    return Error::success();
  if (found != schemaVersion)
    return createStringError("database " + file + ": expected schema version " +
                             Twine(schemaVersion) + ", got " + Twine(found));
  return Error::success();
}

/// One transaction, so that of two processes that find no tables one makes
/// them.
Error Database::createTables() {
  if (Error error = execute("BEGIN IMMEDIATE"))
    return error;
  bool empty = false;
  Error error = checkVersion(empty);
  if (!error && empty)
    error = execute(tables);
  if (error) {
    consumeError(execute("ROLLBACK"));
    return error;
  }
  return execute("COMMIT");
}

Expected<Database> Database::open(StringRef path, Mode mode) {
  Database database(path.str());
  bool write = mode == Mode::Write;
  if (write) {
    StringRef folder = sys::path::parent_path(path);
    if (!folder.empty())
      if (std::error_code code = sys::fs::create_directories(folder))
        return createStringError("database " + path + ": folder cannot be " +
                                 "made: " + code.message());
  } else if (!sys::fs::exists(path)) {
    return createStringError("database " + path + ": no such file");
  }
  int flags =
      write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (sqlite3_open_v2(database.file.c_str(), &database.handle, flags,
                      nullptr) != SQLITE_OK)
    return database.fail("cannot be opened");
  sqlite3_busy_timeout(database.handle, patience);
  if (!write) {
    bool empty = false;
    if (Error error = database.checkVersion(empty))
      return std::move(error);
    if (empty)
      return createStringError("database " + path + ": has no tables");
    return database;
  }
  // Readers and the writer do not wait for each other. The mode stays with the
  // file; where it cannot be had, all else works as well.
  sqlite3_exec(database.handle,
               "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
               nullptr, nullptr, nullptr);
  if (Error error = database.createTables())
    return std::move(error);
  return database;
}

Database::Database(Database &&other) noexcept
    : file(std::move(other.file)),
      handle(std::exchange(other.handle, nullptr)) {}

Database &Database::operator=(Database &&other) noexcept {
  std::swap(file, other.file);
  std::swap(handle, other.handle);
  return *this;
}

Database::~Database() { sqlite3_close(handle); }

static constexpr const char *recordColumns =
    "SELECT machine, toolchain, spec, variant, bucket, schedule, baseline, "
    "speedup, low, high, samples, seconds, workload, verified, worst_ratio, "
    "tried, "
    "complete, tuned_at FROM records JOIN keys ON keys.id = records.key ";

template <typename Row> static TuningRecord readRecord(Row &row) {
  TuningRecord record;
  record.key.machine = row.text();
  record.key.toolchain = row.text();
  record.key.spec = row.text();
  record.key.variant = row.text();
  record.key.bucket = row.text();
  record.schedule = row.text();
  record.baseline = row.text();
  record.speedup.median = row.number();
  record.speedup.low = row.number();
  record.speedup.high = row.number();
  record.samples = row.integer();
  record.seconds = row.number();
  record.workload = row.text();
  record.verified = row.integer();
  record.worstRatio = row.number();
  record.tried = row.integer();
  record.complete = row.integer();
  record.tunedAt = row.integer();
  return record;
}

Expected<std::optional<TuningRecord>>
Database::find(const TuningKey &key) const {
  std::string sql = std::string(recordColumns) +
                    "WHERE machine = ? AND toolchain = ? AND spec = ? AND "
                    "variant = ? AND bucket = ?";
  Statement query(*this, sql.c_str());
  Expected<bool> row = query.bind(key).step();
  if (!row)
    return row.takeError();
  if (!*row)
    return std::nullopt;
  return readRecord(query);
}

Expected<std::vector<TuningRecord>> Database::records() const {
  std::string sql =
      std::string(recordColumns) + "ORDER BY tuned_at, records.key";
  Statement query(*this, sql.c_str());
  std::vector<TuningRecord> result;
  while (true) {
    Expected<bool> row = query.step();
    if (!row)
      return row.takeError();
    if (!*row)
      return result;
    result.push_back(readRecord(query));
  }
}

static constexpr const char *addKey =
    "INSERT OR IGNORE INTO keys (machine, toolchain, spec, variant, bucket) "
    "VALUES (?, ?, ?, ?, ?)";
#define PAGODA_KEY_ID                                                          \
  "(SELECT id FROM keys WHERE machine = ? AND toolchain = ? AND spec = ? "     \
  "AND variant = ? AND bucket = ?)"

Error Database::put(const TuningRecord &r) {
  if (Error error = Statement(*this, addKey).bind(r.key).run())
    return error;
  Statement insert(
      *this, "INSERT INTO records VALUES (" PAGODA_KEY_ID
             ", ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
             "ON CONFLICT (key) DO UPDATE SET schedule = excluded.schedule, "
             "baseline = excluded.baseline, speedup = excluded.speedup, "
             "low = excluded.low, high = excluded.high, "
             "samples = excluded.samples, seconds = excluded.seconds, "
             "workload = excluded.workload, verified = excluded.verified, "
             "worst_ratio = excluded.worst_ratio, tried = excluded.tried, "
             "complete = excluded.complete, tuned_at = excluded.tuned_at "
             "WHERE excluded.complete >= records.complete");
  return insert.bind(r.key)
      .bind(r.schedule)
      .bind(r.baseline)
      .bind(r.speedup.median)
      .bind(r.speedup.low)
      .bind(r.speedup.high)
      .bind(r.samples)
      .bind(r.seconds)
      .bind(r.workload)
      .bind(r.verified)
      .bind(r.worstRatio)
      .bind(r.tried)
      .bind(int64_t(r.complete))
      .bind(r.tunedAt)
      .run();
}

Expected<std::vector<Trial>> Database::trials(const TuningKey &key) const {
  Statement query(
      *this, "SELECT schedule, ratio FROM samples WHERE key = " PAGODA_KEY_ID
             " ORDER BY schedule, rowid");
  query.bind(key);
  std::vector<Trial> result;
  std::string last;
  while (true) {
    Expected<bool> row = query.step();
    if (!row)
      return row.takeError();
    if (!*row)
      return result;
    std::string text = query.text();
    if (result.empty() || text != last) {
      Expected<Schedule> schedule = parseSchedule(text);
      if (!schedule)
        return createStringError("database " + file + ": " +
                                 toString(schedule.takeError()));
      result.push_back({*schedule, {}});
      last = text;
    }
    result.back().ratios.push_back(query.number());
  }
}

Error Database::addSamples(const TuningKey &key, const Schedule &schedule,
                           ArrayRef<double> ratios) {
  if (Error error = Statement(*this, addKey).bind(key).run())
    return error;
  if (Error error = execute("BEGIN IMMEDIATE"))
    return error;
  for (double ratio : ratios)
    if (Error error = Statement(*this, "INSERT INTO samples VALUES "
                                       "(" PAGODA_KEY_ID ", ?, ?)")
                          .bind(key)
                          .bind(schedule.str())
                          .bind(ratio)
                          .run()) {
      consumeError(execute("ROLLBACK"));
      return error;
    }
  return execute("COMMIT");
}

Error Database::forget(const TuningKey &key) {
  for (const char *sql : {"DELETE FROM records WHERE key = " PAGODA_KEY_ID,
                          "DELETE FROM samples WHERE key = " PAGODA_KEY_ID})
    if (Error error = Statement(*this, sql).bind(key).run())
      return error;
  return Error::success();
}

std::string pagoda::defaultDatabasePath() {
  SmallString<128> path;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    path = cache;
  else if (const char *home = std::getenv("HOME"); home && *home)
    sys::path::append(path, home, ".cache");
  if (!path.empty())
    sys::path::append(path, "pagoda", "tune.db");
  return path.str().str();
}
