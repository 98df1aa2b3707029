//===- Record.cpp - What tuning found, and for what -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys as text, and the checks of a record.
//
//===----------------------------------------------------------------------===//

#include "compiler/tune/Record.h"

#include "runtime/include/pagoda/kernel_abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace pagoda;

/// The processor's name as its maker writes it; empty if the system does not
/// say.
static std::string processorName() {
  auto buffer = MemoryBuffer::getFileAsStream("/proc/cpuinfo");
  if (!buffer)
    return "";
  for (StringRef line : split((*buffer)->getBuffer(), '\n'))
    if (line.starts_with("model name"))
      return line.split(':').second.trim().str();
  return "";
}

/// The features that are there: those that are not are the rest.
static std::string presentFeatures(StringRef features) {
  std::string text;
  for (StringRef feature : split(features, ','))
    if (feature.consume_front("+"))
      text += (text.empty() ? "" : ",") + feature.str();
  return text;
}

static std::string describe(const Machine &machine) {
  if (machine.kind == TargetKind::Nvidia)
    return machine.name + " " + machine.features;
  return formatv("{0} {1} l1={2}/{3} l2={4} l3={5} cores={6} {7}",
                 machine.triple, machine.cpu, machine.l1Bytes, machine.l1Ways,
                 machine.l2Bytes, machine.l3Bytes, machine.cores,
                 presentFeatures(machine.features));
}

static std::string describe(const AttentionSpec &spec) {
  std::string text =
      formatv("q_heads={0} kv_heads={1} head_dim={2} v_head_dim={3} "
              "block_size={4} layout={5} dtype={6} kv_dtype={7} causal={8}",
              spec.qHeads, spec.kvHeads, spec.headDim, spec.vHeadDim,
              spec.blockSize, spec.layout == KvLayout::HND ? "hnd" : "nhd",
              nameOf(spec.qType), nameOf(spec.kvType), int(spec.causal));
  if (spec.window)
    text += formatv(" window={0}", *spec.window);
  if (spec.chunk)
    text += formatv(" chunk={0}", *spec.chunk);
  for (auto [has, name] : {std::pair{spec.softcap.has_value(), " softcap"},
                           {spec.sinks, " sinks"},
                           {spec.prefixLm, " prefix_lm"},
                           {!spec.alibiSlopes.empty(), " alibi"}})
    if (has)
      text += name;
  return text;
}

Expected<AttentionSpec> pagoda::parseKeySpec(StringRef text) {
  AttentionSpec spec;
  for (StringRef field : split(text, ' ')) {
    auto [name, value] = field.split('=');
    int64_t number = 0;
    value.getAsInteger(10, number);
    auto type = [&] {
      int found = 0;
      while (found < int(DType::I8) && value != nameOf(DType(found)))
        ++found;
      return DType(found);
    };
    if (name == "layout")
      spec.layout = value == "nhd" ? KvLayout::NHD : KvLayout::HND;
    else if (name == "dtype")
      spec.qType = type();
    else if (name == "kv_dtype")
      spec.kvType = type();
    else if (name == "causal")
      spec.causal = number;
    else if (name == "window")
      spec.window = number;
    else if (name == "chunk")
      spec.chunk = number;
    else if (name == "softcap")
      spec.softcap = 1;
    else if (name == "sinks")
      spec.sinks = true;
    else if (name == "prefix_lm")
      spec.prefixLm = true;
    else if (name == "alibi")
      spec.alibiSlopes.assign(1, 0);
    else
      for (auto [known, into] : {std::pair{"q_heads", &spec.qHeads},
                                 {"kv_heads", &spec.kvHeads},
                                 {"head_dim", &spec.headDim},
                                 {"v_head_dim", &spec.vHeadDim},
                                 {"block_size", &spec.blockSize}})
        if (name == known)
          *into = number;
  }
  // Whatever was not understood does not come back.
  if (::describe(spec) != text)
    return createStringError("spec: expected the fields of a key, got '" +
                             text + "'");
  return spec;
}

TuningKey pagoda::tuningKey(const Machine &machine, const AttentionSpec &spec,
                            Variant variant, int64_t kvLen) {
  TuningKey key;
  key.machine = describe(machine);
  if (machine.kind == TargetKind::Cpu) {
    // A named target has the caches of its table; what was measured had the
    // host's.
    if (machine.name != "host")
      key.machine += " on " + describe(Machine::host());
    key.machine += "; " + processorName();
  }
  key.toolchain =
      formatv("pagoda {0}, kernel abi {1}, llvm {2}", PAGODA_VERSION,
              PAGODA_ABI_VERSION, LLVM_VERSION_STRING);
  key.spec = ::describe(spec);
  key.variant = nameOf(variant).str();
  int64_t most = 256;
  while (most < kvLen && most < int64_t(1) << 30)
    most *= 4;
  key.bucket = variant == Variant::Prefill
                   ? "rows>1"
                   : formatv("rows=1 kv<={0}", most).str();
  return key;
}

int64_t pagoda::kvLenOf(StringRef bucket) {
  int64_t number = 0;
  bucket.split("kv<=").second.getAsInteger(10, number);
  return number;
}

std::string TuningKey::str() const {
  return variant + " (" + bucket + ") of " + spec + " for " + machine + " by " +
         toolchain;
}

Expected<Schedule> pagoda::parseSchedule(StringRef text) {
  // Overrides are checked against a kind of machine; a schedule's text holds
  // the fields of both.
  Machine cpu, gpu;
  gpu.kind = TargetKind::Nvidia;
  Schedule schedule;
  for (StringRef field : split(text, ',')) {
    bool ofCpu = isRead(field.split('=').first, TargetKind::Cpu);
    if (Error error = applyOverrides(schedule, ofCpu ? cpu : gpu,
                                     Variant::Prefill, field.str()))
      return std::move(error);
  }
  if (schedule.str() != text)
    return createStringError("schedule must hold every field once, got '" +
                             text + "'");
  return schedule;
}

Expected<Schedule> pagoda::usableSchedule(const TuningRecord &record,
                                          const Machine &machine,
                                          const AttentionSpec &spec) {
  if (record.verified < 1 || !(record.worstRatio <= 1))
    return createStringError("it was not verified: " + Twine(record.verified) +
                             " elements compared, worst error " +
                             formatv("{0:F3}", record.worstRatio).str() +
                             " of its bound");
  Expected<Schedule> schedule = parseSchedule(record.schedule);
  if (!schedule)
    return schedule.takeError();
  if (Error error = checkSchedule(*schedule, machine, spec))
    return std::move(error);
  return schedule;
}
