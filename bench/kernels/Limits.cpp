//===- Limits.cpp - What this machine can do at most ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inner loops are written once, as templates over a vector type, and
// inlined into one function per instruction set, chosen at run time: the file
// needs no global target flags.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/Limits.h"

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#define PAGODA_TARGET(isa) __attribute__((target(isa)))
#endif

namespace pagoda::limits {

namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

/// Runs body(thread) on `threads` threads that start together; returns the
/// seconds from the first start to the last end.
double runTogether(int threads, Timer timer,
                   const std::function<void(int)> &body) {
  if (threads == 1) {
    double start = now(timer);
    body(0);
    return now(timer) - start;
  }
  std::barrier start(threads);
  std::vector<double> begins(threads), ends(threads);
  auto run = [&](int thread) {
    start.arrive_and_wait();
    begins[thread] = now(Timer::Wall);
    body(thread);
    ends[thread] = now(Timer::Wall);
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t)
    workers.emplace_back(run, t);
  run(0);
  for (std::thread &worker : workers)
    worker.join();
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(begins.begin(), begins.end());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Accumulators in flight: more than latency times throughput (4 to 5 cycles
/// by 2 per cycle), fewer than the 16 registers of AVX2 with the two factors.
constexpr int Accumulators = 12;
/// Dot products of pairs take 6 cycles; AVX-512 has 32 registers.
constexpr int PairAccumulators = 16;

typedef float F32x4 __attribute__((vector_size(16)));
typedef float F32x8 __attribute__((vector_size(32)));
typedef float F32x16 __attribute__((vector_size(64)));
typedef uint64_t U64x2 __attribute__((vector_size(16)));
typedef uint64_t U64x4 __attribute__((vector_size(32)));
typedef uint64_t U64x8 __attribute__((vector_size(64)));

template <typename Vector>
__attribute__((always_inline)) inline float fmaLoop(int64_t rounds,
                                                    const float *factors) {
  Vector acc[Accumulators] = {};
  Vector a = Vector{} + factors[0], b = Vector{} + factors[1];
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (int i = 0; i < Accumulators; ++i)
      acc[i] = acc[i] * a + b;
  }
  float sum = 0;
  for (const Vector &value : acc)
    sum += value[0];
  return sum;
}

float fma128(int64_t rounds, const float *factors) {
  return fmaLoop<F32x4>(rounds, factors);
}
#ifdef PAGODA_TARGET
PAGODA_TARGET("avx2,fma") float fma256(int64_t rounds, const float *factors) {
  return fmaLoop<F32x8>(rounds, factors);
}
PAGODA_TARGET("avx512f")
float fma512(int64_t rounds, const float *factors) {
  return fmaLoop<F32x16>(rounds, factors);
}
/// Sums rise until they are too large for what is added: no infinities.
PAGODA_TARGET("avx512f,avx512bf16")
float pairs512(int64_t rounds, const float *factors) {
  __m512 acc[PairAccumulators] = {};
  __m512 a = _mm512_set1_ps(factors[0]), b = _mm512_set1_ps(factors[1]);
  __m512bh x = _mm512_cvtne2ps_pbh(a, a), y = _mm512_cvtne2ps_pbh(b, b);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (__m512 &value : acc)
      value = _mm512_dpbf16_ps(value, x, y);
  }
  float sum = 0;
  for (const __m512 &value : acc)
    sum += value[0];
  return sum;
}
#endif

//===----------------------------------------------------------------------===//
// Sequential reads
//===----------------------------------------------------------------------===//

/// Combines every vector of `Streams` ranges of `bytes` bytes each, one after
/// the other from `data` on, so that no load can be dropped. `bytes` is a
/// multiple of 8 vectors.
template <typename Vector, int Streams>
__attribute__((always_inline)) inline uint64_t readLoop(const char *data,
                                                        size_t bytes) {
  constexpr int perStream = 8 / Streams;
  Vector acc[8] = {};
  for (size_t at = 0; at != bytes; at += perStream * sizeof(Vector)) {
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i) {
      Vector value;
      __builtin_memcpy(&value,
                       data + i / perStream * bytes + at +
                           i % perStream * sizeof(Vector),
                       sizeof(Vector));
      acc[i] ^= value;
    }
  }
  uint64_t result = 0;
  for (const Vector &value : acc)
    for (size_t lane = 0; lane < sizeof(Vector) / 8; ++lane)
      result ^= value[lane];
  return result;
}

template <int Streams> uint64_t read128(const char *data, size_t bytes) {
  return readLoop<U64x2, Streams>(data, bytes);
}
#ifdef PAGODA_TARGET
template <int Streams>
PAGODA_TARGET("avx2")
uint64_t read256(const char *data, size_t bytes) {
  return readLoop<U64x4, Streams>(data, bytes);
}
template <int Streams>
PAGODA_TARGET("avx512f")
uint64_t read512(const char *data, size_t bytes) {
  return readLoop<U64x8, Streams>(data, bytes);
}
#endif

using ReadFn = uint64_t (*)(const char *, size_t);

/// A loop of products and what one round of it counts.
struct PeakLoop {
  float (*run)(int64_t rounds, const float *factors);
  int flopsPerRound;
};

PeakLoop loopFor(Arithmetic arithmetic) {
  constexpr int perLane = 2 * Accumulators;
  switch (arithmetic) {
#ifdef PAGODA_TARGET
  case Arithmetic::Bf16Pairs:
    return {pairs512, 2 * PairAccumulators * 32};
  case Arithmetic::Fma512:
    return {fma512, perLane * 16};
  case Arithmetic::Fma256:
    return {fma256, perLane * 8};
#endif
  default:
    return {fma128, perLane * 4};
  }
}

template <int Streams> ReadFn readFor() {
#ifdef PAGODA_TARGET
  if (has(Arithmetic::Fma512))
    return read512<Streams>;
  if (has(Arithmetic::Fma256))
    return read256<Streams>;
#endif
  return read128<Streams>;
}

ReadFn readFor(int streams) {
  return streams == 4   ? readFor<4>()
         : streams == 2 ? readFor<2>()
                        : readFor<1>();
}

/// Where results go so that the work that made them stays.
volatile uint64_t readSink;
volatile float peakSink;

} // namespace

double now(Timer timer) {
  timespec time;
  clock_gettime(
      timer == Timer::Wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

const char *nameOf(Arithmetic arithmetic) {
  switch (arithmetic) {
  case Arithmetic::Fma128:
    return "128-bit FMA";
  case Arithmetic::Fma256:
    return "256-bit FMA";
  case Arithmetic::Fma512:
    return "512-bit FMA";
  case Arithmetic::Bf16Pairs:
    return "bf16 pairs";
  }
  return "";
}

bool has(Arithmetic arithmetic) {
#ifdef PAGODA_TARGET
  switch (arithmetic) {
  case Arithmetic::Bf16Pairs:
    return __builtin_cpu_supports("avx512bf16");
  case Arithmetic::Fma512:
    return __builtin_cpu_supports("avx512f");
  case Arithmetic::Fma256:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  case Arithmetic::Fma128:
    break;
  }
#endif
  return arithmetic == Arithmetic::Fma128; // the compiler's baseline
}

Arithmetic widestFma() {
  return has(Arithmetic::Fma512)   ? Arithmetic::Fma512
         : has(Arithmetic::Fma256) ? Arithmetic::Fma256
                                   : Arithmetic::Fma128;
}

double peak(Arithmetic arithmetic, int threads, double seconds, Timer timer,
            int samples) {
  if (!has(arithmetic))
    return 0;
  auto [loop, flopsPerRound] = loopFor(arithmetic);
  const float factors[2] = {0.999f, 0.001f}; // converges: no denormals, no inf

  // A short run finds the clock rate (and wakes the vector units up).
  int64_t rounds = 200000;
  double start = now(timer);
  peakSink = loop(rounds, factors);
  rounds = std::max<int64_t>(
      int64_t(double(rounds) * seconds / samples / (now(timer) - start)), 1000);

  std::vector<double> rates;
  for (int sample = 0; sample < samples; ++sample) {
    double elapsed = runTogether(threads, timer, [&, run = loop](int) {
      peakSink = run(rounds, factors);
    });
    rates.push_back(double(flopsPerRound) * double(rounds) * threads / elapsed /
                    1e9);
  }
  return median(rates);
}

double readBandwidth(const void *data, size_t bytes, int threads,
                     double seconds, Timer timer, size_t passes, int streams) {
  ReadFn loop = readFor(streams);
  const char *base = static_cast<const char *>(data);
  // Whole steps of the widest loop for each thread; the rest is not counted.
  size_t stream = bytes / threads / streams / 512 * 512;
  size_t part = stream * streams;
  if (part == 0)
    return 0;
  std::vector<double> rates;
  double start = now(timer);
  do {
    double elapsed = runTogether(threads, timer, [&](int thread) {
      readSink = loop(base + thread * part, stream);
    });
    rates.push_back(double(part * threads) / elapsed / 1e9);
  } while (rates.size() < passes || now(timer) - start < seconds);
  return median(rates);
}

} // namespace pagoda::limits
