//===- Block.cpp - Scheduling the threads of a block ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fibers are boost.context's bare contexts. Kernels have no destructors and
// cannot be unwound; after a fault their stacks are simply used again.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <numeric>

using namespace boost::context::detail;

namespace pagoda::emulator {

thread_local Block *Block::active = nullptr;

Stacks::Stacks(int count) : mapped(size_t(count) * bytes) {
  void *result = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (result == MAP_FAILED)
    throw std::bad_alloc();
  memory = static_cast<char *>(result);
}

Stacks::~Stacks() { munmap(memory, mapped); }

void *Stacks::top(int index) const {
  return memory + size_t(index + 1) * bytes;
}

Block::Block(const Launch &launch, int id, Stacks &stacks,
             Statistics &statistics)
    : launch(launch), id(id), statistics(statistics),
      shared(size_t(launch.sharedBytes)), threads(size_t(launch.threads)),
      warps(size_t(launch.threads) / warpSize), live(launch.threads) {
  barrierState.ops.assign(warps.size(), -1);
  for (int index = 0; index < launch.threads; ++index) {
    Thread &thread = threads[size_t(index)];
    thread.id = index;
    thread.context = make_fcontext(stacks.top(index), Stacks::bytes, enter);
  }
}

void Block::enter(transfer_t transfer) {
  Block &block = *active;
  block.scheduler = transfer.fctx;
  block.launch.kernel(block.launch.args);
  block.running->done = true;
  --block.live;
  jump_fcontext(block.scheduler, nullptr);
}

std::string Block::run() {
  active = this;
  std::mt19937_64 random(launch.seed + uint64_t(id) * 0x9e3779b97f4a7c15u);
  std::vector<int> order(threads.size());
  std::iota(order.begin(), order.end(), 0);
  while (live > 0 && fault.empty()) {
    bool progress = false;
    std::shuffle(order.begin(), order.end(), random);
    for (int index : order) {
      Thread &thread = threads[size_t(index)];
      if (thread.done || !thread.wait.over())
        continue;
      progress = true;
      thread.wait = {};
      running = &thread;
      thread.context = jump_fcontext(thread.context, nullptr).fctx;
      if (!fault.empty())
        break;
    }
    if (!progress)
      fault = deadlock();
  }
  active = nullptr;
  return fault.empty() ? "" : "block " + std::to_string(id) + ": " + fault;
}

void Block::yield() { scheduler = jump_fcontext(scheduler, nullptr).fctx; }

void Block::fail(const std::string &text) {
  fault = text;
  for (;;)
    yield();
}

void Block::waitFor(const uint64_t &counter, const char *what, int op) {
  running->wait = {&counter, counter, what, op};
  yield();
}

void Block::barrier(int op) {
  Thread &thread = *running;
  int &warpOp = barrierState.ops[size_t(thread.warp())];
  if (warpOp >= 0 && warpOp != op)
    fail("threads of warp " + std::to_string(thread.warp()) +
         " meet in different barriers, op " + std::to_string(warpOp) +
         " and op " + std::to_string(op));
  warpOp = op;
  ++thread.epoch;
  if (++barrierState.arrived == launch.threads) {
    barrierState.arrived = 0;
    barrierState.ops.assign(warps.size(), -1);
    ++barrierState.rounds;
    ++statistics.barriers;
  } else {
    waitFor(barrierState.rounds, "a barrier", op);
  }
}

void Block::meet(const char *what, int op, const void *in, void *out,
                 const std::function<void(Meeting &)> &work) {
  Thread &thread = *running;
  Meeting &meeting = warps[size_t(thread.warp())];
  if (meeting.arrived == 0) {
    meeting.op = op;
    meeting.what = what;
  } else if (meeting.op != op) {
    fail("lanes of warp " + std::to_string(thread.warp()) +
         " meet in different instructions, " + meeting.what + " in op " +
         std::to_string(meeting.op) + " and " + what + " in op " +
         std::to_string(op));
  }
  meeting.in[thread.lane()] = in;
  meeting.out[thread.lane()] = out;
  if (++meeting.arrived == warpSize) {
    work(meeting);
    meeting.arrived = 0;
    ++meeting.rounds;
  } else {
    waitFor(meeting.rounds, what, op);
  }
}

void Block::checkGlobal(const void *address, size_t bytes, bool write,
                        const char *what, int op) {
  ++statistics.globalAccesses;
  if (launch.buffers.empty())
    return;
  auto at = reinterpret_cast<uintptr_t>(address);
  const char *verb = write ? " writes " : " reads ";
  for (const GlobalBuffer &buffer : launch.buffers) {
    auto begin = reinterpret_cast<uintptr_t>(buffer.begin);
    if (at < begin || at + bytes > begin + buffer.bytes)
      continue;
    if (write && !buffer.writable)
      fail("thread " + std::to_string(running->id) + " in op " +
           std::to_string(op) + ": " + what + verb + "to " + buffer.name +
           ", which is read-only");
    return;
  }
  fail("thread " + std::to_string(running->id) + " in op " +
       std::to_string(op) + ": " + what + verb + std::to_string(bytes) +
       " bytes outside of every buffer");
}

std::string Block::deadlock() const {
  std::string text = "deadlock:";
  for (size_t first = 0; first < threads.size();) {
    // Neighbours in the same situation are reported together.
    const Thread &thread = threads[first];
    size_t last = first;
    while (last + 1 < threads.size() && threads[last + 1].done == thread.done &&
           threads[last + 1].wait.op == thread.wait.op &&
           threads[last + 1].wait.what == thread.wait.what)
      ++last;
    text +=
        " threads " + std::to_string(first) + " to " + std::to_string(last) +
        (thread.done ? std::string(" have ended;")
                     : " wait for " + std::string(thread.wait.what) +
                           " in op " + std::to_string(thread.wait.op) + ";");
    first = last + 1;
  }
  text.pop_back();
  return text;
}

} // namespace pagoda::emulator
