//===- LineVector.h - Vectors at cache lines, large ones on huge pages ----===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arrays that are indexed by block: the blocks of a sequence lie in no
// order, so every access to a large one would be a miss in the page tables too.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_LINEVECTOR_H
#define PAGODA_LINEVECTOR_H

#include <cstddef>
#include <vector>

namespace pagoda {

/// Memory that begins at a cache line; from 256 KB on it is asked for in huge
/// pages. Throws std::bad_alloc.
void *allocateLines(size_t bytes);
void freeLines(void *memory, size_t bytes) noexcept;

template <typename T> struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename U> LineAllocator(const LineAllocator<U> &) {}
  T *allocate(size_t count) {
    return static_cast<T *>(allocateLines(count * sizeof(T)));
  }
  void deallocate(T *memory, size_t count) {
    freeLines(memory, count * sizeof(T));
  }
  bool operator==(const LineAllocator &) const { return true; }
};

template <typename T> using LineVector = std::vector<T, LineAllocator<T>>;

} // namespace pagoda

#endif // PAGODA_LINEVECTOR_H
