//===- PoolSimulation.h - A pool, request by request ------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replays requests on the pool of one block table, or on contiguous memory of
// the same size, and says what every block holds: to draw pools, to show what
// fragmentation does, to check MemoryPlan. The paged pool is a real
// BlockManager with real tables; nothing has memory for K and V.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_POOLSIMULATION_H
#define PAGODA_POOLSIMULATION_H

#include "pagoda/BlockManager.h"
#include "pagoda/PagedKV.h"
#include "pagoda/TableGroup.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace pagoda {

struct PoolOptions {
  enum Kind { Contiguous, Paged };
  Kind kind = Paged;
  int32_t blocks = 0;
  int32_t blockSize = 16;
  int32_t maxRequests = 64;
  int32_t maxTokens = 0; ///< of one request; 0: as many as the pool holds
  /// Paged pools only. A windowed table lets go of blocks.
  TableGroup keeps = {};
  /// Paged pools only. Tokens that requests may begin with together; only full
  /// blocks are shared, and nothing is when the pool is too small for them.
  int32_t sharedPrefix = 0;
};

class PoolSimulation {
public:
  /// Error: InvalidArgument.
  explicit PoolSimulation(const PoolOptions &options);
  ~PoolSimulation();

  /// Makes room for the tokens of a new request, one chunk of a block after the
  /// other, as far as its last token needs them. \p share: it begins with the
  /// shared prefix. A contiguous request takes the first hole of \p reserve
  /// tokens, rounded up to blocks, or of its own. False, and nothing happens,
  /// when there is no room. Error: InvalidArgument (a name that is taken,
  /// lengths).
  bool request(int32_t name, int32_t tokens, int32_t reserve = 0,
               bool share = false);
  /// Does nothing when there is no such request.
  void release(int32_t name);
  /// Lets go of what only the shared prefix itself still needs: no request
  /// shares it any more.
  void endPrefix();

  static constexpr int32_t Free = -1;
  static constexpr int32_t Shared = -2;
  struct Cell {
    int32_t owner = Free; ///< a request, Free or Shared
    int32_t tokens = 0;   ///< slots of the block with a token in them
  };
  std::vector<Cell> cells() const;

  int32_t freeBlocks() const;
  /// Free blocks that one request can have: in a row, for contiguous memory.
  int32_t largestHole() const;

private:
  bool take(int32_t name, int32_t tokens, int32_t reserve);
  bool extend(SeqId seq, int32_t tokens);

  PoolOptions Options;
  std::vector<Cell> Map; ///< contiguous
  BlockManager Blocks;
  std::unique_ptr<PagedKV> Tables;
  std::map<int32_t, SeqId> Names;
  SeqId Prefix = NoSequence;
};

} // namespace pagoda

#endif // PAGODA_POOLSIMULATION_H
