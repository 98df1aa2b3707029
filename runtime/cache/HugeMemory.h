//===- HugeMemory.h - Zeroed memory on huge pages ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Maps memory at a 2 MB boundary and asks the system to back it with huge
// pages. A decode step walks the whole cache once; with 4 KB pages it spends
// much of that walk in page-table misses.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_CACHE_HUGEMEMORY_H
#define PAGODA_CACHE_HUGEMEMORY_H

#include <cstddef>

namespace pagoda {

/// Zeroed, aligned to 2 MB, committed when touched. Throws std::bad_alloc.
void *mapHuge(size_t bytes);
void unmapHuge(void *memory, size_t bytes) noexcept;

} // namespace pagoda

#endif // PAGODA_CACHE_HUGEMEMORY_H
