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
  Free.resize(numBlocks);
  for (int32_t i = 0; i < numBlocks; ++i)
    Free[i] = numBlocks - 1 - i;
  Top = numBlocks;
}

bool BlockManager::allocate(std::span<int32_t> out) {
  int64_t count = static_cast<int64_t>(out.size());
  if (count > Top) [[unlikely]] {
    if (count > numAvailable())
      return false;
    Listener->reclaim(static_cast<int32_t>(count) - Top);
    if (count > Top)
      return false;
  }
  int32_t *free = Free.data() + Top;
  uint32_t *words = Words.data();
  for (int64_t i = 0; i < count; ++i) {
    int32_t block = *--free;
    words[block] = OneRef;
    out[i] = block;
  }
  Top -= static_cast<int32_t>(count);
  return true;
}

void BlockManager::unknownBlock(int32_t block) const {
  throw Error(ErrorCode::UnknownBlock, "block " + std::to_string(block) +
                                           ": expected an id from 0 to " +
                                           std::to_string(numBlocks() - 1));
}

void BlockManager::noOwner(const char *verb, int32_t block) const {
  throw Error(ErrorCode::DoubleRelease,
              "block " + std::to_string(block) + ": cannot " + verb +
                  ": expected 1 owner or more, got 0");
}

void BlockManager::share(std::span<const int32_t> blocks) {
  uint32_t *words = Words.data();
  bool watched = false;
  for (size_t i = 0, e = blocks.size(); i != e; ++i) {
    int32_t block = blocks[i];
    bool known = static_cast<uint32_t>(block) < Words.size();
    uint32_t refs = known ? words[block] >> 1 : 0;
    if (refs - 1 < RefLimit - 1) [[likely]] { // 1 <= refs < RefLimit
      words[block] += OneRef;
      watched |= words[block] & Watched;
      continue;
    }
    while (i-- > 0)
      words[blocks[i]] -= OneRef;
    if (!known)
      unknownBlock(block);
    if (refs == 0)
      noOwner("share", block);
    throw Error(ErrorCode::RefOverflow,
                "block " + std::to_string(block) +
                    ": cannot share: expected fewer than " +
                    std::to_string(RefLimit) + " owners, got " +
                    std::to_string(refs));
  }
  // The listener hears of nothing that could still be undone.
  if (watched && Listener)
    for (int32_t block : blocks)
      if (words[block] & Watched)
        Listener->blockBusy(block);
}

void BlockManager::release(std::span<const int32_t> blocks) {
  uint32_t *words = Words.data();
  int32_t top = Top;
  bool watched = false;
  for (size_t i = blocks.size(); i-- > 0;) {
    int32_t block = blocks[i];
    bool known = static_cast<uint32_t>(block) < Words.size();
    if (!known || words[block] < OneRef) [[unlikely]] {
      for (size_t k = i + 1; k != blocks.size(); ++k)
        words[blocks[k]] += OneRef;
      if (!known)
        unknownBlock(block);
      noOwner("release", block);
    }
    uint32_t now = words[block] -= OneRef;
    if (now == 0)
      Free[top++] = block;
    watched |= now & Watched;
  }
  Top = top;
  if (!watched)
    return;
  for (size_t i = blocks.size(); i-- > 0;) {
    int32_t block = blocks[i];
    if (words[block] == (OneRef | Watched)) {
      if (Listener)
        Listener->blockIdle(block);
    } else if (words[block] == Watched) {
      words[block] = 0;
      if (Listener)
        Listener->blockFreed(block);
      Free[Top++] = block;
    }
  }
}

void BlockManager::watch(int32_t block) {
  if (word(block) < OneRef)
    noOwner("watch", block);
  Words[block] |= Watched;
}
