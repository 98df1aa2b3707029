//===- EmulatedLauncher.cpp - Runs plans on the emulator ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedLauncher.h"

#include "pagoda/GpuArgs.h"
#include "pagoda/KvPool.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace pagoda;

/// Bytes from the base of a tensor to its last element, plus one.
static int64_t bytesOf(const pagoda_aux_tensor &aux) {
  int64_t last = 0;
  for (int32_t dim = 0; dim < aux.rank; ++dim)
    last += (aux.shape[dim] - 1) * aux.strides[dim];
  return (last + 1) * 4;
}

std::vector<emulator::GlobalBuffer> pagoda::attentionBuffers(
    const pagoda_kernel_info &kernel, const pagoda_attention_args &args,
    const AttentionExtents &tensors, const PlanExtents &plan) {
  std::vector<emulator::GlobalBuffer> result;
  auto add = [&](const char *name, const void *begin, int64_t bytes,
                 bool writable = false) {
    if (begin && bytes > 0)
      result.push_back({name, begin, size_t(bytes), writable});
  };
  int64_t qBytes = dtypeBytes(kernel.q_dtype);
  add("q", args.q, tensors.rows * args.q_token_stride * qBytes);
  add("o", args.o,
      tensors.rows * args.o_token_stride * dtypeBytes(kernel.o_dtype), true);
  add("lse", args.lse, tensors.rows * args.lse_token_stride * 4, true);
  add("k", args.k.base,
      tensors.blocks * args.k.block_stride * dtypeBytes(kernel.k_dtype));
  add("v", args.v.base,
      tensors.blocks * args.v.block_stride * dtypeBytes(kernel.v_dtype));
  add("block_table", args.block_table,
      tensors.tableRows * args.block_table_stride * 4);
  add("sinks", args.sinks, kernel.q_heads * 4);
  add("alibi_slopes", args.alibi_slopes, kernel.q_heads * 4);
  add("prefix_lens", args.prefix_lens, tensors.sequences * 4);
  add("aux", args.aux, args.aux_count * int64_t(sizeof(pagoda_aux_tensor)));
  for (int32_t i = 0; i < args.aux_count; ++i)
    add("aux tensor", args.aux[i].data, bytesOf(args.aux[i]));
  add("items", args.items, plan.items * int64_t(sizeof(pagoda_work_item)));
  add("counts", args.counts, 2 * 4);
  add("row_map", args.row_map, plan.rows * 4);
  add("row_pos", args.row_pos, plan.rows * 4);
  add("row_seq", args.row_seq, plan.rows * 4);
  int64_t states = plan.partialSlots * kernel.q_heads;
  add("partial_o", args.partial_o, states * kernel.v_head_dim * 4, true);
  add("partial_ml", args.partial_ml, states * 2 * 4, true);
  add("merges", args.merges, plan.merges * int64_t(sizeof(pagoda_merge_item)));
  add("merge_slots", args.merge_slots, plan.mergeSlots * 4);
  return result;
}

/// A grid of `blocks` blocks.
static emulator::Statistics
launch(const pagoda_kernel_info &kernel, const void *args, int64_t blocks,
       const EmulatedDevice &device,
       std::vector<emulator::GlobalBuffer> buffers) {
  emulator::Launch launch;
  launch.kernel = reinterpret_cast<emulator::ThreadFunction>(
      reinterpret_cast<void *>(kernel.entry));
  launch.args = args;
  launch.gridSize = int(blocks);
  launch.threads = kernel.threads;
  launch.sharedBytes = kernel.shared_bytes;
  launch.seed = device.seed;
  launch.hostThreads = device.hostThreads;
  launch.buffers = std::move(buffers);
  emulator::Result result = emulator::run(launch);
  if (!result.ok())
    throw std::runtime_error(std::string("kernel ") + kernel.name + ": " +
                             result.fault);
  return result.statistics;
}

emulator::Statistics
pagoda::emulate(const pagoda_kernel_info &kernel, pagoda_attention_args args,
                int64_t count, const EmulatedDevice &device,
                std::vector<emulator::GlobalBuffer> buffers) {
  checkGpuArgs(kernel, args);
  bool merges = kernel.role == PAGODA_ROLE_MERGE;
  int32_t counts[2] = {merges ? 0 : int32_t(count),
                       merges ? int32_t(count) : 0};
  args.counts = counts;
  buffers.push_back({"counts", counts, sizeof(counts), false});
  return launch(kernel, &args,
                std::clamp<int64_t>(count, 1, device.multiprocessors), device,
                std::move(buffers));
}

void EmulatedLauncher::run(const AttentionPlan &plan,
                           const pagoda_kernel_info *merge,
                           pagoda_attention_args args,
                           const AttentionExtents &tensors) {
  if (plan.items().empty())
    return;
  if (!plan.merges().empty() && !merge)
    throw Error(ErrorCode::InvalidArgument,
                "launch: merge: expected a kernel for a plan with " +
                    std::to_string(plan.merges().size()) + " merges, got null");
  plan.fill(args);
  args.counts = nullptr; // each grid has its own
  const pagoda_kernel_info &kernel = plan.kernel();
  // What no item writes must not pass for a state.
  size_t states = size_t(plan.partialSlots()) * size_t(kernel.q_heads);
  partialO.assign(states * size_t(kernel.v_head_dim), NAN);
  partialMl.assign(states * 2, NAN);
  args.partial_o = partialO.data();
  args.partial_ml = partialMl.data();
  std::vector<emulator::GlobalBuffer> buffers =
      attentionBuffers(kernel, args, tensors, PlanExtents::of(plan));
  for (const PlanSegment &segment : plan.segments()) {
    pagoda_attention_args part = args;
    part.items = args.items + segment.begin;
    emulate(*segment.kernel, part, segment.end - segment.begin, device,
            buffers);
  }
  if (!plan.merges().empty())
    emulate(*merge, args, int64_t(plan.merges().size()), device, buffers);
}

/// Both pools, to write to.
static std::vector<emulator::GlobalBuffer>
poolBuffers(const pagoda_kernel_info &kernel, const pagoda_kv_view &k,
            const pagoda_kv_view &v, int64_t blocks) {
  auto buffer = [&](const char *name, const pagoda_kv_view &view,
                    int32_t dtype) -> emulator::GlobalBuffer {
    return {name, view.base,
            size_t(blocks * view.block_stride * dtypeBytes(dtype)), true};
  };
  return {buffer("k", k, kernel.k_dtype), buffer("v", v, kernel.v_dtype)};
}

void EmulatedLauncher::append(const pagoda_kernel_info &kernel,
                              const pagoda_append_args &args,
                              const AppendExtents &extents) {
  if (extents.tokens == 0)
    return;
  checkGpuArgs(kernel, args);
  std::vector<emulator::GlobalBuffer> buffers =
      poolBuffers(kernel, args.k, args.v, extents.blocks);
  auto add = [&](const char *name, const void *begin, int64_t bytes) {
    buffers.push_back({name, begin, size_t(bytes), false});
  };
  int64_t element = dtypeBytes(kernel.q_dtype);
  add("k_new", args.k_new, extents.tokens * args.k_token_stride * element);
  add("v_new", args.v_new, extents.tokens * args.v_token_stride * element);
  add("slot_mapping", args.slot_mapping, extents.tokens * 8);
  add("positions", args.positions, extents.tokens * 4);
  add("rope_cos", args.rope_cos, extents.positions * args.rope_stride * 4);
  add("rope_sin", args.rope_sin, extents.positions * args.rope_stride * 4);
  launch(kernel, &args, extents.tokens, device, std::move(buffers));
}

void EmulatedLauncher::copy(const pagoda_kernel_info &kernel,
                            const pagoda_copy_args &args, int64_t copies,
                            int64_t blocks) {
  if (copies == 0)
    return;
  checkGpuArgs(kernel, args);
  std::vector<emulator::GlobalBuffer> buffers =
      poolBuffers(kernel, args.k, args.v, blocks);
  buffers.push_back({"copies", args.copies,
                     size_t(copies) * sizeof(pagoda_block_copy), false});
  launch(kernel, &args, copies, device, std::move(buffers));
}
