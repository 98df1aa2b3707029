//===- HugeMemory.cpp - Zeroed memory on huge pages -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the pool, the launcher's scratch and the large arrays of the block
// manager and the prefix cache are made of.
//
//===----------------------------------------------------------------------===//

#include "cache/HugeMemory.h"
#include "pagoda/LineVector.h"

#include <new>
#include <sys/mman.h>

using namespace pagoda;

static constexpr size_t HugePage = size_t(2) << 20;
static constexpr std::align_val_t Line{64};
/// Below this an array's pages fit beside others in the first-level TLB.
static constexpr size_t LargeArray = size_t(256) << 10;

static size_t alignUp(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

void *pagoda::mapHuge(size_t bytes) {
  size_t size = alignUp(bytes ? bytes : 1, HugePage);
  void *raw = mmap(nullptr, size + HugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    throw std::bad_alloc();
  auto address = reinterpret_cast<size_t>(raw);
  size_t base = alignUp(address, HugePage);
  if (base != address)
    munmap(raw, base - address);
  if (size_t rest = address + HugePage - base)
    munmap(reinterpret_cast<void *>(base + size), rest);
  void *memory = reinterpret_cast<void *>(base);
  // Only a request: a system that refuses still gives the memory.
  (void)madvise(memory, size, MADV_HUGEPAGE);
  return memory;
}

void pagoda::unmapHuge(void *memory, size_t bytes) noexcept {
  if (memory)
    munmap(memory, alignUp(bytes ? bytes : 1, HugePage));
}

void *pagoda::allocateLines(size_t bytes) {
  return bytes < LargeArray ? ::operator new(bytes, Line) : mapHuge(bytes);
}

void pagoda::freeLines(void *memory, size_t bytes) noexcept {
  if (bytes < LargeArray)
    ::operator delete(memory, Line);
  else
    unmapHuge(memory, bytes);
}
