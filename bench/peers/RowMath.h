//===- RowMath.h - The work between two matrix products ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over a row, compiled for several instruction sets, so that a peer is
// not slow for want of vectors outside its library.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_PEERS_ROWMATH_H
#define PAGODA_BENCH_PEERS_ROWMATH_H

#include <cstdint>

namespace pagoda::peers {

/// The largest of n values; -inf if n is 0.
float largest(const float *row, int64_t n);
/// row[i] = 2^(row[i] - max), 0 for -inf; returns their sum. max is finite.
float exponentials(float *row, int64_t n, float max);
void scale(float *row, int64_t n, float factor);
/// n elements of `type` (f32, f16 or bf16) from element `offset` of `base`.
void widen(const void *base, int32_t type, int64_t offset, int64_t n,
           float *out);
/// The inverse, rounded to nearest.
void narrow(const float *in, int64_t n, void *base, int32_t type,
            int64_t offset);

} // namespace pagoda::peers

#endif // PAGODA_BENCH_PEERS_ROWMATH_H
