//===- ThreadPool.h - Threads that share out numbered work ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fixed set of threads that run numbered pieces of work. Every thread has its
// own share of the numbers and takes from the others' when it is done (work
// stealing). Knows nothing of kernels.
//
// Threads: forEach() may be called from any thread; calls run one after the
// other. Work must not throw and must not call forEach() of the same pool.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_THREADPOOL_H
#define PAGODA_THREADPOOL_H

#include <cstdint>
#include <memory>

namespace pagoda {

class ThreadPool {
public:
  /// Indices [begin, end) on thread \p thread (0 .. threads() - 1).
  using Work = void (*)(void *context, int64_t begin, int64_t end, int thread);

  /// \p threads threads, the caller of forEach() among them; 0: one for each
  /// CPU that this process may run on. Error: InvalidArgument.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const;

  /// Calls \p work for [0, \p count) in pieces of \p grain indices and returns
  /// when all are done. Pieces are begun in rising order, as nearly as threads
  /// allow. What the caller wrote before is seen by the work, what the work
  /// wrote is seen by the caller.
  void forEach(int64_t count, int64_t grain, Work work, void *context);

private:
  struct Impl;
  std::unique_ptr<Impl> P;
};

} // namespace pagoda

#endif // PAGODA_THREADPOOL_H
