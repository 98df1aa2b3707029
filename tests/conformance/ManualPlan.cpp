//===- ManualPlan.cpp - A plan made by hand, any number of splits ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work items straight from their definition in kernel_abi.h.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ManualPlan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

namespace pagoda::conformance {

ManualPlan::ManualPlan(const reference::Problem &problem,
                       const pagoda_kernel_info &info, int64_t splits) {
  int64_t slots = 0;
  for (size_t s = 0; s < problem.sequences.size(); ++s) {
    const reference::Sequence &sequence = problem.sequences[s];
    for (int64_t first = 0; first < sequence.qLen; first += info.max_rows) {
      int64_t count = std::min<int64_t>(info.max_rows, sequence.qLen - first);
      int64_t offset = int64_t(rowMap.size());
      for (int64_t t = first; t < first + count; ++t) {
        rowMap.push_back(int32_t(sequence.qBegin + t));
        rowPos.push_back(int32_t(sequence.kvLen - sequence.qLen + t));
        rowSeq.push_back(int32_t(s));
      }
      for (int64_t split = 0; split < splits; ++split)
        for (int32_t head = 0; head < info.kv_heads;
             head += info.heads_per_item) {
          pagoda_work_item item{};
          item.table_row = int32_t(sequence.tableRow);
          item.row_map_offset = int32_t(offset);
          item.row_count = int32_t(count);
          item.head_begin = head;
          item.head_count = info.heads_per_item;
          item.kv_begin = int32_t(sequence.kvLen * split / splits);
          item.kv_end = int32_t(sequence.kvLen * (split + 1) / splits);
          item.q_pos0 = rowPos[offset];
          item.partial_slot = splits == 1 ? -1 : int32_t(slots + split * count);
          item.flags = split == 0 ? PAGODA_ITEM_FIRST_SPLIT : 0;
          items.push_back(item);
        }
      if (splits == 1)
        continue;
      for (int64_t t = 0; t < count; ++t) {
        merges.push_back({rowMap[offset + t], int32_t(mergeSlots.size()),
                          int32_t(splits), 0});
        for (int64_t split = 0; split < splits; ++split)
          mergeSlots.push_back(int32_t(slots + split * count + t));
      }
      slots += splits * count;
    }
  }
  partialO.assign(slots * info.q_heads * info.v_head_dim, NAN);
  partialMl.assign(slots * info.q_heads * 2, NAN);
}

void ManualPlan::attach(pagoda_attention_args &args) {
  args.items = items.data();
  args.row_map = rowMap.data();
  args.row_pos = rowPos.data();
  args.row_seq = rowSeq.data();
  args.partial_o = partialO.data();
  args.partial_ml = partialMl.data();
  args.merges = merges.data();
  args.merge_slots = mergeSlots.data();
}

void runKernel(const pagoda_kernel_info &kernel, const void *args,
               int64_t count, int threads) {
  std::atomic<int64_t> next = 0;
  auto work = [&] {
    size_t bytes = (size_t(kernel.scratch_bytes) + 63) / 64 * 64;
    std::unique_ptr<void, decltype(&std::free)> scratch(
        std::aligned_alloc(64, std::max<size_t>(bytes, 64)), &std::free);
    constexpr int64_t Step = 2; // ranges of one and of two
    for (int64_t begin; (begin = next.fetch_add(Step)) < count;) {
      std::memset(scratch.get(), 0xff, bytes); // NaN as f32
      kernel.entry(args, begin, std::min(begin + Step, count), scratch.get());
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();
}

} // namespace pagoda::conformance
