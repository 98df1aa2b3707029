//===- Handles.h - What is behind the C API's handles -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each handle wraps one C++ object. guarded() turns exceptions into a status
// and the thread's last-error text. Nothing here decides anything.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CAPI_HANDLES_H
#define PAGODA_CAPI_HANDLES_H

#include "pagoda/CpuLauncher.h"
#include "pagoda/CudaLauncher.h"
#include "pagoda/KvPool.h"
#include "pagoda/PagedKV.h"
#include "pagoda/PrefixCache.h"
#include "pagoda/pagoda.h"

#include <string>

struct pagoda_blocks {
  pagoda::BlockManager object;
};
struct pagoda_pool {
  pagoda::KvPool object;
};
struct pagoda_kv {
  pagoda::PagedKV object;
};
struct pagoda_prefix {
  pagoda::PrefixCache object;
};
struct pagoda_hit {
  pagoda::PrefixHit object;
};
struct pagoda_kernels {
  pagoda::KernelLibrary library;
  pagoda::KernelSet set;
};
struct pagoda_plan {
  pagoda::AttentionPlan object;
};
struct pagoda_launcher {
  explicit pagoda_launcher(int threads) : pool(threads), object(pool) {}
  pagoda::ThreadPool pool;
  pagoda::CpuLauncher object;
};
struct pagoda_cuda {
  std::unique_ptr<pagoda::CudaDevice> object;
};
struct pagoda_cuda_launcher {
  pagoda::CudaLauncher object;
};

namespace pagoda::capi {

/// The status of the exception in flight; its text becomes the last error.
pagoda_status failed() noexcept;
/// Forgets the last error.
void succeeded() noexcept;

/// Runs \p body, which returns a status, and catches what it throws.
template <typename Body> pagoda_status guarded(Body &&body) noexcept {
  try {
    succeeded();
    return body();
  } catch (...) {
    return failed();
  }
}

/// Throws when \p pointer is null; \p name is the parameter's.
template <typename T> T &given(T *pointer, const char *name) {
  if (!pointer)
    throw Error(ErrorCode::InvalidArgument,
                std::string(name) + ": expected a pointer, got null");
  return *pointer;
}

/// Puts what \p make returns into \p out, which is looked at before anything is
/// made.
template <typename T, typename Make>
pagoda_status created(T **out, Make &&make) noexcept {
  return guarded([&] {
    T *&place = given(out, "out");
    place = make();
    return PAGODA_OK;
  });
}

/// \p count elements from \p data, which may be null when there are none.
template <typename T>
std::span<T> array(T *data, int64_t count, const char *name) {
  if (count < 0)
    throw Error(ErrorCode::InvalidArgument,
                std::string(name) + ": expected 0 elements or more, got " +
                    std::to_string(count));
  if (count)
    (void)given(data, name);
  return {data, static_cast<size_t>(count)};
}

KvFormat formatOf(const pagoda_kv_format &format);
std::vector<TableGroup> groupsOf(const pagoda_table_group *groups,
                                 int32_t count);

} // namespace pagoda::capi

#endif // PAGODA_CAPI_HANDLES_H
