//===- Kernel.h - Generated kernels, found and checked ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads a generated library, or wraps one in memory, and finds kernels by what
// they were built for. A kernel that does not fit this runtime, this machine or
// the caller's cache is refused with both sides printed; nothing is run to find
// out.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_KERNEL_H
#define PAGODA_KERNEL_H

#include "pagoda/Error.h"
#include "pagoda/KvPool.h"
#include "pagoda/kernel_abi.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pagoda {

/// What a caller needs kernels for. Field names and values are those of
/// pagoda_kernel_info.
struct KernelSpec {
  int32_t qHeads = 0;
  int32_t kvHeads = 0;
  int32_t headDim = 0;
  int32_t vHeadDim = 0;
  int32_t blockSize = 16;
  int32_t layout = PAGODA_HND;
  int32_t qType = PAGODA_F32;
  int32_t kType = PAGODA_F32;
  int32_t vType = PAGODA_F32;
  int32_t oType = PAGODA_F32;
  uint32_t features = PAGODA_FEATURE_CAUSAL;
  uint64_t modsHash = 0;
  /// Of append kernels; -1: whatever the library has, if that is one.
  int32_t rotaryDim = -1;
  int32_t ropeInterleaved = -1;

  /// The specification that \p info was built for.
  static KernelSpec of(const pagoda_kernel_info &info);
  /// The cache that the kernels index into.
  KvFormat format() const;
};

/// The kernels of one specification that this machine can run; of several ISA
/// variants the one that uses most of the machine.
struct KernelSet {
  /// By rising max_rows, one for each value of it.
  std::vector<const pagoda_kernel_info *> attention;
  const pagoda_kernel_info *merge = nullptr;
  const pagoda_kernel_info *append = nullptr;
  const pagoda_kernel_info *copy = nullptr;
};

/// The pagoda_cpu_feature bits of the machine that runs this.
uint64_t hostCpuFeatures();
/// "avx2, fma" for a set of pagoda_cpu_feature bits.
std::string cpuFeatureNames(uint64_t features);
/// "causal, window" for a set of pagoda_feature bits.
std::string featureNames(uint32_t features);
const char *roleName(int32_t role);

/// Compares what \p kernel was built for with \p spec, as far as the kernel's
/// role depends on it. Empty when it fits, otherwise one line for each field,
/// "head_dim: kernel has 128, caller has 64".
std::string mismatch(const pagoda_kernel_info &kernel, const KernelSpec &spec);

/// Throws Mismatch unless \p kernel can work on a cache of \p format.
void checkCompatible(const pagoda_kernel_info &kernel, const KvFormat &format);

class KernelLibrary {
public:
  /// Opens the generated shared library at \p path, which is not looked up
  /// elsewhere. Errors: BadLibrary (no such file, not a
  /// kernel library, another ABI version).
  static KernelLibrary open(const std::string &path);
  /// Wraps a library in memory, as the JIT makes it; \p info must outlive the
  /// object. \p name stands in messages. Error: BadLibrary.
  static KernelLibrary wrap(const pagoda_library_info *info,
                            const std::string &name = "kernels in memory");
  KernelLibrary(KernelLibrary &&other) noexcept;
  KernelLibrary &operator=(KernelLibrary &&other) noexcept;
  ~KernelLibrary();

  std::span<const pagoda_kernel_info> kernels() const {
    return {Info->kernels, Info->kernel_count};
  }
  const std::string &name() const { return Name; }

  /// The kernel called \p name, or null.
  const pagoda_kernel_info *find(const std::string &name) const;

  /// The kernels for \p spec. Throws Mismatch, with both sides of the nearest
  /// kernel printed, when there is no attention kernel among them that this
  /// machine (or a machine with \p cpuFeatures) can run, or when append kernels
  /// that fit rotate differently. A role other than attention that is missing
  /// is null.
  KernelSet select(const KernelSpec &spec) const {
    return select(spec, hostCpuFeatures());
  }
  KernelSet select(const KernelSpec &spec, uint64_t cpuFeatures) const;
  /// The same among kernels for a GPU, whose code is image().
  KernelSet selectForGpu(const KernelSpec &spec) const;

  /// The code of kernels for a GPU; null for a library without.
  const pagoda_device_image *image() const { return Image; }

private:
  KernelLibrary(void *handle, const pagoda_library_info *info,
                std::string name);

  KernelSet select(const KernelSpec &spec, bool forGpu,
                   uint64_t cpuFeatures) const;

  void *Handle = nullptr; ///< of dlopen; null for memory
  const pagoda_device_image *Image = nullptr;
  const pagoda_library_info *Info = nullptr;
  std::string Name;
};

} // namespace pagoda

#endif // PAGODA_KERNEL_H
