//===- Case.cpp - One row of the conformance table ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case as text, and the random cases.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Case.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

namespace pagoda::conformance {

namespace {

const char *typeName(DType type) {
  static const char *const names[] = {"f32",    "f16",    "bf16",
                                      "f8e4m3", "f8e5m2", "i8"};
  return names[int(type)];
}

void describeSpec(std::ostream &os, const AttentionSpec &spec) {
  os << spec.qHeads << '/' << spec.kvHeads << " heads, " << spec.headDim << '/'
     << spec.vHeadDim << " dims, block " << spec.blockSize
     << (spec.layout == KvLayout::HND ? " hnd, " : " nhd, ")
     << typeName(spec.qType);
  if (spec.kvType != spec.qType)
    os << " over " << typeName(spec.kvType);
  if (spec.causal)
    os << ", causal";
  if (spec.window)
    os << ", window " << *spec.window;
  if (spec.chunk)
    os << ", chunk " << *spec.chunk;
  if (spec.softcap)
    os << ", softcap " << *spec.softcap;
  if (spec.sinks)
    os << ", sinks";
  if (spec.prefixLm)
    os << ", prefix";
  if (!spec.alibiSlopes.empty())
    os << ", alibi";
}

/// mt19937_64 with the few draws that are needed. The standard's distributions
/// may differ between libraries; these do not.
struct Random {
  std::mt19937_64 engine;

  Random(uint64_t seed, uint64_t stream)
      : engine(seed * 0x9e3779b97f4a7c15u + stream) {
    engine.discard(8);
  }
  int64_t upTo(int64_t n) { return int64_t(engine() % uint64_t(n)); }
  int64_t between(int64_t lo, int64_t hi) { return lo + upTo(hi - lo + 1); }
  bool chance(int64_t percent) { return upTo(100) < percent; }
  template <typename T> T pick(std::initializer_list<T> values) {
    return values.begin()[upTo(int64_t(values.size()))];
  }
};

AttentionSpec randomSpec(Random &random) {
  AttentionSpec spec;
  auto [qHeads, kvHeads] = random.pick<std::pair<int, int>>({{4, 2},
                                                             {4, 4},
                                                             {1, 1},
                                                             {8, 1},
                                                             {14, 2},
                                                             {12, 2},
                                                             {9, 3},
                                                             {5, 5},
                                                             {6, 2},
                                                             {16, 8},
                                                             {24, 2},
                                                             {40, 8},
                                                             {71, 1},
                                                             {3, 1}});
  spec.qHeads = qHeads;
  spec.kvHeads = kvHeads;
  if (random.chance(25)) {
    spec.kvHeads = random.between(1, 6);
    spec.qHeads = spec.kvHeads * random.between(1, 71 / spec.kvHeads);
  }
  spec.headDim = random.chance(50)
                     ? random.pick<int64_t>({16, 32, 64, 80, 96, 128, 256})
                     : random.between(1, 256);
  spec.vHeadDim = random.chance(75) ? spec.headDim : random.between(1, 256);
  spec.blockSize = random.chance(50) ? random.pick<int64_t>({8, 16, 32, 64})
                                     : random.between(1, 256);
  spec.layout = random.chance(50) ? KvLayout::HND : KvLayout::NHD;
  spec.causal = random.chance(70);
  spec.scale = 1 / std::sqrt(double(spec.headDim));
  if (random.chance(15))
    spec.window = random.pick<int64_t>({1, 2, 5, 16, 33, 100, 1000});
  if (random.chance(10))
    spec.chunk = random.pick<int64_t>({1, 7, 16, 24, 64});
  // A window or a chunk counts back from the query: it needs a causal mask.
  if (spec.window || spec.chunk)
    spec.causal = true;
  if (random.chance(10))
    spec.softcap = random.pick({2.0, 30.0});
  if (random.chance(10))
    spec.sinks = true;
  spec.prefixLm = spec.causal && random.chance(10);
  if (random.chance(10))
    for (int h = 0; h < spec.qHeads; ++h)
      spec.alibiSlopes.push_back(
          float(std::exp2(-8.0 * (h + 1) / double(spec.qHeads))));
  if (random.chance(40))
    spec.qType = spec.kvType = random.pick({DType::F16, DType::BF16});
  return spec;
}

/// A decode schedule of lanes = head_dim. `q_tile` is what the formula chooses.
std::string randomDecode(Random &random, const AttentionSpec &spec) {
  int64_t group = spec.qHeads / spec.kvHeads;
  int64_t stages = random.between(1, 2);
  int64_t vectors = random.between(1, 4);
  // Two stages take as many rows at once as fit; 16 registers are the fewest.
  int64_t rows = stages == 2 ? group : std::min(group, 15 / vectors - 1);
  std::ostringstream os;
  os << "decode.lanes=head_dim,decode.stages=" << stages
     << ",decode.prefetch=" << random.between(0, stages == 2 ? 4 : 6)
     << ",decode.kv_tile="
     << (random.chance(50) ? random.pick<int64_t>({1, 16, 32, 64, 128, 256})
                           : random.between(1, 300))
     << ",decode.block_rows=" << random.between(1, rows)
     << ",decode.block_vectors=" << vectors
     << ",decode.heads=" << (random.chance(50) ? spec.kvHeads : 1);
  return os.str();
}

/// Loop orders and tiles that the formula would not choose. Tiles of keys are
/// multiples of every register block.
std::vector<std::string> randomSchedule(Random &random,
                                        const AttentionSpec &spec) {
  std::vector<std::string> result;
  bool teaches = random.chance(15);
  if (teaches)
    result.push_back(random.pick<const char *>(
        {"order=naive", "order=gather", "order=kv_outer"}));
  if (random.chance(15)) {
    result.push_back("prefill.kv_tile=" +
                     std::to_string(12 * random.between(1, 24)));
    if (random.chance(50))
      result.push_back(random.pick<const char *>(
          {"prefill.block_vectors=2,prefill.block_rows=1",
           "prefill.block_vectors=2,prefill.block_rows=2",
           "prefill.block_vectors=2,prefill.block_rows=3",
           "prefill.block_vectors=2,prefill.block_rows=4",
           "prefill.block_vectors=2,prefill.block_rows=6",
           "prefill.block_vectors=1,prefill.block_rows=12"}));
  }
  if (random.chance(15))
    result.push_back(
        "prefill.q_tile=" +
        std::to_string(spec.qHeads / spec.kvHeads * random.between(1, 9)));
  if (spec.qType == DType::BF16 && spec.headDim % 2 == 0 && random.chance(50))
    result.push_back("prefill.pack=2");
  // The orders that show how attention got fast have other lanes.
  if (!teaches && random.chance(40))
    result.push_back(randomDecode(random, spec));
  return result;
}

/// Lengths near the edges of blocks and of likely tiles.
int64_t randomLength(Random &random, int64_t blockSize) {
  if (random.chance(15))
    return random.between(0, 3);
  int64_t step =
      random.chance(50) ? blockSize : random.pick<int64_t>({16, 32, 64, 128});
  int64_t length = step * random.between(1, std::max<int64_t>(1, 260 / step)) +
                   random.between(-1, 1);
  return std::clamp<int64_t>(length, 0, 520);
}

} // namespace

std::string describe(const Case &c) {
  std::ostringstream os;
  describeSpec(os, c.spec);
  os << ", {";
  for (size_t i = 0; i < c.lengths.size(); ++i)
    os << (i ? " " : "") << c.lengths[i].q << ':' << c.lengths[i].kv;
  os << '}';
  if (c.padding)
    os << ", padding " << c.padding;
  if (c.splits)
    os << ", splits " << c.splits << ", kernel " << c.kernel;
  if (c.threads > 1)
    os << ", threads " << c.threads;
  for (const std::string &entry : c.schedule)
    os << ", " << entry;
  return os.str();
}

std::string kernelKey(const Case &c) {
  std::ostringstream os;
  describeSpec(os, c.spec);
  for (const std::string &entry : c.schedule)
    os << ", " << entry;
  os << c.mods;
  return os.str();
}

void retype(std::vector<Case> &cases, DType type) {
  for (Case &c : cases)
    if (c.spec.qType == DType::F32)
      c.spec.qType = c.spec.kvType = type;
}

Case makeCase(std::string name, std::vector<Length> lengths) {
  Case c;
  c.name = std::move(name);
  c.lengths = std::move(lengths);
  c.spec.qHeads = 4;
  c.spec.kvHeads = 2;
  c.spec.headDim = c.spec.vHeadDim = 64;
  c.spec.scale = 0.125;
  return c;
}

Case randomCase(uint64_t seed, uint64_t index) {
  Random specRandom(seed, index / 4 * 2 + 1);
  Random random(seed, index * 2);
  Case c;
  c.name = "random." + std::to_string(seed) + "." + std::to_string(index);
  c.spec = randomSpec(specRandom);
  c.schedule = randomSchedule(specRandom, c.spec);
  c.seed = index + 1;
  int64_t sequences = random.between(1, 5);
  for (int64_t i = 0; i < sequences; ++i) {
    int64_t kv = randomLength(random, c.spec.blockSize);
    int64_t q = 0;
    switch (random.upTo(5)) {
    case 0: // decode
      q = 1;
      break;
    case 1: // prefill from nothing
      q = kv;
      break;
    case 2: // a chunk
      q = random.between(0, kv);
      break;
    case 3: // a few speculated tokens
      q = std::min(random.between(2, 8), kv);
      break;
    case 4: // more queries than keys: the first ones see nothing
      q = random.chance(20) ? kv + random.between(1, 3) : 1;
      break;
    }
    c.lengths.push_back({q, kv});
  }
  c.values =
      random.chance(70)
          ? Values::Normal
          : random.pick({Values::OneHot, Values::HeadIndex, Values::LowScores,
                         Values::LastLanes, Values::Tiny});
  c.poison = random.chance(70) ? Poison::NaN : Poison::Infinity;
  c.padding = random.chance(30) ? random.between(1, 40) : 0;
  if (random.chance(60)) {
    c.splits = random.pick<int64_t>({1, 1, 2, 3, 8});
    c.kernel = int(random.between(-1, 2));
  }
  c.threads = random.chance(25) ? 2 : 1;
  return c;
}

} // namespace pagoda::conformance
