//===- Tune.cpp - pagoda tune ---------------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures schedules of each kernel in turn, within a budget of time, and keeps
// what was found in the tuning database: every sample as it is taken, a record
// for each kernel that is done with.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/SearchSpace.h"
#include "compiler/tune/Tuner.h"
#include "tools/pagoda/Commands.h"
#include "tools/pagoda/Describe.h"
#include "tools/pagoda/Records.h"
#include "tools/pagoda/Report.h"
#include "tools/pagoda/ScheduleBench.h"
#include "tools/pagoda/TuneDevice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <csignal>
#include <unistd.h>

using namespace llvm;

namespace pagoda {

cl::SubCommand &tuneCommand() {
  static cl::SubCommand command(
      "tune", "Find faster schedules for a model's kernels on this machine, "
              "and keep them for gen and run");
  return command;
}

namespace {

cl::opt<std::string>
    budgetOpt("budget", cl::desc("Time to take, for example 90s or 5m (60s)"),
              cl::value_desc("time"), cl::init("60s"), cl::sub(tuneCommand()),
              cl::cat(optionCategory()));
cl::opt<int64_t> threadsOpt("threads",
                            cl::desc("Threads (default: one per CPU)"),
                            cl::value_desc("n"), cl::init(0),
                            cl::sub(tuneCommand()), cl::cat(optionCategory()));
cl::opt<bool> againOpt("again",
                       cl::desc("Tune what the database has already, too"),
                       cl::sub(tuneCommand()), cl::cat(optionCategory()));
cl::opt<bool> jsonOpt("json", cl::desc("Report as JSON"),
                      cl::sub(tuneCommand()), cl::cat(optionCategory()));

/// Schedules that a kernel's space may have; time ends the search before.
constexpr size_t mostCandidates = 96;
/// Less than this is not worth building a kernel for, seconds.
constexpr double leastSeconds = 1;

volatile std::sig_atomic_t interrupted = 0;

void onSignal(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL); // the second time it ends the process
}

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One kernel to tune, and what came of it.
struct Job {
  const AttentionSpec *spec = nullptr;
  Variant variant = Variant::Prefill;
  int64_t kvLen = usualKvLen;
  TuningKey key;
  std::optional<TuningRecord> record;
  bool fromDatabase = false;
  double baselineSeconds = 0; ///< of a step; 0: not measured

  std::string name() const {
    return (spec->name + " " + nameOf(variant)).str();
  }
};

/// One line that is written over and over, where a person looks.
class ProgressLine {
public:
  ~ProgressLine() { clear(); }
  void show(const Twine &text) {
    if (!terminal)
      return;
    constexpr size_t width = 78;
    errs() << '\r' << StringRef(text.str()).take_front(width) << "\x1b[K";
    errs().flush();
    written = true;
  }
  void clear() {
    if (written)
      errs() << "\r\x1b[K";
    written = false;
  }

private:
  bool terminal = isatty(STDERR_FILENO);
  bool written = false;
};

/// "##......"
std::string bar(double share) {
  constexpr int width = 16;
  int done = std::clamp(int(share * width), 0, width);
  return std::string(size_t(done), '#') +
         std::string(size_t(width - done), '.');
}

/// Tunes one kernel until `deadline`.
class Session {
public:
  Session(Job &job, const Machine &machine, Database &database, double begin,
          double deadline, ProgressLine &line)
      : job(job), machine(machine), database(database), begin(begin),
        deadline(deadline), line(line) {}
  llvm::Error run();

private:
  TuneCallbacks callbacks();
  bool verify(const Schedule &schedule);
  llvm::Error keep(const TuneResult &result);

  Job &job;
  const Machine &machine;
  Database &database;
  double begin, deadline;
  ProgressLine &line;
  std::unique_ptr<ScheduleBench> bench;
  Schedule standard;
  reference::Comparison standardCheck, winnerCheck;
  double verifySeconds = 0;
};

bool Session::verify(const Schedule &schedule) {
  winnerCheck = bench->verify(schedule);
  return winnerCheck.ok() && winnerCheck.elements > 0;
}

TuneCallbacks Session::callbacks() {
  TuneCallbacks calls;
  calls.prepare = [&](ArrayRef<Schedule> schedules) {
    return bench->prepare(schedules);
  };
  calls.sample = [&](const Schedule &schedule, bool defaultFirst) {
    return bench->sample(schedule, defaultFirst);
  };
  calls.verify = [&](const Schedule &schedule) { return verify(schedule); };
  calls.neighbours = [&](const Schedule &schedule) {
    return neighbours(schedule, machine, *job.spec, job.variant);
  };
  calls.now = now;
  calls.stopped = [] { return interrupted != 0; };
  calls.save = [&](const Schedule &schedule, ArrayRef<double> ratios) {
    // Samples are only a help for later calls: tuning goes on without.
    if (llvm::Error error = database.addSamples(job.key, schedule, ratios))
      consumeError(std::move(error));
  };
  calls.progress = [&](const TuneProgress &progress) {
    std::string best = "the default leads";
    if (progress.best)
      best = formatv(
          "{0:F2}x {1}", median(progress.best->ratios),
          scheduleChanges(standard.str(), progress.best->schedule.str()));
    line.show(formatv("{0} [{1}] {2} tried, {3}", job.name(),
                      bar((now() - begin) / (deadline - begin)), progress.tried,
                      best)
                  .str());
  };
  return calls;
}

llvm::Error Session::keep(const TuneResult &result) {
  const reference::Comparison &check =
      result.isDefault ? standardCheck : winnerCheck;
  TuningRecord record;
  record.key = job.key;
  record.schedule = result.schedule.str();
  record.baseline = standard.str();
  record.speedup = result.speedup;
  record.samples = int64_t(result.samples);
  record.seconds = bench->seconds(result.schedule);
  record.workload = bench->bench().shape().str();
  record.verified = check.elements;
  record.worstRatio = check.worst.ratio();
  record.tried = int64_t(result.tried);
  record.complete = result.complete;
  record.tunedAt = int64_t(std::time(nullptr));
  job.baselineSeconds = bench->baselineSeconds();
  job.record = record;
  return database.put(record);
}

llvm::Error Session::run() {
  line.show(job.name() + ": building the default");
  Expected<TileCandidate> tile = selectTile(machine, *job.spec, job.variant);
  if (!tile)
    return tile.takeError();
  standard = tile->schedule;
  int threads = ThreadPool(int(threadsOpt)).threads();
  StepShape shape =
      job.variant == Variant::Prefill
          ? prefillStep(*job.spec, threads)
          : decodeStep(*job.spec, threads, Machine::host().l3Bytes, job.kvLen);
  Expected<std::unique_ptr<ScheduleBench>> made =
      ScheduleBench::create(*job.spec, job.variant, machine, standard, shape);
  if (!made)
    return made.takeError();
  bench = std::move(*made);
  double start = now();
  standardCheck = bench->verify(standard);
  verifySeconds = now() - start;
  if (!standardCheck.ok() || standardCheck.elements == 0)
    return createStringError(
        job.name() + ": the default schedule " + standard.str() +
        " differs from the reference: " + standardCheck.worst.text());
  Expected<std::vector<Trial>> known = database.trials(job.key);
  if (!known)
    return known.takeError();
  TuneOptions options;
  options.seconds = deadline - now();
  options.batch = size_t(2 * threads);
  options.verifySeconds = verifySeconds;
  TuneResult result =
      tune(tuningSpace(machine, *job.spec, job.variant, mostCandidates),
           std::move(*known), options, callbacks());
  return keep(result);
}

//===----------------------------------------------------------------------===//
// Report
//===----------------------------------------------------------------------===//

void printText(ArrayRef<Job> jobs) {
  Table table({"kernel", "step", ">default ms", ">ms", ">speedup",
               "99% interval", ">tried", "schedule"});
  for (const Job &job : jobs) {
    if (!job.record) {
      table.row({job.name(), "", "", "", "", "", "",
                 interrupted
                     ? std::string("not tuned")
                     : formatv("not tuned: less than {0:F0} s were left",
                               leastSeconds)
                           .str()});
      continue;
    }
    const TuningRecord &record = *job.record;
    bool tuned = record.schedule != record.baseline;
    std::string schedule =
        tuned ? scheduleChanges(record.baseline, record.schedule)
              : "the default stands";
    if (!record.complete)
      schedule += " (so far)";
    table.row(
        {job.name(), record.workload,
         numberText(1e3 * record.seconds * (tuned ? record.speedup.median : 1)),
         numberText(1e3 * record.seconds),
         formatv("{0:F3}", record.speedup.median).str(),
         tuned ? formatv("{0:F3} to {1:F3}", record.speedup.low,
                         record.speedup.high)
                     .str()
               : "",
         std::to_string(record.tried), schedule});
  }
  table.print(outs());
}

json::Array toJson(ArrayRef<Job> jobs) {
  json::Array array;
  for (const Job &job : jobs) {
    json::Object object{{"spec", job.spec->name},
                        {"variant", nameOf(job.variant)},
                        {"from_database", job.fromDatabase},
                        {"tuned", job.record.has_value()}};
    if (const auto &record = job.record) {
      for (auto &[name, value] : toJson(*record))
        object[name] = value;
    }
    array.push_back(std::move(object));
  }
  return array;
}

/// The kernels of a specification, each key once, with what the database has.
Expected<std::vector<Job>> findJobs(const Specification &specification,
                                    Database &database) {
  Expected<int64_t> kvLen = wantedKvLen();
  if (!kvLen)
    return kvLen.takeError();
  std::vector<Job> jobs;
  for (const AttentionSpec &spec : specification.specs)
    for (Variant variant : {Variant::Prefill, Variant::Decode}) {
      Job job;
      job.spec = &spec;
      job.variant = variant;
      job.kvLen = *kvLen;
      job.key = tuningKey(specification.compile.machine, spec, variant, *kvLen);
      if (any_of(jobs, [&](const Job &other) { return other.key == job.key; }))
        continue;
      if (againOpt)
        if (llvm::Error error = database.forget(job.key))
          return std::move(error);
      Expected<std::optional<TuningRecord>> record = database.find(job.key);
      if (!record)
        return record.takeError();
      // One that is of no use is measured anew, one that was cut short goes on.
      if (*record && (*record)->complete &&
          !errorToBool(
              usableSchedule(**record, specification.compile.machine, spec)
                  .takeError())) {
        job.record = std::move(**record);
        job.fromDatabase = true;
      }
      jobs.push_back(std::move(job));
    }
  return jobs;
}

} // namespace

llvm::Error tune() {
  if (isForOtherDevice())
    return tuneOtherDevice(jsonOpt);
  double begin = now();
  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  const Machine &machine = specification->compile.machine;
  if (machine.kind == TargetKind::Nvidia)
    return createStringError("--target " + machine.name +
                             ": this machine cannot run its code; --export "
                             "DIR writes candidates for one that can");
  Expected<double> budget = checkMeasuring(budgetOpt, threadsOpt, machine);
  if (!budget)
    return budget.takeError();
  Expected<Database> database = openToRecord();
  if (!database)
    return database.takeError();
  Expected<std::vector<Job>> jobs = findJobs(*specification, *database);
  if (!jobs)
    return jobs.takeError();

  size_t open =
      size_t(count_if(*jobs, [](const Job &job) { return !job.fromDatabase; }));
  size_t left = open;
  std::signal(SIGINT, onSignal);
  std::signal(SIGTERM, onSignal);
  ProgressLine line;
  for (Job &job : *jobs) {
    if (job.fromDatabase || interrupted)
      continue;
    double share = (begin + *budget - now()) / double(left--);
    if (share < leastSeconds)
      continue;
    double start = now();
    Session session(job, machine, *database, start, start + share, line);
    if (llvm::Error error = session.run())
      return error;
  }
  line.clear();

  if (jsonOpt) {
    outs() << formatv("{0:2}\n",
                      json::Value(json::Object{{"machine", machine.name},
                                               {"database", database->path()},
                                               {"seconds", now() - begin},
                                               {"kernels", toJson(*jobs)}}));
  } else {
    for (const AttentionSpec &spec : specification->specs)
      outs() << spec.name << ": " << describe(spec) << '\n';
    outs() << (open ? formatv("tuned in {0:F1} s", now() - begin).str()
                    : std::string("all in the database"))
           << " for " << machine.name << ": " << database->path() << "\n\n";
    printText(*jobs);
    if (open < jobs->size() && open)
      outs() << '\n'
             << jobs->size() - open << " of " << jobs->size()
             << " were in the database\n";
  }
  if (interrupted)
    return createStringError("interrupted: what was found is kept, the same "
                             "command goes on");
  return llvm::Error::success();
}

} // namespace pagoda
