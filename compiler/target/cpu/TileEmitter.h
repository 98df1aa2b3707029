//===- TileEmitter.h - What the two CPU emitters share ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LowerTiles.cpp walks a kernel and lowers what no layout matters for: items,
// coordinates, ranges, loops, row pointers. For tiles it asks an emitter, one
// per layout: LanesAreQueries.h and LanesAreHeadDim.h. An emitter lowers
// one op at a time, for one *panel*: some rows of one head. The KV loop visits
//
//   for each KV tile: for each head: for each panel: the ops of the body
//
// which is legal because every op of the body treats rows independently, and
// keeps a panel's scores in the first-level cache from QK to PV. An emitter may
// take QK of all heads and panels first.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_CPU_TILEEMITTER_H
#define PAGODA_COMPILER_TARGET_CPU_TILEEMITTER_H

#include "compiler/target/KernelAbi.h"
#include "compiler/target/cpu/CpuBuilder.h"
#include "dialect/Dialect.h"
#include "runtime/include/pagoda/kernel_abi.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>

namespace pagoda {

/// Bytes of a cache line.
constexpr int64_t lineBytes = 64;

/// Fixed slots in the caller's scratch memory.
class Scratch {
public:
  /// Reserves `bytes`, aligned to a cache line; returns the offset.
  int64_t reserve(int64_t bytes) {
    int64_t offset = size;
    size += (bytes + 63) / 64 * 64;
    return offset;
  }
  int64_t bytes() const { return size; }

private:
  int64_t size = 0;
};

/// The fields of the current work item (i32 each), and what follows from them.
struct ItemValues {
  Value tableRow, rowMapOffset, rowCount, headBegin, kvEnd, kvBegin;
  Value partialSlot, flags;
  Value packedRows; ///< rowCount * group
};

/// Pointers to the rows of one KV tile: an array of [keys] pointers in scratch,
/// each to head `headBegin` of its row.
struct KvRows {
  int64_t pointers = 0; ///< scratch offset
  /// The rows that the schedule prefetches meanwhile.
  std::optional<int64_t> nextPointers;
  Value headStride; ///< bytes
  Value valid;      ///< i32 keys that exist; null: all
};

/// Scores of one panel: [keys][rows] or [rows][keys].
struct Scores {
  int64_t offset = 0;  ///< scratch offset
  Value valid;         ///< i32 keys that count at most; null: all
  Values largest = {}; ///< of each row, vector by vector; empty: not known
};

/// The rows that ops are lowered for at the moment.
struct Panel {
  Value head;  ///< i64, 0 .. heads per item - 1
  Value index; ///< i64, panel within the head
  /// i32: keys of this tile that the panel can see. Null: all.
  Value valid = {};
  /// i32: before `begin`, the panel sees none; keys [clearBegin, clearEnd)
  /// count for all its rows and need no mask. A null begin is 0, a null
  /// clearEnd says that nothing is known.
  Value begin = {}, clearBegin = {}, clearEnd = {};
  /// i32: key `vectorEnds[n]` and those after it are seen by no row of vector
  /// n. Of all vectors but the last, whose end is `valid`; empty: not known.
  Values vectorEnds = {};
  /// i1: whether this is the first tile that the panel meets, and the last.
  /// Null: not known.
  Value isFirst = {}, isLast = {};
};

/// Values of the function that is being emitted.
struct FunctionValues {
  Value args, scratch;
  Value itemPointer; ///< to `item`
  ItemValues item;
  ItemValues next; ///< the item after this one, or the last again
  /// Scalars of the kernel's body (arguments, loop bounds) in lowered form.
  mlir::IRMapping scalars;
  /// Fields of pagoda_attention_args and of auxiliary tensors, once loaded.
  llvm::StringMap<Value> loadedArgs;
};

/// What lowering knows while it walks a kernel.
struct KernelContext : FunctionValues {
  KernelContext(CpuBuilder &b, KernelOp kernel)
      : b(b), kernel(kernel), schedule(kernel.getSchedule()),
        cache(kernel.getCacheType()), group(kernel.getGroup()),
        lanes(kernel.getTarget()->getVectorBits() / 32) {}

  CpuBuilder &b;
  KernelOp kernel;
  ScheduleAttr schedule;
  KvCacheType cache;
  int64_t group; ///< query heads per KV head
  int64_t lanes; ///< f32 lanes of a vector
  Scratch slots;
  llvm::DenseMap<Value, KvRows> kvRows;
  llvm::DenseMap<Value, Scores> scores;
  /// Accumulators whose rescaling is still due: pv multiplies while it loads.
  llvm::DenseSet<Value> pendingRescale;
  /// Coordinates of the item's packed rows: i32 arrays in scratch.
  int64_t rowPositions = 0, rowHeads = 0, rowSequences = 0;
  /// The first key (i32) that a row of the item sees; null: its first one.
  Value firstKey;
  /// What the range region says of each panel: an array of (lo, full_lo,
  /// full_hi, hi), i32, in scratch; only where there is something to say.
  std::optional<int64_t> panelRanges;
  /// Where the keys end that each vector of each panel sees: i32
  /// [panels][vectors], in scratch.
  std::optional<int64_t> vectorEnds;

  /// A field of pagoda_attention_args, loaded at the top of the kernel.
  Value arg(llvm::StringRef field);
  /// A field of auxiliary tensor `number` at byte `offset` of its record,
  /// loaded likewise.
  Value aux(llvm::StringRef name, int64_t offset, Type type);
  /// The work item at `pointer`.
  ItemValues loadItem(Value pointer);
  Value slot(int64_t offset) { return b.at(scratch, offset); }
  int64_t rows() const { return schedule.getQTile(); }
  int64_t kvTile() const { return schedule.getKvTile(); }
  /// Keys that are broadcast element by element are widened once a tile.
  bool packsKeys() const {
    return schedule.getPack() == 1 && !cache.getElt().isF32();
  }
  /// Both products are of pairs of bf16.
  bool takesPairs() const { return schedule.getPack() == 2; }
  /// Instructions multiply pairs of bf16 and round to them.
  bool hasBf16() {
    return kernel.getTarget()->getCpuFeatures() & PAGODA_CPU_AVX512_BF16;
  }
  /// Query tokens that an item may hold.
  int64_t maxTokens() const { return rows() / group; }
};

/// Lowers the tile ops of one layout.
class TileEmitter {
public:
  TileEmitter(KernelContext &context) : c(context), b(context.b) {}
  virtual ~TileEmitter() = default;

  /// Rows of a panel, and panels of a head.
  virtual int64_t panelRows() const = 0;
  int64_t panels() const { return (c.rows() + panelRows() - 1) / panelRows(); }
  /// Vectors of rows in a panel, where keys may be kept from some of them.
  virtual int64_t panelVectors() const { return 1; }
  /// Calls `body` for each head and each panel that holds rows of the item,
  /// and `before` for each head, before its panels.
  void forEachPanel(llvm::function_ref<void(const Panel &)> body,
                    llvm::function_ref<void(Value)> before = nullptr);

  /// What has to happen to a tile before the panels of head `head` meet it.
  virtual void prepareTile(const KvRows &keys, const KvRows &values,
                           Value head) {}
  /// Before each panel: fetches some of the tile after this one.
  virtual void prefetchNext(const KvRows &keys, const KvRows &values,
                            const Panel &panel) {}

  virtual void loadQ(const Panel &panel) = 0;
  /// O needs no value yet where panels' visits say which is the first: pv does
  /// not read it then.
  virtual void initState(StateInitOp op, const Panel &panel) = 0;
  /// Zero O, for a panel that no tile visits.
  virtual void clearO(const Panel &panel) {}
  virtual void qk(QkOp op, const Panel &panel) = 0;
  /// Whether panels take turns at a tile, each by itself: its rows may then
  /// come and go with its visits.
  virtual bool visitsInTurn() const { return false; }
  /// Lowers `op` for all panels of the tile, before anything else that they do,
  /// and returns true; or returns false, and each panel calls qk. `valid` (i32)
  /// keys exist, null: all.
  virtual bool qkWhole(QkOp op, const KvRows &values, Value valid) {
    return false;
  }
  /// Whether whole tiles overlap: the keys of the next one come beside the
  /// values of this one.
  virtual bool pipelines() const { return false; }
  /// Lowers `pv` of this tile and `qk` of the next one, for all panels; one of
  /// them may be null. O has been rescaled.
  virtual void pvBesideQk(PvOp pv, QkOp qk) {
    llvm_unreachable("tiles do not overlap");
  }
  /// While scores of a panel become weights: fetches some rows of those that
  /// pvBesideQk will read.
  virtual void fetchMeanwhile(const KvRows &keys, const KvRows &values,
                              const Panel &panel) {}
  /// Before PV of the tile from key `j` (i32) on.
  virtual void rescale(const Panel &panel, Value j) {
    llvm_unreachable("pv rescales what it loads");
  }
  virtual void mapScores(MapScoresOp op, const Panel &panel) = 0;
  virtual void maskScores(MaskScoresOp op, const Panel &panel) = 0;
  virtual void softmaxStep(SoftmaxStepOp op, const Panel &panel) = 0;
  virtual void pv(PvOp op, const Panel &panel) = 0;
  virtual void store(StoreOp op, const Panel &panel) = 0;
  virtual void mergePartials(MergePartialsOp op, const Panel &panel) = 0;

  static std::unique_ptr<TileEmitter> lanesAreQueries(KernelContext &context);
  static std::unique_ptr<TileEmitter> lanesAreHeadDim(KernelContext &context);

protected:
  /// Row `key` (i64) of a tile: the pointer at `pointers` (scratch offset),
  /// `offset` bytes on.
  Value rowOf(int64_t pointers, Value key, Value offset) {
    Value slot = b.at(c.slot(pointers), b.mul(key, 8));
    return b.at(b.load(b.pointerType(), slot), offset);
  }
  /// A value of `type` (f32 or narrower) at `pointer` as f32.
  Value loadAsF32(Type type, Value pointer);
  /// `count` adjacent values as a vector of f32.
  Value loadVectorAsF32(Type type, int64_t count, Value pointer);
  void storeFromF32(Type type, Value value, Value pointer);
  static int64_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

  /// Query head (i64, within the tensor) of head `head` of an item.
  Value queryHead(const ItemValues &item, Value head, Value headInGroup);
  /// m where it is finite, else 0: an exponent (-inf) - (-inf) is avoided.
  Value finiteOrZero(Value m);
  /// Emits `body` for items that hold the first keys of their rows.
  void ifFirstSplit(llvm::function_ref<void()> body);
  /// (m, l) of a state that has seen nothing but the sink of packed row
  /// `packed`: a key with that logit and no value. -inf: no sink.
  std::pair<Value, Value> sinkState(const Panel &panel, Value packed,
                                    Value factor);
  /// What `rowHeads` lacks in items of several KV heads: query heads (i32) of
  /// the heads before the panel's.
  Value headsBefore(const Panel &panel) {
    Value head = mlir::arith::TruncIOp::create(b, b.i32Type(), panel.head);
    return b.mul(head, c.group);
  }
  /// Writes one row of the item. `copy(target, type, scale)` writes the row of
  /// o, times the scale if there is one. Final rows go to o and lse, partial
  /// ones (partial_slot >= 0) to the partial buffers as they are.
  void writeRow(StoreOp op, Value token, Value head, Value m, Value l,
                llvm::function_ref<void(Value, Type, Value)> copy);
  /// lse = m * factor * ln 2 + ln l; -inf for l = 0.
  Value logSumExp(Value m, Value l, Value factor);

  KernelContext &c;
  CpuBuilder &b;
};

/// Evaluates a mask or score region for `lanes` scores at once. Each of
/// `inputs` is a scalar or a vector of that many lanes; the result is a vector.
Value emitRegion(KernelContext &context, mlir::Region &region,
                 ValueRange inputs, int64_t lanes);

/// Evaluates a region on scalars; returns what it yields.
Values emitScalarRegion(KernelContext &context, mlir::Region &region,
                        ValueRange inputs);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_CPU_TILEEMITTER_H
