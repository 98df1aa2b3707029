//===- PlanCost.h - What a work item costs, roughly -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cost model of plans: pure functions of a kernel's description. An item
// streams its keys and values once and computes a whole tile of rows against
// each key, whether the rows are there or not; it takes the longer of the two.
// The rates are those of one core of a server, 10 bytes and 100 floating-point
// operations a nanosecond: only their ratio matters to a plan, and it decides
// little (whether a tile of rows is bound by memory or by arithmetic).
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_LAUNCH_PLANCOST_H
#define PAGODA_LAUNCH_PLANCOST_H

#include "pagoda/KvPool.h"
#include "pagoda/kernel_abi.h"

#include <algorithm>
#include <cstdint>

namespace pagoda::plan {

inline constexpr int64_t PicosecondsPerByte = 100;
inline constexpr int64_t PicosecondsPerFlop = 10;
/// Reading an item's record and queries, writing its output.
inline constexpr int64_t PicosecondsPerItem = 300000;

inline int32_t group(const pagoda_kernel_info &kernel) {
  return kernel.q_heads / kernel.kv_heads;
}
inline int32_t headGroups(const pagoda_kernel_info &kernel) {
  return kernel.kv_heads / kernel.heads_per_item;
}

/// Picoseconds that one key costs an item.
inline int64_t keyCost(const pagoda_kernel_info &kernel) {
  int64_t bytes = kernel.head_dim * dtypeBytes(kernel.k_dtype) +
                  kernel.v_head_dim * dtypeBytes(kernel.v_dtype);
  int64_t flops = int64_t(2) * (kernel.head_dim + kernel.v_head_dim) *
                  kernel.max_rows * group(kernel);
  return kernel.heads_per_item *
         std::max(bytes * PicosecondsPerByte, flops * PicosecondsPerFlop);
}

/// Picoseconds of an item with \p keys visible keys; kernels work in whole KV
/// tiles.
inline int64_t itemCost(int64_t keyCost, int32_t kvTile, int64_t keys) {
  return PicosecondsPerItem + (keys + kvTile - 1) / kvTile * kvTile * keyCost;
}

/// Picoseconds to write and join one more partial state of one row, all heads:
/// the state is written once, read once, and its accumulator passes through the
/// cache in between.
inline int64_t partialCost(const pagoda_kernel_info &kernel) {
  return int64_t(3) * 4 * kernel.q_heads * kernel.v_head_dim *
         PicosecondsPerByte;
}

} // namespace pagoda::plan

#endif // PAGODA_LAUNCH_PLANCOST_H
