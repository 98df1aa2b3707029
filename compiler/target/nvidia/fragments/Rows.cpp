//===- Rows.cpp - Elements and rows of fragments --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All of it is elementwise in registers, but for reductions over a row, which
// the four lanes that share the row finish by shuffles.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/fragments/Lowering.h"

#include <limits>

using namespace mlir;
using namespace pagoda;

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// Which half a register belongs to.
static int64_t halfOf(Value fragment, int64_t number) {
  bool perRow =
      cast<nv::FragmentType>(fragment.getType()).getForm() == nv::Form::row;
  return perRow ? number : Fragment::halfOf(number);
}

Value FragmentLowering::rowOf(int64_t half) {
  Value row = b.add(b.mul(warp, Fragment::rowsPerWarp), b.div(lane, 4));
  return b.add(row, 8 * half);
}

void FragmentLowering::appendRow(Values &inputs, ValueRange rows,
                                 int64_t half) {
  for (Value row : rows)
    inputs.push_back(registers(row)[half]);
}

void FragmentLowering::lower(nv::SplatOp op) {
  auto type = cast<nv::FragmentType>(op.getResult().getType());
  registers(op.getResult()) =
      Values(Fragment::registersOf(type), op.getValue());
}

void FragmentLowering::lower(nv::RowReduceOp op) {
  auto combine = [&](Value x, Value y) {
    return op.getReduction() == nv::RowReduction::max ? b.maxf(x, y)
                                                      : b.addf(x, y);
  };
  Values rows(Fragment::halves);
  for (auto [number, value] : llvm::enumerate(registers(op.getSource()))) {
    Value &row = rows[Fragment::halfOf(number)];
    row = row ? combine(row, value) : value;
  }
  for (Value &row : rows)
    for (int64_t mask : {1, 2})
      row = combine(row, b.shuffleXor(row, mask));
  registers(op.getResult()) = rows;
}

void FragmentLowering::lower(nv::Exp2Op op) {
  Values references, values = registers(op.getSource());
  for (Value row : registers(op.getReference()))
    references.push_back(
        b.select(b.equal(row, b.f32(-infinity)), b.f32(0), row));
  for (auto [number, value] : llvm::enumerate(values)) {
    Value reference = references[halfOf(op.getSource(), number)];
    value = b.exp2(b.mulf(b.subf(value, reference), op.getFactor()));
  }
  registers(op.getResult()) = values;
}

void FragmentLowering::lower(nv::ScaleOp op) {
  Values values = registers(op.getSource());
  const Values factors = registers(op.getFactors());
  for (auto [number, value] : llvm::enumerate(values))
    value = b.mulf(value, factors[Fragment::halfOf(number)]);
  registers(op.getResult()) = values;
}

void FragmentLowering::lower(nv::PerRowOp op) {
  for (int64_t half = 0; half < Fragment::halves; ++half) {
    Values inputs{rowOf(half)};
    appendRow(inputs, op.getSources(), half);
    for (auto [result, value] :
         llvm::zip_equal(op.getResults(), inlined(op.getBody(), inputs)))
      registers(result).push_back(value);
  }
}

void FragmentLowering::lower(nv::MapOp op) {
  Values values = registers(op.getSource());
  Value lanePart = b.add(op.getFirst(), b.mul(b.rem(lane, 4), 2));
  for (auto [number, value] : llvm::enumerate(values)) {
    Values inputs{value};
    appendRow(inputs, op.getRows(), Fragment::halfOf(number));
    inputs.push_back(b.add(lanePart, Fragment::columnOf(number)));
    value = inlined(op.getBody(), inputs)[0];
  }
  registers(op.getResult()) = values;
}
