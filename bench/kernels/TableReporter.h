//===- TableReporter.h - Rows of a benchmark as a table ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What pagoda-bench prints, once more in Markdown.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_KERNELS_TABLEREPORTER_H
#define PAGODA_BENCH_KERNELS_TABLEREPORTER_H

#include "benchmark/benchmark.h"

#include <string>
#include <vector>

namespace pagoda {

/// Prints as usual and keeps the rows, which have the counters rate, limit and
/// percent, and perhaps four_streams; their labels are "unit; setting".
class TableReporter : public benchmark::ConsoleReporter {
public:
  TableReporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run> &runs) override;
  /// Writes the rows so far as a table. False if that fails.
  bool write(const std::string &path) const;
  /// Rows with an error, which are not in the table.
  int failures() const { return failed; }

private:
  std::string rows;
  int failed = 0;
};

} // namespace pagoda

#endif // PAGODA_BENCH_KERNELS_TABLEREPORTER_H
