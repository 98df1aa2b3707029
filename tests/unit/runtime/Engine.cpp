//===- Engine.cpp - A tiny engine over the runtime, with its oracle -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Engine.h. The oracle is the definition: softmax over the visible keys, in
// f64, no tiles and no tables.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace pagoda;
using namespace pagoda::test;

static PagedKVOptions kvOptions(const EngineOptions &options) {
  PagedKVOptions kv;
  kv.blockSize = options.kernels.blockSize;
  kv.maxSequences = options.maxSequences;
  kv.maxTokens = options.maxTokens;
  kv.groups = options.groups;
  return kv;
}

Engine::Engine(const EngineOptions &options)
    : fake(options.kernels), library(KernelLibrary::wrap(fake.info())),
      kernels(library.select(fake.spec())),
      pool(fake.spec().format(), options.numBlocks,
           static_cast<int32_t>(options.groups.size())),
      blocks(options.numBlocks), kv(blocks, kvOptions(options)),
      threads(options.threads), launcher(threads),
      plan(kernels.attention, options.plan), Options(options) {
  std::fill_n(static_cast<float *>(pool.data()), pool.bytes() / sizeof(float),
              std::numeric_limits<float>::quiet_NaN());
  if (!options.shuffle)
    return;
  // A stack that was filled in random order hands out blocks in random order.
  std::vector<int32_t> all(options.numBlocks);
  if (blocks.allocate(all)) {
    std::shuffle(all.begin(), all.end(), Random);
    blocks.release(all);
  }
}

SeqId Engine::known(SeqId seq, std::vector<Token> content) {
  if (seq != NoSequence)
    tokens[seq] = std::move(content);
  return seq;
}

SeqId Engine::fork(SeqId parent, int32_t count) {
  std::vector<Token> content = tokens.at(parent);
  content.resize(count);
  return known(kv.fork(parent, count), std::move(content));
}

void Engine::truncate(SeqId seq, int32_t count) {
  kv.truncate(seq, count);
  tokens.at(seq).resize(count);
}

void Engine::remove(SeqId seq) {
  kv.remove(seq);
  tokens.erase(seq);
}

void Engine::flushCopies() {
  for (int32_t plane = 0; plane != pool.planes(); ++plane) {
    pagoda_copy_args args = {pool.k(plane), pool.v(plane),
                             kv.pendingCopies().data()};
    launcher.copy(*kernels.copy, args,
                  static_cast<int64_t>(kv.pendingCopies().size()));
  }
  kv.copiesDone();
}

bool Engine::append(SeqId seq, int32_t count) {
  int32_t from = kv.length(seq);
  if (!kv.append(seq, count))
    return false;
  flushCopies();
  const FakeSpec &s = Options.kernels;
  int64_t kRow = int64_t(s.kvHeads) * s.headDim;
  int64_t vRow = int64_t(s.kvHeads) * s.vHeadDim;
  std::vector<float> k(count * kRow), v(count * vRow);
  std::normal_distribution<float> normal;
  for (float &x : k)
    x = normal(Random);
  for (float &x : v)
    x = normal(Random);
  for (int32_t i = 0; i != count; ++i)
    tokens.at(seq).push_back(
        {{k.begin() + i * kRow, k.begin() + (i + 1) * kRow},
         {v.begin() + i * vRow, v.begin() + (i + 1) * vRow}});
  for (int32_t g = 0; g != kv.numGroups(); ++g) {
    std::vector<int64_t> slots(count);
    kv.slotMapping(seq, from, slots, g);
    pagoda_append_args args = {};
    args.k_new = k.data();
    args.k_token_stride = kRow;
    args.k_head_stride = s.headDim;
    args.v_new = v.data();
    args.v_token_stride = vRow;
    args.v_head_stride = s.vHeadDim;
    args.k = pool.k(g);
    args.v = pool.v(g);
    args.slot_mapping = slots.data();
    launcher.append(*kernels.append, args, count);
  }
  return true;
}

void Engine::oracle(const std::vector<Token> &content, int32_t keys,
                    int32_t position, int32_t head, const float *query,
                    double *out, double *lse) const {
  const FakeSpec &s = Options.kernels;
  int32_t kvHead = head / (s.qHeads / s.kvHeads);
  double scale = 1 / std::sqrt(double(s.headDim));
  std::vector<double> scores;
  std::vector<const float *> values;
  for (int32_t j = 0; j != keys; ++j) {
    bool causal = s.features & PAGODA_FEATURE_CAUSAL;
    bool windowed = s.features & PAGODA_FEATURE_WINDOW;
    if ((causal && j > position) ||
        (windowed && position - j >= Options.window))
      continue;
    double score = 0;
    for (int32_t d = 0; d != s.headDim; ++d)
      score += double(query[d]) * content[j].k[kvHead * s.headDim + d];
    scores.push_back(score * scale);
    values.push_back(content[j].v.data() + kvHead * s.vHeadDim);
  }
  std::fill_n(out, s.vHeadDim, 0.0);
  *lse = -std::numeric_limits<double>::infinity();
  if (scores.empty())
    return;
  double top = *std::max_element(scores.begin(), scores.end()), total = 0;
  if (!sinks.empty()) {
    top = std::max(top, double(sinks[head]));
    total = std::exp(sinks[head] - top);
  }
  for (double &score : scores)
    total += score = std::exp(score - top);
  for (size_t j = 0; j != scores.size(); ++j)
    for (int32_t d = 0; d != s.vHeadDim; ++d)
      out[d] += scores[j] / total * values[j][d];
  *lse = top + std::log(total);
}

double Engine::step(const std::vector<Query> &queries, int32_t group) {
  const FakeSpec &s = Options.kernels;
  std::vector<int32_t> qLens, kvLens, rows;
  int32_t total = 0;
  for (const Query &query : queries) {
    qLens.push_back(query.count);
    kvLens.push_back(kv.length(query.seq) - query.hide);
    rows.push_back(kv.row(query.seq));
    total += query.count;
  }
  BatchShape batch = {qLens, kvLens, rows, kv.tables(group), kv.tableStride()};
  plan.build(batch);

  std::normal_distribution<float> normal;
  int64_t qRow = int64_t(s.qHeads) * s.headDim;
  int64_t oRow = int64_t(s.qHeads) * s.vHeadDim;
  q.resize(total * qRow);
  for (float &x : q)
    x = normal(Random);
  o.assign(total * oRow, Sentinel);
  lse.assign(int64_t(total) * s.qHeads, Sentinel);
  pagoda_attention_args args = {};
  args.q = q.data();
  args.q_token_stride = qRow;
  args.q_head_stride = s.headDim;
  args.o = o.data();
  args.o_token_stride = oRow;
  args.o_head_stride = s.vHeadDim;
  args.lse = lse.data();
  args.lse_token_stride = s.qHeads;
  args.lse_head_stride = 1;
  args.k = pool.k(group);
  args.v = pool.v(group);
  args.block_table = kv.tables(group);
  args.block_table_stride = kv.tableStride();
  args.scale = 1 / std::sqrt(float(s.headDim));
  args.window = Options.window;
  args.sinks = sinks.empty() ? nullptr : sinks.data();
  launcher.run(plan, kernels.merge, args);

  double worst = 0;
  auto compare = [&](double got, double expected) {
    if (got == expected)
      return;
    double error = std::abs(got - expected);
    worst = std::max(
        worst, error < 1e30 ? error : std::numeric_limits<double>::infinity());
  };
  std::vector<double> expected(s.vHeadDim);
  int32_t row = 0;
  for (size_t n = 0; n != queries.size(); ++n)
    for (int32_t i = 0; i != qLens[n]; ++i, ++row)
      for (int32_t h = 0; h != s.qHeads; ++h) {
        double expectedLse;
        oracle(tokens.at(queries[n].seq), kvLens[n], kvLens[n] - qLens[n] + i,
               h, q.data() + row * qRow + h * s.headDim, expected.data(),
               &expectedLse);
        for (int32_t d = 0; d != s.vHeadDim; ++d)
          compare(o[row * oRow + h * s.vHeadDim + d], expected[d]);
        compare(lse[int64_t(row) * s.qHeads + h], expectedLse);
      }
  return worst;
}

float Engine::stored(SeqId seq, int32_t position, int32_t group) const {
  int32_t block = kv.table(seq, group)[position / kv.blockSize()];
  pagoda_kv_view view = pool.k(group);
  return static_cast<const float *>(
      view.base)[block * view.block_stride +
                 position % kv.blockSize() * view.token_stride];
}

float Engine::written(SeqId seq, int32_t position) const {
  return tokens.at(seq)[position].k[0];
}
