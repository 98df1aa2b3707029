//===- DeviceCase.h - A case in the memory of a GPU -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_DEVICECASE_H
#define PAGODA_TESTS_DEVICE_DEVICECASE_H

#include "tests/device/CaseImage.h"

#include "pagoda/CudaDevice.h"

#include <filesystem>
#include <string>
#include <vector>

namespace pagoda::device {

/// A file of kernels: a cubin, or the PTX beside it where the driver does not
/// take that (it is older than the assembler, or the GPU is another one).
class KernelCode {
public:
  explicit KernelCode(std::filesystem::path file);
  CudaDevice::Kernel load(CudaDevice &device, const std::string &name,
                          int threads, int sharedBytes);

private:
  std::filesystem::path file;
  std::vector<char> code; ///< and a final 0, which PTX needs
};

/// Throws std::runtime_error with the driver's words.
class DeviceCase {
public:
  /// `image` must outlive the object; its kernels' file is in `folder`.
  DeviceCase(CudaDevice &device, const CaseImage &image,
             const std::filesystem::path &folder);
  ~DeviceCase();
  DeviceCase(const DeviceCase &) = delete;

  /// Runs all launches once; the first output that is not as expected.
  std::string check();
  /// Of all launches, one after the other.
  double microseconds();

private:
  CudaDevice &device;
  const CaseImage &image;
  pagoda_attention_args args;
  std::vector<void *> memory;
  std::vector<CudaDevice::Kernel> kernels;
};

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_DEVICECASE_H
