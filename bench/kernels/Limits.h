//===- Limits.h - What this machine can do at most --------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the two limits that attention kernels are held against: f32 fused
// multiply-adds per second and sequential read bandwidth. Both drift with the
// machine's load, so measure them beside the kernel and quote the ratio.
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

/// Bits of the widest vector whose fused multiply-add this CPU has and this
/// file knows: 512, 256, or 128 (the compiler's baseline).
int widestVector();

/// f32 FMA peak in GFLOP/s (an FMA counts as 2) of `threads` threads together:
/// independent accumulators in registers, no memory. The median of `samples`
/// rounds that take about `seconds` altogether. `vectorBits` is 128, 256 or
/// 512, at most widestVector(); 0 measures the widest.
double fmaPeak(int threads, double seconds, Timer timer = Timer::Wall,
               int vectorBits = 0, int samples = 7);

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
