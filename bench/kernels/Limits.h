//===- Limits.h - What this machine can do at most --------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the limits that attention kernels are held against: the products
// that their instructions do in a second, and sequential read bandwidth. Both
// drift with the machine's load, so measure them beside the kernel and quote
// the ratio.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_KERNELS_LIMITS_H
#define PAGODA_BENCH_KERNELS_LIMITS_H

#include <cstddef>

namespace pagoda::limits {

/// Which clock times the work.
enum class Timer {
  Wall,
  /// CPU time of the calling thread, for one thread only: does not count the
  /// time that other processes take on a busy machine. It does not undo what
  /// they do to caches and memory.
  ThreadCpu,
};

/// The clock for steps on `threads` threads: CPU time where it can be.
inline Timer timerFor(int threads) {
  return threads == 1 ? Timer::ThreadCpu : Timer::Wall;
}

/// Seconds since some point in the past.
double now(Timer timer);

/// The instruction that products are made of: fused multiply-adds of f32 in
/// vectors of so many bits, or dot products that add pairs of bf16 to f32, in
/// vectors of 512 bits.
enum class Arithmetic { Fma128, Fma256, Fma512, Bf16Pairs };

/// "256-bit FMA", "bf16 pairs", ...
const char *nameOf(Arithmetic arithmetic);

/// Whether this CPU has the instruction, and this file knows it.
bool has(Arithmetic arithmetic);

/// The widest fused multiply-adds that this CPU has.
Arithmetic widestFma();

/// Peak in GFLOP/s (a product and its sum count as 2) of `threads` threads
/// together: independent accumulators in registers, no memory. The median of
/// `samples` rounds that take about `seconds` altogether. 0 if this CPU does
/// not have the instruction.
double peak(Arithmetic arithmetic, int threads, double seconds,
            Timer timer = Timer::Wall, int samples = 7);

/// Bandwidth in GB/s (10^9 bytes) of `threads` threads that read `bytes` bytes
/// at `data` in order, a contiguous part each. The median over whole passes,
/// at least `passes`, that take about `seconds` altogether. Data much larger
/// than the last-level cache measures memory. With several `streams`, 1, 2 or
/// 4, a thread reads as many parts of its part side by side, a cache line of
/// each in turn: prefetchers follow streams, and one does not always use all
/// that memory gives.
double readBandwidth(const void *data, size_t bytes, int threads,
                     double seconds, Timer timer = Timer::Wall,
                     size_t passes = 3, int streams = 1);

} // namespace pagoda::limits

#endif // PAGODA_BENCH_KERNELS_LIMITS_H
