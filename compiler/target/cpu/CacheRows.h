//===- CacheRows.h - Rows of the cache, copied and rotated ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that moves one row of a head from memory to memory, vector by vector.
// Where the rows are is the caller's business. Rows are aligned to an element.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_CACHEROWS_H
#define PAGODA_COMPILER_TARGET_CPU_CACHEROWS_H

#include "compiler/target/cpu/CpuBuilder.h"

namespace pagoda {

class CacheRows {
public:
  /// Rows of `source` elements become rows of `target` elements. Different
  /// types must be f32, f16 or bf16.
  CacheRows(CpuBuilder &b, int64_t vectorBits, Type source, Type target)
      : b(b), vectorBits(vectorBits), source(source), target(target) {}

  /// Dims [begin, end). Equal types move bit by bit, others are rounded once.
  void copy(Value from, Value to, int64_t begin, int64_t end);

  /// The first `rotaryDim` dims of a key: the pair (x, y) becomes
  /// (x cos - y sin, y cos + x sin), computed in f32 and rounded once. cos and
  /// sin point to rotaryDim / 2 f32 values. Pairs are (2i, 2i + 1) when
  /// `interleaved`, else (i, i + rotaryDim / 2).
  void rotate(Value from, Value to, Value cos, Value sin, int64_t rotaryDim,
              bool interleaved);

private:
  Value load(Value row, Value index, Type element, int64_t width);
  void store(Value vector, Value row, Value index);

  CpuBuilder &b;
  int64_t vectorBits;
  Type source, target;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_CACHEROWS_H
