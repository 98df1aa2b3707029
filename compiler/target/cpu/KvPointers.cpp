//===- KvPointers.cpp - Pointers to the rows of a KV tile -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers pagoda.kv_ref: the walk through the block table. Block size, alignment
// and strides matter only here; what reads keys and values sees pointers.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/KvPointers.h"

using namespace mlir;
using namespace pagoda;

namespace {

/// K or V of the cache.
struct View {
  View(KernelContext &c, KvPart part) : c(c), b(c.b) {
    std::string prefix = part == KvPart::key ? "k." : "v.";
    int64_t bytes = c.cache.getElt().getIntOrFloatBitWidth() / 8;
    base = c.arg(prefix + "base");
    blockStride = b.mul(c.arg(prefix + "block_stride"), bytes);
    headStride = b.mul(c.arg(prefix + "head_stride"), bytes);
    tokenStride = b.mul(c.arg(prefix + "token_stride"), bytes);
  }

  /// Pointers to a tile's keys from position `first` (i32) on, each to the
  /// item's first head. Keys past `last` do not exist, and blocks before the
  /// first key that is seen may have been let go of: their pointers repeat the
  /// key beside them, so that nothing else is read. Null: all exist.
  int64_t fill(Value first, Value last) {
    int64_t block = c.cache.getBlock();
    Value origin = b.at(base, b.mul(b.widen(c.item.headBegin), headStride));
    Value tableRow = b.at(
        c.arg("block_table"),
        b.mul(b.mul(b.widen(c.item.tableRow), c.arg("block_table_stride")), 4));
    int64_t slot = c.slots.reserve(c.kvTile() * 8);
    b.forLoop(b.i32(0), b.i32(c.kvTile()), 1, [&](Value index) {
      Value position = b.add(first, index);
      if (c.firstKey)
        position = b.max(position, c.firstKey);
      if (last)
        position = b.min(position, last);
      Value logical = b.div(position, block);
      Value inBlock = b.sub(position, b.mul(logical, block));
      Value physical =
          b.load(b.i32Type(), b.at(tableRow, b.mul(b.widen(logical), 4)));
      Value offset = b.add(b.mul(b.widen(physical), blockStride),
                           b.mul(b.widen(inBlock), tokenStride));
      b.store(b.at(origin, offset),
              b.at(c.slot(slot), b.mul(b.widen(index), 8)));
    });
    return slot;
  }

  KernelContext &c;
  CpuBuilder &b;
  Value base, blockStride, headStride, tokenStride; ///< strides in bytes
};

/// Copies the rows of a tile together and lets their pointers name the copies.
void gatherRows(KernelContext &c, int64_t pointers, int64_t dim, Value count) {
  CpuBuilder &b = c.b;
  int64_t bytes = dim * c.cache.getElt().getIntOrFloatBitWidth() / 8;
  int64_t copies = c.slots.reserve(c.kvTile() * bytes);
  b.forLoop(b.i64(0), b.widen(count), 1, [&](Value key) {
    Value slot = b.at(c.slot(pointers), b.mul(key, 8));
    Value source = b.load(b.pointerType(), slot);
    Value target = b.at(c.slot(copies), b.mul(key, bytes));
    LLVM::MemcpyInlineOp::create(b, target, source, b.getI64IntegerAttr(bytes),
                                 /*isVolatile=*/false);
    b.store(target, slot);
  });
}

} // namespace

KvRows pagoda::pointToRows(KernelContext &c, KvPart part, Value j,
                           Value limit) {
  CpuBuilder &b = c.b;
  View view(c, part);
  bool key = part == KvPart::key;
  int64_t keys = c.kvTile();
  KvRows rows;
  rows.headStride = view.headStride;
  Value last;
  if (limit) {
    rows.valid = b.min(b.sub(limit, j), b.i32(keys));
    last = b.sub(limit, 1);
  }
  rows.pointers = view.fill(j, last);
  if (c.schedule.getOrder() == LoopOrder::gather)
    gatherRows(c, rows.pointers, key ? c.cache.getKDim() : c.cache.getVDim(),
               rows.valid ? rows.valid : b.i32(keys));
  if (!c.schedule.getPrefetch())
    return rows;

  // What is read right after the keys: this tile's values in decode, in prefill
  // the next tile. Keys that are read as they lie are fetched row by row. With
  // two stages, a walk through this tile goes on in the next one.
  bool decodes = c.schedule.getLanes() == Lanes::head_dim;
  bool overlaps = c.schedule.getStages() == 2;
  int64_t distance = c.schedule.getPrefetch() - (decodes ? 1 : 0);
  if (overlaps)
    distance = std::min<int64_t>(distance, 1);
  if (!key || c.packsKeys() || overlaps)
    rows.nextPointers =
        distance ? view.fill(b.add(j, distance * keys), b.sub(c.item.kvEnd, 1))
                 : rows.pointers;
  return rows;
}
