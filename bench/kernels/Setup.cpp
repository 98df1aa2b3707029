//===- Setup.cpp - A cache, kernels and a step to be timed ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds and checks one configuration.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/Setup.h"

#include "tests/reference/Compare.h"
#include "tools/pagoda/Workload.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace pagoda::bench {

namespace {

/// Uniform in [-1, 1), quickly: pools have gigabytes.
void fillRandom(float *data, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = float(int32_t(seed)) * 0x1p-31f;
  }
}

Phase oneStep(const Config &config) {
  Phase phase;
  phase.add(config.spec, config.qLen, config.kvLen, 1);
  return phase;
}

} // namespace

AttentionSpec defaultSpec(KvLayout layout) {
  AttentionSpec spec;
  spec.qHeads = 16;
  spec.kvHeads = 8;
  spec.headDim = spec.vHeadDim = 128;
  spec.blockSize = 16;
  spec.layout = layout;
  spec.scale = 1 / std::sqrt(128.0);
  return spec;
}

Setup::Setup(const Config &theConfig, const CompileOptions &options)
    : config(theConfig) {
  const AttentionSpec &spec = config.spec;
  llvm::Expected<std::unique_ptr<JitLibrary>> compiled =
      JitLibrary::compile({spec}, options);
  if (!compiled)
    throw std::runtime_error(llvm::toString(compiled.takeError()));
  code = std::move(*compiled);

  EngineOptions engineOptions;
  int64_t blocks = (config.kvLen + spec.blockSize - 1) / spec.blockSize;
  engineOptions.blocks = int32_t(config.sequences * blocks);
  engineOptions.maxSequences = int32_t(config.sequences);
  engineOptions.maxTokens = int32_t(config.kvLen);
  engineOptions.threads = config.threads;
  engineOptions.poison = false;
  engine = std::make_unique<Engine>(
      spec, KernelLibrary::wrap(code->info()).select(kernelSpecOf(spec)),
      engineOptions);
  fillRandom(static_cast<float *>(pool().data()),
             pool().bytes() / sizeof(float), 1);
  for (int64_t s = 0; s < config.sequences; ++s) {
    ids.push_back(engine->sequences().add());
    engine->append(ids.back(), int32_t(config.kvLen));
  }

  q.resize(config.qLen * spec.qHeads * spec.headDim);
  o.resize(config.qLen * spec.qHeads * spec.vHeadDim);
  lse.resize(config.qLen * spec.qHeads);
  fillRandom(q.data(), q.size(), 2);
  args.q = q.data();
  args.q_head_stride = spec.headDim;
  args.q_token_stride = spec.qHeads * spec.headDim;
  args.o = o.data();
  args.o_head_stride = spec.vHeadDim;
  args.o_token_stride = spec.qHeads * spec.vHeadDim;
  args.lse = lse.data();
  args.lse_head_stride = 1;
  args.lse_token_stride = spec.qHeads;
}

void Setup::plan(int64_t index) {
  last = index % config.sequences;
  engine->plan({ids[last]}, {int32_t(config.qLen)});
}

void Setup::run() { engine->run(0, args); }

std::string Setup::checkSampled(int64_t rows) const {
  const AttentionSpec &spec = config.spec;
  reference::Problem problem;
  problem.shape = {spec.qHeads,          spec.kvHeads,    spec.headDim,
                   spec.vHeadDim,        spec.blockSize,  int32_t(spec.qType),
                   int32_t(spec.kvType), featuresOf(spec)};
  pagoda_attention_args oracle = args;
  pagoda_attention_args scalars = scalarArgs(spec);
  oracle.scale = scalars.scale;
  oracle.window = scalars.window;
  oracle.k = pool().k();
  oracle.v = pool().v();
  PagedKV &paged = engine->sequences();
  oracle.block_table = paged.tables();
  oracle.block_table_stride = paged.tableStride();
  problem.args = &oracle;
  problem.sequences = {{0, config.qLen, config.kvLen, paged.row(ids[last])}};
  int64_t total = config.qLen * spec.qHeads;
  int64_t stride = std::max<int64_t>(total / rows, 1);
  // An odd stride visits all heads.
  stride |= 1;
  reference::Comparison comparison = reference::compare(
      problem, config.threads, [&](int64_t, int64_t token, int64_t head) {
        int64_t row = token * spec.qHeads + head;
        return row % stride == 0 || row == total - 1;
      });
  return comparison.ok() && comparison.elements > 0
             ? ""
             : "wrong output: " + comparison.worst.text();
}

double Setup::flops() const { return oneStep(config).flops; }
double Setup::bytes() const { return oneStep(config).bytes; }

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

} // namespace pagoda::bench
