//===- ExpandFeatures.cpp - Attributes of attention to regions ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns causal, window, chunk, soft cap and ALiBi of a pagoda.attention into
// its kv_range, mask_mod and score_mod regions. Stops there: sinks stay (they
// add to the softmax's sum, not to a score), and nothing is tiled.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/ExpandFeatures.h"
#include "compiler/Passes.h"
#include "dialect/Regions.h"
#include "runtime/include/pagoda/kernel_abi.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

namespace {

/// Gives `region` an entry block with these arguments, or goes on in the block
/// that is there. Returns what the region yields so far.
SmallVector<Value> reopen(ImplicitLocOpBuilder &b, Region &region,
                          TypeRange arguments) {
  if (region.empty()) {
    Block *block = b.createBlock(&region);
    for (Type type : arguments)
      block->addArgument(type, b.getLoc());
    b.setInsertionPointToEnd(block);
    return {};
  }
  Operation *yield = region.front().getTerminator();
  SmallVector<Value> values(yield->getOperands());
  b.setInsertionPoint(yield);
  yield->erase();
  b.setInsertionPointToEnd(&region.front());
  return values;
}

struct Expander {
  AttentionOp op;
  ImplicitLocOpBuilder b;

  Expander(AttentionOp op) : op(op), b(op.getLoc(), op) {}

  Value constant(int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }

  /// The first key of the chunk that position `position` is in.
  Value chunkStart(Value position) {
    Value index = arith::DivSIOp::create(b, position, op.getChunk());
    return arith::MulIOp::create(b, index, op.getChunk());
  }

  /// One past the last key of the chunk that `position` is in. Only where a
  /// prefix shows keys after the query does a chunk bound them. A query before
  /// the first key is in a chunk without keys.
  Value chunkEnd(Value position) {
    Value end = arith::AddIOp::create(b, chunkStart(position), op.getChunk());
    Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position,
                                       constant(0));
    return arith::SelectOp::create(b, none, constant(0), end);
  }

  /// How many keys of sequence `seq` all of its queries see; null: none do.
  Value prefixOf(Value seq) {
    if (!op.getPrefixLens())
      return Value();
    Value index = arith::IndexCastOp::create(b, b.getIndexType(), seq);
    return tensor::ExtractOp::create(b, op.getPrefixLens(), index);
  }

  /// First key that a query at `position` may see; `lo` where that is no bound.
  Value firstVisible(Value position, Value lo) {
    if (op.getWindow()) {
      Value past = arith::SubIOp::create(b, position, op.getWindow());
      Value first = arith::AddIOp::create(b, past, constant(1));
      lo = arith::MaxSIOp::create(b, lo, first);
    }
    if (op.getChunk())
      lo = arith::MaxSIOp::create(b, lo, chunkStart(position));
    return lo;
  }

  void expandRange(bool userMask) {
    Region &region = op.getKvRange();
    SmallVector<Value> range =
        reopen(b, region, rangeArguments(b.getContext()));
    Value qLo = region.getArgument(1), qHi = region.getArgument(2);
    if (range.empty()) {
      // Without a range of its own, a user's mask may hide any key: no tile is
      // known to be seen by all.
      Value zero = constant(0);
      Value most = constant(std::numeric_limits<int32_t>::max());
      range = {zero, zero, userMask ? zero : most, most};
    }
    bool sameLo = range[0] == range[1];
    if (op.getWindow() || op.getChunk()) {
      Value lo = range[0];
      range[0] = firstVisible(qLo, lo);
      range[1] = firstVisible(qHi, sameLo ? lo : range[1]);
    }
    if (op.getCausal()) {
      Value prefix = prefixOf(region.getArgument(0));
      auto upTo = [&](Value bound, Value position) -> Value {
        Value end = arith::AddIOp::create(b, position, constant(1));
        if (prefix) {
          end = arith::MaxSIOp::create(b, end, prefix);
          if (op.getChunk())
            end = arith::MinSIOp::create(b, end, chunkEnd(position));
        }
        return arith::MinSIOp::create(b, bound, end);
      };
      range[2] = upTo(range[2], qLo);
      range[3] = upTo(range[3], qHi);
    }
    YieldOp::create(b, range);
  }

  void expandMask() {
    Region &region = op.getMaskMod();
    SmallVector<Value> seen = reopen(b, region, maskArguments(b.getContext()));
    Value qPos = region.getArgument(2), kvPos = region.getArgument(3);
    auto both = [&](Value more) {
      if (seen.empty())
        seen.push_back(more);
      else
        seen[0] = arith::AndIOp::create(b, seen[0], more);
    };
    if (op.getCausal()) {
      Value visible =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, kvPos, qPos);
      if (Value prefix = prefixOf(region.getArgument(0))) {
        Value within =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, kvPos, prefix);
        visible = arith::OrIOp::create(b, visible, within);
      }
      both(visible);
    }
    if (op.getWindow()) {
      Value distance = arith::SubIOp::create(b, qPos, kvPos);
      both(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, distance,
                                 op.getWindow()));
    }
    if (op.getChunk())
      both(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, kvPos,
                                 chunkStart(qPos)));
    if (op.getChunk() && op.getPrefixLens())
      both(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, kvPos,
                                 chunkEnd(qPos)));
    YieldOp::create(b, seen);
  }

  void expandScore() {
    Region &region = op.getScoreMod();
    SmallVector<Value> score =
        reopen(b, region, scoreArguments(b.getContext()));
    if (score.empty())
      score.push_back(region.getArgument(0));
    // The cap bends q.k; a bias is added to what comes of it.
    if (op.getSoftcap()) {
      Value ratio = arith::DivFOp::create(b, score[0], op.getSoftcap());
      Value bent = math::TanhOp::create(b, ratio);
      score[0] = arith::MulFOp::create(b, bent, op.getSoftcap());
    }
    if (op.getAlibi()) {
      // bias = slope * (kv_pos - q_pos), 0 on the diagonal
      Value head = arith::IndexCastOp::create(b, b.getIndexType(),
                                              region.getArgument(2));
      Value slope = tensor::ExtractOp::create(b, op.getAlibi(), head);
      Value distance = arith::SubIOp::create(b, region.getArgument(4),
                                             region.getArgument(3));
      Value steps = arith::SIToFPOp::create(b, b.getF32Type(), distance);
      Value bias = arith::MulFOp::create(b, slope, steps);
      score[0] = arith::AddFOp::create(b, score[0], bias);
    }
    YieldOp::create(b, score);
  }

  uint32_t features(bool custom) {
    uint32_t bits = op.getFeatures();
    auto add = [&](bool present, uint32_t bit) { bits |= present ? bit : 0; };
    add(op.getCausal(), PAGODA_FEATURE_CAUSAL);
    add(bool(op.getWindow()), PAGODA_FEATURE_WINDOW);
    add(bool(op.getChunk()), PAGODA_FEATURE_CHUNK);
    add(bool(op.getSoftcap()), PAGODA_FEATURE_SOFTCAP);
    add(bool(op.getAlibi()), PAGODA_FEATURE_ALIBI);
    add(bool(op.getSinks()), PAGODA_FEATURE_SINKS);
    add(bool(op.getPrefixLens()), PAGODA_FEATURE_PREFIX_LM);
    add(custom, PAGODA_FEATURE_CUSTOM);
    return bits;
  }

  void run() {
    bool userMask = !op.getMaskMod().empty();
    bool custom =
        userMask || !op.getScoreMod().empty() || !op.getKvRange().empty();
    op.setFeatures(features(custom && !op.getFeatures()));
    bool masks = op.getCausal() || op.getWindow() || op.getChunk();
    if (masks || (userMask && op.getKvRange().empty()))
      expandRange(userMask);
    if (masks)
      expandMask();
    if (op.getAlibi() || op.getSoftcap())
      expandScore();
    op.setCausal(false);
    op.getWindowMutable().clear();
    op.getChunkMutable().clear();
    op.getSoftcapMutable().clear();
    op.getAlibiMutable().clear();
    op.getPrefixLensMutable().clear();
  }
};

} // namespace

void pagoda::expandFeatures(AttentionOp op) { Expander(op).run(); }

namespace pagoda {
#define GEN_PASS_DEF_EXPANDFEATURES
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct ExpandFeaturesPass
    : pagoda::impl::ExpandFeaturesBase<ExpandFeaturesPass> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) { expandFeatures(op); });
  }
};
} // namespace
