//===- Setup.h - A cache, kernels and a step to be timed --------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every kernel benchmark needs: kernels built in process, sequences of one
// length in a shuffled pool of the runtime, a planned step per sequence, and a
// check of sampled rows against the f64 oracle. Times nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_KERNELS_SETUP_H
#define PAGODA_BENCH_KERNELS_SETUP_H

#include "compiler/Driver.h"
#include "tools/pagoda/Engine.h"

#include <memory>
#include <string>
#include <vector>

namespace pagoda::bench {

/// One timed configuration.
struct Config {
  std::string name;
  AttentionSpec spec;
  int64_t qLen = 1;
  int64_t kvLen = 0;
  int64_t sequences = 1; ///< taken in turn, one a step
  int threads = 1;
};

/// f32, 16/8 heads, head dim 128, block 16, causal.
AttentionSpec defaultSpec(KvLayout layout);

class Setup {
public:
  /// Compiles and fills; errors of compiler and runtime are thrown.
  Setup(const Config &config, const CompileOptions &options);

  /// Plans the step of sequence `index`.
  void plan(int64_t index);
  /// Runs the planned step.
  void run();

  /// Compares `rows` output rows (token, head) of the last step, spread evenly,
  /// with the oracle. Empty when all are within their bounds.
  std::string checkSampled(int64_t rows) const;

  const KvPool &pool() const { return engine->pool(); }
  /// Floating-point operations on visible pairs, and K and V bytes, of a step.
  double flops() const;
  double bytes() const;
  const std::vector<KernelSummary> &kernels() const { return code->kernels(); }

private:
  Config config;
  std::unique_ptr<JitLibrary> code;
  std::unique_ptr<Engine> engine;
  std::vector<SeqId> ids;
  std::vector<float> q, o, lse;
  pagoda_attention_args args{};
  int64_t last = 0;
};

/// Share of this process's anonymous memory in huge pages, 0 to 1; negative
/// where the system does not say.
double hugePageShare();

} // namespace pagoda::bench

#endif // PAGODA_BENCH_KERNELS_SETUP_H
