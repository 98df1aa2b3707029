//===- Engine.h - A tiny engine over the runtime, with its oracle -*- C++
//-*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps the K and V of every sequence a second time, token by token, and checks
// what kernels make of the paged copy against attention in f64 over that one.
// The pool starts full of NaN and the output full of a sentinel, so a read of
// what nobody wrote and a row that nobody writes both show.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_RUNTIME_ENGINE_H
#define PAGODA_TESTS_UNIT_RUNTIME_ENGINE_H

#include "FakeKernels.h"
#include "pagoda/AttentionPlan.h"
#include "pagoda/CpuLauncher.h"
#include "pagoda/KvPool.h"
#include "pagoda/PagedKV.h"

#include <map>
#include <random>
#include <vector>

namespace pagoda::test {

inline constexpr float Sentinel = 7e7f;

struct EngineOptions {
  FakeSpec kernels;
  int32_t numBlocks = 256;
  int32_t maxSequences = 16;
  int32_t maxTokens = 512;
  int threads = 1;
  PlanOptions plan;
  std::vector<TableGroup> groups = {TableGroup{}};
  int32_t window = 0;
  bool shuffle = true; ///< hand out blocks in a random order
};

class Engine {
public:
  explicit Engine(const EngineOptions &options);

  /// Appends \p count random tokens to \p seq and writes them to the pool.
  /// False when there are too few blocks.
  bool append(SeqId seq, int32_t count);
  SeqId add() { return known(kv.add(), {}); }
  SeqId fork(SeqId parent, int32_t tokens);
  void truncate(SeqId seq, int32_t tokens);
  void remove(SeqId seq);

  struct Query {
    SeqId seq;
    int32_t count;    ///< the last tokens of the sequence
    int32_t hide = 0; ///< keys at the end to leave out
  };
  /// Runs attention for \p queries in group \p group and returns the largest
  /// difference from the oracle, o and lse; NaN counts as infinite.
  double step(const std::vector<Query> &queries, int32_t group = 0);

  /// K of a token as the pool has it, element 0 of head 0.
  float stored(SeqId seq, int32_t position, int32_t group = 0) const;
  /// The same as it was appended.
  float written(SeqId seq, int32_t position) const;
  /// Makes the pending copies.
  void flushCopies();

  struct Token {
    std::vector<float> k, v;
  };

  FakeLibrary fake;
  KernelLibrary library;
  KernelSet kernels;
  KvPool pool; ///< one plane a table group
  BlockManager blocks;
  PagedKV kv;
  ThreadPool threads;
  CpuLauncher launcher;
  AttentionPlan plan;
  std::vector<float> q, o, lse; ///< of the last step
  std::vector<float> sinks;     ///< one a query head, where the kernels read it
  std::map<SeqId, std::vector<Token>> tokens;

private:
  SeqId known(SeqId seq, std::vector<Token> content);
  void oracle(const std::vector<Token> &content, int32_t keys, int32_t position,
              int32_t head, const float *query, double *out, double *lse) const;

  EngineOptions Options;
  std::mt19937 Random{42};
};

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_RUNTIME_ENGINE_H
