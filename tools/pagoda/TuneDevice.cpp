//===- TuneDevice.cpp - pagoda tune for a machine elsewhere ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options --export and --import of tune, and their reports.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/TuneDevice.h"

#include "compiler/emit/Emit.h"
#include "tools/pagoda/Commands.h"
#include "tools/pagoda/DeviceExport.h"
#include "tools/pagoda/Records.h"
#include "tools/pagoda/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

#include <ctime>

using namespace llvm;

namespace pagoda {

namespace {

cl::opt<std::string>
    exportOpt("export",
              cl::desc("Write candidates for an nvidia --target, with a runner "
                       "that measures them where there is a GPU (DIR/run)"),
              cl::value_desc("dir"), cl::sub(tuneCommand()),
              cl::cat(optionCategory()));
cl::opt<std::string> importOpt("import",
                               cl::desc("Record the best of what a runner of "
                                        "--export measured"),
                               cl::value_desc("results.json"),
                               cl::sub(tuneCommand()),
                               cl::cat(optionCategory()));
cl::opt<unsigned> candidatesOpt("candidates",
                                cl::desc("Schedules that --export writes of "
                                         "each kernel, at most (64)"),
                                cl::value_desc("n"), cl::init(64),
                                cl::sub(tuneCommand()),
                                cl::cat(optionCategory()));

constexpr const char *runnerName = "pagoda-tune-runner";

/// The keys of what the options name; empty where they name nothing.
Expected<std::vector<TuningKey>> wantedKeys() {
  std::vector<TuningKey> keys;
  if (!namesSpecification())
    return keys;
  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  Expected<int64_t> kvLen = wantedKvLen();
  if (!kvLen)
    return kvLen.takeError();
  for (const AttentionSpec &spec : specification->specs)
    for (Variant variant : {Variant::Prefill, Variant::Decode})
      keys.push_back(
          tuningKey(specification->compile.machine, spec, variant, *kvLen));
  return keys;
}

llvm::Error import(bool json) {
  auto text = MemoryBuffer::getFile(importOpt, /*IsText=*/true);
  if (!text)
    return createStringError("--import " + importOpt + ": " +
                             text.getError().message());
  Expected<std::vector<TuningKey>> wanted = wantedKeys();
  if (!wanted)
    return wanted.takeError();
  Expected<DeviceRecords> results =
      readDeviceResults((*text)->getBuffer(), *wanted);
  if (!results)
    return createStringError("--import " + importOpt + ": " +
                             toString(results.takeError()));
  Expected<Database> database = openToRecord();
  if (!database)
    return database.takeError();
  for (const std::string &ignored : results->ignored)
    WithColor::warning(errs(), "pagoda")
        << importOpt << ": " << ignored << '\n';
  for (TuningRecord &record : results->records) {
    record.tunedAt = int64_t(std::time(nullptr));
    if (llvm::Error error = database->put(record))
      return error;
  }
  if (json) {
    json::Array kernels;
    for (const TuningRecord &record : results->records)
      kernels.push_back(toJson(record));
    outs() << formatv("{0:2}\n", json::Value(json::Object{
                                     {"database", database->path()},
                                     {"ignored", json::Array(results->ignored)},
                                     {"kernels", std::move(kernels)}}));
    return llvm::Error::success();
  }
  outs() << "recorded in " << database->path() << "\n\n";
  Table table({"variant", "of", "step", ">default us", ">us", ">speedup",
               "99% interval", ">tried", "schedule"});
  for (const TuningRecord &record : results->records) {
    bool tuned = record.schedule != record.baseline;
    table.row({record.key.variant, record.key.spec, record.workload,
               numberText(1e6 * record.seconds * record.speedup.median),
               numberText(1e6 * record.seconds),
               formatv("{0:F3}", record.speedup.median).str(),
               tuned ? formatv("{0:F3} to {1:F3}", record.speedup.low,
                               record.speedup.high)
                           .str()
                     : "",
               std::to_string(record.tried),
               tuned ? scheduleChanges(record.baseline, record.schedule)
                     : "the default stands"});
  }
  table.print(outs());
  return llvm::Error::success();
}

#ifdef PAGODA_HAS_EMULATOR
/// The runner goes along under a name that says what to do with it.
llvm::Error copyRunner(StringRef folder) {
  static int anchor; // an address in this program
  SmallString<128> runner(
      sys::path::parent_path(sys::fs::getMainExecutable("", &anchor)));
  sys::path::append(runner, runnerName);
  SmallString<128> target(folder);
  sys::path::append(target, "run");
  std::error_code code = sys::fs::copy_file(runner, target);
  if (!code)
    code = sys::fs::setPermissions(
        target, sys::fs::all_read | sys::fs::all_exe | sys::fs::owner_write);
  if (code)
    return createStringError("--export: runner " + runner + ": " +
                             code.message());
  return llvm::Error::success();
}

/// A new folder: files of an earlier export would be measured, too.
llvm::Error makeFolder(const std::string &folder) {
  std::error_code code = sys::fs::create_directories(folder);
  sys::fs::directory_iterator first(folder, code);
  if (!code && first != sys::fs::directory_iterator())
    return createStringError("--export " + folder +
                             ": expected an empty folder or none");
  if (code)
    return createStringError("--export " + folder + ": " + code.message());
  return llvm::Error::success();
}

llvm::Error exportAll(bool json) {
  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  const Machine &machine = specification->compile.machine;
  if (machine.kind != TargetKind::Nvidia)
    return createStringError("--export: expected an nvidia --target, got " +
                             machine.name + ", which is tuned where it runs");
  if (candidatesOpt < 1)
    return createStringError("--candidates 0: expected 1 or more");
  if (llvm::Error error = makeFolder(exportOpt))
    return error;
  Expected<int64_t> kvLen = wantedKvLen();
  if (!kvLen)
    return kvLen.takeError();
  DeviceExportOptions options;
  options.folder = exportOpt;
  options.candidates = candidatesOpt;
  options.threads = int(Machine::host().cores);
  std::vector<ExportedContest> contests;
  for (const AttentionSpec &spec : specification->specs)
    for (Variant variant : {Variant::Prefill, Variant::Decode}) {
      TuningKey key = tuningKey(machine, spec, variant, *kvLen);
      if (any_of(contests, [&](const ExportedContest &contest) {
            return contest.exported.key == key;
          }))
        continue;
      StepShape shape = variant == Variant::Prefill
                            ? gpuPrefillStep(spec)
                            : gpuDecodeStep(spec, *kvLen);
      Expected<ExportedContest> contest =
          exportContest(spec, variant, machine, shape, options);
      if (!contest)
        return contest.takeError();
      contests.push_back(std::move(*contest));
    }
  json::Array kernels;
  for (const ExportedContest &contest : contests)
    kernels.push_back(toJson(contest));
  json::Value manifest =
      json::Object{{"target", machine.name}, {"kernels", std::move(kernels)}};
  std::string text = formatv("{0:2}\n", manifest);
  if (llvm::Error error = writeFile(exportOpt + "/manifest.json", text))
    return error;
  if (llvm::Error error = copyRunner(exportOpt))
    return error;
  if (json) {
    outs() << text;
    return llvm::Error::success();
  }
  Table table({"kernel", "step", ">candidates", ">left out", "code"});
  for (const ExportedContest &contest : contests)
    table.row({contest.name, contest.exported.workload,
               std::to_string(contest.candidates.size()),
               std::to_string(contest.unbuilt),
               contest.assembled ? "cubin" : "PTX"});
  table.print(outs());
  outs() << "\nwritten to " << exportOpt
         << "; where there is a GPU: " << exportOpt
         << "/run; then here: pagoda tune --import results.json\n";
  return llvm::Error::success();
}
#endif

} // namespace

bool isForOtherDevice() {
  return !exportOpt.empty() || !importOpt.empty() ||
         candidatesOpt.getNumOccurrences() > 0;
}

llvm::Error tuneOtherDevice(bool json) {
  if (!exportOpt.empty() && !importOpt.empty())
    return createStringError("--export and --import: give one of them");
  if (exportOpt.empty() && candidatesOpt.getNumOccurrences())
    return createStringError("--candidates: expected --export beside it");
  if (!importOpt.empty())
    return import(json);
#ifdef PAGODA_HAS_EMULATOR
  return exportAll(json);
#else
  return createStringError("--export: this build cannot, boost.context was "
                           "missing (Debian: libboost-context-dev)");
#endif
}

} // namespace pagoda
