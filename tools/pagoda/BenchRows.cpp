//===- BenchRows.cpp - What pagoda bench measures -------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns of limit and kernels, and the checks after them.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/BenchRows.h"

#include "tests/reference/Element.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>

using namespace llvm;

namespace pagoda {

namespace {

/// Fewer samples have no interval of 99%.
constexpr size_t leastSamples = 9, mostSamples = 400;

double now() { return limits::now(limits::Timer::Wall); }

std::string dtypeText(const AttentionSpec &spec) {
  std::string text = nameOf(spec.qType);
  if (spec.kvType != spec.qType)
    text += std::string("/") + nameOf(spec.kvType);
  return text;
}

/// Bytes a second that the threads read from `pool`, or from the first part of
/// a large one.
double readLimit(const KvPool &pool, int threads,
                 limits::Timer timer = limits::Timer::Wall) {
  constexpr size_t most = size_t(256) << 20;
  return 1e9 * limits::readBandwidth(pool.data(),
                                     std::min<size_t>(pool.bytes(), most),
                                     threads, 0, timer, /*passes=*/1);
}

double timePeer(ScheduleBench &bench, peers::SgemmAttention &peer) {
  return bench.time(
      [&](const reference::Problem &problem) { peer.run(problem); });
}

/// Peers that do the step right; a line for each that does not.
std::vector<peers::SgemmAttention *>
usablePeers(peers::Peers &peers, ScheduleBench &bench, StringRef spec) {
  std::vector<peers::SgemmAttention *> result;
  for (const auto &peer : peers.present) {
    std::string reason = peer->refusal(bench.bench().problem().shape);
    if (reason.empty()) {
      bench.bench().clearOutput();
      timePeer(bench, *peer);
      reference::Comparison checked = bench.bench().checkSampled(32);
      if (!checked.ok() || checked.elements == 0)
        reason = "wrong output: " + checked.worst.text();
    }
    if (reason.empty()) {
      result.push_back(peer.get());
      continue;
    }
    std::string line = peer->library().name + ", " + spec.str() + ": " + reason;
    if (!is_contained(peers.missing, line))
      peers.missing.push_back(std::move(line));
  }
  return result;
}

} // namespace

void sampleRows(std::vector<BenchRow> &rows, double seconds, double work,
                const std::function<double(size_t)> &limit,
                const std::function<double(size_t)> &run) {
  double start = now();
  for (size_t turn = 0; turn < mostSamples; ++turn) {
    if (turn >= leastSamples && now() - start >= seconds)
      break;
    StringMap<double> ceilings;
    for (size_t i = 0; i < rows.size(); ++i)
      if (auto [ceiling, isNew] = ceilings.try_emplace(rows[i].limit); isNew)
        ceiling->second = limit(i);
    for (size_t i = 0; i < rows.size(); ++i) {
      BenchRow &row = rows[turn % 2 ? rows.size() - 1 - i : i];
      row.seconds.push_back(run(size_t(&row - rows.data())));
      row.shares.push_back(work / row.seconds.back() / ceilings[row.limit]);
    }
  }
  for (BenchRow &row : MutableArrayRef(rows).drop_front()) {
    std::vector<double> ratios;
    for (size_t i = 0; i < row.seconds.size(); ++i)
      ratios.push_back(rows.front().seconds[i] / row.seconds[i]);
    row.speedup = medianInterval(ratios, 0.99);
    row.quarters = quartiles(ratios);
  }
}

double limitNow(Variant variant, limits::Arithmetic arithmetic,
                const Workbench &bench) {
  int threads = bench.shape().threads;
  limits::Timer timer = limits::timerFor(threads);
  return variant == Variant::Prefill
             ? 1e9 *
                   limits::peak(arithmetic, threads, 0.05, timer, /*samples=*/1)
             : readLimit(bench.pool(), threads, timer);
}

BenchRow emptyRow(const AttentionSpec &spec, Variant variant,
                  limits::Arithmetic arithmetic, const Workbench &bench) {
  BenchRow row;
  row.kernel = (spec.name + " " + nameOf(variant)).str();
  row.step = bench.shape().str();
  row.dtype = dtypeText(spec);
  row.limit = variant == Variant::Prefill ? nameOf(arithmetic) : "read";
  row.flops = bench.flops();
  row.bytes = bench.bytes();
  return row;
}

Expected<std::vector<BenchRow>>
benchAttention(const AttentionSpec &spec, Variant variant,
               const Machine &machine, const StepShape &shape,
               ArrayRef<NamedSchedule> schedules, double seconds,
               peers::Peers *peers) {
  double start = now();
  Expected<std::unique_ptr<ScheduleBench>> made = ScheduleBench::create(
      spec, variant, machine, schedules.front().schedule, shape);
  if (!made)
    return made.takeError();
  ScheduleBench &bench = **made;
  std::vector<Schedule> all;
  std::vector<limits::Arithmetic> arithmetic;
  for (const NamedSchedule &named : schedules) {
    all.push_back(named.schedule);
    arithmetic.push_back(arithmeticOf(machine.cpuFeatures, named.schedule));
  }
  std::vector<bool> usable = bench.prepare(all);
  std::vector<BenchRow> rows;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!usable[i])
      return createStringError(spec.name + " " + nameOf(variant) +
                               ": cannot be built by " + all[i].str());
    BenchRow row = emptyRow(spec, variant, arithmetic[i], bench.bench());
    row.variant = schedules[i].name;
    row.schedule = all[i].str();
    rows.push_back(std::move(row));
    bench.time(all[i]);
  }
  std::vector<peers::SgemmAttention *> others =
      peers ? usablePeers(*peers, bench, spec.name)
            : std::vector<peers::SgemmAttention *>();
  for (peers::SgemmAttention *peer : others) {
    // Libraries take what this machine has, whatever our kernels are for.
    arithmetic.push_back(arithmeticOf(hostCpuFeatures(),
                                      peer->library().operands == PAGODA_BF16));
    BenchRow row = emptyRow(spec, variant, arithmetic.back(), bench.bench());
    row.variant = peer->library().name;
    row.schedule = peer->library().version;
    row.peer = true;
    rows.push_back(std::move(row));
  }
  double work =
      variant == Variant::Prefill ? rows.front().flops : rows.front().bytes;
  sampleRows(
      rows, seconds - (now() - start), work,
      [&](size_t i) { return limitNow(variant, arithmetic[i], bench.bench()); },
      [&](size_t i) {
        return i < all.size() ? bench.time(all[i])
                              : timePeer(bench, *others[i - all.size()]);
      });
  for (size_t i = 0; i < all.size(); ++i) {
    bench.bench().clearOutput();
    bench.time(all[i]);
    reference::Comparison checked = bench.bench().checkSampled(32);
    if (!checked.ok() || checked.elements == 0)
      rows[i].wrong = checked.worst.text();
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Kernels that write the cache
//===----------------------------------------------------------------------===//

namespace {

/// A pool of random bytes, what it must hold, and the kernels that write it.
class CacheWrites {
public:
  CacheWrites(const AttentionSpec &spec, const KernelSet &kernels,
              int64_t tokens, int threads)
      : spec(spec), kernels(kernels), tokens(tokens),
        tokenBlocks((tokens + spec.blockSize - 1) / spec.blockSize),
        pool(kernelSpecOf(spec).format(), int32_t(2 * tokenBlocks)),
        threads(threads), launcher(this->threads) {
    fill(pool.data(), pool.bytes(), 1);
    auto *bytes = static_cast<const uint8_t *>(pool.data());
    expected.assign(bytes, bytes + pool.bytes());
    order.resize(size_t(2 * tokenBlocks));
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = int32_t(i);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  }

  const KvPool &memory() const { return pool; }
  /// K and V of the tokens, in the cache's type.
  double bytes() const {
    return double(tokens * spec.kvHeads * (spec.headDim + spec.vHeadDim)) *
           double(reference::elementBytes(int32_t(spec.kvType)));
  }

  void prepareAppend();
  double append();
  void prepareCopy();
  double copy();
  /// Empty if the pool holds what it must.
  std::string check() const;

private:
  /// Bytes whose value as any float is finite: exponents of 0x3c and less.
  static void fill(void *data, size_t bytes, uint64_t seed) {
    std::mt19937_64 random(seed);
    auto *at = static_cast<uint8_t *>(data);
    for (size_t i = 0; i < bytes; ++i)
      at[i] = uint8_t(random() & 0x3c);
  }

  AttentionSpec spec;
  KernelSet kernels;
  int64_t tokens, tokenBlocks;
  KvPool pool;
  ThreadPool threads;
  CpuLauncher launcher;
  std::vector<uint8_t> expected, newK, newV;
  std::vector<int32_t> order; ///< of the blocks
  std::vector<int64_t> slots;
  std::vector<pagoda_block_copy> copies;
  pagoda_append_args args{};
};

void CacheWrites::prepareAppend() {
  size_t bytes = reference::elementBytes(int32_t(spec.qType));
  newK.resize(size_t(tokens * spec.kvHeads * spec.headDim) * bytes);
  newV.resize(size_t(tokens * spec.kvHeads * spec.vHeadDim) * bytes);
  fill(newK.data(), newK.size(), 2);
  fill(newV.data(), newV.size(), 3);
  for (int64_t t = 0; t < tokens; ++t)
    slots.push_back(order[size_t(t / spec.blockSize)] * spec.blockSize +
                    t % spec.blockSize);
  args.k_new = newK.data();
  args.k_head_stride = spec.headDim;
  args.k_token_stride = spec.kvHeads * spec.headDim;
  args.v_new = newV.data();
  args.v_head_stride = spec.vHeadDim;
  args.v_token_stride = spec.kvHeads * spec.vHeadDim;
  args.k = pool.k();
  args.v = pool.v();
  args.slot_mapping = slots.data();
  // What the pool must hold: each element loaded and stored by the oracle's
  // conversions, at the place that the contract names.
  auto *base = static_cast<char *>(pool.data());
  for (bool key : {true, false}) {
    const pagoda_kv_view &view = key ? args.k : args.v;
    int64_t dim = key ? spec.headDim : spec.vHeadDim;
    size_t element = reference::elementBytes(int32_t(spec.kvType));
    int64_t start = (static_cast<char *>(view.base) - base) / int64_t(element);
    std::vector<double> row(static_cast<size_t>(dim));
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t h = 0; h < spec.kvHeads; ++h) {
        reference::loadRow((key ? newK : newV).data(), int32_t(spec.qType),
                           (t * spec.kvHeads + h) * dim, dim, row.data());
        int64_t slot = slots[size_t(t)];
        reference::storeRow(expected.data(), int32_t(spec.kvType),
                            start + slot / spec.blockSize * view.block_stride +
                                h * view.head_stride +
                                slot % spec.blockSize * view.token_stride,
                            dim, row.data());
      }
  }
}

double CacheWrites::append() {
  double start = now();
  launcher.append(*kernels.append, args, tokens);
  return now() - start;
}

void CacheWrites::prepareCopy() {
  auto *base = static_cast<char *>(pool.data());
  size_t element = reference::elementBytes(int32_t(spec.kvType));
  for (int64_t i = 0; i < tokenBlocks; ++i)
    copies.push_back({order[size_t(i)], order[size_t(tokenBlocks + i)]});
  for (bool key : {true, false}) {
    pagoda_kv_view view = key ? pool.k() : pool.v();
    int64_t start = static_cast<char *>(view.base) - base;
    int64_t dim = key ? spec.headDim : spec.vHeadDim;
    for (const pagoda_block_copy &copy : copies)
      for (int64_t h = 0; h < spec.kvHeads; ++h)
        for (int64_t s = 0; s < spec.blockSize; ++s) {
          auto at = [&](int32_t block) {
            return start + (block * view.block_stride + h * view.head_stride +
                            s * view.token_stride) *
                               int64_t(element);
          };
          std::memcpy(expected.data() + at(copy.dst),
                      expected.data() + at(copy.src), size_t(dim) * element);
        }
  }
}

double CacheWrites::copy() {
  pagoda_copy_args arguments{pool.k(), pool.v(), copies.data()};
  double start = now();
  launcher.copy(*kernels.copy, arguments, int64_t(copies.size()));
  return now() - start;
}

std::string CacheWrites::check() const {
  auto *held = static_cast<const uint8_t *>(pool.data());
  auto [a, b] = std::mismatch(expected.begin(), expected.end(), held);
  if (a == expected.end())
    return "";
  return "byte " + std::to_string(a - expected.begin()) + " of the pool is " +
         std::to_string(*b) + ", expected " + std::to_string(*a);
}

} // namespace

Expected<std::vector<BenchRow>> benchCacheWrites(const AttentionSpec &spec,
                                                 const Machine &machine,
                                                 ArrayRef<int32_t> roles,
                                                 int64_t tokens, int threads,
                                                 double seconds) {
  CompileOptions options;
  options.machine = machine;
  Expected<std::unique_ptr<JitLibrary>> code =
      JitLibrary::compile({spec}, options);
  if (!code)
    return code.takeError();
  KernelSet kernels =
      KernelLibrary::wrap((*code)->info()).select(kernelSpecOf(spec));
  std::vector<BenchRow> result;
  for (int32_t role : roles) {
    bool append = role == PAGODA_ROLE_APPEND;
    if (!(append ? kernels.append : kernels.copy))
      continue;
    CacheWrites writes(spec, kernels, tokens, threads);
    append ? writes.prepareAppend() : writes.prepareCopy();
    BenchRow row;
    row.kernel = spec.name + " " + roleName(role);
    row.step = std::to_string(tokens) + " tokens";
    row.dtype = dtypeText(spec);
    row.variant = "default";
    row.limit = "read";
    row.bytes = 2 * writes.bytes(); // read and written
    std::vector<BenchRow> rows = {std::move(row)};
    sampleRows(
        rows, seconds / double(roles.size()), rows.front().bytes,
        [&](size_t) { return readLimit(writes.memory(), threads); },
        [&](size_t) { return append ? writes.append() : writes.copy(); });
    rows.front().wrong = writes.check();
    result.push_back(std::move(rows.front()));
  }
  return result;
}

} // namespace pagoda
