//===- ModEvaluator.cpp - Evaluates mask and score functions --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModEvaluator.h"

#include "compiler/import/Mods.h"

#include "dialect/Dialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace pagoda;

struct ModEvaluator::State {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  Mods mods;
};

namespace {

/// A value of a body: integers (i1 as 0 and 1) or a float.
struct Scalar {
  int64_t i = 0;
  double f = 0;
};

Scalar integer(int64_t value) { return {int32_t(uint32_t(value)), 0}; }
Scalar real(double value) { return {0, value}; }

bool compareIntegers(arith::CmpIPredicate predicate, int64_t x, int64_t y) {
  auto ux = uint32_t(x), uy = uint32_t(y);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return x == y;
  case arith::CmpIPredicate::ne:
    return x != y;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return ux < uy;
  case arith::CmpIPredicate::ule:
    return ux <= uy;
  case arith::CmpIPredicate::ugt:
    return ux > uy;
  case arith::CmpIPredicate::uge:
    return ux >= uy;
  }
  llvm_unreachable("unknown predicate");
}

/// Bit 0: true for equal, 1: for greater, 2: for less, 3: for unordered.
bool compareReals(arith::CmpFPredicate predicate, double x, double y) {
  unsigned which = x == y ? 1 : x > y ? 2 : x < y ? 4 : 8;
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return which & 1;
  case arith::CmpFPredicate::OGT:
    return which & 2;
  case arith::CmpFPredicate::OGE:
    return which & 3;
  case arith::CmpFPredicate::OLT:
    return which & 4;
  case arith::CmpFPredicate::OLE:
    return which & 5;
  case arith::CmpFPredicate::ONE:
    return which & 6;
  case arith::CmpFPredicate::ORD:
    return which & 7;
  case arith::CmpFPredicate::UEQ:
    return which & 9;
  case arith::CmpFPredicate::UGT:
    return which & 10;
  case arith::CmpFPredicate::UGE:
    return which & 11;
  case arith::CmpFPredicate::ULT:
    return which & 12;
  case arith::CmpFPredicate::ULE:
    return which & 13;
  case arith::CmpFPredicate::UNE:
    return which & 14;
  case arith::CmpFPredicate::UNO:
    return which & 8;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

/// NaN if either is, like arith.maximumf and minimumf.
double extremum(double x, double y, bool most) {
  if (std::isnan(x) || std::isnan(y))
    return std::nan("");
  return most ? std::max(x, y) : std::min(x, y);
}

class Evaluation {
public:
  Evaluation(const Mods &mods, func::FuncOp function,
             const pagoda_aux_tensor *tensors)
      : mods(mods), function(function), tensors(tensors) {}

  Scalar run(ArrayRef<Scalar> arguments) {
    Block &block = function.getBody().front();
    for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
      values[argument] = value;
    for (Operation &op : block.without_terminator())
      values[op.getResult(0)] = evaluate(&op);
    return values.lookup(block.getTerminator()->getOperand(0));
  }

private:
  Scalar evaluate(Operation *op);
  Scalar extract(tensor::ExtractOp op);

  const Mods &mods;
  func::FuncOp function;
  const pagoda_aux_tensor *tensors;
  llvm::DenseMap<Value, Scalar> values;
};

} // namespace

Scalar Evaluation::extract(tensor::ExtractOp op) {
  unsigned argument = cast<BlockArgument>(op.getTensor()).getArgNumber();
  const pagoda_aux_tensor &tensor = tensors[mods.auxOf(function, argument)];
  int64_t offset = 0;
  for (auto [dim, index] : llvm::enumerate(op.getIndices()))
    offset += std::clamp<int64_t>(values.lookup(index).i, 0,
                                  std::max<int64_t>(0, tensor.shape[dim] - 1)) *
              tensor.strides[dim];
  if (op.getType().isF32())
    return real(static_cast<const float *>(tensor.data)[offset]);
  return integer(static_cast<const int32_t *>(tensor.data)[offset]);
}

Scalar Evaluation::evaluate(Operation *op) {
  auto in = [&](unsigned n) { return values.lookup(op->getOperand(n)); };
  auto i = [&](unsigned n) { return in(n).i; };
  auto f = [&](unsigned n) { return in(n).f; };
  // A shift by 32 and more, like a division by zero, has no defined result.
  auto shift = [&] { return uint32_t(i(1)) & 31; };
  return llvm::TypeSwitch<Operation *, Scalar>(op)
      .Case([&](arith::ConstantOp constant) {
        if (auto value = dyn_cast<FloatAttr>(constant.getValue()))
          return real(value.getValueAsDouble());
        auto value = cast<IntegerAttr>(constant.getValue());
        return value.getType().isInteger(1)
                   ? integer(value.getValue().getBoolValue())
                   : integer(value.getInt());
      })
      .Case([&](arith::AddIOp) { return integer(i(0) + i(1)); })
      .Case([&](arith::SubIOp) { return integer(i(0) - i(1)); })
      .Case([&](arith::MulIOp) { return integer(i(0) * i(1)); })
      .Case([&](arith::DivSIOp) { return integer(i(1) ? i(0) / i(1) : 0); })
      .Case([&](arith::RemSIOp) { return integer(i(1) ? i(0) % i(1) : 0); })
      .Case([&](arith::AndIOp) { return integer(i(0) & i(1)); })
      .Case([&](arith::OrIOp) { return integer(i(0) | i(1)); })
      .Case([&](arith::XOrIOp) { return integer(i(0) ^ i(1)); })
      .Case([&](arith::ShLIOp) { return integer(i(0) << shift()); })
      .Case([&](arith::ShRSIOp) { return integer(i(0) >> shift()); })
      .Case([&](arith::ShRUIOp) { return integer(uint32_t(i(0)) >> shift()); })
      .Case([&](arith::MinSIOp) { return integer(std::min(i(0), i(1))); })
      .Case([&](arith::MaxSIOp) { return integer(std::max(i(0), i(1))); })
      .Case([&](arith::CmpIOp compare) {
        return integer(compareIntegers(compare.getPredicate(), i(0), i(1)));
      })
      .Case([&](arith::CmpFOp compare) {
        return integer(compareReals(compare.getPredicate(), f(0), f(1)));
      })
      .Case([&](arith::SelectOp) { return i(0) ? in(1) : in(2); })
      .Case<arith::ExtUIOp, arith::IndexCastOp>([&](auto) { return in(0); })
      .Case([&](arith::SIToFPOp) { return real(double(i(0))); })
      .Case([&](arith::FPToSIOp) { return integer(int64_t(f(0))); })
      .Case([&](arith::AddFOp) { return real(f(0) + f(1)); })
      .Case([&](arith::SubFOp) { return real(f(0) - f(1)); })
      .Case([&](arith::MulFOp) { return real(f(0) * f(1)); })
      .Case([&](arith::DivFOp) { return real(f(0) / f(1)); })
      .Case([&](arith::NegFOp) { return real(-f(0)); })
      .Case([&](arith::MaximumFOp) { return real(extremum(f(0), f(1), true)); })
      .Case(
          [&](arith::MinimumFOp) { return real(extremum(f(0), f(1), false)); })
      .Case([&](math::AbsFOp) { return real(std::fabs(f(0))); })
      .Case([&](math::ExpOp) { return real(std::exp(f(0))); })
      .Case([&](math::Exp2Op) { return real(std::exp2(f(0))); })
      .Case([&](math::LogOp) { return real(std::log(f(0))); })
      .Case([&](math::TanhOp) { return real(std::tanh(f(0))); })
      .Case([&](math::SqrtOp) { return real(std::sqrt(f(0))); })
      .Case([&](tensor::ExtractOp read) { return extract(read); });
}

ModEvaluator::ModEvaluator() : state(std::make_unique<State>()) {}
ModEvaluator::~ModEvaluator() = default;

llvm::Expected<std::unique_ptr<ModEvaluator>>
ModEvaluator::create(StringRef text, StringRef file) {
  std::unique_ptr<ModEvaluator> result(new ModEvaluator());
  std::string message;
  ScopedDiagnosticHandler handler(
      &result->state->context, [&](Diagnostic &diagnostic) {
        if (!message.empty())
          message += "\n";
        llvm::raw_string_ostream(message)
            << diagnosticPrefix(diagnostic) << diagnostic;
      });
  FailureOr<Mods> mods = parseMods(&result->state->context, text, file);
  if (failed(mods))
    return llvm::createStringError(message);
  result->state->mods = std::move(*mods);
  return result;
}

const std::vector<AuxTensor> &ModEvaluator::aux() const {
  return state->mods.aux;
}

uint64_t ModEvaluator::hash() const { return state->mods.hash; }

bool ModEvaluator::mask(int64_t seq, int64_t head, int64_t qPos,
                        int64_t kvPos) const {
  if (!state->mods.maskMod)
    return true;
  Scalar arguments[] = {integer(seq), integer(head), integer(qPos),
                        integer(kvPos)};
  return Evaluation(state->mods, state->mods.maskMod, tensors).run(arguments).i;
}

double ModEvaluator::score(double score, int64_t seq, int64_t head,
                           int64_t qPos, int64_t kvPos) const {
  if (!state->mods.scoreMod)
    return score;
  Scalar arguments[] = {real(score), integer(seq), integer(head), integer(qPos),
                        integer(kvPos)};
  return Evaluation(state->mods, state->mods.scoreMod, tensors)
      .run(arguments)
      .f;
}
