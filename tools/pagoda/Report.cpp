//===- Report.cpp - Aligned tables for people -----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout of tables and numbers.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace pagoda {

Table::Table(std::vector<std::string> theTitles)
    : titles(std::move(theTitles)) {}

void Table::row(std::vector<std::string> cells) {
  rows.push_back(std::move(cells));
}

void Table::print(raw_ostream &os) const {
  size_t columns = titles.size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> right(columns);
  std::vector<std::string> head = titles;
  for (size_t c = 0; c < columns; ++c) {
    right[c] = StringRef(titles[c]).starts_with(">");
    if (right[c])
      head[c].erase(0, 1);
    widths[c] = head[c].size();
    for (const auto &row : rows)
      widths[c] = std::max(widths[c], row[c].size());
  }
  auto line = [&](const std::vector<std::string> &cells) {
    std::string text;
    for (size_t c = 0; c < columns; ++c) {
      std::string gap(widths[c] - cells[c].size(), ' ');
      text += (c ? "  " : "") + (right[c] ? gap + cells[c] : cells[c] + gap);
    }
    os << StringRef(text).rtrim() << '\n';
  };
  line(head);
  for (const auto &row : rows)
    line(row);
}

Expected<json::Value> readJson(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return createStringError(path + ": " + buffer.getError().message());
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return createStringError(path + ": " + toString(value.takeError()));
  return value;
}

std::string bytesText(double bytes) {
  for (const char *unit : {"B", "kB", "MB", "GB"}) {
    if (bytes < 1000)
      return numberText(bytes) + ' ' + unit;
    bytes /= 1000;
  }
  return numberText(bytes) + " TB";
}

std::string numberText(double value) {
  if (value == 0 || !std::isfinite(value))
    return formatv("{0:F0}", value).str();
  int digits = 2 - int(std::floor(std::log10(std::fabs(value))));
  digits = std::clamp(digits, 0, 12);
  std::string text;
  raw_string_ostream os(text);
  os << format("%.*f", digits, value);
  return text;
}

void printKernels(raw_ostream &os, const std::vector<KernelSummary> &kernels) {
  Table table({"kernel", "role", ">rows", ">keys", ">scratch", "why"});
  for (const KernelSummary &kernel : kernels) {
    bool tiled = kernel.qTile > 0;
    table.row({kernel.name, kernel.role,
               tiled ? std::to_string(kernel.qTile) : "",
               tiled ? std::to_string(kernel.kvTile) : "",
               bytesText(double(kernel.scratchBytes)), kernel.reason});
  }
  table.print(os);
}

void printSchedules(raw_ostream &os,
                    const std::vector<KernelSummary> &kernels) {
  for (const KernelSummary &kernel : kernels)
    if (!kernel.schedule.empty())
      os << kernel.name << ": " << kernel.schedule << '\n';
}

json::Array toJson(const std::vector<KernelSummary> &kernels) {
  json::Array array;
  for (const KernelSummary &kernel : kernels)
    array.push_back(json::Object{{"name", kernel.name},
                                 {"role", kernel.role},
                                 {"schedule", kernel.schedule},
                                 {"reason", kernel.reason},
                                 {"q_tile", kernel.qTile},
                                 {"kv_tile", kernel.kvTile},
                                 {"scratch_bytes", kernel.scratchBytes}});
  return array;
}

void printTimings(raw_ostream &os, const PhaseTimings &timings) {
  Table table({"phase", ">ms"});
  double total = 0;
  for (const auto &[phase, milliseconds] : timings) {
    table.row({phase, formatv("{0:F1}", milliseconds).str()});
    total += milliseconds;
  }
  table.row({"total", formatv("{0:F1}", total).str()});
  table.print(os);
}

json::Array toJson(const PhaseTimings &timings) {
  json::Array array;
  for (const auto &[phase, milliseconds] : timings)
    array.push_back(
        json::Object{{"phase", phase}, {"milliseconds", milliseconds}});
  return array;
}

} // namespace pagoda
