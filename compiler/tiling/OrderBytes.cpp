//===- OrderBytes.cpp - What each loop order moves ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over the query tiles, in any order; what differs between loop orders
// is what a tile moves for the keys that it visits.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/OrderBytes.h"

#include "compiler/tiling/SramFit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace pagoda;

double pagoda::orderBytes(const AttentionSpec &spec, const Schedule &schedule,
                          const SequenceWork &work, int64_t splits) {
  using Order = Schedule::Order;
  constexpr double f32 = 4;
  double dims = double(spec.headDim + spec.vHeadDim);
  double qSize = double(byteSize(spec.qType));
  int64_t tokens = std::max<int64_t>(1, schedule.qTile / spec.group());
  int64_t start = work.keys - work.queries;
  double bytes = 0;
  int64_t seenTo = 0;
  for (int64_t q = 0; q < work.queries; q += tokens) {
    int64_t last = std::min(q + tokens, work.queries) - 1;
    int64_t begin = visibleKeys(spec, start + q, work.keys).first;
    int64_t end = visibleKeys(spec, start + last, work.keys).second;
    double keys = double(std::max<int64_t>(end - begin, 0));
    double rows = double((last - q + 1) * spec.group()); // of one KV head
    double key = dims * double(byteSize(spec.kvType));
    double kv = keys * key;
    // naive and kv_outer have the keys outside: each is read once.
    double unseen =
        key * double(std::max<int64_t>(0, end - std::max(seenTo, begin)));
    seenTo = std::max(seenTo, end);
    double queriesAndOutput = rows * dims * qSize;
    switch (schedule.order) {
    case Order::Naive: // S written and read, P written and read
      bytes += queriesAndOutput + unseen + 4 * rows * keys * f32;
      break;
    case Order::Gather: // the copy is written and read
      bytes += queriesAndOutput + kv + 2 * keys * dims * f32;
      break;
    case Order::KvOuter: { // each round reads Q, reads O and writes it
      double rounds = double(
          divideCeil(std::max<int64_t>(end - begin, 0), schedule.kvTile));
      bytes += unseen + rounds * rows *
                            (double(spec.headDim) * qSize +
                             2 * double(spec.vHeadDim) * f32);
      break;
    }
    case Order::QOuter:
      bytes += queriesAndOutput + kv;
      break;
    case Order::SplitKv: // partial o, m and l, written and read
      bytes += queriesAndOutput + kv;
      if (splits > 1)
        bytes += 2 * double(splits) * rows * (double(spec.vHeadDim) + 2) * f32;
      break;
    }
  }
  return bytes * double(spec.kvHeads);
}
