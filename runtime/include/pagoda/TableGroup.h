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

#include "pagoda/Error.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace pagoda {

struct TableGroup {
  /// Keys that a query sees, itself included; 0: all of them.
  int32_t window = 0;
  /// Leading tokens that stay visible to every query whatever the window. It is
  /// their blocks that stay: kernels with a window alone do not look at them, a
  /// mask of the user's own does.
  int32_t sinkTokens = 0;

  bool operator==(const TableGroup &) const = default;

  /// Throws InvalidArgument naming the first field that is out of range.
  void verify() const {
    for (auto [field, value] :
         {std::pair("window", window), std::pair("sink_tokens", sinkTokens)})
      if (value < 0)
        throw Error(ErrorCode::InvalidArgument,
                    std::string("table group: ") + field +
                        ": expected 0 or more, got " + std::to_string(value));
  }

  /// Blocks that hold sink tokens; they are kept always.
  int32_t sinkBlocks(int32_t blockSize) const {
    return static_cast<int32_t>((int64_t(sinkTokens) + blockSize - 1) /
                                blockSize);
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
