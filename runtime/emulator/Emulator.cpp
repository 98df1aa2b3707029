//===- Emulator.cpp - Launches, and what single threads do ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include "Block.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace pagoda::emulator;

static void add(Statistics &sum, const Statistics &part) {
  sum.products += part.products;
  sum.matrixLoads += part.matrixLoads;
  sum.shuffles += part.shuffles;
  sum.barriers += part.barriers;
  sum.copies += part.copies;
  sum.globalAccesses += part.globalAccesses;
}

Result pagoda::emulator::run(const Launch &launch) {
  auto refuse = [](const std::string &what, int value) {
    throw std::invalid_argument(what + ", got " + std::to_string(value));
  };
  if (launch.threads < warpSize || launch.threads > 1024 ||
      launch.threads % warpSize != 0)
    refuse("threads must be a multiple of 32 from 32 to 1024", launch.threads);
  if (launch.gridSize < 1)
    refuse("grid size must be at least 1", launch.gridSize);
  if (launch.sharedBytes < 0)
    refuse("shared bytes must be at least 0", launch.sharedBytes);

  Result result;
  std::atomic<int> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  auto work = [&] {
    Stacks stacks(launch.threads);
    Statistics statistics;
    for (int id; !stop && (id = next++) < launch.gridSize;) {
      std::string fault = Block(launch, id, stacks, statistics).run();
      if (fault.empty())
        continue;
      stop = true;
      std::lock_guard lock(mutex);
      if (result.fault.empty())
        result.fault = fault;
    }
    std::lock_guard lock(mutex);
    add(result.statistics, statistics);
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < launch.hostThreads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return result;
}

//===----------------------------------------------------------------------===//
// What single threads do
//===----------------------------------------------------------------------===//

int32_t pagoda_emu_thread_id() { return Block::active->current().id; }
int32_t pagoda_emu_block_id() { return Block::active->id; }
int32_t pagoda_emu_grid_size() { return Block::active->launch.gridSize; }
void *pagoda_emu_shared() { return Block::active->shared.base(); }

void pagoda_emu_barrier(int32_t op) { Block::active->barrier(op); }

void pagoda_emu_copy16(void *target, const void *source, int32_t bytes,
                       int32_t op) {
  Block &block = *Block::active;
  Thread &thread = block.current();
  auto refuse = [&](const std::string &text) {
    block.fail("cp.async: thread " + std::to_string(thread.id) + " in op " +
               std::to_string(op) + ": " + text);
  };
  if (bytes < 0 || bytes > int32_t(chunkBytes))
    refuse("size must be 0 to 16, got " + std::to_string(bytes));
  if (bytes > 0) {
    if (reinterpret_cast<uintptr_t>(source) % chunkBytes != 0)
      refuse("source is not aligned to 16 bytes");
    block.checkGlobal(source, size_t(bytes), /*write=*/false, "cp.async", op);
  }
  Copy copy{target, source, bytes};
  std::string fault =
      block.shared.issueCopy(copy, {thread.id, op, thread.epoch});
  if (!fault.empty())
    block.fail("cp.async: " + fault);
  thread.copies.open.push_back(copy);
  ++block.statistics.copies;
}

void pagoda_emu_commit_copies() {
  CopyQueue &queue = Block::active->current().copies;
  queue.groups.push_back(std::move(queue.open));
  queue.open.clear();
}

void pagoda_emu_wait_copies(int32_t pending) {
  Block &block = *Block::active;
  Thread &thread = block.current();
  auto &groups = thread.copies.groups;
  for (; int32_t(groups.size()) > pending; groups.pop_front())
    for (const Copy &copy : groups.front())
      block.shared.land(copy, {thread.id, -1, thread.epoch});
}

void pagoda_emu_shared_access(const void *address, int32_t isWrite,
                              int32_t op) {
  Block &block = *Block::active;
  Thread &thread = block.current();
  Accessor who = {thread.id, op, thread.epoch};
  std::string fault = isWrite ? block.shared.write(address, who)
                              : block.shared.read(address, who);
  if (!fault.empty())
    block.fail((isWrite ? "store: " : "load: ") + fault);
}

void pagoda_emu_global(const void *address, int32_t bytes, int32_t isWrite,
                       int32_t op) {
  Block &block = *Block::active;
  if (reinterpret_cast<uintptr_t>(address) % uintptr_t(bytes) != 0)
    block.fail("thread " + std::to_string(block.current().id) + " in op " +
               std::to_string(op) + ": access of " + std::to_string(bytes) +
               " bytes is not aligned");
  block.checkGlobal(address, size_t(bytes), isWrite != 0, "thread", op);
}
