//===- DeviceResults.cpp - Candidates measured elsewhere ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From JSON to records, every check on the way.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/DeviceResults.h"

#include "compiler/tiling/SramFit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace pagoda;

namespace {

constexpr double confidence = 0.99;
/// One sample of so many chooses, the others confirm.
constexpr size_t choosing = 3;

struct Candidate {
  std::string schedule, fault;
  int64_t compared = 0;
  double worst = 0;
  std::vector<double> seconds, ratios;
};

struct Results {
  DeviceExport exported;
  std::string digest;
  std::vector<Candidate> candidates;
};

} // namespace

/// Every part that a result could be mistaken in.
static std::string digestOf(const DeviceExport &exported) {
  const TuningKey &key = exported.key;
  std::string text =
      join(ArrayRef<std::string>{key.machine, key.toolchain, key.spec,
                                 key.variant, exported.workload},
           "\n");
  for (const std::string &schedule : exported.schedules)
    text += "\n" + schedule;
  return utohexstr(xxh3_64bits(text), /*LowerCase=*/true, 16);
}

json::Object pagoda::toJson(const DeviceExport &exported) {
  return json::Object{
      {"machine", exported.key.machine}, {"toolchain", exported.key.toolchain},
      {"spec", exported.key.spec},       {"variant", exported.key.variant},
      {"bucket", exported.key.bucket},   {"workload", exported.workload},
      {"digest", digestOf(exported)}};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool readTimes(const json::Array *array, std::vector<double> &times) {
  if (!array)
    return false;
  for (const json::Value &value : *array) {
    std::optional<double> time = value.getAsNumber();
    if (!time || !(*time > 0))
      return false;
    times.push_back(*time);
  }
  return true;
}

static Error readCandidate(const json::Value &value, Candidate &candidate) {
  json::Path::Root root("candidate");
  json::ObjectMapper map(value, root);
  if (!map || !map.map("schedule", candidate.schedule) ||
      !map.map("compared", candidate.compared) ||
      !map.mapOptional("fault", candidate.fault) ||
      !map.mapOptional("worst_error", candidate.worst))
    return root.getError();
  if (!candidate.fault.empty())
    return Error::success();
  const json::Object &object = *value.getAsObject();
  std::vector<double> baseline;
  if (!readTimes(object.getArray("seconds"), candidate.seconds) ||
      !readTimes(object.getArray("default_seconds"), baseline) ||
      candidate.seconds.size() != baseline.size())
    return createStringError(candidate.schedule +
                             ": expected as many seconds as default_seconds, "
                             "all greater than 0");
  for (auto [own, other] : zip(candidate.seconds, baseline))
    candidate.ratios.push_back(other / own);
  return Error::success();
}

static Error readKernel(const json::Value &value, Results &results) {
  const json::Object *object = value.getAsObject();
  const json::Value *exported = object ? object->get("export") : nullptr;
  const json::Array *candidates =
      object ? object->getArray("candidates") : nullptr;
  if (!exported || !candidates || candidates->empty())
    return createStringError("expected export and candidates");
  json::Path::Root root("export");
  json::ObjectMapper map(*exported, root);
  TuningKey &key = results.exported.key;
  if (!map || !map.map("machine", key.machine) ||
      !map.map("toolchain", key.toolchain) || !map.map("spec", key.spec) ||
      !map.map("variant", key.variant) || !map.map("bucket", key.bucket) ||
      !map.map("workload", results.exported.workload) ||
      !map.map("digest", results.digest))
    return root.getError();
  for (const json::Value &entry : *candidates) {
    results.candidates.emplace_back();
    if (Error error = readCandidate(entry, results.candidates.back()))
      return error;
    results.exported.schedules.push_back(results.candidates.back().schedule);
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static Error expectSame(const char *field, StringRef expected, StringRef got) {
  if (expected == got)
    return Error::success();
  return createStringError(Twine(field) + ": expected " + expected + ", got " +
                           got);
}

/// What the key is for, if this version would give the same key.
static Error readKey(const TuningKey &key, Machine &machine,
                     AttentionSpec &spec, Variant &variant) {
  Expected<Machine> named =
      Machine::named(StringRef(key.machine).split(' ').first);
  if (!named)
    return named.takeError();
  machine = std::move(*named);
  if (machine.kind != TargetKind::Nvidia)
    return createStringError("machine: expected an nvidia target, got " +
                             key.machine);
  Expected<AttentionSpec> parsed = parseKeySpec(key.spec);
  if (!parsed)
    return parsed.takeError();
  spec = std::move(*parsed);
  variant = key.variant == nameOf(Variant::Prefill) ? Variant::Prefill
                                                    : Variant::Decode;
  TuningKey mine = tuningKey(machine, spec, variant, kvLenOf(key.bucket));
  if (Error error = expectSame("variant", mine.variant, key.variant))
    return error;
  if (Error error = expectSame("bucket", mine.bucket, key.bucket))
    return error;
  if (Error error = expectSame("machine", mine.machine, key.machine))
    return error;
  return expectSame("toolchain", mine.toolchain, key.toolchain);
}

/// 90 of "sm_90a".
static int64_t capabilityOf(const Machine &machine) {
  int64_t number = 0;
  StringRef name = machine.name;
  (void)(name.consume_front("sm_") && !name.consumeInteger(10, number));
  return number;
}

/// The decision over candidates of which the first, the default, is right.
static TuningRecord decide(const Results &results,
                           ArrayRef<const Candidate *> runners) {
  const Candidate &standard = results.candidates.front();
  auto part = [](const Candidate &candidate, bool chooses) {
    std::vector<double> ratios;
    for (auto [i, ratio] : enumerate(candidate.ratios))
      if ((i % choosing == 0) == chooses)
        ratios.push_back(ratio);
    return ratios;
  };
  const Candidate *leader = nullptr;
  double best = 1;
  for (const Candidate *candidate : runners)
    if (double ratio = median(part(*candidate, true)); ratio > best) {
      best = ratio;
      leader = candidate;
    }
  TuningRecord record;
  record.key = results.exported.key;
  record.baseline = standard.schedule;
  record.workload = results.exported.workload;
  record.tried = int64_t(runners.size());
  const Candidate *winner = &standard;
  if (leader) {
    std::vector<double> confirming = part(*leader, false);
    Interval speedup = medianInterval(confirming, confidence);
    record.samples = int64_t(confirming.size());
    if (speedup.low > 1) {
      record.speedup = speedup;
      winner = leader;
    }
  }
  record.schedule = winner->schedule;
  record.seconds = median(winner->seconds);
  record.verified = winner->compared;
  record.worstRatio = winner->worst;
  return record;
}

/// Fewer have no interval.
static size_t leastSamples() {
  size_t count = choosing;
  while (medianInterval(std::vector<double>(count - count / choosing, 1),
                        confidence)
             .low < 1)
    ++count;
  return count;
}

static Error addRecord(const Results &results, int64_t capability,
                       ArrayRef<TuningKey> wanted, DeviceRecords &into) {
  const TuningKey &key = results.exported.key;
  Machine machine;
  AttentionSpec spec;
  Variant variant;
  if (Error error = readKey(key, machine, spec, variant))
    return error;
  if (Error error = expectSame("digest of what was exported",
                               digestOf(results.exported), results.digest))
    return error;
  if (!wanted.empty() && !is_contained(wanted, key))
    return createStringError("spec: expected what the options ask for, got " +
                             key.str());
  if (capability != capabilityOf(machine))
    return createStringError("capability: expected " +
                             Twine(capabilityOf(machine)) + " for " +
                             machine.name + ", got " + Twine(capability));
  const Candidate &standard = results.candidates.front();
  Expected<TileCandidate> tile = selectTile(machine, spec, variant);
  if (!tile)
    return tile.takeError();
  if (Error error =
          expectSame("default", tile->schedule.str(), standard.schedule))
    return error;
  size_t least = leastSamples();
  std::vector<const Candidate *> runners;
  for (const Candidate &candidate : results.candidates) {
    bool isDefault = &candidate == &standard;
    auto ignore = [&](const Twine &why) {
      into.ignored.push_back(
          (key.variant + ": " + candidate.schedule + ": " + why).str());
    };
    if (!candidate.fault.empty()) {
      if (isDefault)
        return createStringError("the default schedule was wrong: " +
                                 candidate.fault);
      ignore("its output was wrong: " + candidate.fault);
      continue;
    }
    TuningRecord asRecord;
    asRecord.schedule = candidate.schedule;
    asRecord.verified = candidate.compared;
    asRecord.worstRatio = candidate.worst;
    Expected<Schedule> usable = usableSchedule(asRecord, machine, spec);
    if (!usable) {
      if (isDefault)
        return usable.takeError();
      ignore(toString(usable.takeError()));
      continue;
    }
    if (candidate.ratios.size() < least)
      return createStringError(candidate.schedule + ": expected " +
                               Twine(least) + " samples or more, got " +
                               Twine(candidate.ratios.size()));
    if (!isDefault)
      runners.push_back(&candidate);
  }
  into.records.push_back(decide(results, runners));
  return Error::success();
}

Expected<DeviceRecords> pagoda::readDeviceResults(StringRef text,
                                                  ArrayRef<TuningKey> wanted) {
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return parsed.takeError();
  const json::Object *object = parsed->getAsObject();
  const json::Array *kernels = object ? object->getArray("kernels") : nullptr;
  std::optional<int64_t> capability =
      object ? object->getInteger("capability") : std::nullopt;
  std::optional<StringRef> device =
      object ? object->getString("device") : std::nullopt;
  if (!kernels || kernels->empty() || !capability || !device)
    return createStringError("expected the device, its capability and kernels: "
                             "no results of an export");
  DeviceRecords records;
  for (auto [i, value] : enumerate(*kernels)) {
    Results results;
    Error error = readKernel(value, results);
    if (!error)
      error = addRecord(results, *capability, wanted, records);
    if (error)
      return createStringError("kernels[" + Twine(i) +
                               "]: " + toString(std::move(error)));
    records.records.back().workload += (" on " + *device).str();
  }
  return records;
}
