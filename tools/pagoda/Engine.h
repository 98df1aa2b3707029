//===- Engine.h - A small inference engine's attention ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts the runtime's parts together as an engine does: a pool full of NaN whose
// blocks are handed out in shuffled order, sequences, a plan per step, a
// launcher. Knows neither where the tensors come from nor what is right.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_ENGINE_H
#define PAGODA_TOOLS_PAGODA_ENGINE_H

#include "compiler/import/AttentionSpec.h"
#include "runtime/emulator/EmulatedLauncher.h"

#include "pagoda/AttentionPlan.h"
#include "pagoda/BlockManager.h"
#include "pagoda/CpuLauncher.h"
#include "pagoda/Kernel.h"
#include "pagoda/KvPool.h"
#include "pagoda/PagedKV.h"

#include <cstdint>
#include <vector>

namespace pagoda {

/// The features that kernels of `spec` are built with, pagoda_feature bits.
uint32_t featuresOf(const AttentionSpec &spec);
/// What to ask a KernelLibrary for.
KernelSpec kernelSpecOf(const AttentionSpec &spec);
/// The scalar arguments that `spec` sets: scale, window, chunk, softcap, ALiBi
/// slopes (which point into `spec`).
pagoda_attention_args scalarArgs(const AttentionSpec &spec);
/// Arguments whose q [rows, q_heads, head_dim], o [rows, q_heads, v_head_dim]
/// and lse [rows, q_heads] lie without gaps, and nothing else.
pagoda_attention_args denseRows(const AttentionSpec &spec, const void *q,
                                void *o, float *lse);

/// Where kernels run, if not on the threads of the engine. The functions are
/// those of CpuLauncher, with the sizes of what is not in their arguments.
class Device {
public:
  virtual ~Device() = default;
  /// That plans balance for.
  virtual int32_t multiprocessors() const = 0;
  virtual void run(const AttentionPlan &plan, const pagoda_kernel_info *merge,
                   const pagoda_attention_args &args,
                   const AttentionExtents &tensors) = 0;
  virtual void append(const pagoda_kernel_info &kernel,
                      const pagoda_append_args &args, int64_t tokens,
                      int64_t blocks) = 0;
  virtual void copy(const pagoda_kernel_info &kernel,
                    const pagoda_copy_args &args, int64_t copies,
                    int64_t blocks) = 0;
};

struct EngineOptions {
  int32_t blocks = 0; ///< of the pool
  int32_t maxSequences = 1;
  int32_t maxTokens = 1; ///< of one sequence
  int32_t layers = 1;    ///< planes of the pool; all share one block table
  int threads = 1;
  uint64_t seed = 1;        ///< of the order in which blocks are handed out
  bool poison = true;       ///< fill the pool with NaN
  bool cascade = false;     ///< attend to shared prefixes once
  Device *device = nullptr; ///< null: the CPU
};

class Engine {
public:
  /// Errors of the runtime are thrown.
  Engine(const AttentionSpec &spec, const KernelSet &kernels,
         const EngineOptions &options);

  /// Exchanges the kernels for others of the same specification; the next step
  /// must be planned anew.
  void use(const KernelSet &kernels);

  PagedKV &sequences() { return paged; }
  const PagedKV &sequences() const { return paged; }
  const KvPool &pool() const { return kv; }
  int threads() const { return threadPool.threads(); }

  /// Appends `tokens` tokens to `seq` and makes the block copies that this
  /// asks for. Throws when the pool is full.
  void append(SeqId seq, int32_t tokens);
  int64_t copiedBlocks() const { return copied; }

  /// Writes positions [first, first + count) of `seq` in one layer, through the
  /// append kernel: k [count, kv_heads, head_dim], v [count, kv_heads,
  /// v_head_dim], in the element type of q. Keys are written as they are.
  void write(int32_t layer, SeqId seq, int32_t first, int32_t count,
             const void *k, const void *v);

  /// Where K and V rows (head 0; add head strides) of position `position` go
  /// in layer `layer`, as element offsets into pool().k(layer), v(layer).
  int64_t keyOffset(SeqId seq, int32_t position) const;
  int64_t valueOffset(SeqId seq, int32_t position) const;

  /// Plans a step in which sequence seqs[i] has qLens[i] new tokens, its last.
  /// Returns the seconds it took.
  double plan(const std::vector<SeqId> &seqs,
              const std::vector<int32_t> &qLens);
  /// `args` with the scalars of the specification, the pool of `layer` and the
  /// block tables.
  pagoda_attention_args complete(int32_t layer,
                                 pagoda_attention_args args) const;
  /// Runs the planned step on one layer. Tensors in `args` are set by the
  /// caller (q, o, lse and their strides, sinks), the rest is filled in.
  /// Returns the seconds it took.
  double run(int32_t layer, pagoda_attention_args args);

  const AttentionPlan &currentPlan() const { return attentionPlan; }

private:
  AttentionSpec spec;
  KernelSet kernels;
  Device *device;
  KvPool kv;
  BlockManager blocks;
  PagedKV paged;
  ThreadPool threadPool;
  CpuLauncher launcher;
  AttentionPlan attentionPlan;
  int64_t sequencesPlanned = 0;
  int64_t copied = 0;
};

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_ENGINE_H
