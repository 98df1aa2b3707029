//===- Workload.cpp - Synthetic prompts -----------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random tokens, a small scheduler, and a contiguous copy of K and V beside the
// paged one for the oracle, so that a fault of paging (a wrong copy, a block
// shared for too long) shows as well as one of the kernels.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Workload.h"

#include "tests/reference/Element.h"
#include "tools/pagoda/Report.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace pagoda {

using reference::elementBytes;
using reference::loadRow;
using reference::storeRow;

namespace {

uint64_t mix(uint64_t x) {
  // The finaliser of splitmix64.
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Nearly normal values, the same for the same key: four uniform 16-bit numbers
/// summed have variance 1/3.
void randomRow(uint64_t key, std::vector<double> &out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint64_t bits = mix(key + i * 0x632be59bd9b4e019u);
    double sum = double((bits & 0xffff) + (bits >> 16 & 0xffff) +
                        (bits >> 32 & 0xffff) + (bits >> 48)) /
                 65536;
    out[i] = (sum - 2) * std::sqrt(3.0);
  }
}

/// Number of keys that the query at `position` sees.
int64_t visibleKeys(const AttentionSpec &spec, int64_t position,
                    int64_t kvLen) {
  int64_t first = 0;
  if (spec.window)
    first = std::max(first, position - *spec.window + 1);
  if (spec.chunk && position >= 0)
    first = std::max(first, position / *spec.chunk * *spec.chunk);
  int64_t last = spec.causal ? position : kvLen - 1;
  return std::max<int64_t>(std::min(last, kvLen - 1) - first + 1, 0);
}

/// All of the pool is written, and of the oracle's copy: more than the machine
/// has would take it from other programs before anything fails.
void checkMemory(const AttentionSpec &spec, const SyntheticOptions &options,
                 const EngineOptions &engine) {
  double needed = double(KvPool::bytesNeeded(kernelSpecOf(spec).format(),
                                             engine.blocks, engine.layers));
  if (options.verify)
    needed += double(engine.layers) * engine.maxSequences * engine.maxTokens *
              double(spec.kvHeads * (spec.headDim + spec.vHeadDim)) *
              double(elementBytes(int32_t(spec.kvType)));
  double present =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (needed > present)
    throw Error(ErrorCode::InvalidArgument,
                "a workload of " + bytesText(needed) +
                    " of keys and values is too large: this machine has " +
                    bytesText(present) + " of memory");
}

class Synthetic {
public:
  Synthetic(const AttentionSpec &spec, const KernelSet &kernels,
            const SyntheticOptions &options);
  RunResult run();

private:
  struct Live {
    SeqId id = NoSequence;
    int64_t index = 0; ///< names its tokens and its place in the oracle's copy
    int64_t length = 0;
    int64_t decoded = 0;
  };
  /// New tokens of a live sequence in this step.
  struct Turn {
    Live *sequence;
    int64_t tokens;
  };

  void step(const std::vector<Turn> &turns, Phase &phase);
  void writeTokens(const Live &sequence, int64_t first, int64_t count);
  void makeRow(bool key, int64_t layer, const Live &sequence, int64_t position,
               int64_t index);
  static EngineOptions engineOptions(const AttentionSpec &spec,
                                     const SyntheticOptions &options);

  const AttentionSpec &spec;
  SyntheticOptions options;
  Engine engine;
  RunResult result;
  int64_t maxTokens;
  int64_t stepIndex = 0;
  /// The oracle's copy, [layers, sequences + prefix, max_tokens, kv_heads,
  /// dim].
  std::vector<uint8_t> flatK, flatV;
  std::vector<uint8_t> q, o;
  /// K and V of a sequence's new tokens in one layer, [tokens, kv_heads, dim].
  std::vector<uint8_t> newK, newV;
  std::vector<float> lse, sinks;
  std::vector<double> row;
};

EngineOptions Synthetic::engineOptions(const AttentionSpec &spec,
                                       const SyntheticOptions &options) {
  auto blocksFor = [&](int64_t tokens) {
    return (tokens + spec.blockSize - 1) / spec.blockSize;
  };
  int64_t tokens = options.promptLen + options.decodeSteps;
  int64_t blocks =
      blocksFor(options.sharedPrefix) +
      options.seqs * (blocksFor(tokens - options.sharedPrefix) + 2);
  blocks += blocks / 4 + 1; // some that nobody takes lie in between
  if (blocks > INT32_MAX || tokens > INT32_MAX)
    throw Error(ErrorCode::InvalidArgument,
                "a workload of " + std::to_string(blocks) +
                    " blocks is too large: at most " +
                    std::to_string(INT32_MAX));
  EngineOptions result;
  result.blocks = int32_t(blocks);
  result.maxSequences = int32_t(options.seqs) + 1;
  result.maxTokens = int32_t(tokens);
  result.layers = int32_t(options.layers);
  result.threads = options.threads;
  result.seed = options.seed;
  result.device = options.device;
  result.cascade = options.cascade;
  checkMemory(spec, options, result);
  return result;
}

Synthetic::Synthetic(const AttentionSpec &theSpec, const KernelSet &kernels,
                     const SyntheticOptions &theOptions)
    : spec(theSpec), options(theOptions),
      engine(spec, kernels, engineOptions(spec, options)),
      maxTokens(options.promptLen + options.decodeSteps) {
  if (options.verify) {
    size_t rows =
        size_t(options.layers * (options.seqs + 1) * maxTokens * spec.kvHeads);
    size_t bytes = elementBytes(int32_t(spec.kvType));
    flatK.resize(rows * spec.headDim * bytes);
    flatV.resize(rows * spec.vHeadDim * bytes);
  }
  row.resize(spec.qHeads);
  randomRow(mix(options.seed) + 3, row);
  sinks.assign(row.begin(), row.end());
  result.layers = options.layers;
  result.blocks = engine.pool().numBlocks();
  result.poolBytes = double(engine.pool().bytes());
  result.verified = options.verify;
}

/// Makes K or V of one token: row `index` of the new ones, and the oracle's.
void Synthetic::makeRow(bool key, int64_t layer, const Live &sequence,
                        int64_t position, int64_t index) {
  // Tokens of the prefix are the same in every sequence.
  int64_t stream =
      position < options.sharedPrefix ? options.seqs : sequence.index;
  int64_t dim = key ? spec.headDim : spec.vHeadDim;
  row.resize(spec.kvHeads * dim);
  randomRow(mix(mix(options.seed * 4 + key) + uint64_t(layer)) +
                mix(uint64_t(stream) << 32 | uint64_t(position)),
            row);
  int64_t elements = spec.kvHeads * dim;
  void *fresh = (key ? newK : newV).data();
  storeRow(fresh, int32_t(spec.qType), index * elements, elements, row.data());
  if (!options.verify)
    return;
  // What the kernel gets is rounded already.
  loadRow(fresh, int32_t(spec.qType), index * elements, elements, row.data());
  storeRow(
      (key ? flatK : flatV).data(), int32_t(spec.kvType),
      ((layer * (options.seqs + 1) + sequence.index) * maxTokens + position) *
          elements,
      elements, row.data());
}

void Synthetic::writeTokens(const Live &sequence, int64_t first,
                            int64_t count) {
  size_t heads =
      size_t(count * spec.kvHeads) * elementBytes(int32_t(spec.qType));
  newK.resize(heads * spec.headDim);
  newV.resize(heads * spec.vHeadDim);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (int64_t t = 0; t < count; ++t)
      for (bool key : {true, false})
        makeRow(key, layer, sequence, first + t, t);
    engine.write(int32_t(layer), sequence.id, int32_t(first), int32_t(count),
                 newK.data(), newV.data());
  }
}

void Synthetic::step(const std::vector<Turn> &turns, Phase &phase) {
  std::vector<SeqId> ids;
  std::vector<int32_t> qLens;
  std::vector<ContiguousSequence> flat;
  int64_t rows = 0;
  for (const Turn &turn : turns) {
    Live &sequence = *turn.sequence;
    engine.append(sequence.id, int32_t(turn.tokens));
    writeTokens(sequence, sequence.length, turn.tokens);
    sequence.length += turn.tokens;
    ids.push_back(sequence.id);
    qLens.push_back(int32_t(turn.tokens));
    flat.push_back(
        {rows, turn.tokens, sequence.index * maxTokens, sequence.length});
    rows += turn.tokens;
    phase.add(spec, turn.tokens, sequence.length, options.layers);
  }
  const BlockManager &blocks = engine.sequences().blocks();
  result.peakBlocks = std::max<int64_t>(result.peakBlocks,
                                        blocks.numBlocks() - blocks.numFree());

  int32_t dtype = int32_t(spec.qType);
  size_t bytes = elementBytes(dtype);
  q.resize(rows * spec.qHeads * spec.headDim * bytes);
  o.resize(rows * spec.qHeads * spec.vHeadDim * bytes);
  lse.resize(rows * spec.qHeads);
  row.resize(spec.qHeads * spec.headDim);
  for (int64_t r = 0; r < rows; ++r) {
    randomRow(mix(options.seed) + mix(uint64_t(stepIndex) << 32 | uint64_t(r)),
              row);
    storeRow(q.data(), dtype, r * int64_t(row.size()), int64_t(row.size()),
             row.data());
  }

  pagoda_attention_args args = denseRows(spec, q.data(), o.data(), lse.data());
  args.sinks = sinks.data();
  // Half of the prompt is a prefix that is seen from both sides.
  std::vector<int32_t> prefixes(ids.size(), int32_t(options.promptLen / 2));
  args.prefix_lens = prefixes.data();
  if (options.mods)
    options.mods->attach(args);

  ++phase.steps;
  phase.tokens += rows;
  phase.planSeconds += engine.plan(ids, qLens);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    if (options.verify) {
      // What no kernel writes must not look like a result of the step before.
      reference::fillNaN(o.data(), dtype, rows * spec.qHeads * spec.vHeadDim);
      std::fill(lse.begin(), lse.end(), NAN);
    }
    phase.runSeconds += engine.run(int32_t(layer), args);
    if (!options.verify)
      continue;
    size_t plane =
        size_t(layer * (options.seqs + 1) * maxTokens * spec.kvHeads) *
        elementBytes(int32_t(spec.kvType));
    result.merge(verifyStep(spec, args, flatK.data() + plane * spec.headDim,
                            flatV.data() + plane * spec.vHeadDim, flat,
                            engine.threads(), options.mods),
                 "step " + std::to_string(stepIndex) + " (" + phase.name +
                     "), layer " + std::to_string(layer));
  }
  ++stepIndex;
}

RunResult Synthetic::run() {
  Phase prefill, decode;
  prefill.name = "prefill";
  decode.name = "decode";
  PagedKV &paged = engine.sequences();

  Live prefix{NoSequence, options.seqs, 0, 0};
  if (options.sharedPrefix) {
    prefix.id = paged.add();
    while (prefix.length < options.sharedPrefix)
      step({{&prefix,
             std::min(options.chunk, options.sharedPrefix - prefix.length)}},
           prefill);
  }
  std::vector<Live> live(options.seqs);
  for (int64_t i = 0; i < options.seqs; ++i) {
    live[i].index = i;
    live[i].id = options.sharedPrefix ? paged.fork(prefix.id) : paged.add();
    live[i].length = options.sharedPrefix;
    if (options.verify && options.sharedPrefix) {
      // The oracle's copy shares nothing.
      for (int64_t layer = 0; layer < options.layers; ++layer)
        for (auto [bytes, dim] : {std::pair{&flatK, spec.headDim},
                                  std::pair{&flatV, spec.vHeadDim}}) {
          size_t token =
              size_t(spec.kvHeads * dim) * elementBytes(int32_t(spec.kvType));
          size_t base = size_t(layer * (options.seqs + 1)) * maxTokens * token;
          std::copy_n(bytes->begin() + base +
                          size_t(options.seqs * maxTokens) * token,
                      size_t(options.sharedPrefix) * token,
                      bytes->begin() + base + size_t(i * maxTokens) * token);
        }
    }
  }
  if (prefix.id != NoSequence)
    paged.remove(prefix.id);

  for (bool first = true;; first = false) {
    std::vector<Turn> turns;
    bool anyPrompt = false;
    for (Live &sequence : live) {
      int64_t prompt = options.promptLen - sequence.length;
      if (prompt > 0) {
        int64_t most = options.chunk;
        if (first)
          most -= sequence.index * options.chunk / (options.seqs + 1);
        turns.push_back({&sequence, std::min(prompt, most)});
        anyPrompt = true;
      } else if (sequence.decoded < options.decodeSteps) {
        ++sequence.decoded;
        turns.push_back({&sequence, 1});
      } else if (sequence.id != NoSequence) {
        paged.remove(sequence.id);
        sequence.id = NoSequence;
      }
    }
    if (turns.empty())
      break;
    step(turns, anyPrompt ? prefill : decode);
  }
  result.copiedBlocks = engine.copiedBlocks();
  result.cascaded = engine.currentPlan().cascades();
  for (Phase *phase : {&prefill, &decode})
    if (phase->steps)
      result.phases.push_back(*phase);
  return result;
}

} // namespace

void Phase::add(const AttentionSpec &spec, int64_t qLen, int64_t kvLen,
                int64_t layers) {
  int64_t pairs = 0;
  for (int64_t t = 0; t < qLen; ++t)
    pairs += visibleKeys(spec, kvLen - qLen + t, kvLen);
  // Queries are neighbours: together they see what lies between the first one's
  // first key and the last one's last.
  int64_t keys = kvLen;
  if (spec.window || spec.chunk)
    keys = std::min(kvLen, visibleKeys(spec, kvLen - qLen, kvLen) + qLen - 1);
  double dims = double(spec.headDim + spec.vHeadDim);
  flops += 2 * dims * double(pairs * spec.qHeads * layers);
  bytes += dims * double(keys * spec.kvHeads * layers) *
           double(elementBytes(int32_t(spec.kvType)));
}

void RunResult::merge(const reference::Comparison &other,
                      const std::string &where) {
  if (comparison.worst.seq < 0 ||
      other.worst.ratio() > comparison.worst.ratio())
    worstWhere = where;
  comparison.merge(other);
}

reference::Comparison
verifyStep(const AttentionSpec &spec, pagoda_attention_args tensors,
           const void *k, const void *v,
           const std::vector<ContiguousSequence> &sequences, int threads,
           const ModInputs *mods) {
  reference::Problem problem;
  problem.shape = {spec.qHeads,
                   spec.kvHeads,
                   spec.headDim,
                   spec.vHeadDim,
                   1, // the contiguous copy is a pool of one-token blocks
                   int32_t(spec.qType),
                   int32_t(spec.kvType),
                   featuresOf(spec)};
  pagoda_attention_args scalars = scalarArgs(spec);
  tensors.scale = scalars.scale;
  tensors.window = scalars.window;
  tensors.chunk = scalars.chunk;
  tensors.softcap = scalars.softcap;
  tensors.alibi_slopes = scalars.alibi_slopes;
  auto view = [&](const void *base, int64_t dim) {
    int64_t token = spec.kvHeads * dim;
    return pagoda_kv_view{const_cast<void *>(base), token, dim, token};
  };
  tensors.k = view(k, spec.headDim);
  tensors.v = view(v, spec.vHeadDim);
  int64_t widest = 1;
  for (const ContiguousSequence &sequence : sequences)
    widest = std::max(widest, sequence.kvLen);
  std::vector<int32_t> table(sequences.size() * size_t(widest), -1);
  for (size_t s = 0; s < sequences.size(); ++s) {
    const ContiguousSequence &sequence = sequences[s];
    problem.sequences.push_back(
        {sequence.qBegin, sequence.qLen, sequence.kvLen, int64_t(s)});
    for (int64_t t = 0; t < sequence.kvLen; ++t)
      table[s * size_t(widest) + size_t(t)] = int32_t(sequence.kvBegin + t);
  }
  tensors.block_table = table.data();
  tensors.block_table_stride = widest;
  problem.args = &tensors;
  if (mods)
    mods->attach(problem);
  return reference::compare(problem, threads);
}

RunResult runSynthetic(const AttentionSpec &spec, const KernelSet &kernels,
                       const SyntheticOptions &options) {
  return Synthetic(spec, kernels, options).run();
}

} // namespace pagoda
