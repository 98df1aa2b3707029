//===- Regions.cpp - Syntax and signatures of regions ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constraint numbers are those of dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/Regions.h"
#include "dialect/Dialect.h"

using namespace mlir;
using namespace pagoda;

/// Whether something outside of `region` uses a value that it defines. Regions
/// and blocks that are being parsed have no parent yet.
static bool isUsedOutside(Region &region) {
  auto outside = [&](Operation *user) {
    for (; user; user = user->getParentOp())
      if (user->getParentRegion() == &region)
        return false;
    return true;
  };
  auto usedOutside = [&](Value value) {
    return llvm::any_of(value.getUsers(), outside);
  };
  WalkResult walked = region.walk<WalkOrder::PreOrder>([&](Block *block) {
    if (llvm::any_of(block->getArguments(), usedOutside))
      return WalkResult::interrupt();
    for (Operation &op : *block)
      if (llvm::any_of(op.getResults(), usedOutside))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return walked.wasInterrupted();
}

OptionalParseResult pagoda::parseOptionalClosedRegion(OpAsmParser &parser,
                                                      Region &region) {
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult parsed = parser.parseOptionalRegion(region);
  if (!parsed.has_value())
    return parsed;
  bool closed = !isUsedOutside(region);
  if (failed(*parsed) || !closed) {
    for (Block &block : region)
      block.dropAllDefinedValueUses();
    if (failed(*parsed))
      return parsed;
    return parser.emitError(
        loc, "region defines a value that is used outside of it (R3)");
  }
  if (region.empty())
    return parsed;
  Block &last = region.back();
  if (last.empty() || !last.back().hasTrait<OpTrait::IsTerminator>()) {
    OpBuilder builder(parser.getContext());
    builder.setInsertionPointToEnd(&last);
    YieldOp::create(builder, parser.getEncodedSourceLoc(loc));
  }
  return parsed;
}

ParseResult pagoda::parseClosedRegion(OpAsmParser &parser, Region &region) {
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult parsed = parseOptionalClosedRegion(parser, region);
  if (parsed.has_value())
    return *parsed;
  return parser.emitError(loc, "expected '{' to begin a region");
}

void pagoda::printClosedRegion(OpAsmPrinter &printer, Operation *,
                               Region &region) {
  auto yield = region.hasOneBlock() && !region.front().empty()
                   ? dyn_cast<YieldOp>(region.front().back())
                   : YieldOp();
  bool silent = yield && yield.getValues().empty() && yield->getAttrs().empty();
  printer.printRegion(region, /*printEntryBlockArgs=*/true,
                      /*printBlockTerminators=*/!silent);
}

void pagoda::printOptionalClosedRegion(OpAsmPrinter &printer, Operation *op,
                                       Region &region) {
  printClosedRegion(printer, op, region);
}

LogicalResult pagoda::verifyRegionSignature(Operation *op, Region &region,
                                            StringRef name,
                                            ArrayRef<Type> arguments,
                                            ArrayRef<Type> results) {
  if (region.empty())
    return success();
  if (region.getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError()
           << name << " region must take (" << arguments << "), got ("
           << region.getArgumentTypes() << ") (R1)";
  // Runs before the block is known to have a terminator.
  Block &block = region.back();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << name << " region must end in pagoda.yield (R2)";
  if (yield.getValues().getTypes() != TypeRange(results))
    return op->emitOpError()
           << name << " region must yield (" << results << "), got ("
           << yield.getValues().getTypes() << ") (R2)";
  return success();
}

SmallVector<Type> pagoda::rangeArguments(MLIRContext *context) {
  return SmallVector<Type>(3, IntegerType::get(context, 32));
}

SmallVector<Type> pagoda::maskArguments(MLIRContext *context) {
  return SmallVector<Type>(4, IntegerType::get(context, 32));
}

SmallVector<Type> pagoda::scoreArguments(MLIRContext *context) {
  SmallVector<Type> types = maskArguments(context);
  types.insert(types.begin(), Float32Type::get(context));
  return types;
}
