//===- Records.cpp - Tuned schedules for a specification ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The option --db, and one look-up for each machine, specification and variant.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Records.h"

#include "tools/pagoda/Commands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

#include <cstdlib>

using namespace llvm;

namespace pagoda {

namespace {

cl::opt<std::string> dbOpt(
    "db",
    cl::desc("Tuning database, or none (default: $PAGODA_DB, or tune.db in "
             "pagoda/ of the user's cache directory)"),
    cl::value_desc("file|none"), cl::sub(genCommand()),
    cl::sub(explainCommand()), cl::sub(runCommand()), cl::sub(tuneCommand()),
    cl::sub(benchCommand()), cl::cat(optionCategory()));

cl::opt<int64_t> kvLenOpt(
    "context",
    cl::desc("Tokens of the sequences that decode kernels are tuned for, or "
             "taken from the database for (2048)"),
    cl::value_desc("n"), cl::init(usualKvLen), cl::sub(genCommand()),
    cl::sub(explainCommand()), cl::sub(runCommand()), cl::sub(tuneCommand()),
    cl::sub(benchCommand()), cl::cat(optionCategory()));

raw_ostream &warning() { return WithColor::warning(errs(), "pagoda"); }

std::string date(int64_t seconds) {
  return formatv("{0:%Y-%m-%d}", sys::TimePoint<>(sys::toTimePoint(seconds)));
}

/// Cut short before anything was found.
bool decidesNothing(const TuningRecord &record) {
  return !record.complete && record.schedule == record.baseline;
}

std::string noteOf(const AttentionSpec &spec, const TuningRecord &record) {
  std::string text = formatv("{0} {1}: ", spec.name, record.key.variant);
  if (decidesNothing(record))
    text += formatv("the default so far, tuning was cut short after {0} "
                    "schedules",
                    record.tried);
  else if (record.schedule == record.baseline)
    text += formatv("the default stands, {0} schedules tried", record.tried);
  else
    text +=
        formatv("tuned, {0:F2} times as fast as the default ({1:F2} to "
                "{2:F2})",
                record.speedup.median, record.speedup.low, record.speedup.high);
  return text +
         formatv(", on {0}, {1}", record.workload, date(record.tunedAt)).str();
}

} // namespace

std::string databasePath() {
  std::string path = dbOpt;
  if (path.empty())
    if (const char *variable = std::getenv("PAGODA_DB"))
      path = variable;
  if (path.empty())
    path = defaultDatabasePath();
  return path == "none" ? "" : path;
}

Expected<Database> openToRecord() {
  std::string path = databasePath();
  if (path.empty()) {
    const char *from = dbOpt.getNumOccurrences()  ? "--db none"
                       : std::getenv("PAGODA_DB") ? "PAGODA_DB=none"
                                                  : "neither HOME nor --db";
    return createStringError(Twine(from) +
                             ": expected a file to keep records in");
  }
  return Database::open(path, Database::Mode::Write);
}

Expected<int64_t> wantedKvLen() {
  constexpr int64_t most = 1 << 20;
  if (kvLenOpt < 1 || kvLenOpt > most)
    return createStringError(formatv("--context {0}: expected a number from 1 "
                                     "to {1}",
                                     kvLenOpt.getValue(), most));
  return kvLenOpt;
}

/// The schedule of `variant`: of a record, or the formula's. Empty where there
/// is neither.
static std::optional<Schedule> scheduleFor(const Database &database,
                                           const Machine &machine,
                                           const AttentionSpec &spec,
                                           Variant variant, int &used,
                                           std::vector<std::string> &notes) {
  std::string what = (spec.name + " " + nameOf(variant)).str();
  Expected<std::optional<TuningRecord>> record =
      database.find(tuningKey(machine, spec, variant, kvLenOpt));
  if (!record) {
    warning() << what << ": " << toString(record.takeError()) << '\n';
  } else if (*record) {
    if (Expected<Schedule> schedule = usableSchedule(**record, machine, spec)) {
      notes.push_back(noteOf(spec, **record));
      used += !decidesNothing(**record);
      return *schedule;
    } else {
      warning() << "database " << database.path() << ": record of " << what
                << " is ignored: " << toString(schedule.takeError()) << '\n';
    }
  }
  Expected<TileCandidate> tile = selectTile(machine, spec, variant);
  if (tile)
    return tile->schedule;
  consumeError(tile.takeError()); // the compiler will say it
  return std::nullopt;
}

llvm::Error useRecords(Specification &specification) {
  CompileOptions &options = specification.compile;
  if (llvm::Error error = wantedKvLen().takeError())
    return error;
  std::string path = databasePath();
  bool named = dbOpt.getNumOccurrences() > 0;
  if (path.empty() || !options.schedule.empty() || !options.mods.empty())
    return llvm::Error::success();
  if (!named && !sys::fs::exists(path))
    return llvm::Error::success();
  Expected<Database> database = Database::open(path, Database::Mode::Read);
  if (!database) {
    if (named)
      return database.takeError();
    warning() << toString(database.takeError()) << '\n';
    return llvm::Error::success();
  }
  std::vector<const Machine *> machines = {&options.machine};
  for (const Machine &machine : options.variants)
    machines.push_back(&machine);
  int total = 0;
  size_t before = specification.notes.size();
  for (const Machine *machine : machines)
    for (const AttentionSpec &spec : specification.specs) {
      int used = 0;
      std::optional<Schedule> prefill =
          scheduleFor(*database, *machine, spec, Variant::Prefill, used,
                      specification.notes);
      std::optional<Schedule> decode =
          scheduleFor(*database, *machine, spec, Variant::Decode, used,
                      specification.notes);
      if (used && prefill && decode)
        options.settled.push_back(
            {machine->name, spec.name, {*prefill, *decode}});
      total += used;
    }
  specification.recordNotes = specification.notes.size() - before;
  if (total)
    WithColor::note(errs(), "pagoda")
        << total << " of " << 2 * machines.size() * specification.specs.size()
        << " schedules are from the tuning database " << path << '\n';
  return llvm::Error::success();
}

llvm::Error
withRecords(Specification &specification,
            function_ref<llvm::Error(const Specification &)> attempt) {
  llvm::Error error = attempt(specification);
  if (!error || specification.compile.settled.empty())
    return error;
  std::string text = toString(std::move(error));
  specification.compile.settled.clear();
  specification.notes.resize(specification.notes.size() -
                             std::exchange(specification.recordNotes, 0));
  if (llvm::Error again = attempt(specification))
    return again;
  warning() << "tuned schedules are ignored: " << text << '\n';
  return llvm::Error::success();
}

std::string scheduleChanges(StringRef from, StringRef schedule) {
  SmallVector<StringRef> before;
  from.split(before, ',');
  std::string text;
  for (StringRef field : split(schedule, ','))
    if (!is_contained(before, field))
      text += (text.empty() ? "" : ",") + field.str();
  return text;
}

json::Object toJson(const TuningRecord &record) {
  return json::Object{
      {"schedule", record.schedule},
      {"default", record.baseline},
      {"workload", record.workload},
      {"seconds", record.seconds},
      {"speedup", json::Object{{"median", record.speedup.median},
                               {"low", record.speedup.low},
                               {"high", record.speedup.high},
                               {"samples", record.samples}}},
      {"tried", record.tried},
      {"complete", record.complete},
      {"verified_elements", record.verified},
      {"worst_error", record.worstRatio}};
}

} // namespace pagoda
