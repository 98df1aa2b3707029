//===- TableReporter.cpp - Rows of a benchmark as a table -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/TableReporter.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdio>
#include <fstream>

namespace pagoda {

void TableReporter::ReportRuns(const std::vector<Run> &runs) {
  ConsoleReporter::ReportRuns(runs);
  for (const Run &run : runs) {
    if (run.error_occurred) {
      ++failed;
      continue;
    }
    auto counter = [&](const char *name) {
      auto it = run.counters.find(name);
      return it == run.counters.end() ? 0 : double(it->second);
    };
    auto [unit, setting] = llvm::StringRef(run.report_label).split("; ");
    std::string more = setting.str();
    if (double rate = counter("four_streams"))
      more += llvm::formatv(", {0:F1} as four streams", rate);
    char text[512];
    std::snprintf(
        text, sizeof(text), "| %s | %s | %.1f | %.1f | %.0f%% | %s |\n",
        run.run_name.function_name.c_str(), unit.str().c_str(), counter("rate"),
        counter("limit"), counter("percent"), more.c_str());
    rows += text;
  }
}

bool TableReporter::write(const std::string &path) const {
  std::ofstream file(path);
  file << "| configuration | unit | kernel | limit | of limit | setting |\n"
          "| --- | --- | --- | --- | --- | --- |\n"
       << rows;
  return bool(file.flush());
}

} // namespace pagoda
