//===- SharedMemory.h - Shared memory that watches its users ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block's shared memory with a record, per 16-byte chunk, of who touched it
// last. Time is counted in barriers (epochs). An asynchronous copy writes at
// any moment between its issue and the wait of its thread, so its chunk is in
// use for that long; after the wait its thread, and after one more barrier
// everyone, may read.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_RUNTIME_EMULATOR_SHAREDMEMORY_H
#define PAGODA_RUNTIME_EMULATOR_SHAREDMEMORY_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace pagoda::emulator {

constexpr size_t chunkBytes = 16;

/// A cp.async that has been issued and not landed.
struct Copy {
  void *target;
  const void *source;
  int bytes;
};

/// The copies of one thread: committed groups, oldest first, and the open one.
struct CopyQueue {
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open;
};

/// Who accesses shared memory.
struct Accessor {
  int thread = -1;
  int op = -1;
  uint32_t epoch = 0;
};

class SharedMemory {
public:
  /// `bytes` of NaN that nobody has written.
  explicit SharedMemory(size_t bytes);

  void *base() { return memory.get(); }

  // Each returns a fault, empty if there is none.
  std::string read(const void *row, const Accessor &who);
  std::string write(const void *row, const Accessor &who);
  std::string issueCopy(const Copy &copy, const Accessor &who);
  /// The copy lands.
  void land(const Copy &copy, const Accessor &who);

private:
  static constexpr uint32_t never = UINT32_MAX;
  struct Chunk {
    Accessor writer;
    uint32_t landed = 0; ///< epoch in which the writer waited; never: pending
    bool written = false;
    bool copied = false; ///< by a copy, not a store
    Accessor readers[2]; ///< the last ones, of different threads
    const char *verb() const { return copied ? "copy" : "store"; }
  };

  /// A fault if `who`, about to write by `verb`, meets others at `chunk`.
  std::string meets(const Chunk &chunk, const char *verb, const void *address,
                    const Accessor &who) const;
  /// The chunk at `address`, null with `fault` set if it is not one.
  Chunk *find(const void *address, const Accessor &who, std::string &fault);

  size_t bytes;
  struct Release {
    void operator()(char *pointer) const;
  };
  std::unique_ptr<char, Release> memory;
  std::vector<Chunk> chunks;
};

} // namespace pagoda::emulator

#endif // PAGODA_RUNTIME_EMULATOR_SHAREDMEMORY_H
