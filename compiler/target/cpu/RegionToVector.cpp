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

  /// Where the element of `op` with these (scalar) indices is.
  Value elementPointer(ArgOp op, ValueRange indices) {
    StringRef field = op.getField();
    if (!field.starts_with("aux."))
      return b.at(c.arg(field), b.mul(b.widen(indices[0]), 4));
    Value offset = b.i64(0);
    for (auto [dim, index] : llvm::enumerate(indices)) {
      auto number = [&](size_t array) {
        return c.aux(field, int64_t(array + 8 * dim), b.i64Type());
      };
      Value last = b.sub(number(offsetof(pagoda_aux_tensor, shape)), 1);
      Value inside = b.max(b.min(b.widen(index), last), b.i64(0));
      Value stride = number(offsetof(pagoda_aux_tensor, strides));
      offset = b.add(offset, b.mul(inside, stride));
    }
    Value data =
        c.aux(field, offsetof(pagoda_aux_tensor, data), b.pointerType());
    return b.at(data, b.mul(offset, 4));
  }

  void lowerArg(ArgOp op) {
    Values indices;
    bool vector = false;
    for (Value index : op.getIndices()) {
      indices.push_back(lowered(index));
      vector |= isa<VectorType>(indices.back().getType());
    }
    Type element = op.getType();
    if (!vector) {
      values.map(op.getResult(), b.load(element, elementPointer(op, indices)));
      return;
    }
    // One lane at a time: the elements lie anywhere.
    auto type = VectorType::get({lanes}, element);
    Value result = LLVM::PoisonOp::create(b, type);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Values at;
      for (Value index : indices)
        at.push_back(
            isa<VectorType>(index.getType())
                ? vector::ExtractOp::create(b, index, ArrayRef<int64_t>{lane})
                : index);
      Value value = b.load(element, elementPointer(op, at));
      result =
          vector::InsertOp::create(b, value, result, ArrayRef<int64_t>{lane});
    }
    values.map(op.getResult(), result);
  }

  void lower(Operation &op) {
    if (auto arg = dyn_cast<ArgOp>(op))
      if (!arg.getIndices().empty())
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

Values pagoda::emitScalarRegion(KernelContext &context, Region &region,
                                ValueRange inputs) {
  Vectorizer scalar{context, context.b, /*lanes=*/1, {}};
  Block &block = region.front();
  scalar.values.map(block.getArguments(), inputs);
  for (Operation &op : block.without_terminator())
    scalar.lower(op);
  Values results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(scalar.lowered(value));
  return results;
}

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
