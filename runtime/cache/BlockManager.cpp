//===- BlockManager.cpp - Who owns which block of the pool ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The free stack and the reference counts. Lists are applied block by block and
// undone on an error: that costs nothing on the way that is taken every day,
// and it finds a block that is listed more often than it has owners. The
// listener is told only once the whole list has been applied.
//
//===----------------------------------------------------------------------===//

#include "pagoda/BlockManager.h"

#include <algorithm>
#include <numeric>
#include <string>

using namespace pagoda;

BlockListener::~BlockListener() = default;

const char *pagoda::errorName(ErrorCode code) {
  switch (code) {
  case ErrorCode::InvalidArgument:
    return "invalid argument";
  case ErrorCode::UnknownBlock:
    return "unknown block";
  case ErrorCode::DoubleRelease:
    return "double release";
  case ErrorCode::RefOverflow:
    return "reference overflow";
  case ErrorCode::UnknownSequence:
    return "unknown sequence";
  case ErrorCode::TooLong:
    return "too long";
  case ErrorCode::Mismatch:
    return "mismatch";
  case ErrorCode::BadLibrary:
    return "bad library";
  case ErrorCode::NoDevice:
    return "no device";
  }
  return "unknown";
}

BlockManager::BlockManager(int32_t numBlocks, uint32_t maxRefs)
    : RefLimit(maxRefs) {
  if (numBlocks < 0)
    throw Error(ErrorCode::InvalidArgument,
                "block manager: expected 0 blocks or more, got " +
                    std::to_string(numBlocks));
  if (maxRefs == 0 || maxRefs > MaxRefs)
    throw Error(ErrorCode::InvalidArgument,
                "block manager: expected a reference limit from 1 to " +
                    std::to_string(MaxRefs) + ", got " +
                    std::to_string(maxRefs));
  Words.assign(numBlocks, 0);
  // One more than there are blocks: release() writes before it knows whether
  // the block is free.
  Free.resize(size_t(numBlocks) + 1);
  std::iota(Free.begin() + 1, Free.end(), 0);
}

bool BlockManager::allocate(std::span<int32_t> out) {
  int64_t count = static_cast<int64_t>(out.size());
  if (count > numFree()) [[unlikely]] {
    if (count > numAvailable())
      return false;
    Listener->reclaim(static_cast<int32_t>(count) - numFree());
    if (count > numFree())
      return false;
  }
  const int32_t *free = Free.data() + Next + 1;
  uint32_t *words = Words.data();
  std::copy_n(free, count, out.data());
#pragma clang loop unroll_count(4)
  for (int64_t i = 0; i < count; ++i)
    words[free[i]] = OneRef;
  Next += static_cast<int32_t>(count);
  return true;
}

void BlockManager::unknownBlock(int32_t block) const {
  throw Error(ErrorCode::UnknownBlock, "block " + std::to_string(block) +
                                           ": expected an id from 0 to " +
                                           std::to_string(numBlocks() - 1));
}

void BlockManager::notIdle(int32_t block) const {
  throw Error(ErrorCode::DoubleRelease,
              "block " + std::to_string(block) +
                  ": cannot give back: expected a watched block with 1 owner, "
                  "got " +
                  std::to_string(refs(block)) + " owners");
}

void BlockManager::noOwner(const char *verb, int32_t block) const {
  throw Error(ErrorCode::DoubleRelease,
              "block " + std::to_string(block) + ": cannot " + verb +
                  ": expected 1 owner or more, got 0");
}

// The loops below keep what they need in locals: a store to a counter might,
// for all the compiler knows, change a member.

void BlockManager::share(std::span<const int32_t> blocks) {
  uint32_t *words = Words.data();
  const uint32_t count = static_cast<uint32_t>(Words.size());
  // A word from OneRef on and below this one may count one owner more.
  const uint32_t most = (RefLimit - 1) * OneRef;
  uint32_t all = 0;
#pragma clang loop unroll_count(4)
  for (const int32_t &listed : blocks) {
    uint32_t block = static_cast<uint32_t>(listed);
    if (block >= count || words[block] - OneRef >= most) [[unlikely]]
      cannotShare(blocks, &listed - blocks.data());
    all |= words[block];
    words[block] += OneRef;
  }
  // The listener hears of nothing that could still be undone.
  if ((all & Watched) && Listener)
    Listener->blocksShared(blocks);
}

void BlockManager::cannotShare(std::span<const int32_t> blocks, size_t done) {
  for (int32_t block : blocks.first(done))
    Words[block] -= OneRef;
  int32_t block = blocks[done];
  uint32_t owners = refs(block);
  if (owners == 0)
    noOwner("share", block);
  throw Error(ErrorCode::RefOverflow,
              "block " + std::to_string(block) +
                  ": cannot share: expected fewer than " +
                  std::to_string(RefLimit) + " owners, got " +
                  std::to_string(owners));
}

void BlockManager::release(std::span<const int32_t> blocks) {
  uint32_t *words = Words.data();
  int32_t *next = Free.data() + Next;
  const uint32_t count = static_cast<uint32_t>(Words.size());
  uint32_t all = 0;
#pragma clang loop unroll_count(4)
  for (const int32_t *listed = blocks.data() + blocks.size();
       listed != blocks.data();) {
    uint32_t block = static_cast<uint32_t>(*--listed);
    if (block >= count || words[block] < OneRef) [[unlikely]]
      cannotRelease(blocks, listed - blocks.data());
    uint32_t now = words[block] - OneRef;
    words[block] = now;
    *next = static_cast<int32_t>(block);
    next -= now == 0;
    all |= now;
  }
  Next = static_cast<int32_t>(next - Free.data());
  if (!(all & Watched))
    return;
  if (Listener)
    Listener->blocksReleased(blocks);
  for (size_t i = blocks.size(); i-- > 0;) {
    int32_t block = blocks[i];
    if (words[block] == Watched) {
      words[block] = 0;
      push(block);
    }
  }
}

void BlockManager::cannotRelease(std::span<const int32_t> blocks, size_t done) {
  for (int32_t block : blocks.subspan(done + 1))
    Words[block] += OneRef;
  (void)refs(blocks[done]); // names an unknown id
  noOwner("release", blocks[done]);
}

void BlockManager::watch(int32_t block) {
  if (word(block) < OneRef)
    noOwner("watch", block);
  Words[block] |= Watched;
}
