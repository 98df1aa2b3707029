//===- Table.cpp - The fixed conformance cases ----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes x features x data types, each with a batch of different lengths, under
// the runtime's plan and under plans by hand. Names are paths: a prefix selects
// a family.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Case.h"

#include <cmath>

namespace pagoda::conformance {

namespace {

/// Adds `c` under the runtime's plan, and under hand-made plans that run every
/// attention kernel of the library, whole and in splits.
void addPlans(std::vector<Case> &cases, const Case &c) {
  cases.push_back(c);
  for (int kernel : {0, 1})
    for (int64_t splits : {1, 3}) {
      Case variant = c;
      variant.name += ".kernel" + std::to_string(kernel) + ".splits" +
                      std::to_string(splits);
      variant.kernel = kernel;
      variant.splits = splits;
      cases.push_back(variant);
    }
}

const char *layoutSuffix(KvLayout layout) {
  return layout == KvLayout::HND ? ".hnd" : ".nhd";
}

/// Batches that mix what a step may hold: decode, prefill, a chunk on top of a
/// cached part, an empty sequence, and lengths around a block's edge.
std::vector<Length> mixedBatch() {
  return {{1, 97}, {33, 33}, {17, 80}, {0, 5}, {1, 1}, {0, 0}, {1, 64}};
}

void addShapes(std::vector<Case> &cases) {
  for (KvLayout layout : {KvLayout::HND, KvLayout::NHD})
    for (bool causal : {true, false}) {
      std::string suffix = layoutSuffix(layout);
      suffix += causal ? ".causal" : ".full";
      Case c = makeCase("mixed" + suffix, mixedBatch());
      c.spec.layout = layout;
      c.spec.causal = causal;
      addPlans(cases, c);

      c = makeCase("qwen3" + suffix, {{130, 130}, {1, 300}, {5, 37}});
      c.spec.qHeads = 16;
      c.spec.kvHeads = 8;
      c.spec.headDim = c.spec.vHeadDim = 128;
      c.spec.layout = layout;
      c.spec.causal = causal;
      c.spec.scale = 1 / std::sqrt(128.0);
      addPlans(cases, c);
    }
  Case infinite = makeCase("mixed.infinite_poison", mixedBatch());
  infinite.poison = Poison::Infinity;
  addPlans(cases, infinite);
  Case padded = makeCase("mixed.padded_strides", mixedBatch());
  padded.padding = 9;
  addPlans(cases, padded);
  padded.name = "mixed.padded_strides_nhd";
  padded.spec.layout = KvLayout::NHD;
  addPlans(cases, padded);
  Case tiny = makeCase("mixed.tiny", mixedBatch());
  tiny.values = Values::Tiny;
  addPlans(cases, tiny);
  // Whole tiles that no mask touches, too.
  Case peaks = makeCase("mixed.peaks", {{130, 130}, {1, 300}, {70, 290}});
  peaks.values = Values::Peaks;
  addPlans(cases, peaks);
  Case threads = makeCase("mixed.two_threads", mixedBatch());
  threads.threads = 2;
  cases.push_back(threads);
}

void addBlockSizes(std::vector<Case> &cases) {
  for (int64_t block : {1, 3, 8, 24, 64, 192, 256})
    for (KvLayout layout : {KvLayout::HND, KvLayout::NHD}) {
      Case c = makeCase("block." + std::to_string(block) + layoutSuffix(layout),
                        {{1, 3 * block - 1}, {7, block}, {1, block + 1}});
      c.spec.blockSize = block;
      c.spec.layout = layout;
      c.values = Values::OneHot;
      cases.push_back(c);
      c.name += ".prefill";
      c.lengths = {{3 * block - 1, 3 * block - 1}};
      cases.push_back(c);
    }
}

/// Head dims, ratios and block sizes that nobody would choose, each once, with
/// empty sequences and with queries before the first key.
void addCorners(std::vector<Case> &cases) {
  struct Corner {
    int64_t dim, vDim, ratio, kvHeads, block;
  };
  for (Corner corner : {Corner{1, 256, 71, 1, 1},
                        {256, 1, 1, 3, 255},
                        {2, 3, 2, 2, 5},
                        {7, 65, 3, 1, 13},
                        {31, 33, 7, 2, 37},
                        {127, 129, 5, 2, 100},
                        {200, 50, 16, 1, 77},
                        {255, 255, 12, 1, 201}}) {
    Case c = makeCase("corner." + std::to_string(corner.dim) + "_" +
                          std::to_string(corner.vDim),
                      {{0, 0},
                       {1, 0},
                       {7, 3},
                       {1, 2 * corner.block},
                       {2, 0},
                       {9, 70},
                       {1, 0}});
    c.spec.headDim = corner.dim;
    c.spec.vHeadDim = corner.vDim;
    c.spec.qHeads = corner.ratio * corner.kvHeads;
    c.spec.kvHeads = corner.kvHeads;
    c.spec.blockSize = corner.block;
    c.spec.scale = 1 / std::sqrt(double(corner.dim));
    c.spec.layout = corner.dim % 2 ? KvLayout::NHD : KvLayout::HND;
    addPlans(cases, c);
  }
}

void addFeatures(std::vector<Case> &cases) {
  auto add = [&](const std::string &name,
                 const std::function<void(AttentionSpec &)> &change) {
    Case c = makeCase("feature." + name, mixedBatch());
    change(c.spec);
    addPlans(cases, c);
  };
  for (int64_t window : {1, 4, 16, 33, 200})
    add("window" + std::to_string(window),
        [&](AttentionSpec &spec) { spec.window = window; });
  add("softcap", [](AttentionSpec &spec) { spec.softcap = 3; });
  add("sinks", [](AttentionSpec &spec) { spec.sinks = true; });
  add("chunk", [](AttentionSpec &spec) { spec.chunk = 24; });
  add("alibi", [](AttentionSpec &spec) {
    spec.alibiSlopes = {0.25f, 0.0625f, 0.015625f, 0.00390625f};
  });
  add("window_sinks", [](AttentionSpec &spec) {
    spec.window = 20;
    spec.sinks = true;
  });
  add("prefix", [](AttentionSpec &spec) { spec.prefixLm = true; });
  add("prefix_window", [](AttentionSpec &spec) {
    spec.prefixLm = true;
    spec.window = 20;
  });
  // Lengths over several chunks, and a query before the first key.
  Case chunks = makeCase("feature.prefix_chunk", mixedBatch());
  chunks.lengths.push_back({7, 3});
  chunks.spec.prefixLm = true;
  chunks.spec.chunk = 24;
  addPlans(cases, chunks);
  add("softcap_window", [](AttentionSpec &spec) {
    spec.window = 20;
    spec.softcap = 50;
  });
}

/// The orders that are not the default.
void addOrders(std::vector<Case> &cases) {
  for (const char *order : {"naive", "gather", "kv_outer"})
    for (bool features : {false, true}) {
      Case c = makeCase(std::string("order.") + order, mixedBatch());
      // More keys than any order takes at once.
      c.lengths.push_back({40, 1100});
      c.schedule = {std::string("order=") + order};
      if (features) {
        c.name += ".features";
        c.spec.sinks = true;
        c.spec.softcap = 3;
        c.spec.layout = KvLayout::NHD;
        c.spec.vHeadDim = 40;
      }
      addPlans(cases, c);
      c.name += ".packed";
      c.schedule[0] += ",pack=1";
      cases.push_back(c);
    }
}

void addTypes(std::vector<Case> &cases) {
  for (auto [name, q, kv] :
       {std::tuple{"f16", DType::F16, DType::F16},
        std::tuple{"bf16", DType::BF16, DType::BF16},
        std::tuple{"bf16_f8e4m3", DType::BF16, DType::F8E4M3}}) {
    Case c = makeCase(std::string("type.") + name, mixedBatch());
    c.spec.qType = q;
    c.spec.kvType = kv;
    addPlans(cases, c);
  }
  // Pairs of bf16 with register blocks that a vector holds no power of two of:
  // values that are copied a vector at a time end amid a block of columns.
  for (int64_t rows : {3, 5}) {
    Case c = makeCase("type.bf16_pairs" + std::to_string(rows), mixedBatch());
    c.spec.qType = c.spec.kvType = DType::BF16;
    c.spec.vHeadDim = 14;
    c.schedule = {"prefill.pack=2,prefill.block_vectors=2,prefill.block_rows=" +
                  std::to_string(rows) +
                  ",prefill.kv_tile=" + std::to_string(12 * rows)};
    addPlans(cases, c);
  }
}

} // namespace

std::vector<Case> fixedCases() {
  std::vector<Case> cases;
  addShapes(cases);
  addBlockSizes(cases);
  addCorners(cases);
  addFeatures(cases);
  addOrders(cases);
  addTypes(cases);
  return cases;
}

} // namespace pagoda::conformance
