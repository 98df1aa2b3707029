//===- KvPool.h - The memory that the blocks stand for ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Holds K and V of every block for a number of layers ("planes") and describes
// them to kernels as pagoda_kv_view. Knows nothing of owners (BlockManager) or
// sequences (PagedKV). The memory is its own, or the caller's.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_KVPOOL_H
#define PAGODA_KVPOOL_H

#include "pagoda/Error.h"
#include "pagoda/kernel_abi.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda {

/// Bytes of one element of \p dtype (a pagoda_dtype). Error: InvalidArgument.
int64_t dtypeBytes(int32_t dtype);
/// "f32", "bf16" and so on; "dtype 9" for a value that is none.
const char *dtypeName(int32_t dtype);
/// "nhd" or "hnd".
const char *layoutName(int32_t layout);

/// What one cache block of one layer looks like:
///   K [block_size, kv_heads, head_dim] for PAGODA_NHD, [kv_heads, block_size,
///   head_dim] for PAGODA_HND; V alike with v_head_dim.
struct KvFormat {
  int32_t kvHeads = 0;
  int32_t headDim = 0;
  int32_t vHeadDim = 0;
  int32_t blockSize = 16;      ///< tokens a block
  int32_t layout = PAGODA_HND; ///< pagoda_layout
  int32_t kType = PAGODA_F32;  ///< pagoda_dtype
  int32_t vType = PAGODA_F32;  ///< pagoda_dtype
  /// V is the first v_head_dim elements of each K row and has no memory of its
  /// own (multi-head latent attention).
  bool vInsideK = false;

  /// Elements of K in one block of one layer; of V, 0 when it lies inside K.
  int64_t kBlockElements() const {
    return int64_t(blockSize) * kvHeads * headDim;
  }
  int64_t vBlockElements() const {
    return vInsideK ? 0 : int64_t(blockSize) * kvHeads * vHeadDim;
  }
  /// Bytes of K and V in one block of one layer.
  int64_t blockBytes() const;
  /// Throws InvalidArgument naming the first field that is out of range.
  void verify() const;
};

class KvPool {
public:
  /// Memory for \p numBlocks blocks in each of \p planes layers, K planes first
  /// and V planes, after a gap, behind them. The pool maps zeroed memory at a 2
  /// MB boundary and asks for huge pages; nothing is committed before it is
  /// touched.
  KvPool(const KvFormat &format, int32_t numBlocks, int32_t planes = 1);
  /// The caller's memory, at least bytesNeeded() bytes, aligned to 64 bytes and
  /// alive as long as the pool. Error: InvalidArgument.
  KvPool(const KvFormat &format, int32_t numBlocks, int32_t planes,
         void *memory, size_t bytes);
  ~KvPool();
  KvPool(const KvPool &) = delete;
  KvPool &operator=(const KvPool &) = delete;

  static size_t bytesNeeded(const KvFormat &format, int32_t numBlocks,
                            int32_t planes);

  const KvFormat &format() const { return Format; }
  int32_t numBlocks() const { return NumBlocks; }
  int32_t planes() const { return Planes; }
  size_t bytes() const { return Bytes; }
  void *data() const { return Memory; }

  /// K and V of layer plane \p plane as kernels see them; strides in elements.
  pagoda_kv_view k(int32_t plane = 0) const;
  pagoda_kv_view v(int32_t plane = 0) const;

  /// Copies whole blocks, K and V, in every plane, one after the other in the
  /// order of the list. Error: UnknownBlock.
  void copyBlocks(std::span<const pagoda_block_copy> copies);

private:
  void place();

  KvFormat Format;
  int32_t NumBlocks;
  int32_t Planes;
  size_t Bytes = 0;
  std::byte *Memory = nullptr;
  std::byte *VBase = nullptr;
  bool Owned = false;
};

} // namespace pagoda

#endif // PAGODA_KVPOOL_H
