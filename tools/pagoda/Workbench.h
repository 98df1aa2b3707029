//===- Workbench.h - A cache and a step to be timed -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every measurement of attention kernels needs: sequences of one length in
// a shuffled pool of random values, a planned step over some of them, and a
// check of sampled rows against the f64 oracle. Kernels can be exchanged, so
// that several meet the very same cache. Attention kernels write o and lse
// alone, so a step may be repeated. Times nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_WORKBENCH_H
#define PAGODA_TOOLS_PAGODA_WORKBENCH_H

#include "tests/reference/Compare.h"
#include "tools/pagoda/Engine.h"

#include <memory>
#include <string>
#include <vector>

namespace pagoda {

/// One layer's step: `batch` sequences with `qLen` new tokens each at the end
/// of `kvLen` tokens.
struct StepShape {
  int64_t qLen = 1;
  int64_t kvLen = 1;
  int64_t batch = 1;
  /// In the pool; steps take them in turn. A multiple of the batch.
  int64_t sequences = 1;
  int threads = 1;
  /// Of each sequence, if they differ; then `kvLen` is the longest, and a step
  /// takes them all.
  std::vector<int64_t> lengths = {};
  /// Tokens that all sequences share and that a step attends to once.
  int64_t sharedPrefix = 0;

  int64_t length(int64_t sequence) const {
    return lengths.empty() ? kvLen : lengths[size_t(sequence)];
  }
  /// "2 x 1 of 4096 tokens".
  std::string str() const;
};

/// A prefill step that takes a tenth of a second or less on a core that does 30
/// GFLOP/s: as many new tokens as that allows, 128 to 2048.
StepShape prefillStep(const AttentionSpec &spec, int threads);

/// A decode step over sequences of `kvLen` tokens that reads 32 MB or more, of
/// a pool of which four times `cacheBytes` is visible, so that steps in turn
/// find nothing in a cache. Less where a pool of 1 GB, or 16 sequences a step,
/// do not hold that; shorter sequences where it does not hold one. `batch`: the
/// sequences of a step, however much it then reads; 0: as above.
StepShape decodeStep(const AttentionSpec &spec, int threads, int64_t cacheBytes,
                     int64_t kvLen = 2048, int64_t batch = 0);

/// Steps for a GPU, larger: 4096 new tokens, or fewer of a shape that takes
/// more than 300 Gflop for them; and single tokens of sequences that together
/// have 512 MB of visible keys and values, four times the largest L2.
StepShape gpuPrefillStep(const AttentionSpec &spec);
StepShape gpuDecodeStep(const AttentionSpec &spec, int64_t kvLen);

class Workbench {
public:
  /// Errors of the runtime are thrown. `device`: where steps run; null: here.
  Workbench(const AttentionSpec &spec, const KernelSet &kernels,
            const StepShape &shape, Device *device = nullptr);

  /// Exchanges the kernels for others of the same specification; a step must be
  /// planned anew.
  void use(const KernelSet &kernels) { engine.use(kernels); }
  /// Plans step `index`; steps take the sequences in turn.
  void plan(int64_t index);
  /// Plans a step of one sequence alone.
  void planOne(int64_t sequence) { planSequences(sequence, 1); }
  /// Runs the planned step. Returns the seconds it took.
  double run() { return engine.run(0, args); }

  /// Fills o and lse with NaN, so that a check sees what the next step writes
  /// and nothing of an earlier one.
  void clearOutput();
  /// o of the last step, [batch * q_len, q_heads, v_head_dim].
  std::vector<double> output() const;

  /// The planned step as the oracle, and others' code, sees it; until the next
  /// plan().
  const reference::Problem &problem() const { return planned; }
  /// Which output rows (token, head) to compare if it is to be `rows`: spread
  /// evenly over all heads.
  reference::RowFilter sampled(int64_t rows) const;
  /// Compares `rows` output rows of the last step with the oracle.
  reference::Comparison checkSampled(int64_t rows) const;

  const KvPool &pool() const { return engine.pool(); }
  const StepShape &shape() const { return step; }
  /// Floating-point operations on visible pairs, and K and V bytes, of a step;
  /// those of a shared prefix once.
  double flops() const;
  double bytes() const;

private:
  void planSequences(int64_t first, int64_t count);

  AttentionSpec spec;
  StepShape step;
  Engine engine;
  std::vector<SeqId> ids;
  std::vector<uint8_t> q, o;
  std::vector<float> lse, sinks;
  std::vector<int32_t> prefixes;
  pagoda_attention_args args{};
  pagoda_attention_args plannedArgs{}; ///< of the planned step
  reference::Problem planned;
};

/// Random values come in runs of so many, repeated.
constexpr int64_t randomRun = 1000003;

/// Share of this process's anonymous memory in huge pages, 0 to 1; negative
/// where the system does not say.
double hugePageShare();

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_WORKBENCH_H
