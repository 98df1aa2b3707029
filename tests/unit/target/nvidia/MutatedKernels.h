//===- MutatedKernels.h - NVIDIA kernels with a fault -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator's conformance backend with kernels whose IR a test has changed
// before they are emulated, to see that the emulator notices.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_TARGET_NVIDIA_MUTATEDKERNELS_H
#define PAGODA_TESTS_UNIT_TARGET_NVIDIA_MUTATEDKERNELS_H

#include "tests/conformance/EmulatorBackend.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace pagoda::conformance {

/// Changes a module at the target level: gpu.module with NVVM ops.
using Mutation = std::function<void(mlir::ModuleOp)>;

class MutatedKernels : public EmulatorBackend {
public:
  explicit MutatedKernels(Mutation mutation);
  ~MutatedKernels() override;

protected:
  llvm::Expected<const pagoda_library_info *> kernels(const Case &c) override;

private:
  Mutation mutation;
  struct Code;
  std::unique_ptr<Code> code;
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_UNIT_TARGET_NVIDIA_MUTATEDKERNELS_H
