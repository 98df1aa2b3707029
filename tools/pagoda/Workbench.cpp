//===- Workbench.cpp - A cache and a step to be timed ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds and checks one step.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Workbench.h"

#include "tests/reference/Element.h"
#include "tools/pagoda/Workload.h"

#include <algorithm>
#include <cstring>
#include <fstream>

namespace pagoda {

using reference::elementBytes;

namespace {

/// Fills `count` elements with values in [-1, 1). Pools have gigabytes, so a
/// run of values is made once and copied; its length is a prime, so that rows
/// and blocks differ.
void fillRandom(void *data, DType type, size_t count, uint32_t seed) {
  std::vector<double> values(std::min(size_t(randomRun), count));
  for (double &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = double(int32_t(seed)) * 0x1p-31;
  }
  size_t bytes = elementBytes(int32_t(type));
  char *base = static_cast<char *>(data);
  reference::storeRow(base, int32_t(type), 0, int64_t(values.size()),
                      values.data());
  for (size_t done = values.size(); done < count;) {
    size_t more = std::min(done, count - done);
    std::memcpy(base + done * bytes, base, more * bytes);
    done += more;
  }
}

EngineOptions engineOptions(const AttentionSpec &spec, const StepShape &step,
                            Device *device) {
  EngineOptions options;
  options.device = device;
  auto blocksOf = [&](int64_t tokens) {
    return int32_t((tokens + spec.blockSize - 1) / spec.blockSize);
  };
  // What follows a shared prefix begins in a block of its own or in a copy.
  int64_t shared = step.sharedPrefix / spec.blockSize * spec.blockSize;
  options.blocks = blocksOf(step.sharedPrefix);
  for (int64_t s = 0; s < step.sequences; ++s)
    options.blocks += blocksOf(step.length(s) - shared);
  options.maxSequences = int32_t(step.sequences) + (step.sharedPrefix ? 1 : 0);
  options.cascade = step.sharedPrefix > 0;
  options.maxTokens = int32_t(step.kvLen);
  options.threads = step.threads;
  options.poison = false;
  return options;
}

Phase work(const AttentionSpec &spec, const StepShape &step) {
  Phase phase;
  for (int64_t s = 0; s < step.batch; ++s)
    phase.add(spec, step.qLen, step.length(s), 1);
  if (step.sharedPrefix)
    phase.bytes -= double((step.batch - 1) * step.sharedPrefix * spec.kvHeads *
                          (spec.headDim + spec.vHeadDim)) *
                   double(elementBytes(int32_t(spec.kvType)));
  return phase;
}

} // namespace

std::string StepShape::str() const {
  return std::to_string(batch) + " x " + std::to_string(qLen) + " of " +
         std::to_string(kvLen) + " tokens";
}

StepShape prefillStep(const AttentionSpec &spec, int threads) {
  constexpr double most = 3e9; // flops a thread
  StepShape step;
  step.threads = threads;
  for (int64_t tokens : {2048, 1024, 512, 256, 128}) {
    step.qLen = step.kvLen = tokens;
    if (work(spec, step).flops <= most * threads)
      break;
  }
  return step;
}

StepShape decodeStep(const AttentionSpec &spec, int threads, int64_t cacheBytes,
                     int64_t kvLen, int64_t batch) {
  constexpr double least = 32e6, most = 1e9;
  constexpr int64_t mostBatch = 16;
  double token = double(spec.kvHeads * (spec.headDim + spec.vHeadDim)) *
                 double(elementBytes(int32_t(spec.kvType)));
  while (kvLen > 1 && token * double(kvLen) > most)
    kvLen /= 2;
  StepShape step;
  step.threads = threads;
  step.kvLen = kvLen;
  double bytes = work(spec, step).bytes; // of keys that are visible
  auto inPool = int64_t(most / (token * double(kvLen)));
  step.batch = batch ? batch
                     : std::clamp<int64_t>(int64_t(least / bytes) + 1, 1,
                                           std::min(mostBatch, inPool));
  double wanted = std::max(4 * double(cacheBytes), 2 * least);
  int64_t steps = std::min(int64_t(wanted / (bytes * double(step.batch))) + 1,
                           inPool / step.batch);
  step.sequences = step.batch * std::max<int64_t>(steps, 1);
  return step;
}

StepShape gpuPrefillStep(const AttentionSpec &spec) {
  constexpr double most = 300e9; // flops
  StepShape step;
  step.qLen = step.kvLen = 4096;
  while (step.qLen > 512 && work(spec, step).flops > most)
    step.qLen = step.kvLen /= 2;
  return step;
}

StepShape gpuDecodeStep(const AttentionSpec &spec, int64_t kvLen) {
  constexpr double wanted = 512e6;
  constexpr int64_t mostBatch = 512;
  StepShape step;
  step.kvLen = kvLen;
  double bytes = work(spec, step).bytes;
  step.batch = step.sequences =
      std::clamp<int64_t>(int64_t(wanted / bytes), 1, mostBatch);
  return step;
}

Workbench::Workbench(const AttentionSpec &theSpec, const KernelSet &kernels,
                     const StepShape &shape, Device *device)
    : spec(theSpec), step(shape),
      engine(spec, kernels, engineOptions(spec, step, device)) {
  fillRandom(engine.pool().data(), spec.kvType,
             engine.pool().bytes() / elementBytes(int32_t(spec.kvType)), 1);
  SeqId parent = NoSequence;
  if (step.sharedPrefix) {
    parent = engine.sequences().add();
    engine.append(parent, int32_t(step.sharedPrefix));
  }
  for (int64_t s = 0; s < step.sequences; ++s) {
    ids.push_back(step.sharedPrefix ? engine.sequences().fork(parent)
                                    : engine.sequences().add());
    engine.append(ids.back(), int32_t(step.length(s) - step.sharedPrefix));
  }
  int64_t rows = step.batch * step.qLen * spec.qHeads;
  size_t bytes = elementBytes(int32_t(spec.qType));
  q.resize(size_t(rows * spec.headDim) * bytes);
  o.resize(size_t(rows * spec.vHeadDim) * bytes);
  lse.resize(size_t(rows));
  fillRandom(q.data(), spec.qType, size_t(rows * spec.headDim), 2);
  sinks.resize(size_t(spec.qHeads));
  fillRandom(sinks.data(), DType::F32, sinks.size(), 3);
  prefixes.assign(size_t(step.batch), int32_t(step.kvLen / 2));
  args = denseRows(spec, q.data(), o.data(), lse.data());
  args.sinks = sinks.data();
  args.prefix_lens = prefixes.data();
  planned.shape = {spec.qHeads,          spec.kvHeads,    spec.headDim,
                   spec.vHeadDim,        spec.blockSize,  int32_t(spec.qType),
                   int32_t(spec.kvType), featuresOf(spec)};
}

void Workbench::plan(int64_t index) {
  planSequences(index * step.batch % step.sequences, step.batch);
}

void Workbench::planSequences(int64_t first, int64_t count) {
  std::vector<SeqId> taken(ids.begin() + first, ids.begin() + first + count);
  engine.plan(taken, std::vector<int32_t>(size_t(count), int32_t(step.qLen)));

  plannedArgs = engine.complete(0, args);
  const PagedKV &paged = engine.sequences();
  planned.args = &plannedArgs;
  planned.sequences.clear();
  for (int64_t s = 0; s < count; ++s)
    planned.sequences.push_back({s * step.qLen, step.qLen,
                                 step.length(first + s),
                                 paged.row(ids[size_t(first + s)])});
}

void Workbench::clearOutput() {
  reference::fillNaN(o.data(), int32_t(spec.qType),
                     int64_t(o.size() / elementBytes(int32_t(spec.qType))));
  reference::fillNaN(lse.data(), PAGODA_F32, int64_t(lse.size()));
}

std::vector<double> Workbench::output() const {
  std::vector<double> result(o.size() / elementBytes(int32_t(spec.qType)));
  reference::loadRow(o.data(), int32_t(spec.qType), 0, int64_t(result.size()),
                     result.data());
  return result;
}

reference::RowFilter Workbench::sampled(int64_t rows) const {
  int64_t heads = spec.qHeads, tokens = step.qLen;
  int64_t total = step.batch * tokens * heads;
  // An odd stride visits all heads.
  int64_t stride = std::max<int64_t>(total / rows, 1) | 1;
  return [=](int64_t seq, int64_t token, int64_t head) {
    int64_t row = (seq * tokens + token) * heads + head;
    return row % stride == 0 || row == total - 1;
  };
}

reference::Comparison Workbench::checkSampled(int64_t rows) const {
  return reference::compare(planned, step.threads, sampled(rows));
}

double Workbench::flops() const { return work(spec, step).flops; }
double Workbench::bytes() const { return work(spec, step).bytes; }

double hugePageShare() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  double anonymous = 0, huge = 0;
  while (file >> word) {
    if (word == "Anonymous:")
      file >> anonymous;
    else if (word == "AnonHugePages:")
      file >> huge;
  }
  return anonymous > 0 ? huge / anonymous : -1;
}

} // namespace pagoda
