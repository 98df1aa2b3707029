//===- Engine.cpp - A small inference engine's attention ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pool, tables, plan and launch of one kind of layer.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Engine.h"

#include "tests/reference/Element.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace pagoda {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

PlanOptions planOptions(const AttentionSpec &spec, int threads, bool cascade) {
  PlanOptions options;
  options.cascade = cascade;
  options.threads = threads;
  options.window = int32_t(spec.window.value_or(0));
  options.chunk = int32_t(spec.chunk.value_or(0));
  return options;
}

PagedKVOptions pagedOptions(const AttentionSpec &spec,
                            const EngineOptions &options) {
  PagedKVOptions result;
  result.blockSize = int32_t(spec.blockSize);
  result.maxSequences = options.maxSequences;
  result.maxTokens = options.maxTokens;
  return result;
}

/// Makes `blocks` hand out its blocks in random order: the free list is a
/// stack, so all are taken and given back shuffled.
void shuffleFreeList(BlockManager &blocks, uint64_t seed) {
  std::vector<int32_t> ids(blocks.numBlocks());
  if (!blocks.allocate(ids))
    throw Error(ErrorCode::InvalidArgument, "a new pool has blocks in use");
  std::mt19937_64 random(seed);
  std::shuffle(ids.begin(), ids.end(), random);
  blocks.release(ids);
}

const pagoda_kernel_info &present(const pagoda_kernel_info *kernel,
                                  int32_t role) {
  if (!kernel)
    throw Error(ErrorCode::InvalidArgument,
                std::string("kernels: expected one with role ") +
                    roleName(role) + ", got none");
  return *kernel;
}

} // namespace

uint32_t featuresOf(const AttentionSpec &spec) {
  return (spec.causal ? PAGODA_FEATURE_CAUSAL : 0) |
         (spec.window ? PAGODA_FEATURE_WINDOW : 0) |
         (spec.chunk ? PAGODA_FEATURE_CHUNK : 0) |
         (spec.softcap ? PAGODA_FEATURE_SOFTCAP : 0) |
         (spec.sinks ? PAGODA_FEATURE_SINKS : 0) |
         (spec.prefixLm ? PAGODA_FEATURE_PREFIX_LM : 0) |
         (spec.alibiSlopes.empty() ? 0 : PAGODA_FEATURE_ALIBI);
}

KernelSpec kernelSpecOf(const AttentionSpec &spec) {
  KernelSpec result;
  result.qHeads = int32_t(spec.qHeads);
  result.kvHeads = int32_t(spec.kvHeads);
  result.headDim = int32_t(spec.headDim);
  result.vHeadDim = int32_t(spec.vHeadDim);
  result.blockSize = int32_t(spec.blockSize);
  result.layout = int32_t(spec.layout);
  result.qType = result.oType = int32_t(spec.qType);
  result.kType = result.vType = int32_t(spec.kvType);
  result.features = featuresOf(spec);
  result.rotaryDim = int32_t(spec.rotaryDim);
  result.ropeInterleaved = spec.ropeInterleaved;
  return result;
}

pagoda_attention_args denseRows(const AttentionSpec &spec, const void *q,
                                void *o, float *lse) {
  pagoda_attention_args args{};
  args.q = q;
  args.q_head_stride = spec.headDim;
  args.q_token_stride = spec.qHeads * spec.headDim;
  args.o = o;
  args.o_head_stride = spec.vHeadDim;
  args.o_token_stride = spec.qHeads * spec.vHeadDim;
  args.lse = lse;
  args.lse_head_stride = 1;
  args.lse_token_stride = spec.qHeads;
  return args;
}

pagoda_attention_args scalarArgs(const AttentionSpec &spec) {
  pagoda_attention_args args{};
  args.scale = float(spec.scale);
  args.window = int32_t(spec.window.value_or(0));
  args.chunk = int32_t(spec.chunk.value_or(0));
  args.softcap = float(spec.softcap.value_or(0));
  args.alibi_slopes =
      spec.alibiSlopes.empty() ? nullptr : spec.alibiSlopes.data();
  return args;
}

Engine::Engine(const AttentionSpec &theSpec, const KernelSet &theKernels,
               const EngineOptions &options)
    : spec(theSpec), kernels(theKernels), device(options.device),
      kv(kernelSpecOf(spec).format(), options.blocks, options.layers),
      blocks(options.blocks), paged(blocks, pagedOptions(spec, options)),
      threadPool(options.threads), launcher(threadPool),
      attentionPlan(
          kernels.attention,
          planOptions(spec,
                      device ? device->multiprocessors() : threadPool.threads(),
                      options.cascade)) {
  shuffleFreeList(blocks, options.seed);
  if (options.poison)
    reference::fillNaN(
        kv.data(), int32_t(spec.kvType),
        int64_t(kv.bytes() / reference::elementBytes(int32_t(spec.kvType))));
}

void Engine::use(const KernelSet &theKernels) {
  kernels = theKernels;
  PlanOptions options = attentionPlan.options();
  attentionPlan = AttentionPlan(kernels.attention, options);
}

void Engine::append(SeqId seq, int32_t tokens) {
  if (!paged.append(seq, tokens))
    throw Error(ErrorCode::InvalidArgument,
                "pool of " + std::to_string(blocks.numBlocks()) +
                    " blocks is full: sequence of " +
                    std::to_string(paged.length(seq)) + " tokens wants " +
                    std::to_string(tokens) + " more");
  std::span<const pagoda_block_copy> copies = paged.pendingCopies();
  copied += int64_t(copies.size());
  for (int32_t layer = 0; layer < kv.planes() && !copies.empty(); ++layer) {
    const pagoda_kernel_info &kernel = present(kernels.copy, PAGODA_ROLE_COPY);
    pagoda_copy_args args = {kv.k(layer), kv.v(layer), copies.data()};
    if (device)
      device->copy(kernel, args, int64_t(copies.size()), kv.numBlocks());
    else
      launcher.copy(kernel, args, int64_t(copies.size()));
  }
  paged.copiesDone();
}

void Engine::write(int32_t layer, SeqId seq, int32_t first, int32_t count,
                   const void *k, const void *v) {
  std::vector<int64_t> slots(count);
  paged.slotMapping(seq, first, slots);
  pagoda_append_args args{};
  args.k_new = k;
  args.k_head_stride = spec.headDim;
  args.k_token_stride = spec.kvHeads * spec.headDim;
  args.v_new = v;
  args.v_head_stride = spec.vHeadDim;
  args.v_token_stride = spec.kvHeads * spec.vHeadDim;
  args.k = kv.k(layer);
  args.v = kv.v(layer);
  args.slot_mapping = slots.data();
  const pagoda_kernel_info &kernel =
      present(kernels.append, PAGODA_ROLE_APPEND);
  if (device)
    device->append(kernel, args, count, kv.numBlocks());
  else
    launcher.append(kernel, args, count);
}

int64_t Engine::keyOffset(SeqId seq, int32_t position) const {
  pagoda_kv_view view = kv.k();
  return paged.table(seq)[position / spec.blockSize] * view.block_stride +
         position % spec.blockSize * view.token_stride;
}

int64_t Engine::valueOffset(SeqId seq, int32_t position) const {
  pagoda_kv_view view = kv.v();
  return paged.table(seq)[position / spec.blockSize] * view.block_stride +
         position % spec.blockSize * view.token_stride;
}

double Engine::plan(const std::vector<SeqId> &seqs,
                    const std::vector<int32_t> &qLens) {
  std::vector<int32_t> kvLens, rows;
  for (SeqId seq : seqs) {
    kvLens.push_back(paged.length(seq));
    rows.push_back(paged.row(seq));
  }
  BatchShape batch;
  batch.qLens = qLens;
  batch.kvLens = kvLens;
  batch.tableRows = rows;
  batch.blockTable = paged.tables();
  batch.blockTableStride = paged.tableStride();
  sequencesPlanned = int64_t(seqs.size());
  Clock::time_point start = Clock::now();
  attentionPlan.build(batch);
  return secondsSince(start);
}

pagoda_attention_args Engine::complete(int32_t layer,
                                       pagoda_attention_args args) const {
  pagoda_attention_args scalars = scalarArgs(spec);
  args.scale = scalars.scale;
  args.window = scalars.window;
  args.chunk = scalars.chunk;
  args.softcap = scalars.softcap;
  args.alibi_slopes = scalars.alibi_slopes;
  args.k = kv.k(layer);
  args.v = kv.v(layer);
  args.block_table = paged.tables();
  args.block_table_stride = paged.tableStride();
  return args;
}

double Engine::run(int32_t layer, pagoda_attention_args args) {
  args = complete(layer, args);
  Clock::time_point start = Clock::now();
  if (device)
    device->run(attentionPlan, kernels.merge, args,
                {attentionPlan.numRows(), sequencesPlanned,
                 paged.maxSequences(), kv.numBlocks()});
  else
    launcher.run(attentionPlan, kernels.merge, args);
  return secondsSince(start);
}

} // namespace pagoda
