//===- CpuLauncher.cpp - Runs kernels on the CPU --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks arguments, keeps the buffers, and runs the two phases of a plan: items
// of all segments as one list, then merges.
//
//===----------------------------------------------------------------------===//

#include "pagoda/CpuLauncher.h"

#include "cache/HugeMemory.h"
#include "launch/LaunchChecks.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace pagoda;

namespace {

/// Memory that only grows. Its content does not survive growth.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept
      : Memory(std::exchange(other.Memory, nullptr)),
        Bytes(std::exchange(other.Bytes, 0)) {}
  ~Buffer() { unmapHuge(Memory, Bytes); }
  void *atLeast(size_t bytes) {
    if (bytes > Bytes) {
      // Room to grow into, so that a slowly rising need settles at once.
      size_t size = std::max(bytes, Bytes * 2);
      void *memory = mapHuge(size);
      unmapHuge(Memory, Bytes);
      Memory = memory;
      Bytes = size;
    }
    return Memory;
  }

private:
  void *Memory = nullptr;
  size_t Bytes = 0;
};

/// Tokens and copies that a thread takes at a time: each is a few cache lines.
constexpr int64_t TokensAtOnce = 16;

} // namespace

struct CpuLauncher::Impl {
  explicit Impl(ThreadPool &pool) : pool(pool), scratch(pool.threads()) {}

  ThreadPool &pool;
  std::mutex callers;
  std::vector<Buffer> scratch;
  std::vector<void *> scratchOf = std::vector<void *>(scratch.size());
  Buffer partialO, partialMl;

  void needScratch(int64_t bytes) {
    for (size_t t = 0; t != scratch.size(); ++t)
      scratchOf[t] = scratch[t].atLeast(static_cast<size_t>(bytes));
  }
  /// Runs \p kernel for the indices [0, count).
  void runAll(const pagoda_kernel_info &kernel, const void *args, int64_t count,
              int64_t grain);
};

CpuLauncher::CpuLauncher(ThreadPool &pool) : P(std::make_unique<Impl>(pool)) {}
CpuLauncher::~CpuLauncher() = default;
ThreadPool &CpuLauncher::pool() const { return P->pool; }

void CpuLauncher::Impl::runAll(const pagoda_kernel_info &kernel,
                               const void *args, int64_t count, int64_t grain) {
  needScratch(kernel.scratch_bytes);
  struct Job {
    pagoda_kernel_fn entry;
    const void *args;
    void *const *scratch;
  } job = {kernel.entry, args, scratchOf.data()};
  pool.forEach(
      count, grain,
      [](void *context, int64_t begin, int64_t end, int thread) {
        auto &job = *static_cast<Job *>(context);
        job.entry(job.args, begin, end, job.scratch[thread]);
      },
      &job);
}

void CpuLauncher::run(const AttentionPlan &plan,
                      const pagoda_kernel_info *merge,
                      pagoda_attention_args args) {
  if (plan.items().empty())
    return;
  for (const PlanSegment &segment : plan.segments())
    checkCpu(*segment.kernel);
  checkLaunch(plan.kernel(), plan.options(), args);
  checkTensors(plan.kernel(), plan.numRows(), args);
  checkTable(plan, args);
  if (!plan.merges().empty())
    checkMerge(plan, merge);
  std::lock_guard<std::mutex> lock(P->callers);
  plan.fill(args);
  const pagoda_kernel_info &kernel = plan.kernel();
  size_t heads = size_t(plan.partialSlots()) * kernel.q_heads;
  if (!args.partial_o)
    args.partial_o = static_cast<float *>(
        P->partialO.atLeast(heads * kernel.v_head_dim * sizeof(float)));
  if (!args.partial_ml)
    args.partial_ml =
        static_cast<float *>(P->partialMl.atLeast(heads * 2 * sizeof(float)));
  P->needScratch(plan.scratchBytes());
  struct Job {
    std::span<const PlanSegment> segments;
    const pagoda_attention_args *args;
    void *const *scratch;
  } job = {plan.segments(), &args, P->scratchOf.data()};
  // One list over all segments: no thread waits between them.
  P->pool.forEach(
      static_cast<int64_t>(plan.items().size()), 1,
      [](void *context, int64_t index, int64_t, int thread) {
        auto &job = *static_cast<Job *>(context);
        for (const PlanSegment &segment : job.segments) {
          int64_t size = segment.end - segment.begin;
          if (index < size) {
            index += segment.begin;
            segment.kernel->entry(job.args, index, index + 1,
                                  job.scratch[thread]);
            return;
          }
          index -= size;
        }
      },
      &job);
  if (!plan.merges().empty())
    P->runAll(*merge, &args, static_cast<int64_t>(plan.merges().size()), 1);
}

void CpuLauncher::append(const pagoda_kernel_info &kernel,
                         const pagoda_append_args &args, int64_t tokens) {
  if (tokens == 0)
    return;
  checkCpu(kernel);
  checkLaunch(kernel, args, tokens);
  std::lock_guard<std::mutex> lock(P->callers);
  P->runAll(kernel, &args, tokens, TokensAtOnce);
}

void CpuLauncher::copy(const pagoda_kernel_info &kernel,
                       const pagoda_copy_args &args, int64_t copies) {
  if (copies == 0)
    return;
  checkCpu(kernel);
  checkLaunch(kernel, args);
  std::lock_guard<std::mutex> lock(P->callers);
  P->runAll(kernel, &args, copies, 1);
}
