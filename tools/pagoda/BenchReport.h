//===- BenchReport.h - Tables and files of measurements ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows as a table, as JSON with every sample, and against the rows of an
// earlier run.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_BENCHREPORT_H
#define PAGODA_TOOLS_PAGODA_BENCHREPORT_H

#include "tools/pagoda/BenchRows.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace pagoda {

void printRows(llvm::raw_ostream &os, const std::vector<BenchRow> &rows);
/// Loop orders side by side: time, and bytes by the cost model.
void printOrders(llvm::raw_ostream &os, const std::vector<BenchRow> &rows);

llvm::json::Array toJson(const std::vector<BenchRow> &rows);
/// Reads back what toJson wrote, from the "rows" of the file's object. Errors
/// name the file and the field.
llvm::Expected<std::vector<BenchRow>> readRows(llvm::StringRef path);

/// A row against the same row of an earlier run.
struct RowChange {
  const BenchRow *row = nullptr;
  /// Share of the limit now over share of the limit then.
  Interval change;
  bool slower() const;
  bool faster() const;
};

/// Two runs differ by more than their samples do: memory lies elsewhere, other
/// neighbours are there. A change counts only if the whole interval of 99% is
/// beyond this share.
constexpr double runToRun = 0.05;

/// Our rows of `now` that `before` has, too: same kernel, specification, step,
/// type and variant.
std::vector<RowChange> compareRows(const std::vector<BenchRow> &before,
                                   const std::vector<BenchRow> &now);
void printChanges(llvm::raw_ostream &os, const std::vector<RowChange> &changes);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_BENCHREPORT_H
