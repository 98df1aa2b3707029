//===- CudaDevice.h - An NVIDIA GPU through its driver ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few functions of the CUDA driver that launching generated kernels takes.
// The driver is opened at run time: nothing of CUDA is needed to build this,
// and a machine without one is an answer.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CUDADEVICE_H
#define PAGODA_CUDADEVICE_H

#include "pagoda/kernel_abi.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace pagoda {

/// A CUstream; null is the default stream.
using CudaStream = void *;

class CudaDevice {
public:
  /// Device \p index, with its primary context current on this thread. Null
  /// with \p why set where there is no driver ("no libcuda.so.1") or no device.
  /// \p driver is the file to open.
  static std::unique_ptr<CudaDevice> open(std::string &why, int index = 0,
                                          const char *driver = "libcuda.so.1");
  ~CudaDevice();
  CudaDevice(const CudaDevice &) = delete;

  // Every function below throws std::runtime_error with the driver's words.

  const std::string &name() const;
  /// 80 for compute capability 8.0.
  int capability() const;
  int multiprocessors() const;

  void *allocate(size_t bytes);
  void release(void *memory);
  void upload(void *to, const void *from, size_t bytes);
  void download(void *to, const void *from, size_t bytes);
  /// Host memory that the device reads by itself, and a copy from it that
  /// happens in the order of \p stream.
  void *allocatePinned(size_t bytes);
  void releasePinned(void *memory);
  void uploadAsync(void *to, const void *from, size_t bytes, CudaStream stream);

  /// The kernel \p name of a cubin or of PTX (with a final 0), ready to be
  /// launched with \p sharedBytes of dynamic shared memory. It lives as long as
  /// the device.
  struct Kernel {
    void *function = nullptr;
    int threads = 0, sharedBytes = 0;
  };
  Kernel load(const void *image, const std::string &name, int threads,
              int sharedBytes);
  /// Blocks of \p kernel that a multiprocessor runs at once.
  int blocksPerMultiprocessor(const Kernel &kernel);

  /// Launches \p blocks blocks; \p args is the struct of the kernel's role,
  /// with pointers to device memory; it is copied. Returns at once.
  void launch(const Kernel &kernel, int64_t blocks, const void *args,
              CudaStream stream = nullptr);
  /// Waits for everything that was launched.
  void synchronize();
  /// Milliseconds that one of \p times launches took on the device.
  double time(const Kernel &kernel, int64_t blocks, const void *args,
              int times);
  /// The same of whatever \p body puts into the default stream.
  double time(const std::function<void()> &body, int times);

  CudaStream createStream();
  void destroyStream(CudaStream stream);
  /// A mark in \p stream, made by record(); wait() returns once the device has
  /// passed it, at once if there was none.
  void *createEvent();
  void destroyEvent(void *event);
  void record(void *event, CudaStream stream);
  void wait(void *event);

  /// What \p body puts into \p stream, which is not the default stream, as a
  /// graph that launchGraph() repeats; nothing of it runs now.
  void *capture(CudaStream stream, const std::function<void()> &body);
  void launchGraph(void *graph, CudaStream stream);
  void destroyGraph(void *graph);

private:
  CudaDevice();
  struct Impl;
  std::unique_ptr<Impl> P;
};

} // namespace pagoda

#endif // PAGODA_CUDADEVICE_H
