//===- AttentionPlan.h - The work of one step -------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the query and KV lengths of a batch into work items for kernels: which
// query rows against which keys, split so that the threads finish together, and
// which partial states to join. Built once a step, used by every layer. Reads
// no tensor, runs nothing.
//
// Rows: the new tokens of all sequences, one after the other in batch order. A
// sequence with q new tokens and kv tokens in all has them at positions
// kv - q .. kv - 1.
//
// Threads: one thread at a time may build; a built plan may be read by many.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_ATTENTIONPLAN_H
#define PAGODA_ATTENTIONPLAN_H

#include "pagoda/Error.h"
#include "pagoda/Kernel.h"
#include "pagoda/kernel_abi.h"

#include <cstdint>
#include <memory>
#include <span>

namespace pagoda {

struct PlanOptions {
  /// Threads to balance for; 1 splits nothing.
  int32_t threads = 1;
  /// Batch-invariant: the kernel, the rows of a tile and the KV splits of a
  /// sequence depend on that sequence alone, so that its results have the same
  /// bits whatever else is in the batch and however many threads there are.
  bool deterministic = false;
  /// Keys a split has in the deterministic mode, rounded up to whole KV tiles.
  int32_t deterministicSplit = 1024;
  /// Finds sequences whose block tables begin alike and attends to the shared
  /// blocks once for all of them. Needs the tables in BatchShape; excludes
  /// deterministic. Has no effect on kernels with a window, chunks, a prefix or
  /// user regions (see cascades()): not all members see all shared keys.
  bool cascade = false;
  /// The run-time arguments of windowed and chunked kernels, so that work is
  /// planned for the visible keys alone; 0: not known.
  int32_t window = 0;
  int32_t chunk = 0;
};

/// The sequences of one step.
struct BatchShape {
  std::span<const int32_t> qLens; ///< [sequences] new tokens, 0 or more
  /// [sequences] tokens in all, the new ones among them, 0 or more. Where they
  /// are fewer than the new ones, the first queries sit before position 0 and
  /// see no key: o 0, lse -inf.
  std::span<const int32_t> kvLens;
  /// [sequences] rows of the block table; empty: 0, 1, 2, ...
  std::span<const int32_t> tableRows;
  /// What kernels will be given as block_table; only cascade plans read it.
  const int32_t *blockTable = nullptr;
  int64_t blockTableStride = 0;
};

/// A run of items for one kernel.
struct PlanSegment {
  const pagoda_kernel_info *kernel = nullptr;
  int32_t begin = 0; ///< first item
  int32_t end = 0;   ///< one past the last item
};

class AttentionPlan;

/// The sizes of a plan's arrays.
struct PlanExtents {
  int64_t items = 0, rows = 0, merges = 0, mergeSlots = 0, partialSlots = 0;

  static PlanExtents of(const AttentionPlan &plan);
};

class AttentionPlan {
public:
  /// \p kernels are variants of one kernel that differ in max_rows; each
  /// sequence gets the one with the smallest max_rows that holds its new
  /// tokens, or the largest. Errors: InvalidArgument (none, or a bad option),
  /// Mismatch (they are not variants of one kernel).
  AttentionPlan(std::span<const pagoda_kernel_info *const> kernels,
                const PlanOptions &options = {});
  ~AttentionPlan();
  AttentionPlan(AttentionPlan &&) noexcept;
  AttentionPlan &operator=(AttentionPlan &&) noexcept;

  /// Plans \p batch, replacing the plan before. Takes no heap memory once it
  /// has seen a batch as large. Error: InvalidArgument; the plan is then empty.
  void build(const BatchShape &batch);

  std::span<const PlanSegment> segments() const;
  /// Within a segment by falling cost. Every row is written exactly once: by
  /// the one item that holds it, or by the merge of its partial states.
  std::span<const pagoda_work_item> items() const;
  /// Estimated cost of each item, in picoseconds of some machine; for tests and
  /// for explanations, as only their ratios mean something.
  std::span<const int64_t> costs() const;
  std::span<const int32_t> rowMap() const;
  std::span<const int32_t> rowPos() const;
  std::span<const int32_t> rowSeq() const;
  std::span<const pagoda_merge_item> merges() const;
  std::span<const int32_t> mergeSlots() const;

  int32_t numRows() const;
  /// Tokens of the longest sequence that has queries.
  int32_t longest() const;
  /// Partial slots that the items write: partial_o needs partialSlots() *
  /// q_heads * v_head_dim floats, partial_ml partialSlots() * q_heads * 2.
  int32_t partialSlots() const;
  /// Scratch that a thread needs, the largest of the kernels used.
  int64_t scratchBytes() const;
  const PlanOptions &options() const;
  /// Whether PlanOptions::cascade is on and these kernels can share.
  bool cascades() const;
  /// What a plan that cascades() was built from, null before a batch and for
  /// other plans: kernels must be given the same table.
  const int32_t *blockTable() const;
  /// The kernels that the plan was made for, by rising max_rows.
  std::span<const pagoda_kernel_info *const> kernels() const;
  /// The specification that the kernels share.
  const pagoda_kernel_info &kernel() const;

  /// Sets the fields of \p args that come from the plan: items, counts, row
  /// maps and merges. They point into the plan.
  void fill(pagoda_attention_args &args) const;

private:
  struct Impl;
  std::unique_ptr<Impl> P;
};

} // namespace pagoda

#endif // PAGODA_ATTENTIONPLAN_H
