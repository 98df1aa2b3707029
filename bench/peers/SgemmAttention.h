//===- SgemmAttention.h - Attention built on a BLAS -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an engine gets that builds attention on a library's matrix product: the
// tiles and the online softmax of flash attention around two matrix products,
// of f32 or of bf16. Keys and values are read where they lie when a block of
// the cache holds a whole tile of that type; otherwise the tile's rows are
// gathered, and widened, first. So a cache with large blocks shows the peer as
// it works on dense tensors.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_PEERS_SGEMMATTENTION_H
#define PAGODA_BENCH_PEERS_SGEMMATTENTION_H

#include "bench/peers/Sgemm.h"
#include "tests/reference/Attention.h"

#include "pagoda/ThreadPool.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace pagoda::peers {

class SgemmAttention {
public:
  /// `sgemm` is present.
  SgemmAttention(Sgemm sgemm, int threads);

  const Sgemm &library() const { return sgemm; }

  /// What of `shape` it cannot do; empty: nothing.
  std::string refusal(const reference::Shape &shape) const;

  /// Writes o and, if it is wanted, lse of the step. No refusal() of its shape.
  void run(const reference::Problem &problem);

private:
  struct Scratch { ///< of a thread
    std::vector<float> scores, o, max, sum;
    std::vector<std::byte> q, p, k, v; ///< operands of products
  };
  /// Some tokens of one sequence, all query heads of one KV head.
  struct Item {
    int64_t sequence, kvHead, tokenBegin, tokenEnd;
  };
  void attend(const reference::Problem &problem, const Item &item,
              Scratch &scratch) const;

  Sgemm sgemm;
  ThreadPool pool;
  std::vector<Scratch> scratch;
};

/// The libraries that this machine has, and a line for each that it has not:
/// "onednn: cannot load libdnnl.so.3".
struct Peers {
  std::vector<std::shared_ptr<SgemmAttention>> present;
  std::vector<std::string> missing;
};
Peers findPeers(int threads);

} // namespace pagoda::peers

#endif // PAGODA_BENCH_PEERS_SGEMMATTENTION_H
