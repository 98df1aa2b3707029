//===- AttentionPlan.cpp - The work of one step ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The class around PlanBuilder.h: checks of kernels and options, the order of
// the steps, and what callers read.
//
//===----------------------------------------------------------------------===//

#include "launch/PlanBuilder.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace pagoda;
using namespace pagoda::plan;

/// Throws unless the options fit each other and the kernels are variants of
/// one.
static void checkKernels(std::span<const pagoda_kernel_info *const> kernels,
                         const PlanOptions &options) {
  auto bad = [](const std::string &text) {
    throw Error(ErrorCode::InvalidArgument, "plan: " + text);
  };
  if (kernels.empty())
    bad("kernels: expected 1 or more, got 0");
  for (const pagoda_kernel_info *kernel : kernels) {
    if (!kernel)
      bad("kernels: expected a kernel, got null");
    if (kernel->role != PAGODA_ROLE_ATTENTION)
      bad(std::string("kernels: expected attention kernels, got ") +
          kernel->name + " with role " + roleName(kernel->role));
    std::string why = mismatch(*kernel, KernelSpec::of(*kernels.front()));
    if (!why.empty())
      throw Error(ErrorCode::Mismatch,
                  std::string("plan: kernels ") + kernel->name + " and " +
                      kernels.front()->name +
                      " are not variants of one kernel:\n" + why);
  }
  if (options.threads < 1)
    bad("threads: expected 1 or more, got " + std::to_string(options.threads));
  if (options.deterministicSplit < 1)
    bad("deterministic_split: expected 1 or more, got " +
        std::to_string(options.deterministicSplit));
  if (options.window < 0 || options.chunk < 0)
    bad("window and chunk: expected 0 or more, got " +
        std::to_string(options.window) + " and " +
        std::to_string(options.chunk));
  if (options.deterministic && options.cascade)
    bad("cascade: expected off in the deterministic mode, got on: groups "
        "depend on the other sequences of the batch");
}

AttentionPlan::AttentionPlan(std::span<const pagoda_kernel_info *const> kernels,
                             const PlanOptions &options) {
  checkKernels(kernels, options);
  P = std::make_unique<Impl>();
  P->options = options;
  P->kernels.assign(kernels.begin(), kernels.end());
  std::sort(P->kernels.begin(), P->kernels.end(),
            [](auto *a, auto *b) { return a->max_rows < b->max_rows; });
  P->align = P->kernels.front()->block_size;
  for (const pagoda_kernel_info *kernel : P->kernels) {
    P->keyCosts.push_back(keyCost(*kernel));
    P->align = std::lcm(P->align, kernel->kv_tile);
  }
  P->clips = !P->has(PAGODA_FEATURE_PREFIX_LM | PAGODA_FEATURE_CUSTOM);
}

AttentionPlan::~AttentionPlan() = default;
AttentionPlan::AttentionPlan(AttentionPlan &&) noexcept = default;
AttentionPlan &AttentionPlan::operator=(AttentionPlan &&) noexcept = default;

void AttentionPlan::build(const BatchShape &batch) {
  Impl &p = *P;
  p.clear();
  try {
    p.check(batch);
  } catch (...) {
    p.clear();
    throw;
  }
  bool cascade = cascades();
  if (cascade) {
    p.sharedTable = batch.blockTable;
    p.findShared();
    p.addSharedTiles();
  }
  int32_t blockSize = p.kernels.front()->block_size;
  int32_t from = p.addRows();
  for (int32_t s = 0; s != int32_t(p.rows.size()); ++s) {
    int32_t begin = cascade ? p.prefix.ownBegin()[s] * blockSize : 0;
    p.addTiles(p.rows[s], from + p.rowStart[s], from + p.rowStart[s + 1], begin,
               batch.kvLens[s], begin == 0);
  }
  p.splitTiles();
  p.addUnits();
  p.addMerges();
  p.addItems();
  p.batch = {};
}

std::span<const PlanSegment> AttentionPlan::segments() const {
  return P->segments;
}
std::span<const pagoda_work_item> AttentionPlan::items() const {
  return P->items;
}
std::span<const int64_t> AttentionPlan::costs() const { return P->costs; }
std::span<const int32_t> AttentionPlan::rowMap() const { return P->rowMap; }
std::span<const int32_t> AttentionPlan::rowPos() const { return P->rowPos; }
std::span<const int32_t> AttentionPlan::rowSeq() const { return P->rowSeq; }
std::span<const pagoda_merge_item> AttentionPlan::merges() const {
  return P->merges;
}
std::span<const int32_t> AttentionPlan::mergeSlots() const {
  return P->mergeSlots;
}
int32_t AttentionPlan::numRows() const { return P->numRows; }
int32_t AttentionPlan::longest() const { return P->longest; }
int32_t AttentionPlan::partialSlots() const { return P->partialSlots; }
int64_t AttentionPlan::scratchBytes() const { return P->scratchBytes; }
const PlanOptions &AttentionPlan::options() const { return P->options; }
bool AttentionPlan::cascades() const {
  return P->options.cascade &&
         !P->has(PAGODA_FEATURE_WINDOW | PAGODA_FEATURE_CHUNK |
                 PAGODA_FEATURE_PREFIX_LM | PAGODA_FEATURE_CUSTOM);
}
const int32_t *AttentionPlan::blockTable() const { return P->sharedTable; }
std::span<const pagoda_kernel_info *const> AttentionPlan::kernels() const {
  return P->kernels;
}
const pagoda_kernel_info &AttentionPlan::kernel() const {
  return *P->kernels.front();
}

PlanExtents PlanExtents::of(const AttentionPlan &plan) {
  return {int64_t(plan.items().size()), int64_t(plan.rowMap().size()),
          int64_t(plan.merges().size()), int64_t(plan.mergeSlots().size()),
          plan.partialSlots()};
}

void AttentionPlan::fill(pagoda_attention_args &args) const {
  args.items = P->items.data();
  args.counts = P->counts;
  args.row_map = P->rowMap.data();
  args.row_pos = P->rowPos.data();
  args.row_seq = P->rowSeq.data();
  args.merges = P->merges.data();
  args.merge_slots = P->mergeSlots.data();
}
