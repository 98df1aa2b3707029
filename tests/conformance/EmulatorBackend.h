//===- EmulatorBackend.h - NVIDIA kernels run on the emulator ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of an NVIDIA target as host code, run by the emulator with every
// buffer registered, under the runtime's plan or one made by hand. A fault of
// the emulator fails the case.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_EMULATORBACKEND_H
#define PAGODA_TESTS_CONFORMANCE_EMULATORBACKEND_H

#include "compiler/Driver.h"
#include "runtime/emulator/EmulatedLauncher.h"
#include "tests/conformance/Backend.h"

#include <map>

namespace pagoda::conformance {

class EmulatorBackend : public Backend {
public:
  explicit EmulatorBackend(Machine machine,
                           std::vector<std::string> schedule = {})
      : machine(std::move(machine)), schedule(std::move(schedule)) {
    device.multiprocessors = 3; // fewer than items: each block takes several
  }

  std::string unsupported(const Case &c) const override;
  llvm::Error run(const Case &c, CaseData &data) override;

  EmulatedDevice device;
  /// Of the attention kernel in the last case that was planned by hand.
  emulator::Statistics statistics;

protected:
  /// The kernels for `c`; kept for cases that differ in the batch only.
  virtual llvm::Expected<const pagoda_library_info *> kernels(const Case &c);
  CompileOptions optionsOf(const Case &c) const;

private:
  Machine machine;
  std::vector<std::string> schedule;
  std::map<std::string, std::unique_ptr<JitLibrary>> libraries;
};

/// `c` as a GPU kernel can take it: elements of `type`, and rows that begin at
/// multiples of 16 bytes.
Case forGpu(const Case &c, DType type);

/// A table for the emulator: forGpu of each case, with at most two KV heads.
/// Without those that ask for a CPU's schedule, or for the second kernel of a
/// library: a GPU's are the same for one token and for many.
std::vector<Case> gpuTable(const std::vector<Case> &cases, DType type);

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_EMULATORBACKEND_H
