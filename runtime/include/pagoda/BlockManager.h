//===- BlockManager.h - Who owns which block of the pool --------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts the owners of every block and hands out blocks that nobody owns. Knows
// nothing of memory, sequences or tokens: a block is a number. A cache that
// retains blocks takes part as an owner and as a listener (see BlockListener).
//
// Every operation is O(1) a block, checks its arguments in release builds too,
// and takes no heap memory after construction.
//
// Threads: one thread at a time may change an object; const members may run
// beside each other.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BLOCKMANAGER_H
#define PAGODA_BLOCKMANAGER_H

#include "pagoda/Error.h"
#include "pagoda/LineVector.h"

#include <cstdint>
#include <span>

namespace pagoda {

/// Told about the blocks that it watches. The prefix cache is one: it must know
/// when a block it has indexed is in nobody else's hands any more. Lists are
/// passed on as the caller gave them; blocks that are not watched are not the
/// listener's business.
class BlockListener {
public:
  virtual ~BlockListener();
  /// Each of \p blocks has got one more owner.
  virtual void blocksShared(std::span<const int32_t> blocks) = 0;
  /// Each of \p blocks has lost an owner, the last one of the list first. A
  /// watched block without owners returns to the free stack after this call and
  /// is not watched any more.
  virtual void blocksReleased(std::span<const int32_t> blocks) = 0;
  /// The only owner of a watched block is about to write to it. The listener
  /// must stop watching it.
  virtual void blockWritten(int32_t block) = 0;
  /// How many blocks reclaim() could free.
  virtual int32_t reclaimable() const = 0;
  /// Gives back watched blocks (see BlockManager::giveBack) until \p count of
  /// them are free, or none is left.
  virtual void reclaim(int32_t count) = 0;
};

class BlockManager {
public:
  /// \p numBlocks blocks, ids 0 .. numBlocks - 1, all free; an empty pool hands
  /// out ids from 0 upward. A block may have up to \p maxRefs owners.
  explicit BlockManager(int32_t numBlocks, uint32_t maxRefs = MaxRefs);
  BlockManager(const BlockManager &) = delete;
  BlockManager &operator=(const BlockManager &) = delete;

  /// Takes \p out.size() blocks with one owner each, or none at all. Returns
  /// false when there are too few; idle blocks of the listener are reclaimed
  /// before that answer is given.
  [[nodiscard]] bool allocate(std::span<int32_t> out);
  /// Takes one block; -1 when there is none.
  [[nodiscard]] int32_t allocate() {
    int32_t block = -1;
    return allocate({&block, 1}) ? block : -1;
  }

  /// Adds one owner to each block. Errors (and then nothing has changed):
  /// UnknownBlock, DoubleRelease (the block has no owner), RefOverflow.
  void share(std::span<const int32_t> blocks);
  void share(int32_t block) { share({&block, 1}); }

  /// Takes one owner from each block, the last one of the list first; a block
  /// without owners returns to the free stack. A block may stand in the list as
  /// often as it has owners. Errors (and then nothing has changed):
  /// UnknownBlock, DoubleRelease.
  void release(std::span<const int32_t> blocks);
  void release(int32_t block) { release({&block, 1}); }

  /// Owners of \p block, 0 when it is free. Error: UnknownBlock.
  uint32_t refs(int32_t block) const { return word(block) >> 1; }
  /// Whether the listener watches \p block.
  bool watched(int32_t block) const { return word(block) & Watched; }

  int32_t numBlocks() const { return static_cast<int32_t>(Words.size()); }
  /// Blocks on the free stack.
  int32_t numFree() const { return numBlocks() - Next; }
  /// Blocks that allocate() can hand out: free ones and the listener's idle
  /// ones.
  int32_t numAvailable() const {
    return numFree() + (Listener ? Listener->reclaimable() : 0);
  }

  // For the listener.

  /// Sets the one listener; null takes it away. It must outlive its watches.
  void setListener(BlockListener *listener) { Listener = listener; }
  BlockListener *listener() const { return Listener; }
  /// Starts watching a block that has an owner. Error: DoubleRelease.
  void watch(int32_t block);
  void unwatch(int32_t block) {
    (void)word(block);
    Words[block] &= ~Watched;
  }
  /// Frees a watched block that only the listener owns. Error: DoubleRelease.
  void giveBack(int32_t block) {
    if (word(block) != (OneRef | Watched)) [[unlikely]]
      notIdle(block);
    Words[block] = 0;
    push(block);
  }
  /// Says that the only owner of \p block is going to write to it.
  void noteWrite(int32_t block) {
    if (watched(block) && Listener)
      Listener->blockWritten(block);
  }

  static constexpr uint32_t MaxRefs = 0x7fffffffu;

private:
  static constexpr uint32_t Watched = 1;
  static constexpr uint32_t OneRef = 2;

  uint32_t word(int32_t block) const {
    if (static_cast<uint32_t>(block) >= Words.size()) [[unlikely]]
      unknownBlock(block);
    return Words[block];
  }
  void push(int32_t block) { Free[Next--] = block; }

  [[noreturn]] void unknownBlock(int32_t block) const;
  [[noreturn]] void notIdle(int32_t block) const;
  /// Why releasing or sharing \p block is impossible.
  [[noreturn]] void noOwner(const char *verb, int32_t block) const;
  /// Undoes what was done to blocks[0 .. done) or (done .. end) and says why
  /// blocks[done] could not follow.
  [[noreturn]] void cannotShare(std::span<const int32_t> blocks, size_t done);
  [[noreturn]] void cannotRelease(std::span<const int32_t> blocks, size_t done);

  /// A block's owners times two, plus the watched bit: the hot path reads one
  /// word.
  LineVector<uint32_t> Words;
  /// Free[Next + 1 .. numBlocks] are the free blocks, the next one to hand out
  /// first: a list is handed out as it lies there.
  LineVector<int32_t> Free;
  int32_t Next = 0;
  uint32_t RefLimit;
  BlockListener *Listener = nullptr;
};

} // namespace pagoda

#endif // PAGODA_BLOCKMANAGER_H
