//===- PagedKV.cpp - Sequences and their block tables ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps the flat tables and the slots of sequences. Each operation first finds
// out what it needs, takes all of it or nothing, and only then changes a table,
// so that a refused call leaves no trace.
//
//===----------------------------------------------------------------------===//

#include "pagoda/PagedKV.h"

#include <algorithm>
#include <string>

using namespace pagoda;

static void atLeast(const char *field, int64_t value, int64_t low) {
  if (value < low)
    throw Error(ErrorCode::InvalidArgument,
                std::string("paged kv: ") + field + ": expected " +
                    std::to_string(low) + " or more, got " +
                    std::to_string(value));
}

PagedKV::PagedKV(BlockManager &blocks, const PagedKVOptions &options)
    : Blocks(blocks), BlockSize(options.blockSize),
      MaxTokens(options.maxTokens), Groups(options.groups) {
  atLeast("block_size", BlockSize, 1);
  atLeast("max_sequences", options.maxSequences, 1);
  atLeast("max_tokens", MaxTokens, 1);
  atLeast("groups", static_cast<int64_t>(Groups.size()), 1);
  for (const TableGroup &group : Groups)
    group.verify();
  MaxBlocks = blocksFor(MaxTokens);
  Slots.resize(options.maxSequences);
  Tables.assign(Groups.size() * Slots.size() * MaxBlocks, -1);
  FreeRows.resize(Slots.size());
  for (size_t i = 0; i != FreeRows.size(); ++i)
    FreeRows[i] = static_cast<int32_t>(FreeRows.size() - 1 - i);
  CopySources.assign(blocks.numBlocks(), 0);
  CopyInto.assign(blocks.numBlocks(), -1);
  // One pending copy a group and a sequence is the most that a step needs.
  Copies.reserve(Groups.size() * Slots.size());
  Scratch.resize(Groups.size() * (size_t(MaxBlocks) + 1));
  RowTables.resize(Groups.size());
}

PagedKV::~PagedKV() {
  copiesDone();
  for (const Slot &slot : Slots)
    if (slot.id != NoSequence)
      dropEntries(slot.id & RowMask, 0, slot.blocks);
}

const PagedKV::Slot *PagedKV::find(SeqId seq) const {
  int64_t row = seq & RowMask;
  if (seq < 0 || row >= int64_t(Slots.size()) || Slots[row].id != seq)
    return nullptr;
  return &Slots[row];
}

const PagedKV::Slot &PagedKV::slot(SeqId seq) const {
  const Slot *slot = find(seq);
  if (!slot)
    throw Error(ErrorCode::UnknownSequence,
                "sequence " + std::to_string(seq) +
                    ": expected the id of a live sequence");
  return *slot;
}

PagedKV::Slot &PagedKV::active(SeqId seq) {
  Slot &s = slot(seq);
  if (s.preempted)
    throw Error(ErrorCode::InvalidArgument,
                "sequence " + std::to_string(seq) +
                    ": expected a running sequence, got a preempted one");
  return s;
}

SeqId PagedKV::takeSlot() {
  if (FreeRows.empty())
    return NoSequence;
  int64_t row = FreeRows.back();
  FreeRows.pop_back();
  ++NumSequences;
  Slots[row] = Slot{};
  Slots[row].id = NextGeneration++ << 31 | row;
  return Slots[row].id;
}

SeqId PagedKV::add() { return takeSlot(); }

bool PagedKV::mustCopy(int32_t block) const {
  uint32_t owners =
      Blocks.refs(block) - static_cast<uint32_t>(CopySources[block]);
  return owners > 1;
}

bool PagedKV::append(SeqId seq, int32_t tokens) {
  Slot &s = active(seq);
  atLeast("append: tokens", tokens, 0);
  if (tokens > MaxTokens - s.length)
    throw Error(ErrorCode::TooLong,
                "append: expected at most " + std::to_string(MaxTokens) +
                    " tokens in a sequence, got " +
                    std::to_string(int64_t(s.length) + tokens));
  if (tokens == 0)
    return true;
  int64_t row = seq & RowMask;
  int32_t first = s.length / BlockSize;
  int32_t end = blocksFor(int64_t(s.length) + tokens);
  bool partial = first < s.blocks;
  int32_t fresh = end - s.blocks;
  int32_t needed = 0;
  for (int32_t g = 0; g != numGroups(); ++g)
    needed += fresh + (partial && mustCopy(entries(g, row)[first]));
  std::span<int32_t> taken(Scratch.data(), needed);
  if (!Blocks.allocate(taken))
    return false;
  const int32_t *next = taken.data();
  for (int32_t g = 0; g != numGroups(); ++g) {
    int32_t *table = entries(g, row);
    if (partial) {
      int32_t old = table[first];
      if (mustCopy(old)) {
        addCopy(old, *next);
        table[first] = *next++;
      } else {
        Blocks.noteWrite(old);
      }
    }
    std::copy_n(next, fresh, table + s.blocks);
    next += fresh;
  }
  s.blocks = end;
  s.length += tokens;
  return true;
}

/// Notes that \p block replaces \p old in a table. The table's reference to the
/// old block becomes the pending copy's.
void PagedKV::addCopy(int32_t old, int32_t block) {
  int32_t source = old;
  // No copy reads what another one writes, so that all of them may run at once.
  if (CopyInto[old] >= 0) {
    source = Copies[CopyInto[old]].src;
    Blocks.share(source);
    Blocks.release(old);
  }
  CopyInto[block] = static_cast<int32_t>(Copies.size());
  Copies.push_back({source, block});
  ++CopySources[source];
}

void PagedKV::copiesDone() {
  for (const pagoda_block_copy &copy : Copies) {
    CopyInto[copy.dst] = -1;
    --CopySources[copy.src];
    Blocks.release(copy.src);
  }
  Copies.clear();
}

/// A copy into a block that is about to be free must not be made any more.
void PagedKV::forgetCopyInto(int32_t block) {
  int32_t index = std::exchange(CopyInto[block], -1);
  if (index < 0)
    return;
  int32_t source = Copies[index].src;
  Copies[index] = Copies.back();
  if (size_t(index) + 1 != Copies.size())
    CopyInto[Copies[index].dst] = index;
  Copies.pop_back();
  --CopySources[source];
  Blocks.release(source);
}

void PagedKV::dropEntries(int64_t row, int32_t from, int32_t to) {
  for (int32_t g = numGroups(); g-- > 0;) {
    int32_t *table = entries(g, row);
    if (!Copies.empty())
      for (int32_t i = from; i != to; ++i)
        if (table[i] >= 0 && Blocks.refs(table[i]) == 1)
          forgetCopyInto(table[i]);
    // Runs without holes are released at once, the last block first.
    for (int32_t end = to; end > from;) {
      if (table[end - 1] < 0) {
        --end;
        continue;
      }
      int32_t begin = end;
      while (begin > from && table[begin - 1] >= 0)
        --begin;
      Blocks.release({table + begin, size_t(end - begin)});
      end = begin;
    }
    std::fill(table + from, table + to, -1);
  }
}

SeqId PagedKV::fork(SeqId parent, int32_t tokens) {
  const Slot source = active(parent);
  if (tokens < 0)
    tokens = source.length;
  if (tokens > source.length)
    throw Error(ErrorCode::InvalidArgument,
                "fork: tokens: expected at most the parent's length " +
                    std::to_string(source.length) + ", got " +
                    std::to_string(tokens));
  int32_t blocks = blocksFor(tokens);
  int64_t from = parent & RowMask;
  for (int32_t g = 0; g != numGroups(); ++g)
    for (int32_t i = Groups[g].firstVisible(tokens, BlockSize); i < blocks; ++i)
      if (entries(g, from)[i] < 0)
        throw Error(
            ErrorCode::InvalidArgument,
            "fork: tokens: a query at position " + std::to_string(tokens) +
                " needs block " + std::to_string(i) + " of table group " +
                std::to_string(g) + ", which the parent's window has let go");
  if (FreeRows.empty())
    return NoSequence;
  // All references in one call: all or none.
  size_t count = 0;
  for (int32_t g = 0; g != numGroups(); ++g)
    for (int32_t i = 0; i != blocks; ++i)
      if (int32_t block = entries(g, from)[i]; block >= 0)
        Scratch[count++] = block;
  Blocks.share({Scratch.data(), count});
  SeqId seq = takeSlot();
  int64_t row = seq & RowMask;
  for (int32_t g = 0; g != numGroups(); ++g)
    std::copy_n(entries(g, from), blocks, entries(g, row));
  Slots[row].length = tokens;
  Slots[row].blocks = blocks;
  if (source.cursor.blocks <= tokens / BlockSize)
    Slots[row].cursor = source.cursor;
  return seq;
}

void PagedKV::truncate(SeqId seq, int32_t tokens) {
  Slot &s = active(seq);
  if (tokens < 0 || tokens > s.length)
    throw Error(ErrorCode::InvalidArgument,
                "truncate: tokens: expected 0 to the sequence's length " +
                    std::to_string(s.length) + ", got " +
                    std::to_string(tokens));
  int64_t row = seq & RowMask;
  int32_t blocks = blocksFor(tokens);
  for (int32_t g = 0; g != numGroups(); ++g)
    for (int32_t i = Groups[g].firstVisible(tokens, BlockSize); i < blocks; ++i)
      if (entries(g, row)[i] < 0)
        throw Error(ErrorCode::InvalidArgument,
                    "truncate: tokens: a query at position " +
                        std::to_string(tokens) + " needs block " +
                        std::to_string(i) + " of table group " +
                        std::to_string(g) + ", which its window has let go");
  dropEntries(row, blocks, s.blocks);
  s.blocks = blocks;
  s.length = tokens;
  if (s.cursor.blocks > tokens / BlockSize)
    s.cursor = {};
}

int32_t PagedKV::releaseWindow(SeqId seq, int32_t firstQuery) {
  Slot &s = active(seq);
  if (firstQuery < 0)
    firstQuery = s.length;
  if (firstQuery > s.length)
    throw Error(ErrorCode::InvalidArgument,
                "release window: first query: expected at most the sequence's "
                "length " +
                    std::to_string(s.length) + ", got " +
                    std::to_string(firstQuery));
  int64_t row = seq & RowMask;
  int32_t released = 0;
  for (int32_t g = 0; g != numGroups(); ++g) {
    int32_t *table = entries(g, row);
    int32_t end =
        std::min(Groups[g].firstVisible(firstQuery, BlockSize), s.blocks);
    int32_t sinks = Groups[g].sinkBlocks(BlockSize);
    // Earlier calls have let go of everything before the first block held.
    int32_t begin = end;
    while (begin > sinks && table[begin - 1] >= 0)
      --begin;
    if (begin >= end)
      continue;
    if (!Copies.empty())
      for (int32_t i = begin; i != end; ++i)
        if (Blocks.refs(table[i]) == 1)
          forgetCopyInto(table[i]);
    // A window needs the last blocks before it: the first one is released first
    // and evicted first, unlike those of a whole sequence.
    std::reverse(table + begin, table + end);
    Blocks.release({table + begin, size_t(end - begin)});
    std::fill(table + begin, table + end, -1);
    released += end - begin;
  }
  return released;
}

bool PagedKV::remove(SeqId seq) {
  const Slot *s = find(seq);
  if (!s)
    return false;
  int64_t row = seq & RowMask;
  dropEntries(row, 0, s->blocks);
  Slots[row] = Slot{};
  FreeRows.push_back(static_cast<int32_t>(row));
  --NumSequences;
  return true;
}

void PagedKV::preempt(SeqId seq) {
  Slot &s = active(seq);
  dropEntries(seq & RowMask, 0, s.blocks);
  s.blocks = 0;
  s.cursor = {};
  s.preempted = true;
}

bool PagedKV::resume(SeqId seq) {
  Slot &s = slot(seq);
  if (!s.preempted)
    throw Error(ErrorCode::InvalidArgument,
                "resume: sequence " + std::to_string(seq) +
                    ": expected a preempted sequence, got a running one");
  int32_t length = s.length;
  s.preempted = false;
  s.length = 0;
  bool room = append(seq, length);
  s.preempted = !room;
  s.length = length;
  return room;
}

std::span<int32_t *const> PagedKV::tablesOf(int64_t row) {
  for (int32_t g = 0; g != numGroups(); ++g)
    RowTables[g] = entries(g, row);
  return RowTables;
}

void PagedKV::checkCache(const PrefixCache &cache) const {
  auto differ = [](const char *what, const std::string &theirs,
                   const std::string &ours) {
    throw Error(ErrorCode::Mismatch, std::string("prefix cache: ") + what +
                                         ": cache has " + theirs +
                                         ", sequences have " + ours);
  };
  if (Blocks.listener() != cache.asListener())
    differ("blocks", "another block manager", "their own");
  if (cache.blockSize() != BlockSize)
    differ("block_size", std::to_string(cache.blockSize()),
           std::to_string(BlockSize));
  if (!std::equal(Groups.begin(), Groups.end(), cache.groups().begin(),
                  cache.groups().end()))
    differ("table groups", std::to_string(cache.groups().size()),
           std::to_string(Groups.size()) +
               " (or the same number with other windows)");
}

bool PagedKV::attachPrefix(SeqId seq, PrefixCache &cache,
                           const PrefixHit &hit) {
  Slot &s = slot(seq);
  checkCache(cache);
  if (!s.preempted && s.length != 0)
    throw Error(ErrorCode::InvalidArgument,
                "attach prefix: expected an empty or preempted sequence, got "
                "one of " +
                    std::to_string(s.length) + " tokens");
  if (hit.tokens > MaxTokens)
    throw Error(ErrorCode::TooLong,
                "attach prefix: expected at most " + std::to_string(MaxTokens) +
                    " tokens in a sequence, got " + std::to_string(hit.tokens));
  if (!cache.acquire(hit, tablesOf(seq & RowMask)))
    return false;
  s.preempted = false;
  s.length = hit.tokens;
  s.blocks = static_cast<int32_t>(hit.nodes.size());
  s.cursor = {};
  if (s.blocks)
    s.cursor = {hit.nodes.back().node, hit.nodes.back().generation, s.blocks};
  return true;
}

void PagedKV::storePrefix(SeqId seq, PrefixCache &cache,
                          std::span<const int32_t> tokens,
                          std::span<const ExtraKey> keys, int32_t priority) {
  Slot &s = active(seq);
  checkCache(cache);
  if (tokens.size() > size_t(s.length))
    throw Error(
        ErrorCode::InvalidArgument,
        "store prefix: tokens: expected at most the sequence's length " +
            std::to_string(s.length) + ", got " +
            std::to_string(tokens.size()));
  if (!Copies.empty())
    throw Error(ErrorCode::InvalidArgument,
                "store prefix: expected no pending copies, got " +
                    std::to_string(Copies.size()));
  cache.store(s.cursor, tokens, keys, tablesOf(seq & RowMask), priority);
}

std::span<const int32_t> PagedKV::table(SeqId seq, int32_t group) const {
  const Slot &s = slot(seq);
  if (group < 0 || group >= numGroups())
    throw Error(ErrorCode::InvalidArgument,
                "table group: expected 0 to " +
                    std::to_string(numGroups() - 1) + ", got " +
                    std::to_string(group));
  return {entries(group, seq & RowMask), size_t(s.blocks)};
}

const int32_t *PagedKV::tables(int32_t group) const {
  if (group < 0 || group >= numGroups())
    throw Error(ErrorCode::InvalidArgument,
                "table group: expected 0 to " +
                    std::to_string(numGroups() - 1) + ", got " +
                    std::to_string(group));
  return entries(group, 0);
}

void PagedKV::slotMapping(SeqId seq, int32_t first, std::span<int64_t> out,
                          int32_t group) const {
  std::span<const int32_t> blocks = table(seq, group);
  int64_t end = first + static_cast<int64_t>(out.size());
  if (first < 0 || end > length(seq))
    throw Error(ErrorCode::InvalidArgument,
                "slot mapping: expected positions within 0 to " +
                    std::to_string(length(seq)) + ", got " +
                    std::to_string(first) + " to " + std::to_string(end));
  if (slot(seq).preempted && !out.empty())
    throw Error(ErrorCode::InvalidArgument,
                "slot mapping: expected a running sequence, got a preempted "
                "one");
  for (int64_t p = first; p != end; ++p) {
    int64_t block = blocks[p / BlockSize];
    out[p - first] = block < 0 ? -1 : block * BlockSize + p % BlockSize;
  }
}

int64_t PagedKV::heldReferences() const {
  int64_t held = static_cast<int64_t>(Copies.size());
  for (const Slot &s : Slots)
    if (s.id != NoSequence)
      for (int32_t g = 0; g != numGroups(); ++g) {
        const int32_t *table = entries(g, s.id & RowMask);
        held += std::count_if(table, table + s.blocks,
                              [](int32_t block) { return block >= 0; });
      }
  return held;
}
