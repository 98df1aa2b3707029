//===- SharedMemory.cpp - Shared memory that watches its users ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedMemory.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace pagoda::emulator {

/// A NaN in f16, bf16 and f32.
constexpr int poison = 0xff;
/// ldmatrix and TMA swizzles see the low bits of addresses; a block's shared
/// memory begins at a round one.
constexpr size_t alignment = 1024;

void SharedMemory::Release::operator()(char *pointer) const {
  std::free(pointer);
}

SharedMemory::SharedMemory(size_t size)
    : bytes(size), chunks((size + chunkBytes - 1) / chunkBytes) {
  size_t rounded = (size + alignment) / alignment * alignment;
  memory.reset(static_cast<char *>(std::aligned_alloc(alignment, rounded)));
  if (!memory)
    throw std::bad_alloc();
  std::memset(memory.get(), poison, rounded);
}

static std::string describe(const Accessor &who) {
  return "thread " + std::to_string(who.thread) + " in op " +
         std::to_string(who.op);
}

SharedMemory::Chunk *SharedMemory::find(const void *address,
                                        const Accessor &who,
                                        std::string &fault) {
  ptrdiff_t offset = static_cast<const char *>(address) - memory.get();
  if (offset < 0 || size_t(offset) + chunkBytes > bytes)
    fault = describe(who) + ": 16 bytes at offset " + std::to_string(offset) +
            " of " + std::to_string(bytes) + " bytes of shared memory";
  else if (offset % ptrdiff_t(chunkBytes) != 0)
    fault = describe(who) + ": offset " + std::to_string(offset) +
            " of shared memory is not a multiple of 16";
  else
    return &chunks[size_t(offset) / chunkBytes];
  return nullptr;
}

static std::string race(const char *first, const Accessor &a,
                        const char *second, const Accessor &b,
                        const void *address, const void *base) {
  return "race in shared memory at offset " +
         std::to_string(static_cast<const char *>(address) -
                        static_cast<const char *>(base)) +
         ": " + first + " by " + describe(a) + " and " + second + " by " +
         describe(b) + " with no barrier between them";
}

std::string SharedMemory::read(const void *row, const Accessor &who) {
  std::string fault;
  Chunk *chunk = find(row, who, fault);
  if (!chunk)
    return fault;
  if (!chunk->written)
    return describe(who) + ": read of shared memory that nobody has written";
  // Written in a later or the same epoch as seen from the reader: only the
  // writer itself may read, once the copy has landed.
  if (chunk->landed == never ||
      (chunk->writer.thread != who.thread && chunk->landed >= who.epoch))
    return race(chunk->verb(), chunk->writer, "read", who, row, memory.get());
  if (chunk->readers[0].thread != who.thread)
    chunk->readers[1] = chunk->readers[0];
  chunk->readers[0] = who;
  return "";
}

std::string SharedMemory::meets(const Chunk &chunk, const char *verb,
                                const void *address,
                                const Accessor &who) const {
  if (chunk.written &&
      (chunk.landed == never ||
       (chunk.writer.thread != who.thread && chunk.landed >= who.epoch)))
    return race(chunk.verb(), chunk.writer, verb, who, address, memory.get());
  for (const Accessor &reader : chunk.readers)
    if (reader.thread >= 0 && reader.thread != who.thread &&
        reader.epoch >= who.epoch)
      return race("read", reader, verb, who, address, memory.get());
  return "";
}

std::string SharedMemory::write(const void *row, const Accessor &who) {
  std::string fault;
  Chunk *chunk = find(row, who, fault);
  if (chunk)
    fault = meets(*chunk, "store", row, who);
  if (!fault.empty())
    return fault;
  chunk->writer = who;
  chunk->written = true;
  chunk->copied = false;
  chunk->landed = who.epoch;
  return "";
}

std::string SharedMemory::issueCopy(const Copy &copy, const Accessor &who) {
  std::string fault;
  Chunk *chunk = find(copy.target, who, fault);
  if (chunk)
    fault = meets(*chunk, "copy", copy.target, who);
  if (!fault.empty())
    return fault;
  chunk->writer = who;
  chunk->written = chunk->copied = true;
  chunk->landed = never;
  std::memset(copy.target, poison, chunkBytes);
  return "";
}

void SharedMemory::land(const Copy &copy, const Accessor &who) {
  std::memcpy(copy.target, copy.source, size_t(copy.bytes));
  std::memset(static_cast<char *>(copy.target) + copy.bytes, 0,
              chunkBytes - size_t(copy.bytes));
  ptrdiff_t offset = static_cast<char *>(copy.target) - memory.get();
  chunks[size_t(offset) / chunkBytes].landed = who.epoch;
}

} // namespace pagoda::emulator
