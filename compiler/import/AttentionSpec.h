//===- AttentionSpec.h - What one attention kernel must compute -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The specification of one attention kernel family: everything that is known at
// compile time about one kind of layer. It comes from a model's config.json
// (ModelConfig) or from command line flags, and goes into attention IR
// (BuildAttention). Plain data: no MLIR, no JSON, no target, no schedule.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_ATTENTIONSPEC_H
#define PAGODA_COMPILER_IMPORT_ATTENTIONSPEC_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagoda {

/// Element types; the values are those of `pagoda_dtype` in kernel_abi.h.
enum class DType { F32 = 0, F16 = 1, BF16 = 2, F8E4M3 = 3, F8E5M2 = 4, I8 = 5 };

/// "f32", "f16", "bf16", "f8e4m3", "f8e5m2" or "i8".
constexpr const char *nameOf(DType type) {
  constexpr const char *names[] = {"f32",    "f16",    "bf16",
                                   "f8e4m3", "f8e5m2", "i8"};
  return names[int(type)];
}

/// Order of the dimensions inside one cache block; values of `pagoda_layout`.
enum class KvLayout { NHD = 0, HND = 1 };

struct AttentionSpec {
  /// The layer kind this specification serves, for example "full_attention".
  std::string name = "attention";

  int64_t qHeads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;  ///< of q and k
  int64_t vHeadDim = 0; ///< of v and o
  int64_t blockSize = 16;
  KvLayout layout = KvLayout::HND;
  DType qType = DType::F32; ///< of q and o
  DType kvType = DType::F32;

  /// The softmax scale is a run-time argument; this is the value to pass.
  double scale = 0;

  // Which scores count and how. Run-time arguments carry the numbers; a value
  // here says that the feature exists and which number the model uses.
  bool causal = true;
  std::optional<int64_t> window;  ///< keys a query sees, itself included
  std::optional<int64_t> chunk;   ///< positions per chunk (chunked attention)
  std::optional<double> softcap;  ///< score = c * tanh(score / c)
  bool prefixLm = false;          ///< the first keys are seen by all queries
  bool sinks = false;             ///< one learned logit per query head
  std::vector<float> alibiSlopes; ///< one per query head; empty: no ALiBi

  // What append kernels do to keys; attention kernels do not depend on it.
  int64_t rotaryDim = 0;        ///< first dims of a key that rotate; 0: none
  bool ropeInterleaved = false; ///< pairs are (2i, 2i+1), else halves

  /// Query heads per KV head.
  int64_t group() const { return kvHeads ? qHeads / kvHeads : 0; }
};

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_ATTENTIONSPEC_H
