//===- CpuBackend.h - Kernels built in process, run on this CPU -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The backend that users of the CPU path get: compiler, JIT, planner, launcher.
// Libraries are kept by specification and schedule.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_CPUBACKEND_H
#define PAGODA_TESTS_CONFORMANCE_CPUBACKEND_H

#include "compiler/Driver.h"
#include "tests/conformance/Backend.h"

#include "pagoda/Kernel.h"
#include "pagoda/ThreadPool.h"

#include <map>

namespace pagoda::conformance {

class CpuBackend : public Backend {
public:
  CpuBackend(Machine machine, const BackendOptions &options)
      : machine(std::move(machine)), schedule(options.schedule),
        decodeTokens(options.decodeTokens) {}

  std::string unsupported(const Case &c) const override;
  llvm::Error run(const Case &c, CaseData &data) override;

  /// The kernels for `c`, compiled when they are asked for first.
  llvm::Expected<KernelSet> kernels(const Case &c);

private:
  llvm::Error runPlanned(const KernelSet &set, const Case &c, CaseData &data);
  llvm::Error runSplits(const KernelSet &set, const Case &c, CaseData &data);

  struct Entry {
    std::unique_ptr<JitLibrary> code;
    KernelSet kernels;
  };

  Machine machine;
  std::vector<std::string> schedule;
  int64_t decodeTokens;
  std::map<std::string, Entry> libraries;
  std::map<int, std::unique_ptr<ThreadPool>> pools; ///< by threads
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_CPUBACKEND_H
