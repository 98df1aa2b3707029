//===- PagedKV.h - Sequences and their block tables -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Maps the positions of sequences to blocks. Position p of a sequence lies in
// block table[p / block_size], slot p % block_size. Layers are put into *table
// groups*: the layers of a group share one table, so one group serves all
// layers (the usual choice), or each layer has a group of its own, or full and
// windowed layers have one each. All groups draw blocks from one BlockManager.
//
// Knows no memory and no tokens: it says which block copies must be made, and
// whoever owns the pool makes them.
//
// Threads: one thread at a time may change an object; const members may run
// beside each other, and kernels may read the tables of sequences that are not
// being changed.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_PAGEDKV_H
#define PAGODA_PAGEDKV_H

#include "pagoda/BlockManager.h"
#include "pagoda/PrefixCache.h"
#include "pagoda/TableGroup.h"
#include "pagoda/kernel_abi.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pagoda {

/// Names a sequence; never given out twice by one PagedKV.
using SeqId = int64_t;
inline constexpr SeqId NoSequence = -1;

struct PagedKVOptions {
  int32_t blockSize = 16;
  int32_t maxSequences = 256;
  int32_t maxTokens = 4096; ///< of one sequence
  std::vector<TableGroup> groups = {TableGroup{}};
};

class PagedKV {
public:
  /// \p blocks must outlive the object. Error: InvalidArgument.
  PagedKV(BlockManager &blocks, const PagedKVOptions &options);
  ~PagedKV();
  PagedKV(const PagedKV &) = delete;
  PagedKV &operator=(const PagedKV &) = delete;

  /// An empty sequence; NoSequence when every slot is taken.
  [[nodiscard]] SeqId add();

  /// Makes room for \p tokens more tokens in every group: new blocks, and a
  /// private copy of the last block when others share it (see pendingCopies).
  /// Returns false, and changes nothing, when there are too few blocks.
  /// Errors: UnknownSequence, TooLong (past max_tokens), InvalidArgument.
  [[nodiscard]] bool append(SeqId seq, int32_t tokens);

  /// A new sequence that shares the blocks of the first \p tokens tokens of
  /// \p parent (-1: all of them); NoSequence when every slot is taken. The
  /// first of the two to write into a shared block gets a copy.
  [[nodiscard]] SeqId fork(SeqId parent, int32_t tokens = -1);

  /// Drops the tokens from position \p tokens on, as when speculated tokens are
  /// rejected. Error: InvalidArgument when the sequence is shorter, or when a
  /// window has already let go of a block that the new last query would need.
  void truncate(SeqId seq, int32_t tokens);

  /// Lets go of the blocks in windowed groups that no query at position
  /// \p firstQuery or later can see (-1: the sequence's length); blocks with
  /// sink tokens stay. Their table entries become -1. Returns how many blocks
  /// were let go. Store them first (storePrefix) if later prompts are to find
  /// them: a cache knows no block that it never saw.
  int32_t releaseWindow(SeqId seq, int32_t firstQuery = -1);

  /// Ends a sequence and releases its blocks. False when there is no such
  /// sequence; nothing happens then.
  bool remove(SeqId seq);

  /// Releases the blocks of a sequence but keeps its slot and its length, for
  /// when other sequences need the memory more.
  void preempt(SeqId seq);
  /// Gives a preempted sequence blocks for its length again; their content must
  /// be computed anew, from position computed on (see PrefixCache). Returns
  /// false, and changes nothing, when there are too few blocks.
  [[nodiscard]] bool resume(SeqId seq);
  bool preempted(SeqId seq) const { return slot(seq).preempted; }

  /// Block copies (K and V, every layer) that must be made before anything is
  /// written for the appends so far, in any order or all at once. Their sources
  /// stay owned until copiesDone(), so that nothing can be put into them
  /// meanwhile.
  std::span<const pagoda_block_copy> pendingCopies() const { return Copies; }
  void copiesDone();

  /// Gives a sequence the blocks of \p hit as its first hit.tokens tokens: an
  /// empty one, or a preempted one, which runs again from there. False, and
  /// nothing happens, when part of the hit is gone: look it up again. Errors:
  /// InvalidArgument, Mismatch (a cache over other blocks or groups).
  [[nodiscard]] bool attachPrefix(SeqId seq, PrefixCache &cache,
                                  const PrefixHit &hit);
  /// Stores the full blocks of a sequence whose first \p tokens.size() tokens
  /// are written to the pool (see PrefixCache::store). Call it between steps: a
  /// table entry may change to another block with the same content.
  void storePrefix(SeqId seq, PrefixCache &cache,
                   std::span<const int32_t> tokens,
                   std::span<const ExtraKey> keys = {}, int32_t priority = 0);

  // Reading.

  bool contains(SeqId seq) const { return find(seq) != nullptr; }
  int32_t length(SeqId seq) const { return slot(seq).length; }
  /// The row of the sequence in tables(group).
  int32_t row(SeqId seq) const {
    (void)slot(seq);
    return static_cast<int32_t>(seq & RowMask);
  }
  /// The blocks of a sequence, one a block_size tokens; -1 where a window has
  /// let go.
  std::span<const int32_t> table(SeqId seq, int32_t group = 0) const;
  /// The tables of a group, [max_sequences, tableStride()]: what a kernel takes
  /// as block_table. Never moves.
  const int32_t *tables(int32_t group = 0) const;
  int64_t tableStride() const { return MaxBlocks; }

  /// block * block_size + slot of positions [first, first + out.size()), as
  /// pagoda_append_args takes them; -1 where a window has let go.
  void slotMapping(SeqId seq, int32_t first, std::span<int64_t> out,
                   int32_t group = 0) const;

  int32_t blockSize() const { return BlockSize; }
  int32_t maxSequences() const { return static_cast<int32_t>(Slots.size()); }
  int32_t maxTokens() const { return MaxTokens; }
  int32_t numSequences() const { return NumSequences; }
  int32_t numGroups() const { return static_cast<int32_t>(Groups.size()); }
  const TableGroup &group(int32_t group) const { return Groups.at(group); }
  BlockManager &blocks() const { return Blocks; }

  /// Reference count entries of all tables: what the property tests compare
  /// with the BlockManager. Counts pending copies too.
  int64_t heldReferences() const;

private:
  static constexpr int64_t RowMask = 0x7fffffff;

  struct Slot {
    int64_t id = NoSequence;
    int32_t length = 0;
    int32_t blocks = 0; ///< table entries in use, the same in every group
    bool preempted = false;
    PrefixCursor cursor; ///< how far its blocks are in a prefix cache
  };

  const Slot *find(SeqId seq) const;
  const Slot &slot(SeqId seq) const;
  Slot &slot(SeqId seq) {
    return const_cast<Slot &>(std::as_const(*this).slot(seq));
  }
  /// A sequence that may be changed: known and not preempted.
  Slot &active(SeqId seq);
  int32_t *entries(int32_t group, int64_t row) {
    return Tables.data() + (group * int64_t(Slots.size()) + row) * MaxBlocks;
  }
  const int32_t *entries(int32_t group, int64_t row) const {
    return const_cast<PagedKV *>(this)->entries(group, row);
  }
  int32_t blocksFor(int64_t tokens) const {
    return static_cast<int32_t>((tokens + BlockSize - 1) / BlockSize);
  }
  SeqId takeSlot();
  std::span<int32_t *const> tablesOf(int64_t row);
  void checkCache(const PrefixCache &cache) const;
  bool mustCopy(int32_t block) const;
  void dropEntries(int64_t row, int32_t from, int32_t to);
  void addCopy(int32_t old, int32_t block);
  void forgetCopyInto(int32_t block);

  BlockManager &Blocks;
  int32_t BlockSize;
  int32_t MaxTokens;
  int32_t MaxBlocks;
  std::vector<TableGroup> Groups;
  std::vector<int32_t> Tables; ///< [groups, max_sequences, max_blocks]
  std::vector<Slot> Slots;
  std::vector<int32_t> FreeRows;
  int32_t NumSequences = 0;
  int64_t NextGeneration = 0;
  std::vector<pagoda_block_copy> Copies;
  /// Per block: how many pending copies read it, each with a reference.
  std::vector<int32_t> CopySources;
  /// Per block: the index of the pending copy that writes it, or -1.
  std::vector<int32_t> CopyInto;
  std::vector<int32_t> Scratch;
  std::vector<int32_t *> RowTables; ///< [groups], of the row last asked for
};

} // namespace pagoda

#endif // PAGODA_PAGEDKV_H
