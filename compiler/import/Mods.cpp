//===- Mods.cpp - A user's mask and score functions -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and checks; BuildAttention.cpp moves the bodies into regions. Whatever
// passes here can be lowered for every target and evaluated by ModEvaluator.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Mods.h"

#include "dialect/Dialect.h"
#include "dialect/Regions.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace pagoda;

std::string pagoda::diagnosticPrefix(const Diagnostic &diagnostic) {
  Location location = diagnostic.getLocation();
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str() + ": ";
  auto file = dyn_cast<FileLineColLoc>(location);
  if (!file)
    return "";
  return file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" +
         std::to_string(file.getColumn()) + ": ";
}

bool pagoda::isSupportedInMod(Operation *op) {
  return isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp,
             arith::DivSIOp, arith::RemSIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp,
             arith::MinSIOp, arith::MaxSIOp, arith::CmpIOp, arith::SelectOp,
             arith::ExtUIOp, arith::IndexCastOp, arith::SIToFPOp,
             arith::FPToSIOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
             arith::DivFOp, arith::NegFOp, arith::CmpFOp, arith::MaximumFOp,
             arith::MinimumFOp, math::AbsFOp, math::ExpOp, math::Exp2Op,
             math::LogOp, math::TanhOp, math::SqrtOp, tensor::ExtractOp>(op);
}

int64_t Mods::auxOf(func::FuncOp function, unsigned index) const {
  auto name = function.getArgAttrOfType<StringAttr>(index, "pagoda.aux");
  for (auto [place, tensor] : llvm::enumerate(aux))
    if (tensor.name == name.getValue())
      return int64_t(place);
  llvm_unreachable("parseMods has listed every tensor");
}

namespace {

/// Checks one file's functions.
struct Checker {
  Mods &mods;

  LogicalResult signature(func::FuncOp function, ArrayRef<Type> arguments,
                          ArrayRef<Type> results);
  LogicalResult auxiliary(func::FuncOp function, unsigned index);
  LogicalResult body(func::FuncOp function);
};

} // namespace

LogicalResult Checker::auxiliary(func::FuncOp function, unsigned index) {
  Type type = function.getArgumentTypes()[index];
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor ? tensor.getElementType() : Type();
  if (!tensor || tensor.getRank() < 1 || tensor.getRank() > 4 ||
      !(element.isF32() || element.isInteger(32)))
    return function.emitError()
           << "argument " << index
           << " must be a tensor of f32 or i32 of rank 1 to 4, got " << type;
  auto name = function.getArgAttrOfType<StringAttr>(index, "pagoda.aux");
  if (!name || name.empty())
    return function.emitError() << "argument " << index
                                << " must have a name: {pagoda.aux = \"...\"}";
  AuxTensor found{name.str(), element.isF32(), tensor.getRank()};
  for (const AuxTensor &known : mods.aux) {
    if (known.name != found.name)
      continue;
    if (known == found)
      return success();
    return function.emitError() << "auxiliary tensor '" << found.name
                                << "' has another type in another function";
  }
  mods.aux.push_back(std::move(found));
  return success();
}

LogicalResult Checker::signature(func::FuncOp function,
                                 ArrayRef<Type> arguments,
                                 ArrayRef<Type> results) {
  ArrayRef<Type> given = function.getArgumentTypes();
  if (given.take_front(arguments.size()) != arguments ||
      function.getResultTypes() != results)
    return function.emitError()
           << "must be (" << arguments << ", tensors...) -> (" << results
           << "), got " << function.getFunctionType();
  for (unsigned i = arguments.size(); i < given.size(); ++i)
    if (failed(auxiliary(function, i)))
      return failure();
  return success();
}

LogicalResult Checker::body(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError(
        "must have a body of one block: no calls, loops or branches");
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (!isSupportedInMod(&op))
      return op.emitError("is not supported in a mask or score function");
    if (auto cast = dyn_cast<arith::IndexCastOp>(op))
      for (Operation *user : cast->getUsers())
        if (!isa<tensor::ExtractOp>(user))
          return user->emitError("must work on i32: index is for the indices "
                                 "of tensor.extract only");
    if (isa<arith::IndexCastOp, tensor::ExtractOp>(op))
      continue;
    for (Type type : op.getResultTypes()) {
      bool isIndex = isa<arith::ConstantOp>(op) && type.isIndex();
      if (!isIndex && !type.isF32() && !type.isInteger(32) &&
          !type.isInteger(1))
        return op.emitError() << "must be i1, i32 or f32, got " << type;
    }
  }
  return success();
}

FailureOr<Mods> pagoda::parseMods(MLIRContext *context, StringRef text,
                                  StringRef file) {
  context->loadDialect<arith::ArithDialect, func::FuncDialect,
                       math::MathDialect, tensor::TensorDialect>();
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, file),
                             SMLoc());
  Mods mods;
  mods.module = parseSourceFile<ModuleOp>(source, context);
  if (!mods.module)
    return failure();
  uint64_t hash = llvm::xxh3_64bits(text);
  mods.hash = hash ? hash : 1;

  Checker checker{mods};
  Type i1 = IntegerType::get(context, 1), i32 = IntegerType::get(context, 32);
  Type f32 = Float32Type::get(context);
  for (Operation &op : mods.module->getOps()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return op.emitError("must be a func.func");
    StringRef name = function.getName();
    LogicalResult legal = success();
    if (name == "kv_range") {
      mods.kvRange = function;
      legal = checker.signature(function, rangeArguments(context),
                                {i32, i32, i32, i32});
    } else if (name == "mask_mod") {
      mods.maskMod = function;
      legal = checker.signature(function, maskArguments(context), {i1});
    } else if (name == "score_mod") {
      mods.scoreMod = function;
      legal = checker.signature(function, scoreArguments(context), {f32});
    } else {
      return function.emitError()
             << "is no function that attention knows, expected kv_range, "
                "mask_mod or score_mod, got "
             << name;
    }
    if (failed(legal) || failed(checker.body(function)))
      return failure();
  }
  if (!mods.kvRange && !mods.maskMod && !mods.scoreMod)
    return emitError(FileLineColLoc::get(context, file, 1, 1))
           << "expected kv_range, mask_mod or score_mod, got no function";
  return mods;
}
