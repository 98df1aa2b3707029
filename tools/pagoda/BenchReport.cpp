//===- BenchReport.cpp - Tables and files of measurements -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout, JSON and comparison of rows.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/BenchReport.h"

#include "compiler/tune/Record.h"
#include "tools/pagoda/Report.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace pagoda {

namespace {

std::string percentText(double share) {
  return formatv("{0:F0}%", 100 * share).str();
}

std::string speedupText(const BenchRow &row) {
  if (!row.speedup)
    return "";
  return formatv("{0:F2} ({1:F2} to {2:F2})", row.speedup->median,
                 row.speedup->low, row.speedup->high);
}

/// "288x96, block 4x3, packed": tiles, register block and what else there is.
std::string shortSchedule(StringRef text) {
  Expected<Schedule> read = parseSchedule(text);
  if (!read) {
    consumeError(read.takeError());
    return text.str();
  }
  std::string result =
      formatv("{0}x{1}, block {2}x{3}", read->qTile, read->kvTile,
              read->blockRows, read->blockVectors);
  if (read->heads > 1)
    result += formatv(", {0} heads", read->heads);
  if (read->stages > 1)
    result += formatv(", {0} stages", read->stages);
  else if (read->lanes == Schedule::Lanes::HeadDim)
    result += formatv(", {0} ahead", read->prefetch);
  return result + (read->pack ? ", packed" : "");
}

double at(const json::Object &object, StringRef key, bool &ok) {
  std::optional<double> value = object.getNumber(key);
  ok &= value.has_value();
  return value.value_or(0);
}

std::string textAt(const json::Object &object, StringRef key, bool &ok) {
  std::optional<StringRef> value = object.getString(key);
  ok &= value.has_value();
  return value.value_or("").str();
}

std::vector<double> numbersAt(const json::Object &object, StringRef key,
                              bool &ok) {
  std::vector<double> result;
  const json::Array *array = object.getArray(key);
  ok &= array && !array->empty();
  for (const json::Value &value : array ? *array : json::Array()) {
    std::optional<double> number = value.getAsNumber();
    ok &= number && *number > 0;
    result.push_back(number.value_or(1));
  }
  return result;
}

} // namespace

void printRows(raw_ostream &os, const std::vector<BenchRow> &rows) {
  Table table({"kernel", "step", "type", "variant", ">ms", ">spread",
               ">GFLOP/s", ">GB/s", ">of limit", "", ">speedup (99%)",
               "schedule"});
  for (const BenchRow &row : rows)
    table.row({row.kernel, row.step, row.dtype, row.variant,
               numberText(1e3 * median(row.seconds)),
               percentText(spread(row.seconds)),
               row.flops > 0 ? numberText(row.gflops()) : "",
               numberText(row.gbs()), percentText(median(row.shares)),
               row.limit, speedupText(row), shortSchedule(row.schedule)});
  table.print(os);
}

void printOrders(raw_ostream &os, const std::vector<BenchRow> &rows) {
  Table table({"kernel", "step", "order", ">ms", ">spread", ">GFLOP/s",
               ">of limit", "", ">bytes moved", ">speed (99%)"});
  for (const BenchRow &row : rows)
    table.row({row.kernel, row.step, row.variant,
               numberText(1e3 * median(row.seconds)),
               percentText(spread(row.seconds)), numberText(row.gflops()),
               percentText(median(row.shares)), row.limit,
               bytesText(row.modelBytes), speedupText(row)});
  table.print(os);
}

json::Array toJson(const std::vector<BenchRow> &rows) {
  json::Array array;
  for (const BenchRow &row : rows) {
    json::Object object{{"kernel", row.kernel},
                        {"spec", row.spec},
                        {"step", row.step},
                        {"dtype", row.dtype},
                        {"variant", row.variant},
                        {"schedule", row.schedule},
                        {"limit", row.limit},
                        {"flops", row.flops},
                        {"bytes", row.bytes},
                        {"median_seconds", median(row.seconds)},
                        {"spread", spread(row.seconds)},
                        {"gflops", row.gflops()},
                        {"gb_per_second", row.gbs()},
                        {"share_of_limit", median(row.shares)},
                        {"seconds", json::Array(row.seconds)},
                        {"shares", json::Array(row.shares)}};
    if (row.modelBytes > 0)
      object["model_bytes"] = row.modelBytes;
    if (row.speedup)
      object["speedup"] = json::Object{{"median", row.speedup->median},
                                       {"low", row.speedup->low},
                                       {"high", row.speedup->high}};
    if (row.quarters)
      object["quartiles"] = json::Array{row.quarters->low, row.quarters->high};
    array.push_back(std::move(object));
  }
  return array;
}

Expected<std::vector<BenchRow>> readRows(StringRef path) {
  Expected<json::Value> value = readJson(path);
  if (!value)
    return value.takeError();
  const json::Object *root = value->getAsObject();
  const json::Array *rows = root ? root->getArray("rows") : nullptr;
  if (!rows)
    return createStringError(path + ": expected an object with rows, as "
                                    "bench --json writes");
  std::vector<BenchRow> result;
  for (size_t i = 0; i < rows->size(); ++i) {
    const json::Object *object = (*rows)[i].getAsObject();
    bool ok = object != nullptr;
    BenchRow row;
    if (object) {
      row.kernel = textAt(*object, "kernel", ok);
      row.spec = textAt(*object, "spec", ok);
      row.step = textAt(*object, "step", ok);
      row.dtype = textAt(*object, "dtype", ok);
      row.variant = textAt(*object, "variant", ok);
      row.schedule = textAt(*object, "schedule", ok);
      row.limit = textAt(*object, "limit", ok);
      row.flops = at(*object, "flops", ok);
      row.bytes = at(*object, "bytes", ok);
      row.seconds = numbersAt(*object, "seconds", ok);
      row.shares = numbersAt(*object, "shares", ok);
    }
    if (!ok)
      return createStringError(path + ": row " + Twine(i) +
                               ": expected kernel, spec, step, dtype, variant, "
                               "schedule, limit, flops, bytes, seconds and "
                               "shares");
    result.push_back(std::move(row));
  }
  return result;
}

bool RowChange::slower() const { return change.high < 1 - runToRun; }
bool RowChange::faster() const { return change.low > 1 + runToRun; }

std::vector<RowChange> compareRows(const std::vector<BenchRow> &before,
                                   const std::vector<BenchRow> &now) {
  std::vector<RowChange> result;
  for (const BenchRow &row : now)
    for (const BenchRow &old : before)
      if (!row.peer && row.kernel == old.kernel && row.spec == old.spec &&
          row.step == old.step && row.dtype == old.dtype &&
          row.variant == old.variant) {
        result.push_back({&row, ratioOfMedians(old.shares, row.shares, 0.99)});
        break;
      }
  return result;
}

void printChanges(raw_ostream &os, const std::vector<RowChange> &changes) {
  Table table({"kernel", "step", "type", "variant", ">of limit now",
               ">now / then (99%)", ""});
  for (const RowChange &change : changes)
    table.row({change.row->kernel, change.row->step, change.row->dtype,
               change.row->variant, percentText(median(change.row->shares)),
               formatv("{0:F2} ({1:F2} to {2:F2})", change.change.median,
                       change.change.low, change.change.high)
                   .str(),
               change.slower()   ? "slower"
               : change.faster() ? "faster"
                                 : "the same"});
  table.print(os);
}

} // namespace pagoda
