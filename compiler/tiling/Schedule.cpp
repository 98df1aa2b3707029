//===- Schedule.cpp - Text, overrides and check of schedules --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constraint numbers are those of compiler/tiling/README.md. What a schedule
// takes of a machine is counted in SramFit.cpp, here it is only compared.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/Schedule.h"

#include "compiler/tiling/SramFit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace llvm;
using namespace pagoda;

namespace {

/// The number fields: key, place, least value, and which machines read it.
struct Field {
  StringRef key;
  int64_t Schedule::*member;
  int64_t least;
  bool cpu, nvidia;

  bool readBy(TargetKind kind) const {
    return kind == TargetKind::Cpu ? cpu : nvidia;
  }
};
constexpr Field fields[] = {
    {"q_tile", &Schedule::qTile, 1, true, true},
    {"kv_tile", &Schedule::kvTile, 1, true, true},
    {"heads", &Schedule::heads, 1, true, true},
    {"block_rows", &Schedule::blockRows, 1, true, false},
    {"block_vectors", &Schedule::blockVectors, 1, true, false},
    {"prefetch", &Schedule::prefetch, 0, true, false},
    {"pack", &Schedule::pack, 0, true, false},
    {"stages", &Schedule::stages, 1, true, true},
    {"warps", &Schedule::warps, 1, false, true}};

/// Keeps products of fields far from 64-bit overflow.
constexpr int64_t largestValue = 65536;

constexpr StringRef orders[] = {"naive", "gather", "kv_outer", "q_outer",
                                "split_kv"};
constexpr StringRef laneNames[] = {"queries", "head_dim"};

} // namespace

static StringRef nameOf(TargetKind kind) {
  return kind == TargetKind::Cpu ? "cpu" : "nvidia";
}

StringRef pagoda::nameOf(Variant variant) {
  return variant == Variant::Prefill ? "prefill" : "decode";
}

std::string Schedule::str() const {
  std::string text =
      ("order=" + orders[int(order)] + ",lanes=" + laneNames[int(lanes)]).str();
  for (const Field &field : fields)
    text += ("," + field.key + "=" + Twine(this->*field.member)).str();
  return text;
}

/// Looks `value` up in `names`; an error lists them.
template <typename Enum>
static Error setName(Enum &target, StringRef key, StringRef value,
                     ArrayRef<StringRef> names) {
  const StringRef *found = find(names, value);
  if (found == names.end())
    return createStringError("schedule " + key + " must be one of " +
                             join(names, ", ") + ", got '" + value + "'");
  target = Enum(found - names.begin());
  return Error::success();
}

bool pagoda::isRead(StringRef key, TargetKind kind) {
  if (key == "order" || key == "lanes")
    return key == "order" || kind == TargetKind::Cpu;
  const Field *field =
      find_if(fields, [&](const Field &field) { return field.key == key; });
  return field != std::end(fields) && field->readBy(kind);
}

static Error setField(Schedule &schedule, const Machine &machine, StringRef key,
                      StringRef value) {
  if (key == "order")
    return setName(schedule.order, key, value, orders);
  if (key == "lanes" && machine.kind == TargetKind::Cpu)
    return setName(schedule.lanes, key, value, laneNames);
  SmallVector<StringRef> known = {"order"};
  if (machine.kind == TargetKind::Cpu)
    known.push_back("lanes");
  for (const Field &field : fields) {
    if (!field.readBy(machine.kind))
      continue;
    known.push_back(field.key);
    if (field.key != key)
      continue;
    if (value.getAsInteger(10, schedule.*field.member))
      return createStringError("schedule " + key + " must be a number, got '" +
                               value + "'");
    return Error::success();
  }
  return createStringError("unknown schedule key '" + key + "' for a " +
                           ::nameOf(machine.kind) + " target, known are " +
                           join(known, ", ") +
                           ", each for one kernel of the two with prefill. or "
                           "decode. before it");
}

Error pagoda::applyOverrides(Schedule &schedule, const Machine &machine,
                             Variant variant, ArrayRef<std::string> overrides) {
  StringMap<StringRef> given;
  for (StringRef group : overrides) {
    for (StringRef text : split(group, ',')) {
      auto [key, value] = text.trim().split('=');
      if (key.empty() || value.empty())
        return createStringError("schedule override must be key=value, got '" +
                                 text + "'");
      auto [first, isNew] = given.try_emplace(key, value);
      if (!isNew)
        return createStringError("schedule " + key + " is given twice, " +
                                 first->second + " and " + value);
      bool other = false;
      for (Variant prefix : {Variant::Prefill, Variant::Decode})
        if (key.consume_front((nameOf(prefix) + ".").str()))
          other = prefix != variant;
      // The other variant's are read too, so that every mistake is found.
      Schedule unused = schedule;
      if (Error error =
              setField(other ? unused : schedule, machine, key, value))
        return error;
    }
  }
  return Error::success();
}

/// Constraints on single fields: M1 to M3.
static Error checkFields(const Schedule &schedule, const Machine &machine) {
  for (const Field &field : fields) {
    int64_t value = schedule.*field.member, unread = Schedule().*field.member;
    if (value < field.least || value > largestValue)
      return createStringError(
          "schedule " + field.key + " must be between " + Twine(field.least) +
          " and " + Twine(largestValue) + ", got " + Twine(value) + " (M1)");
    if (field.key == "pack" && value > 2)
      return createStringError("schedule pack must be 0, 1 or 2, got " +
                               Twine(value) + " (M1)");
    if (!field.readBy(machine.kind) && value != unread)
      return createStringError("schedule " + field.key + " is not read by a " +
                               ::nameOf(machine.kind) + " target, expected " +
                               Twine(unread) + ", got " + Twine(value) +
                               " (M2)");
  }
  if (machine.kind == TargetKind::Nvidia && isTeachingOrder(schedule.order))
    return createStringError("schedule order must be q_outer or split_kv for "
                             "a nvidia target, got " +
                             orders[int(schedule.order)] + " (M3)");
  return Error::success();
}

Error pagoda::checkSchedule(const Schedule &schedule, const Machine &machine,
                            const AttentionSpec &spec) {
  if (Error error = checkFields(schedule, machine))
    return error;

  if (isTeachingOrder(schedule.order) &&
      schedule.lanes != Schedule::Lanes::Queries)
    return createStringError("schedule order " + orders[int(schedule.order)] +
                             " needs lanes = queries (M3)");

  bool nvidia = machine.kind == TargetKind::Nvidia;
  bool oneHead = nvidia || schedule.lanes == Schedule::Lanes::Queries;
  if (oneHead && schedule.heads != 1)
    return createStringError(
        "schedule heads must be 1 for " +
        Twine(nvidia ? "a nvidia target" : "lanes = queries") + ", got " +
        Twine(schedule.heads) + " (M4)");
  if (spec.kvHeads % schedule.heads != 0)
    return createStringError("schedule heads must divide " +
                             Twine(spec.kvHeads) + " kv heads, got " +
                             Twine(schedule.heads) + " (M4)");

  if (schedule.qTile < spec.group())
    return createStringError(
        "schedule q_tile must be at least the " + Twine(spec.group()) +
        " query heads of a kv head, got " + Twine(schedule.qTile) + " (M5)");
  if (nvidia && (schedule.warps > 32 || schedule.qTile != 16 * schedule.warps))
    return createStringError("schedule q_tile must be 16 rows for each of at "
                             "most 32 warps, got " +
                             Twine(schedule.qTile) + " rows and " +
                             Twine(schedule.warps) + " warps (M5)");

  int64_t divisor = nvidia ? 16 : schedule.blockRows;
  if (oneHead && schedule.kvTile % divisor != 0)
    return createStringError("schedule kv_tile must be a multiple of " +
                             Twine(nvidia ? "the matrix shape" : "block_rows") +
                             ", " + Twine(divisor) + ", got " +
                             Twine(schedule.kvTile) + " (M6)");
  if (!oneHead && schedule.blockRows > schedule.qTile)
    return createStringError("schedule block_rows must be at most q_tile, " +
                             Twine(schedule.qTile) + ", got " +
                             Twine(schedule.blockRows) + " (M6)");

  if (schedule.pack == 2 &&
      (schedule.lanes != Schedule::Lanes::Queries ||
       spec.qType != DType::BF16 || spec.kvType != DType::BF16 ||
       spec.headDim % 2 != 0 || schedule.kvTile % 2 != 0))
    return createStringError(
        "schedule pack 2 needs lanes = queries, queries and keys of bf16, an "
        "even head dim and an even kv_tile, got head dim " +
        Twine(spec.headDim) + " and kv_tile " + Twine(schedule.kvTile) +
        " (M9)");

  if (!nvidia && schedule.stages > 1 &&
      (schedule.stages > 2 || schedule.lanes != Schedule::Lanes::HeadDim))
    return createStringError(
        "schedule stages must be 1, or 2 with lanes = head_dim, for a cpu "
        "target, got " +
        Twine(schedule.stages) + " (M10)");
  if (!nvidia && schedule.stages == 2 &&
      schedule.prefetch > mostPrefetchOfTwoStages)
    return createStringError(
        "schedule prefetch must be at most " + Twine(mostPrefetchOfTwoStages) +
        " with two stages, got " + Twine(schedule.prefetch) + " (M10)");

  TileCandidate use = evaluate(schedule, machine, spec, /*explain=*/false);
  for (const LevelUse &level : use.levels)
    if (level.hard && !level.fits())
      return createStringError("schedule needs " + Twine(level.total()) + " " +
                               Twine(level.unit.empty() ? "" : "bytes of ") +
                               level.level + ", " + machine.name + " has " +
                               Twine(level.budget) +
                               (level.unit.empty() ? " (M7)" : " (M8)"));
  return Error::success();
}
