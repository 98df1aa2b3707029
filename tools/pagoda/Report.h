//===- Report.h - Aligned tables for people ---------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of text with aligned columns, and the JSON of what the compiler says
// about its kernels. What goes into a report is the subcommand's business.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_REPORT_H
#define PAGODA_TOOLS_PAGODA_REPORT_H

#include "compiler/Driver.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace pagoda {

/// Rows of cells; columns are as wide as their widest cell, two spaces apart.
/// A column whose title begins with '>' is aligned to the right.
class Table {
public:
  explicit Table(std::vector<std::string> titles);
  void row(std::vector<std::string> cells);
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
};

/// The JSON in a file; errors begin with its path.
llvm::Expected<llvm::json::Value> readJson(llvm::StringRef path);

/// 12345678 as "12.3 MB" and so on (powers of 1000).
std::string bytesText(double bytes);
/// Three significant digits without exponent: "1234", "12.3", "0.0123".
std::string numberText(double value);

/// The kernels, their tiles and the reason for them.
void printKernels(llvm::raw_ostream &os,
                  const std::vector<KernelSummary> &kernels);
/// The schedules of the kernels that have one.
void printSchedules(llvm::raw_ostream &os,
                    const std::vector<KernelSummary> &kernels);
llvm::json::Array toJson(const std::vector<KernelSummary> &kernels);

/// Wall time per phase of the compiler.
void printTimings(llvm::raw_ostream &os, const PhaseTimings &timings);
llvm::json::Array toJson(const PhaseTimings &timings);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_REPORT_H
