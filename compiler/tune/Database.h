//===- Database.h - Tuning records in a file --------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An SQLite file of records and of the trials behind them. Several processes
// may use it at once: each write is one transaction, and one that finds the
// file locked waits. Killed at any time, a process leaves all that it wrote
// before. Errors name the file.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TUNE_DATABASE_H
#define PAGODA_COMPILER_TUNE_DATABASE_H

#include "compiler/tune/Record.h"
#include "compiler/tune/Tuner.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <vector>

struct sqlite3;

namespace pagoda {

class Database {
public:
  enum class Mode { Read, Write };

  /// Opens `path`. To write, it is made if it is not there, with its folders;
  /// to read, it must be there. Errors: no such file, not a database, or one of
  /// another schema version than this code's.
  static llvm::Expected<Database> open(llvm::StringRef path, Mode mode);
  Database(Database &&) noexcept;
  Database &operator=(Database &&) noexcept;
  ~Database();

  llvm::Expected<std::optional<TuningRecord>> find(const TuningKey &key) const;
  /// Every record, oldest first.
  llvm::Expected<std::vector<TuningRecord>> records() const;
  /// Writes a record in place of the one of its key. One that is not complete
  /// does not take the place of one that is.
  llvm::Error put(const TuningRecord &record);

  /// Samples of earlier calls, by schedule.
  llvm::Expected<std::vector<Trial>> trials(const TuningKey &key) const;
  /// Adds samples to the trial of a schedule.
  llvm::Error addSamples(const TuningKey &key, const Schedule &schedule,
                         llvm::ArrayRef<double> ratios);
  /// Forgets the record and the trials of a key.
  llvm::Error forget(const TuningKey &key);

  const std::string &path() const { return file; }

private:
  explicit Database(std::string path) : file(std::move(path)) {}
  class Statement;
  llvm::Error fail(llvm::StringRef doing) const;
  llvm::Error execute(const char *sql);
  llvm::Error createTables();
  llvm::Error checkVersion(bool &empty) const;

  std::string file;
  sqlite3 *handle = nullptr;
};

/// $XDG_CACHE_HOME/pagoda/tune.db, or ~/.cache/pagoda/tune.db; empty where
/// neither variable is set.
std::string defaultDatabasePath();

} // namespace pagoda

#endif // PAGODA_COMPILER_TUNE_DATABASE_H
