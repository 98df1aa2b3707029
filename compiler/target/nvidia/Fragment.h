//===- Fragment.h - A fragment as one thread holds it -----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says which element of a tile lives in which register of
// which lane. A warp owns 16 rows of a tile, lane l the rows l / 4 and l / 4 +
// 8 of them, its two *halves*. The maps are those of the m16n8k16 matrix
// product in the PTX ISA ("Matrix Fragments for mma.m16n8k16").
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENT_H
#define PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENT_H

#include "compiler/target/nvidia/ir/FragmentDialect.h"

namespace pagoda {

/// Registers of one thread, by the fragment's form:
///
/// - `a`:   i32 pairs, four per 16 columns. Register 4 s + i holds columns
///          16 s + 8 (i / 2) + 2 (l % 4) and the next one, of half i % 2.
/// - `acc`: f32, four per 8 columns. Register 4 n + i holds column
///          8 n + 2 (l % 4) + i % 2 of half i / 2.
/// - `row`: one per half, the same in the four lanes that share the row.
///
/// Columns come in groups of 16; those past the last are zero.
struct Fragment {
  static constexpr int64_t rowsPerWarp = 16;
  static constexpr int64_t halves = 2;

  static int64_t registersOf(nv::FragmentType type) {
    int64_t columns = (type.getCols() + 15) / 16 * 16;
    switch (type.getForm()) {
    case nv::Form::a:
      return columns / 4;
    case nv::Form::acc:
      return columns / 2;
    case nv::Form::row:
      return halves;
    }
    llvm_unreachable("a form");
  }

  //===--------------------------------------------------------------------===//
  // The accumulator's map
  //===--------------------------------------------------------------------===//

  static int64_t halfOf(int64_t accRegister) { return accRegister / 2 % 2; }
  /// Column without the lane's part, which is 2 (l % 4).
  static int64_t columnOf(int64_t accRegister) {
    return accRegister / 4 * 8 + accRegister % 2;
  }
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_FRAGMENT_H
