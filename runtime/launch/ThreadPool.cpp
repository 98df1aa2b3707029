//===- ThreadPool.cpp - Threads that share out numbered work --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thread t of T owns pieces t, t + T, t + 2T, ... so that a list sorted by
// falling cost is shared out evenly. A queue is one counter: its owner and
// thieves take from it in the same way, and a thread goes round the queues
// once.
//
//===----------------------------------------------------------------------===//

#include "pagoda/ThreadPool.h"

#include "pagoda/Error.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

using namespace pagoda;

namespace {

/// Looks before a thread goes to sleep: a layer of a model follows the one
/// before within microseconds.
constexpr int SpinRounds = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

struct alignas(64) Queue {
  std::atomic<int64_t> next{0};
};

int usableCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace

struct ThreadPool::Impl {
  explicit Impl(int threads) : queues(threads) {}

  std::vector<Queue> queues;
  std::vector<std::thread> workers;
  std::mutex callers;

  // The job: written by the caller before it raises `generation`.
  Work work = nullptr;
  void *context = nullptr;
  int64_t count = 0;
  int64_t grain = 1;
  bool stop = false;

  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<int32_t> running{0};

  void takePart(int thread) {
    int64_t threads = static_cast<int64_t>(queues.size());
    int64_t pieces = (count + grain - 1) / grain;
    for (int64_t i = 0; i != threads; ++i) {
      int64_t owner = (thread + i) % threads;
      std::atomic<int64_t> &next = queues[owner].next;
      while (true) {
        int64_t piece =
            next.fetch_add(1, std::memory_order_relaxed) * threads + owner;
        if (piece >= pieces)
          break;
        work(context, piece * grain, std::min(count, (piece + 1) * grain),
             thread);
      }
    }
  }

  void serve(int thread) {
    uint32_t seen = 0;
    while (true) {
      for (int i = 0; i != SpinRounds; ++i) {
        if (generation.load(std::memory_order_acquire) != seen)
          break;
        relax();
      }
      generation.wait(seen, std::memory_order_acquire);
      seen = generation.load(std::memory_order_acquire);
      if (stop)
        return;
      takePart(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1)
        running.notify_one();
    }
  }

  void wake() {
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) {
  if (threads < 0 || threads > 4096)
    throw Error(ErrorCode::InvalidArgument,
                "thread pool: threads: expected 0 to 4096, got " +
                    std::to_string(threads));
  if (threads == 0)
    threads = usableCpus();
  P = std::make_unique<Impl>(threads);
  for (int t = 1; t != threads; ++t)
    P->workers.emplace_back([this, t] { P->serve(t); });
}

ThreadPool::~ThreadPool() {
  P->stop = true;
  P->wake();
  for (std::thread &worker : P->workers)
    worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(P->queues.size()); }

void ThreadPool::forEach(int64_t count, int64_t grain, Work work,
                         void *context) {
  if (count <= 0)
    return;
  std::lock_guard<std::mutex> lock(P->callers);
  Impl &p = *P;
  p.work = work;
  p.context = context;
  p.count = count;
  p.grain = std::max<int64_t>(1, grain);
  // One piece, or one thread: nobody needs to wake up.
  if (p.workers.empty() || count <= p.grain) {
    for (int64_t at = 0; at < count; at += p.grain)
      work(context, at, std::min(count, at + p.grain), 0);
    return;
  }
  for (Queue &queue : p.queues)
    queue.next.store(0, std::memory_order_relaxed);
  p.running.store(static_cast<int32_t>(p.workers.size()),
                  std::memory_order_relaxed);
  p.wake();
  p.takePart(0);
  int32_t left;
  for (int i = 0; (left = p.running.load(std::memory_order_acquire)) != 0;) {
    if (++i < SpinRounds)
      relax();
    else
      p.running.wait(left, std::memory_order_acquire);
  }
}
