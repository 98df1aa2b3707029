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

[[noreturn]] void bad(const std::string &text) {
  throw Error(ErrorCode::InvalidArgument, "launch: " + text);
}

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

void pagoda::checkView(const pagoda_kernel_info &kernel,
                       const pagoda_kv_view &view, int32_t dim,
                       const char *what) {
  bool nhd = kernel.layout == PAGODA_NHD;
  const char *innerName = nhd ? "head_stride" : "token_stride";
  const char *outerName = nhd ? "token_stride" : "head_stride";
  int64_t inner = nhd ? view.head_stride : view.token_stride;
  int64_t outer = nhd ? view.token_stride : view.head_stride;
  auto stride = [&](const char *name, int64_t got, int64_t atLeast) {
    if (got < atLeast)
      bad(std::string(what) + ": " + name + ": kernel " + kernel.name +
          " with layout " + layoutName(kernel.layout) + " expects " +
          std::to_string(atLeast) + " or more, got " + std::to_string(got));
  };
  if (!view.base)
    bad(std::string(what) + ": base: expected memory, got null");
  stride(innerName, inner, dim);
  stride(outerName, outer, inner);
  stride("block_stride", view.block_stride, dim);
}

static void checkArgs(const AttentionPlan &plan,
                      const pagoda_kernel_info *merge,
                      const pagoda_attention_args &args) {
  const pagoda_kernel_info &kernel = plan.kernel();
  if (!args.q)
    bad("q: expected memory, got null");
  if (!args.o)
    bad("o: expected memory, got null");
  if (!args.block_table)
    bad("block_table: expected memory, got null");
  if (!(args.scale > 0))
    bad("scale: expected a number greater than 0, got " +
        std::to_string(args.scale));
  checkView(kernel, args.k, kernel.head_dim, "k");
  checkView(kernel, args.v, kernel.v_head_dim, "v");
  auto needs = [&](uint32_t feature, bool given, const char *field) {
    if ((kernel.features & feature) && !given)
      bad(std::string(field) + ": expected a value for kernel " + kernel.name +
          " with " + featureNames(feature) + ", got none");
  };
  needs(PAGODA_FEATURE_WINDOW, args.window > 0, "window");
  needs(PAGODA_FEATURE_CHUNK, args.chunk > 0, "chunk");
  needs(PAGODA_FEATURE_SOFTCAP, args.softcap > 0, "softcap");
  needs(PAGODA_FEATURE_ALIBI, args.alibi_slopes, "alibi_slopes");
  needs(PAGODA_FEATURE_SINKS, args.sinks, "sinks");
  needs(PAGODA_FEATURE_PREFIX_LM, args.prefix_lens, "prefix_lens");
  const PlanOptions &options = plan.options();
  auto planned = [&](uint32_t feature, int32_t planned, int32_t given,
                     const char *field) {
    if ((kernel.features & feature) && planned && planned != given)
      bad(std::string(field) + ": expected " + std::to_string(planned) +
          " as the plan was built for, got " + std::to_string(given));
  };
  planned(PAGODA_FEATURE_WINDOW, options.window, args.window, "window");
  planned(PAGODA_FEATURE_CHUNK, options.chunk, args.chunk, "chunk");
  if (plan.merges().empty())
    return;
  if (!merge)
    bad("merge: expected a kernel for a plan with " +
        std::to_string(plan.merges().size()) + " merges, got null");
  if (merge->role != PAGODA_ROLE_MERGE)
    bad(std::string("merge: expected a merge kernel, got ") + merge->name +
        " with role " + roleName(merge->role));
  std::string why = mismatch(*merge, KernelSpec::of(kernel));
  if (!why.empty())
    throw Error(ErrorCode::Mismatch, std::string("kernel ") + merge->name +
                                         " does not join the states of " +
                                         kernel.name + ":\n" + why);
}

void CpuLauncher::run(const AttentionPlan &plan,
                      const pagoda_kernel_info *merge,
                      pagoda_attention_args args) {
  if (plan.items().empty())
    return;
  checkArgs(plan, merge, args);
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

/// The role and the layout of an append or copy kernel.
static void checkKernel(const pagoda_kernel_info &kernel, int32_t role,
                        const pagoda_kv_view &k, const pagoda_kv_view &v) {
  if (kernel.role != role)
    bad(std::string("kernel ") + kernel.name + ": expected role " +
        roleName(role) + ", got " + roleName(kernel.role));
  checkView(kernel, k, kernel.head_dim, "k");
  checkView(kernel, v, kernel.v_head_dim, "v");
}

void CpuLauncher::append(const pagoda_kernel_info &kernel,
                         const pagoda_append_args &args, int64_t tokens) {
  if (tokens == 0)
    return;
  checkKernel(kernel, PAGODA_ROLE_APPEND, args.k, args.v);
  if (!args.k_new || !args.v_new || !args.slot_mapping)
    bad("append: expected k_new, v_new and slot_mapping, got null");
  if (kernel.rotary_dim && args.rope_cos) {
    if (!args.rope_sin || !args.positions)
      bad("append: expected positions and rope_sin beside rope_cos, got null");
    if (args.rope_stride < kernel.rotary_dim / 2)
      bad(std::string("append: rope_stride: kernel ") + kernel.name +
          " with rotary_dim " + std::to_string(kernel.rotary_dim) +
          " expects " + std::to_string(kernel.rotary_dim / 2) +
          " or more, got " + std::to_string(args.rope_stride));
  }
  if (!kernel.rotary_dim && args.rope_cos)
    bad(std::string("append: rope_cos: kernel ") + kernel.name +
        " rotates no keys, got a table");
  std::lock_guard<std::mutex> lock(P->callers);
  P->runAll(kernel, &args, tokens, TokensAtOnce);
}

void CpuLauncher::copy(const pagoda_kernel_info &kernel,
                       const pagoda_copy_args &args, int64_t copies) {
  if (copies == 0)
    return;
  checkKernel(kernel, PAGODA_ROLE_COPY, args.k, args.v);
  if (!args.copies)
    bad("copy: copies: expected memory, got null");
  std::lock_guard<std::mutex> lock(P->callers);
  P->runAll(kernel, &args, copies, 1);
}
