//===- Element.h - Element types as doubles ---------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes every element type of kernel_abi.h as doubles. Widening is
// exact; narrowing rounds to nearest, ties to even. Shares no code with the
// compiler's or the runtime's conversions, so that they can be tested by it.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_REFERENCE_ELEMENT_H
#define PAGODA_TESTS_REFERENCE_ELEMENT_H

#include "runtime/include/pagoda/kernel_abi.h"

#include <cstddef>
#include <cstdint>

namespace pagoda::reference {

/// Bytes of one element; `dtype` is a pagoda_dtype.
size_t elementBytes(int32_t dtype);

/// The distance from 1 to the next larger value; 0 for integers.
double epsilon(int32_t dtype);

/// out[i] = base[offset + i] for i < n; `offset` in elements.
void loadRow(const void *base, int32_t dtype, int64_t offset, int64_t n,
             double *out);

/// base[offset + i] = in[i] for i < n, rounded to nearest even. Values beyond
/// the largest finite one become infinite, or NaN in F8E4M3 (which has no
/// infinity); I8 saturates.
void storeRow(void *base, int32_t dtype, int64_t offset, int64_t n,
              const double *in);

/// Fills `n` elements with NaN (0 for I8, which has none).
void fillNaN(void *base, int32_t dtype, int64_t n);

} // namespace pagoda::reference

#endif // PAGODA_TESTS_REFERENCE_ELEMENT_H
