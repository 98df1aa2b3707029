//===- RegionToVector.cpp - Mask and score regions on vectors -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A region is written for one score. Here it is evaluated for a vector of
// scores: ops whose operands are all scalars stay scalar, any other op is made
// anew on vectors, its scalar operands broadcast. Reads of argument arrays with
// a vector of indices become gathers.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/TileEmitter.h"

using namespace mlir;
using namespace pagoda;

namespace {

struct Vectorizer {
  KernelContext &c;
  CpuBuilder &b;
  int64_t lanes;
  IRMapping values;

  Value widened(Value value) {
    if (isa<VectorType>(value.getType()))
      return value;
    return b.splat(value, lanes);
  }

  Value lowered(Value value) {
    if (values.contains(value))
      return values.lookup(value);
    return c.scalars.lookup(value);
  }

  void lowerArg(ArgOp op) {
    Value base = c.arg(op.getField());
    Value index = lowered(op.getIndex());
    Type element = op.getType();
    if (!isa<VectorType>(index.getType())) {
      Value pointer = b.at(base, b.mul(b.widen(index), 4));
      values.map(op.getResult(), b.load(element, pointer));
      return;
    }
    // One lane at a time: regions read per-head numbers, which are few.
    auto type = VectorType::get({lanes}, element);
    Value result = LLVM::PoisonOp::create(b, type);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value at = vector::ExtractOp::create(b, index, ArrayRef<int64_t>{lane});
      Value pointer = b.at(base, b.mul(b.widen(at), 4));
      result = vector::InsertOp::create(b, b.load(element, pointer), result,
                                        ArrayRef<int64_t>{lane});
    }
    values.map(op.getResult(), result);
  }

  void lower(Operation &op) {
    if (auto arg = dyn_cast<ArgOp>(op))
      if (arg.getIndex())
        return lowerArg(arg);
    Values operands;
    bool vector = false;
    for (Value operand : op.getOperands()) {
      operands.push_back(lowered(operand));
      vector |= isa<VectorType>(operands.back().getType());
    }
    if (!vector) {
      IRMapping mapping;
      for (auto [from, to] : llvm::zip(op.getOperands(), operands))
        mapping.map(from, to);
      Operation *clone = b.clone(op, mapping);
      values.map(op.getResults(), clone->getResults());
      return;
    }
    OperationState state(op.getLoc(), op.getName());
    for (Value operand : operands)
      state.operands.push_back(widened(operand));
    for (Type type : op.getResultTypes())
      state.types.push_back(VectorType::get({lanes}, type));
    state.attributes = op.getAttrs();
    Operation *wide = b.create(state);
    values.map(op.getResults(), wide->getResults());
  }
};

} // namespace

Value pagoda::emitRegion(KernelContext &context, Region &region,
                         ValueRange inputs, int64_t lanes) {
  Vectorizer vectorizer{context, context.b, lanes, {}};
  Block &block = region.front();
  vectorizer.values.map(block.getArguments(), inputs);
  for (Operation &op : block.without_terminator())
    vectorizer.lower(op);
  Value result = vectorizer.lowered(block.getTerminator()->getOperand(0));
  return vectorizer.widened(result);
}
