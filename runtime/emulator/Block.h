//===- Block.h - One thread block being emulated ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of a block: fibers, warps that meet, shared memory. Block.cpp
// schedules, Warp.cpp does what a warp does together, SharedMemory.cpp watches
// who touches what.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_RUNTIME_EMULATOR_BLOCK_H
#define PAGODA_RUNTIME_EMULATOR_BLOCK_H

#include "Emulator.h"
#include "SharedMemory.h"

#include <boost/context/detail/fcontext.hpp>

#include <functional>
#include <memory>
#include <random>

namespace pagoda::emulator {

constexpr int warpSize = 32;

/// What a thread does not get past until `*counter` has changed.
struct Wait {
  const uint64_t *counter = nullptr; ///< null: the thread can run
  uint64_t value = 0;
  const char *what = "";
  int op = 0;

  bool over() const { return !counter || *counter != value; }
};

struct Thread {
  int id = 0;
  boost::context::detail::fcontext_t context = nullptr;
  bool done = false;
  Wait wait;
  CopyQueue copies;
  uint32_t epoch = 0; ///< barriers passed

  int lane() const { return id % warpSize; }
  int warp() const { return id / warpSize; }
};

/// Lanes on their way to do something together: the last one does it for all.
struct Meeting {
  int arrived = 0;
  uint64_t rounds = 0;
  int op = 0; ///< of the first to arrive
  const char *what = "";
  const void *in[warpSize] = {};
  void *out[warpSize] = {};
};

/// Memory for the stacks of a block's fibers, used again for the next block.
class Stacks {
public:
  explicit Stacks(int count);
  ~Stacks();
  Stacks(const Stacks &) = delete;
  /// One past the highest byte of stack `index`.
  void *top(int index) const;
  static constexpr size_t bytes = 256 << 10;

private:
  char *memory;
  size_t mapped;
};

class Block {
public:
  Block(const Launch &launch, int id, Stacks &stacks, Statistics &statistics);

  /// Runs all threads to their end. Returns the fault, empty if there is none.
  std::string run();

  /// Called by threads.
  Thread &current() { return *running; }
  void barrier(int op);
  /// Meets the other lanes of the warp in `op`; `work(meeting)` runs once.
  void meet(const char *what, int op, const void *in, void *out,
            const std::function<void(Meeting &)> &work);
  /// Ends the launch with a report; does not return.
  [[noreturn]] void fail(const std::string &text);
  void checkGlobal(const void *address, size_t bytes, bool write,
                   const char *what, int op);

  const Launch &launch;
  const int id;
  Statistics &statistics;
  SharedMemory shared;

  /// The block that this host thread emulates.
  static thread_local Block *active;

private:
  static void enter(boost::context::detail::transfer_t transfer);
  void waitFor(const uint64_t &counter, const char *what, int op);
  void yield();
  std::string deadlock() const;

  std::vector<Thread> threads;
  std::vector<Meeting> warps;
  struct {
    int arrived = 0;
    uint64_t rounds = 0;
    std::vector<int> ops; ///< per warp, of its first thread to arrive
  } barrierState;
  boost::context::detail::fcontext_t scheduler = nullptr;
  Thread *running = nullptr;
  int live = 0;
  std::string fault;
};

} // namespace pagoda::emulator

#endif // PAGODA_RUNTIME_EMULATOR_BLOCK_H
