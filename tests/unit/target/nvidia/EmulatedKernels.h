//===- EmulatedKernels.h - NVIDIA kernels run on the emulator ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A conformance backend: the NVIDIA kernels of a case as host code, run by the
// emulator with every buffer registered. A test may change the kernels' IR
// before they are emulated, to see that the emulator notices.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_TARGET_NVIDIA_EMULATEDKERNELS_H
#define PAGODA_TESTS_UNIT_TARGET_NVIDIA_EMULATEDKERNELS_H

#include "Emulator.h"
#include "compiler/Driver.h"
#include "tests/conformance/Backend.h"
#include "tests/conformance/ManualPlan.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>

namespace pagoda::conformance {

/// Changes a module at the target level: gpu.module with NVVM ops.
using Mutation = std::function<void(mlir::ModuleOp)>;

class EmulatedKernels : public Backend {
public:
  explicit EmulatedKernels(std::string machine = "sm_80")
      : machine(std::move(machine)) {}

  std::string unsupported(const Case &) const override { return ""; }
  /// A fault of the emulator is the error.
  llvm::Error run(const Case &c, CaseData &data) override;

  Mutation mutation;
  uint64_t seed = 1; ///< of the emulator
  int gridSize = 3;  ///< fewer blocks than items: each takes several
  emulator::Statistics statistics; ///< of the last case

private:
  /// The kernels for `c`, kept for cases that differ in the batch only.
  llvm::Expected<const pagoda_library_info *> compiled(const Case &c);
  llvm::Error launch(const pagoda_kernel_info &kernel, const Case &c,
                     const CaseData &data, const ManualPlan &plan);

  std::string machine;
  std::map<std::string, std::unique_ptr<JitLibrary>> libraries;
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_UNIT_TARGET_NVIDIA_EMULATEDKERNELS_H
