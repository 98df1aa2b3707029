//===- AttentionOps.cpp - Verifiers of the attention level ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constraint numbers are those of dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dialect.h"
#include "dialect/Regions.h"

using namespace mlir;
using namespace pagoda;

/// A ranked tensor of `rank` dimensions, or a diagnostic.
static FailureOr<RankedTensorType> ranked(Operation *op, StringRef what,
                                          Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (type && type.getRank() == rank)
    return type;
  op->emitOpError() << what << " must be a tensor of rank " << rank << ", got "
                    << value.getType() << " (S1)";
  return failure();
}

static LogicalResult expectDim(Operation *op, StringRef what,
                               RankedTensorType type, int64_t dim,
                               int64_t expected) {
  if (type.getDimSize(dim) == expected)
    return success();
  return op->emitOpError() << what << " dimension " << dim << " must be "
                           << expected << ", got " << type.getDimSize(dim)
                           << " (S2)";
}

LogicalResult AttentionOp::verify() {
  KvCacheType cache = getCache().getType();
  auto q = ranked(*this, "q", getQ(), 3);
  auto o = ranked(*this, "o", getO(), 3);
  auto lse = ranked(*this, "lse", getLse(), 2);
  if (failed(q) || failed(o) || failed(lse) ||
      failed(ranked(*this, "block_table", getBlockTable(), 2)) ||
      failed(ranked(*this, "q_starts", getQStarts(), 1)) ||
      failed(ranked(*this, "kv_lens", getKvLens(), 1)))
    return failure();
  int64_t qHeads = q->getDimSize(1);
  if (qHeads < 1 || qHeads % cache.getHeads() != 0) // dynamic: negative
    return emitOpError() << "q heads must be a static multiple of "
                         << cache.getHeads() << " kv heads, got " << qHeads
                         << " (S3)";
  if (failed(expectDim(*this, "q", *q, 2, cache.getKDim())) ||
      failed(expectDim(*this, "o", *o, 1, qHeads)) ||
      failed(expectDim(*this, "o", *o, 2, cache.getVDim())) ||
      failed(expectDim(*this, "lse", *lse, 1, qHeads)))
    return failure();
  for (auto [value, name] : {std::pair<Value, StringRef>{getAlibi(), "alibi"},
                             {getSinks(), "sinks"}}) {
    if (!value)
      continue;
    auto type = ranked(*this, name, value, 1);
    if (failed(type) || failed(expectDim(*this, name, *type, 0, qHeads)))
      return failure();
  }
  if (getWindow() && !getCausal())
    return emitOpError("window needs causal (S4)");
  if (getChunk() && !getCausal())
    return emitOpError("chunk needs causal (S4)");
  if (getPrefixLens()) {
    if (!getCausal())
      return emitOpError("prefix_lens needs causal (S4)");
    if (failed(ranked(*this, "prefix_lens", getPrefixLens(), 1)))
      return failure();
  }

  MLIRContext *context = getContext();
  Type i32 = IntegerType::get(context, 32);
  if (failed(verifyRegionSignature(*this, getKvRange(), "kv_range",
                                   rangeArguments(context),
                                   {i32, i32, i32, i32})) ||
      failed(verifyRegionSignature(*this, getMaskMod(), "mask_mod",
                                   maskArguments(context),
                                   {IntegerType::get(context, 1)})) ||
      failed(verifyRegionSignature(*this, getScoreMod(), "score_mod",
                                   scoreArguments(context),
                                   {Float32Type::get(context)})))
    return failure();
  if (auto schedules = getSchedules())
    for (Attribute schedule : *schedules)
      if (!isa<ScheduleAttr>(schedule))
        return emitOpError() << "schedules must hold #pagoda.schedule, got "
                             << schedule << " (S5)";
  return success();
}

LogicalResult AppendKvOp::verify() {
  KvCacheType cache = getCache().getType();
  auto k = ranked(*this, "k", getK(), 3);
  auto v = ranked(*this, "v", getV(), 3);
  if (failed(k) || failed(v) ||
      failed(ranked(*this, "slot_mapping", getSlotMapping(), 1)))
    return failure();
  if (failed(expectDim(*this, "k", *k, 1, cache.getHeads())) ||
      failed(expectDim(*this, "k", *k, 2, cache.getKDim())) ||
      failed(expectDim(*this, "v", *v, 1, cache.getHeads())) ||
      failed(expectDim(*this, "v", *v, 2, cache.getVDim())))
    return failure();
  if (getInterleaved() && !getPositions())
    return emitOpError("interleaved needs rope (S6)");
  if (getPositions())
    if (failed(ranked(*this, "positions", getPositions(), 1)) ||
        failed(ranked(*this, "cos", getCos(), 2)) ||
        failed(ranked(*this, "sin", getSin(), 2)))
      return failure();
  if (getPositions()) {
    auto cos = cast<RankedTensorType>(getCos().getType());
    int64_t pairs = cos.getDimSize(1); // dynamic: negative
    if (pairs < 1 || pairs > cache.getKDim() / 2)
      return emitOpError() << "cos dimension 1 must be from 1 to "
                           << cache.getKDim() / 2
                           << " pairs of dims of a key, got " << pairs
                           << " (S7)";
    return expectDim(*this, "sin", cast<RankedTensorType>(getSin().getType()),
                     1, pairs);
  }
  return success();
}

LogicalResult MergeStatesOp::verify() {
  auto o = ranked(*this, "o", getO(), 3);
  auto lse = ranked(*this, "lse", getLse(), 2);
  if (failed(o) || failed(lse))
    return failure();
  return expectDim(*this, "lse", *lse, 1, o->getDimSize(1));
}

LogicalResult CopyBlocksOp::verify() {
  auto pairs = ranked(*this, "pairs", getPairs(), 2);
  if (failed(pairs))
    return failure();
  return expectDim(*this, "pairs", *pairs, 1, 2);
}
