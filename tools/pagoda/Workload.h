//===- Workload.h - What `pagoda run` runs ----------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two sources of work for an Engine: synthetic prompts that share a prefix, and
// the user's tensors. Both return what was done, how long it took and, on
// request, how far every output element is from the f64 oracle. Printing is
// Run.cpp's.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_WORKLOAD_H
#define PAGODA_TOOLS_PAGODA_WORKLOAD_H

#include "tests/reference/Compare.h"
#include "tools/pagoda/Engine.h"
#include "tools/pagoda/ModInputs.h"
#include "tools/pagoda/Safetensors.h"
#include "tools/pagoda/SpecOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace pagoda {

/// Steps of one kind.
struct Phase {
  std::string name;
  int64_t steps = 0;
  int64_t tokens = 0; ///< new tokens, once for all layers
  double planSeconds = 0;
  double runSeconds = 0; ///< of all simulated layers
  /// Floating-point operations on visible (query, key) pairs only:
  /// 2 * (head_dim + v_head_dim) each, all heads, all simulated layers.
  double flops = 0;
  /// K and V bytes that must be read at least once a step: keys that some query
  /// of their sequence sees, all simulated layers.
  double bytes = 0;

  void add(const AttentionSpec &spec, int64_t qLen, int64_t kvLen,
           int64_t layers);
};

struct RunResult {
  std::vector<Phase> phases;
  int64_t layers = 1;     ///< simulated
  int64_t blocks = 0;     ///< of the pool
  int64_t peakBlocks = 0; ///< in use at once, shared ones counted once
  int64_t copiedBlocks = 0;
  bool cascaded = false; ///< shared prefixes were looked for
  double poolBytes = 0;
  bool verified = false;
  reference::Comparison comparison;
  std::string worstWhere; ///< step and layer of comparison.worst

  void merge(const reference::Comparison &other, const std::string &where);
};

struct SyntheticOptions {
  int64_t seqs = 4;
  int64_t promptLen = 512;  ///< tokens, the shared prefix included
  int64_t sharedPrefix = 0; ///< tokens at the start of every prompt
  int64_t decodeSteps = 8;  ///< per sequence
  int64_t chunk = 256;      ///< prompt tokens of a sequence per step, at most
  int64_t layers = 1;
  uint64_t seed = 1;
  int threads = 1;
  bool verify = false;
  bool cascade = false;            ///< attend to the shared prefix once
  const ModInputs *mods = nullptr; ///< null: none
  Device *device = nullptr;        ///< null: the CPU
};

/// Computes the prefix once, forks it for each sequence, prefills the rest of
/// the prompts in chunks and decodes. First chunks differ in size and sequences
/// decode as soon as their prompt is done, so that lengths in a batch differ.
/// Steps in which all sequences decode count as decode, others as prefill.
RunResult runSynthetic(const AttentionSpec &spec, const KernelSet &kernels,
                       const SyntheticOptions &options);

/// The user's tensors: q [total_q, q_heads, d], k [total_kv, kv_heads, d],
/// v [total_kv, kv_heads, dv], cu_seqlens_q and cu_seqlens_k [sequences + 1].
struct TensorCase {
  KnownShape shape;
  std::vector<float> q, k, v;
  std::vector<int64_t> qStarts, kvStarts;

  /// Errors name the file, the tensor and what does not fit.
  static llvm::Expected<TensorCase> read(llvm::StringRef path);
};

struct TensorResult : RunResult {
  std::vector<float> o;   ///< [total_q, q_heads, dv]
  std::vector<float> lse; ///< [total_q, q_heads]
};

/// One step over all sequences of `input`, rounded to the types of `spec` and
/// paged into shuffled blocks.
TensorResult runTensors(const AttentionSpec &spec, const KernelSet &kernels,
                        const TensorCase &input, int threads, uint64_t seed,
                        bool verify, const ModInputs *mods = nullptr,
                        Device *device = nullptr);

/// Writes o and lse.
llvm::Error writeTensors(llvm::StringRef path, const TensorResult &result,
                         const AttentionSpec &spec);

/// A sequence for verifyStep: its queries are rows qBegin .. of q, its keys
/// rows kvBegin .. of the contiguous K and V.
struct ContiguousSequence {
  int64_t qBegin, qLen, kvBegin, kvLen;
};

/// Compares o and lse in `tensors` with the oracle on K and V that never went
/// through a block table: k [tokens, kv_heads, head_dim], v alike, in the
/// element type of the cache.
reference::Comparison
verifyStep(const AttentionSpec &spec, pagoda_attention_args tensors,
           const void *k, const void *v,
           const std::vector<ContiguousSequence> &sequences, int threads,
           const ModInputs *mods = nullptr);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_WORKLOAD_H
