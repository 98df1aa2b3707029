//===- CacheBench.cpp - What blocks and prefixes cost ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row an operation, "per" counters in seconds a block or a token, beside a
// row that reads memory as fast as one thread can. All checks are on. Prompts
// are found in a pool that other prompts have filled in between, so that the
// blocks of one are not neighbours.
//
//===----------------------------------------------------------------------===//

#include "pagoda/BlockManager.h"
#include "pagoda/PagedKV.h"
#include "pagoda/PrefixCache.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

using namespace pagoda;

static constexpr int32_t BlockSize = 16;

/// Reports the time of one of \p items things done in each iteration.
static void per(benchmark::State &state, const char *what, double items) {
  state.counters[what] =
      benchmark::Counter(items, benchmark::Counter::kIsIterationInvariantRate |
                                    benchmark::Counter::kInvert);
}

static void MemoryRead(benchmark::State &state) {
  std::vector<uint64_t> memory(size_t(256) << 17, 1); // 256 MiB
  for (auto _ : state) {
    uint64_t sum[8] = {};
    for (size_t i = 0; i != memory.size(); i += 8)
      for (size_t j = 0; j != 8; ++j)
        sum[j] += memory[i + j];
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * memory.size() * 8);
}
BENCHMARK(MemoryRead)->Unit(benchmark::kMillisecond);

static void AllocateRelease(benchmark::State &state) {
  BlockManager blocks(1 << 16);
  std::vector<int32_t> ids(state.range(0));
  for (auto _ : state) {
    if (!blocks.allocate(ids))
      state.SkipWithError("out of blocks");
    blocks.release(ids);
  }
  per(state, "per_block", double(ids.size()));
}
BENCHMARK(AllocateRelease)->Arg(1)->Arg(16)->Arg(256)->Arg(4096);

static void Share(benchmark::State &state) {
  BlockManager blocks(1 << 16);
  std::vector<int32_t> ids(256);
  if (!blocks.allocate(ids))
    state.SkipWithError("out of blocks");
  int64_t owners = 1;
  for (auto _ : state) {
    blocks.share(ids);
    if (++owners == 1000000) {
      state.PauseTiming();
      for (; owners != 1; --owners)
        blocks.release(ids);
      state.ResumeTiming();
    }
  }
  per(state, "per_block", double(ids.size()));
}
BENCHMARK(Share);

namespace {

/// A cache with one prompt of \p tokens tokens, idle, among others.
struct Cached {
  explicit Cached(int64_t tokens, int32_t spare = 0)
      : prompt(size_t(tokens)),
        blocks(int32_t(tokens / BlockSize) * 2 + 64 + spare), cache(blocks, {}),
        kv(blocks, options(tokens)) {
    std::mt19937 random(1);
    for (int32_t &token : prompt)
      token = int32_t(random() % 150000);
    // Shuffle the free stack: a pool in use hands out blocks in no order.
    std::vector<int32_t> all(blocks.numBlocks());
    if (blocks.allocate(all))
      std::shuffle(all.begin(), all.end(), random);
    blocks.release(all);
    SeqId seq = kv.add();
    if (kv.append(seq, int32_t(tokens)))
      kv.storePrefix(seq, cache, prompt);
    kv.remove(seq);
  }
  static PagedKVOptions options(int64_t tokens) {
    PagedKVOptions o;
    o.maxSequences = 4;
    o.maxTokens = int32_t(tokens) + BlockSize;
    return o;
  }
  std::vector<int32_t> prompt;
  BlockManager blocks;
  PrefixCache cache;
  PagedKV kv;
};

} // namespace

static void Touch(benchmark::State &state) {
  Cached c(256 * BlockSize);
  PrefixHit hit;
  c.cache.lookup(c.prompt, {}, hit);
  for (auto _ : state)
    c.cache.touch(hit);
  per(state, "per_block", double(hit.nodes.size()));
}
BENCHMARK(Touch);

/// A block is taken from a full pool, so one is evicted: unlinked, taken out of
/// the map, recorded as removed, and handed out.
static void Evict(benchmark::State &state) {
  constexpr int32_t Blocks = 4096;
  BlockManager blocks(Blocks);
  PrefixCache cache(blocks, {});
  PagedKVOptions options;
  options.maxSequences = 1;
  options.maxTokens = Blocks * BlockSize;
  PagedKV kv(blocks, options);
  std::vector<int32_t> prompt(Blocks * BlockSize);
  std::iota(prompt.begin(), prompt.end(), 0);
  std::vector<int32_t> ids(Blocks);
  for (auto _ : state) {
    state.PauseTiming();
    SeqId seq = kv.add();
    if (!kv.append(seq, Blocks * BlockSize))
      state.SkipWithError("out of blocks");
    kv.storePrefix(seq, cache, prompt);
    kv.remove(seq);
    state.ResumeTiming();
    if (!blocks.allocate(ids))
      state.SkipWithError("out of blocks");
    state.PauseTiming();
    blocks.release(ids);
    state.ResumeTiming();
  }
  per(state, "per_block", Blocks);
}
BENCHMARK(Evict);

/// Storing a block and evicting it again: hash, map, copy of the tokens,
/// reference, event, and then the row above.
static void StoreEvictCycle(benchmark::State &state) {
  constexpr int32_t Blocks = 4096;
  BlockManager blocks(Blocks);
  PrefixCache cache(blocks, {});
  PagedKVOptions options;
  options.maxSequences = 1;
  options.maxTokens = Blocks * BlockSize;
  PagedKV kv(blocks, options);
  std::vector<int32_t> prompt(Blocks * BlockSize);
  for (auto _ : state) {
    ++prompt[0]; // every block differs from those before
    SeqId seq = kv.add();
    if (!kv.append(seq, Blocks * BlockSize))
      state.SkipWithError("out of blocks");
    kv.storePrefix(seq, cache, prompt);
    kv.remove(seq);
  }
  per(state, "per_block", Blocks);
}
BENCHMARK(StoreEvictCycle);

/// Blocks found by their hashes, in no order.
static void MapHit(benchmark::State &state) {
  Cached c(4096 * BlockSize);
  std::vector<Hash128> hashes;
  CacheEvent event;
  while (c.cache.drainEvents({&event, 1}))
    hashes.push_back(event.hash);
  std::shuffle(hashes.begin(), hashes.end(), std::mt19937(2));
  for (auto _ : state) {
    int found = 0;
    for (const Hash128 &h : hashes)
      found += c.cache.contains(h);
    if (found != int(hashes.size()))
      state.SkipWithError("a stored block is not found");
  }
  per(state, "per_block", double(hashes.size()));
}
BENCHMARK(MapHit);

/// One block found by its hash and compared, the hash included.
static void Lookup(benchmark::State &state) {
  Cached c(2 * BlockSize);
  PrefixHit hit;
  std::span<const int32_t> prompt(c.prompt.data(), BlockSize + 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(c.cache.lookup(prompt, {}, hit));
    benchmark::ClobberMemory();
  }
  per(state, "per_block", 1);
}
BENCHMARK(Lookup);

static void ChainHash(benchmark::State &state) {
  std::vector<int32_t> tokens(4096 * BlockSize, 7);
  for (auto _ : state) {
    Hash128 hash;
    for (size_t i = 0; i != tokens.size(); i += BlockSize)
      hash = PrefixCache::blockHash(
          hash, {tokens.data() + i, size_t(BlockSize)}, {}, 1);
    benchmark::DoNotOptimize(hash);
  }
  per(state, "per_token", double(tokens.size()));
}
BENCHMARK(ChainHash);

static void CompareTokens(benchmark::State &state) {
  std::vector<int32_t> a(4096 * BlockSize, 7), b = a;
  for (auto _ : state) {
    bool same = true;
    for (size_t i = 0; i != a.size(); i += BlockSize)
      same &= std::memcmp(a.data() + i, b.data() + i, BlockSize * 4) == 0;
    benchmark::DoNotOptimize(same);
  }
  per(state, "per_token", double(a.size()));
}
BENCHMARK(CompareTokens);

/// Finding a fully cached prompt: hash, map, comparison.
static void LookupPrompt(benchmark::State &state) {
  Cached c(state.range(0));
  PrefixHit hit;
  for (auto _ : state)
    benchmark::DoNotOptimize(c.cache.lookup(c.prompt, {}, hit));
  per(state, "per_token", double(state.range(0)));
}
BENCHMARK(LookupPrompt)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(50000)
    ->Arg(100000)
    ->Arg(1000000)
    ->Unit(benchmark::kMicrosecond);

/// Admission of a fully cached prompt: found, acquired, in a sequence's table.
/// The sequence ends outside the timed part; the clock is read by hand, since
/// stopping and starting the library's takes as long as 500 tokens.
static void Admit(benchmark::State &state) {
  using Clock = std::chrono::steady_clock;
  Cached c(state.range(0));
  PrefixHit hit;
  for (auto _ : state) {
    auto begin = Clock::now();
    SeqId seq = c.kv.add();
    c.cache.lookup(c.prompt, {}, hit);
    if (!c.kv.attachPrefix(seq, c.cache, hit))
      state.SkipWithError("stale");
    std::chrono::duration<double> time = Clock::now() - begin;
    state.SetIterationTime(time.count());
    c.kv.remove(seq);
  }
  per(state, "per_token", double(state.range(0)));
}
BENCHMARK(Admit)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(50000)
    ->Arg(100000)
    ->Arg(1000000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

/// Admission and the end of the sequence.
static void AdmitAndEnd(benchmark::State &state) {
  Cached c(state.range(0));
  PrefixHit hit;
  for (auto _ : state) {
    SeqId seq = c.kv.add();
    c.cache.lookup(c.prompt, {}, hit);
    if (!c.kv.attachPrefix(seq, c.cache, hit))
      state.SkipWithError("stale");
    c.kv.remove(seq);
  }
  per(state, "per_token", double(state.range(0)));
}
BENCHMARK(AdmitAndEnd)->Arg(50000)->Unit(benchmark::kMicrosecond);

/// One token a sequence, a new block every 16th time.
static void AppendToken(benchmark::State &state) {
  constexpr int32_t Sequences = 256, Tokens = 1024;
  BlockManager blocks(Sequences * Tokens / BlockSize);
  PagedKVOptions options;
  options.maxSequences = Sequences;
  options.maxTokens = Tokens;
  PagedKV kv(blocks, options);
  std::vector<SeqId> seqs;
  for (int32_t i = 0; i != Sequences; ++i)
    seqs.push_back(kv.add());
  int32_t length = 0;
  for (auto _ : state) {
    for (SeqId seq : seqs)
      if (!kv.append(seq, 1))
        state.SkipWithError("out of blocks");
    if (++length == Tokens) {
      state.PauseTiming();
      for (SeqId seq : seqs)
        kv.truncate(seq, 0);
      length = 0;
      state.ResumeTiming();
    }
  }
  per(state, "per_sequence", Sequences);
}
BENCHMARK(AppendToken);

static void printHelp() {
  std::puts("pagoda-bench-cache [options of Google Benchmark]\n"
            "  What blocks, prefixes, sequences and plans cost, a row an "
            "operation.");
  benchmark::PrintDefaultHelp();
}

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv, printHelp);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
