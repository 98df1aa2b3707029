//===- TableGroup.h - What a group of layers keeps --------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which blocks the layers that share a block table need. Used by PagedKV, which
// lets go of the others, and by PrefixCache, which finds hits without them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TABLEGROUP_H
#define PAGODA_TABLEGROUP_H

#include <algorithm>
#include <cstdint>

namespace pagoda {

struct TableGroup {
  /// Keys that a query sees, itself included; 0: all of them.
  int32_t window = 0;
  /// Leading tokens that stay visible to every query whatever the window.
  int32_t sinkTokens = 0;

  bool operator==(const TableGroup &) const = default;

  /// Blocks that hold sink tokens; they are kept always.
  int32_t sinkBlocks(int32_t blockSize) const {
    return (sinkTokens + blockSize - 1) / blockSize;
  }
  /// The first block past the sink blocks that a query at position \p query or
  /// later can see: it sees keys query - window + 1 .. query.
  int32_t firstVisible(int32_t query, int32_t blockSize) const {
    if (window == 0)
      return 0;
    int64_t key = std::max<int64_t>(0, int64_t(query) - window + 1);
    return std::max(sinkBlocks(blockSize),
                    static_cast<int32_t>(key / blockSize));
  }
};

} // namespace pagoda

#endif // PAGODA_TABLEGROUP_H
