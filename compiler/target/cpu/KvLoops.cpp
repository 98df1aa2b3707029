//===- KvLoops.cpp - KV loops of a kernel ---------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which panels meet which tiles, and in which order: one tile after the other,
// or two that overlap. What happens to a panel is the emitter's business.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/KvLoops.h"
#include "compiler/target/cpu/KvPointers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

/// Whether masked tiles come both before and after those of which every row
/// sees all, and the same is done to the scores of both. Code for them is most
/// of a kernel's, so there it stands once.
static bool masksBothEnds(ArrayRef<KvLoopOp> loops) {
  if (loops.size() != 3)
    return false;
  DenseMap<Value, Value> same;
  auto mark = [&](Value a, Value b) { same[a] = b; };
  // What comes from outside is an argument, read for each loop by itself.
  auto check = [&](Value a, Value b) {
    auto first = a.getDefiningOp<ArgOp>(), second = b.getDefiningOp<ArgOp>();
    return success(a == b || same.lookup(a) == b ||
                   (first && second &&
                    first->getAttrs() == second->getAttrs() &&
                    first->getOperands() == second->getOperands()));
  };
  auto regions = [](KvLoopOp loop) {
    SmallVector<Region *> result;
    for (Operation &op : loop.getBody().front())
      if (isa<MapScoresOp, MaskScoresOp>(op))
        result.push_back(&op.getRegion(0));
    return result;
  };
  return llvm::equal(
      regions(loops.front()), regions(loops.back()), [&](Region *a, Region *b) {
        return OperationEquivalence::isRegionEquivalentTo(
            a, b, check, mark, OperationEquivalence::IgnoreLocations);
      });
}

/// What the loop that tile `j` belongs to does to scores.
void KvLoops::scoresOf(ArrayRef<KvLoopOp> loops, Value j, const KvRows &keys,
                       const KvRows &values) {
  auto lower = [&](KvLoopOp loop) {
    c.scalars.map(loop.getIndex(), j);
    emitter.forEachPanel([&](const Panel &panel) {
      emitter.fetchMeanwhile(keys, values, panel);
      for (Operation &op : loop.getBody().front())
        TypeSwitch<Operation *>(&op)
            .Case([&](MapScoresOp map) { emitter.mapScores(map, panel); })
            .Case([&](MaskScoresOp mask) { emitter.maskScores(mask, panel); })
            .Case([&](SoftmaxStepOp step) { emitter.softmaxStep(step, panel); })
            .Case([&](RescaleOp) { emitter.rescale(panel, j); });
    });
  };
  KvLoopOp first = loops.front();
  if (loops.size() == 1)
    return lower(first);
  auto isBefore = [&](Value key) {
    return b.compare(Predicate::slt, j, c.scalars.lookup(key));
  };
  if (masksBothEnds(loops)) {
    KvLoopOp whole = loops[1];
    Value isMasked = arith::OrIOp::create(
        b, isBefore(first.getHi()),
        b.compare(Predicate::sge, j, c.scalars.lookup(whole.getHi())));
    return b.ifThenElse(
        isMasked, [&] { lower(loops[2]); }, [&] { lower(whole); });
  }
  b.ifThenElse(
      isBefore(first.getHi()), [&] { lower(first); },
      [&] { scoresOf(loops.drop_front(), j, keys, values); });
}

/// Keys of the first tile alone; then, of each tile, scores, and its values
/// beside the keys of the next one; values of the last alone. Past the item's
/// last key, rows of a tile repeat it, with weights of 0.
void KvLoops::lowerOverlapping(ArrayRef<KvLoopOp> loops) {
  KvLoopOp first = loops.front(), last = loops.back();
  Value begin = c.scalars.lookup(first.getLo());
  Value end = c.scalars.lookup(last.getHi());
  QkOp qk = *first.getBody().getOps<QkOp>().begin();
  PvOp pv = *first.getBody().getOps<PvOp>().begin();
  b.ifThen(b.compare(Predicate::slt, begin, end), [&] {
    c.kvRows[qk.getK()] = pointToRows(c, KvPart::key, begin, end);
    emitter.pvBesideQk({}, qk);
  });
  b.forLoop(begin, end, c.kvTile(), [&](Value j) {
    Value next = b.add(j, c.kvTile());
    KvRows values = c.kvRows[pv.getV()] = pointToRows(c, KvPart::value, j, end);
    KvRows keys = c.kvRows[qk.getK()] = pointToRows(c, KvPart::key, next, end);
    scoresOf(loops, j, keys, values);
    b.ifThenElse(
        b.compare(Predicate::slt, next, end),
        [&] { emitter.pvBesideQk(pv, qk); },
        [&] { emitter.pvBesideQk(pv, {}); });
  });
}

void KvLoops::lower(ArrayRef<KvLoopOp> loops) {
  auto bounds = [&](KvLoopOp loop) {
    return std::pair(c.scalars.lookup(loop.getLo()),
                     c.scalars.lookup(loop.getHi()));
  };
  if (!masksBothEnds(loops)) {
    for (KvLoopOp loop : loops) {
      auto [lo, hi] = bounds(loop);
      lower(loop, lo, hi);
    }
    return;
  }
  // Masked tiles and then whole ones, twice; no whole ones after the last.
  KvLoopOp whole = loops[1], masked = loops[2];
  auto [firstLo, firstHi] = bounds(loops[0]);
  auto [lo, hi] = bounds(whole);
  auto [lastLo, lastHi] = bounds(masked);
  b.forLoop(b.i64(0), b.i64(2), 1, [&](Value round) {
    Value isFirst = b.compare(Predicate::eq, round, b.i64(0));
    lower(masked, b.select(isFirst, firstLo, lastLo),
          b.select(isFirst, firstHi, lastHi));
    lower(whole, lo, b.select(isFirst, hi, lo));
  });
}

void KvLoops::lower(KvLoopOp op, Value lo, Value hi) {
  Block &block = op.getBody().front();
  b.forLoop(lo, hi, op.getStep(), [&](Value j) {
    c.scalars.map(op.getIndex(), j);
    Value limit;
    bool masked = false;
    for (Operation &inner : block) {
      if (auto ref = dyn_cast<KvRefOp>(inner)) {
        limit = ref.getLimit();
        c.kvRows[ref.getRef()] = pointToRows(
            c, ref.getPart(), j, limit ? c.scalars.lookup(limit) : Value());
      }
      masked |= isa<MaskScoresOp>(inner);
    }
    QkOp scores = *block.getOps<QkOp>().begin();
    PvOp product = *block.getOps<PvOp>().begin();
    const KvRows &keys = c.kvRows.find(scores.getK())->second;
    const KvRows &values = c.kvRows.find(product.getV())->second;
    llvm::function_ref<void(Value)> none = nullptr;
    auto prepare = [&](Value head) { emitter.prepareTile(keys, values, head); };
    Value visible = b.i32(c.kvTile());
    if (limit)
      visible = b.min(b.sub(c.scalars.lookup(limit), j), visible);
    ArrayRef<Operation *> round; // the ops that a visit of a panel runs
    auto perPanel = [&](const Panel &whole) {
      auto body = [&](Panel panel) {
        if (visits)
          panel.isFirst = visits->open(panel);
        emitter.prefetchNext(keys, values, panel);
        for (Operation *inner : round) {
          TypeSwitch<Operation *>(inner)
              .Case([&](QkOp qk) { emitter.qk(qk, panel); })
              .Case([&](MapScoresOp map) { emitter.mapScores(map, panel); })
              .Case([&](MaskScoresOp mask) { emitter.maskScores(mask, panel); })
              .Case(
                  [&](SoftmaxStepOp step) { emitter.softmaxStep(step, panel); })
              .Case([&](RescaleOp rescale) {
                c.pendingRescale.insert(rescale.getResult());
              })
              .Case([&](PvOp pv) { emitter.pv(pv, panel); });
        }
        if (visits)
          visits->close(panel);
      };
      if (!masked)
        return body(whole);
      // How much of this tile the panel can see at all.
      Panel panel = whole;
      auto endsBy = [&](Value end) {
        return b.compare(Predicate::sle, end, b.add(j, c.kvTile()));
      };
      if (!c.panelRanges) {
        panel.valid = limit ? visible : Value();
        panel.isLast = limit ? endsBy(c.scalars.lookup(limit)) : Value();
        return body(panel);
      }
      Value range = b.at(c.slot(*c.panelRanges), b.mul(panel.index, 16));
      Value begin, fullBegin, fullEnd, end;
      Value *bounds[] = {&begin, &fullBegin, &fullEnd, &end};
      for (auto [i, bound] : llvm::enumerate(bounds))
        *bound = b.load(b.i32Type(), b.at(range, i * 4));
      auto inTile = [&](Value key) {
        return b.max(b.min(b.sub(key, j), panel.valid), b.i32(0));
      };
      panel.valid = b.min(visible, b.sub(end, j));
      panel.isLast = endsBy(limit ? b.min(end, c.scalars.lookup(limit)) : end);
      panel.clearEnd = inTile(fullEnd);
      if (rangeBegins) {
        panel.begin = inTile(begin);
        panel.clearBegin = inTile(fullBegin);
        panel.clearEnd = b.max(panel.clearEnd, panel.clearBegin);
      }
      if (c.vectorEnds) {
        int64_t vectors = emitter.panelVectors();
        Value ends =
            b.at(c.slot(*c.vectorEnds), b.mul(panel.index, vectors * 4));
        for (int64_t n = 0; n + 1 < vectors; ++n)
          panel.vectorEnds.push_back(
              inTile(b.load(b.i32Type(), b.at(ends, n * 4))));
      }
      Value some = b.compare(Predicate::sgt, panel.valid, b.i32(0));
      Value begun = b.compare(Predicate::slt, begin, b.add(j, c.kvTile()));
      b.ifThen(arith::AndIOp::create(b, some, begun), [&] { body(panel); });
    };
    SmallVector<Operation *> ops(llvm::make_pointer_range(block));
    if (c.schedule.getOrder() == LoopOrder::naive) {
      // One op after the other over the whole score matrix.
      for (Operation *&op : ops) {
        round = op;
        if (isa<QkOp, MapScoresOp, MaskScoresOp, SoftmaxStepOp, PvOp,
                RescaleOp>(op))
          emitter.forEachPanel(
              perPanel,
              isa<QkOp>(op) ? llvm::function_ref<void(Value)>(prepare) : none);
      }
      return;
    }
    if (emitter.qkWhole(scores, values, masked && limit ? visible : Value()))
      llvm::erase_if(ops, [](Operation *op) { return isa<QkOp>(op); });
    round = ops;
    emitter.forEachPanel(perPanel, prepare);
  });
}
