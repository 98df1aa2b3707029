//===- CudaBackend.h - Conformance cases through CudaLauncher ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_CUDABACKEND_H
#define PAGODA_TESTS_DEVICE_CUDABACKEND_H

#include "tests/conformance/Backend.h"
#include "tests/conformance/Data.h"

#include "pagoda/CudaLauncher.h"

#include <memory>

namespace pagoda::device {

/// The kernels of one specification as an engine has them: a library opened
/// from its file, and a launcher.
struct GpuKernels {
  std::string path;
  KernelLibrary library;
  KernelSet set;
  std::unique_ptr<CudaLauncher> launcher;

  ~GpuKernels();
};

/// Compiled for the fake driver.
std::unique_ptr<GpuKernels> makeGpuKernels(CudaDevice &device,
                                           const AttentionSpec &spec);

/// Everything that the arguments of a case point to, in device memory.
class DeviceTensors {
public:
  /// Room for the tensors of each of `cases`.
  DeviceTensors(CudaDevice &device,
                const std::vector<const conformance::CaseData *> &cases);
  ~DeviceTensors();

  /// Copies the tensors of `data`; its arguments with their addresses.
  pagoda_attention_args upload(const conformance::CaseData &data);
  /// Copies o and lse back, and what surrounds them.
  void download(conformance::CaseData &data);

private:
  CudaDevice &device;
  std::vector<void *> memory;
};

class CudaBackend : public conformance::Backend {
public:
  explicit CudaBackend(CudaDevice &device) : device(device) {}
  std::string unsupported(const conformance::Case &c) const override;
  llvm::Error run(const conformance::Case &c,
                  conformance::CaseData &data) override;

private:
  CudaDevice &device;
};

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_CUDABACKEND_H
