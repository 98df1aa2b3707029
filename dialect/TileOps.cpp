//===- TileOps.cpp - Syntax and verifiers of the tiled level --------------===//
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

#define GET_OP_CLASSES
#include "dialect/PagodaOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

// pagoda.kernel @name(%a) attributes {...} { ... }
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  OpAsmParser::Argument args;
  args.type = ArgsType::get(parser.getContext());
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      parser.parseLParen() || parser.parseArgument(args) ||
      parser.parseRParen() ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), args);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(' << getArgs() << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"sym_name"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 ||
      !isa<ArgsType>(block.getArgument(0).getType()))
    return emitOpError("must take one !pagoda.args (T1)");
  int64_t heads = getCacheType().getHeads();
  if (int64_t(getQHeads()) < 1 || getQHeads() % heads != 0)
    return emitOpError() << "q_heads must be a multiple of " << heads
                         << " kv heads, got " << int64_t(getQHeads())
                         << " (T2)";
  if (heads % getSchedule().getHeads() != 0)
    return emitOpError() << "schedule heads must divide " << heads
                         << " kv heads, got " << getSchedule().getHeads()
                         << " (T3)";
  return success();
}

template <typename Item>
static LogicalResult verifyForRegion(Operation *op, Region &body) {
  if (body.getNumArguments() != 1 ||
      !isa<Item>(body.front().getArgument(0).getType()))
    return op->emitOpError()
           << "region must take one !pagoda." << Item::getMnemonic() << " (T4)";
  return success();
}

LogicalResult ForItemsOp::verifyRegions() {
  return verifyForRegion<ItemType>(*this, getBody());
}

LogicalResult ForMergesOp::verifyRegions() {
  return verifyForRegion<MergeType>(*this, getBody());
}

// pagoda.kv_loop %j = %lo to %hi step 64 carry(%m = %m0, ...) : types { ... }
ParseResult KvLoopOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  SmallVector<OpAsmParser::Argument> arguments(1);
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  OpAsmParser::UnresolvedOperand lo, hi;
  int64_t step = 0;
  arguments[0].type = builder.getI32Type();
  if (parser.parseArgument(arguments[0]) || parser.parseEqual() ||
      parser.parseOperand(lo) || parser.parseKeyword("to") ||
      parser.parseOperand(hi) || parser.parseKeyword("step") ||
      parser.parseInteger(step) || parser.parseKeyword("carry"))
    return failure();
  auto parseCarry = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(inits.emplace_back()));
  };
  SmallVector<Type> types;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseCarry) ||
      parser.parseColonTypeList(types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  if (types.size() != inits.size())
    return parser.emitError(parser.getNameLoc())
           << "expected " << inits.size() << " types, got " << types.size();
  for (auto [argument, type] : llvm::zip(llvm::drop_begin(arguments), types))
    argument.type = type;
  result.addAttribute("step", builder.getI64IntegerAttr(step));
  Type i32 = builder.getI32Type();
  if (parser.resolveOperand(lo, i32, result.operands) ||
      parser.resolveOperand(hi, i32, result.operands) ||
      parser.resolveOperands(inits, types, parser.getNameLoc(),
                             result.operands))
    return failure();
  result.addTypes(types);
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KvLoopOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getIndex() << " = " << getLo() << " to " << getHi()
          << " step " << getStep() << " carry(";
  llvm::interleaveComma(
      llvm::zip(getCarried(), getInits()), printer, [&](auto pair) {
        printer << std::get<0>(pair) << " = " << std::get<1>(pair);
      });
  printer << ") : " << getInits().getTypes();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"step"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KvLoopOp::verify() {
  if (int64_t(getStep()) < 1)
    return emitOpError() << "step must be at least 1, got "
                         << int64_t(getStep()) << " (T5)";
  return success();
}

LogicalResult KvLoopOp::verifyRegions() {
  if (getBody().getNumArguments() != getInits().size() + 1 ||
      !getIndex().getType().isInteger(32) ||
      getCarried().getTypes() != getInits().getTypes() ||
      getResultTypes() != getInits().getTypes())
    return emitOpError("region must take i32 and the carried types (T5)");
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getValues().getTypes() != getInits().getTypes())
    return emitOpError() << "region must yield the carried types ("
                         << getInits().getTypes() << "), got ("
                         << yield.getValues().getTypes() << ") (T5)";
  // A target keeps m, l and o in place, so each value must have a single reader
  // that replaces it. The maximum and the sum are read by softmax_step only.
  for (Value carried : getCarried())
    if (!carried.hasOneUse())
      return emitOpError("carried tiles must be used exactly once (T6)");
  return success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

LogicalResult ArgOp::verify() {
  struct Field {
    StringRef name;
    bool isFloat, indexed;
  };
  static const Field fields[] = {
      {"scale", true, false},      {"softcap", true, false},
      {"window", false, false},    {"chunk", false, false},
      {"sinks", true, true},       {"alibi_slopes", true, true},
      {"prefix_lens", false, true}};
  for (const Field &field : fields) {
    if (getField() != field.name)
      continue;
    if (isa<FloatType>(getType()) != field.isFloat)
      return emitOpError() << "field " << field.name << " is "
                           << (field.isFloat ? "f32" : "i32") << ", got "
                           << getType() << " (T7)";
    if (getIndices().size() != (field.indexed ? 1 : 0))
      return emitOpError() << "field " << field.name << " takes "
                           << (field.indexed ? "an" : "no") << " index (T7)";
    return success();
  }
  StringRef name = getField();
  if (unsigned number;
      name.consume_front("aux.") && !name.getAsInteger(10, number)) {
    if (getIndices().empty() || getIndices().size() > 4)
      return emitOpError() << "field " << getField()
                           << " takes 1 to 4 indices, got "
                           << getIndices().size() << " (T7)";
    return success();
  }
  return emitOpError() << "unknown argument field '" << getField() << "' (T7)";
}

LogicalResult KvRangeOp::verifyRegions() {
  Type i32 = IntegerType::get(getContext(), 32);
  return verifyRegionSignature(*this, getBody(), "kv_range",
                               rangeArguments(getContext()),
                               {i32, i32, i32, i32});
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Checks that `type` is heads x rows x cols.
static LogicalResult expectTile(Operation *op, StringRef what, TileType type,
                                int64_t heads, int64_t rows, int64_t cols) {
  if (type.getHeads() == heads && type.getRows() == rows &&
      type.getCols() == cols)
    return success();
  return op->emitOpError() << what << " must be " << heads << "x" << rows << "x"
                           << cols << ", got " << type.getHeads() << "x"
                           << type.getRows() << "x" << type.getCols()
                           << " (T8)";
}

/// m and l are one column of o's rows.
static LogicalResult verifyState(Operation *op, TileType m, TileType l,
                                 TileType o) {
  if (failed(expectTile(op, "m", m, o.getHeads(), o.getRows(), 1)))
    return failure();
  return expectTile(op, "l", l, o.getHeads(), o.getRows(), 1);
}

// Ops that make a state print `: row tile type, accumulator tile type`.
static ParseResult parseStateTypes(OpAsmParser &parser,
                                   OperationState &result) {
  Type row, acc;
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(row) || parser.parseComma() || parser.parseType(acc))
    return failure();
  result.addTypes({row, row, acc});
  return success();
}

// `%args, %item factor %c {attributes} : types`
template <typename Item>
static ParseResult parseStateOp(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand args, item, factor;
  MLIRContext *context = parser.getContext();
  return failure(
      parser.parseOperand(args) || parser.parseComma() ||
      parser.parseOperand(item) || parser.parseKeyword("factor") ||
      parser.parseOperand(factor) || parseStateTypes(parser, result) ||
      parser.resolveOperand(args, ArgsType::get(context), result.operands) ||
      parser.resolveOperand(item, Item::get(context), result.operands) ||
      parser.resolveOperand(factor, parser.getBuilder().getF32Type(),
                            result.operands));
}

static void printStateOp(OpAsmPrinter &printer, Operation *op) {
  printer << ' ' << op->getOperand(0) << ", " << op->getOperand(1) << " factor "
          << op->getOperand(2);
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : " << op->getResult(0).getType() << ", "
          << op->getResult(2).getType();
}

ParseResult StateInitOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseStateOp<ItemType>(parser, result);
}

void StateInitOp::print(OpAsmPrinter &printer) { printStateOp(printer, *this); }

LogicalResult StateInitOp::verify() {
  return verifyState(*this, getM().getType(), getL().getType(),
                     getO().getType());
}

ParseResult MergePartialsOp::parse(OpAsmParser &parser,
                                   OperationState &result) {
  return parseStateOp<MergeType>(parser, result);
}

void MergePartialsOp::print(OpAsmPrinter &printer) {
  printStateOp(printer, *this);
}

LogicalResult MergePartialsOp::verify() {
  return verifyState(*this, getM().getType(), getL().getType(),
                     getO().getType());
}

LogicalResult QkOp::verify() {
  TileType q = getQ().getType();
  KvType k = getK().getType();
  if (q.getCols() != k.getDim() || q.getHeads() != k.getHeads())
    return emitOpError() << "q and k must agree in heads and dim, got "
                         << q.getHeads() << " and " << k.getHeads()
                         << " heads, dims " << q.getCols() << " and "
                         << k.getDim() << " (T9)";
  return expectTile(*this, "s", getS().getType(), q.getHeads(), q.getRows(),
                    k.getKeys());
}

/// Score ops keep the tile's shape, and the coordinates are of its rows.
static LogicalResult verifyScoreOp(Operation *op, TileType s, TileType result,
                                   CoordsType coords) {
  if (coords.getHeads() != s.getHeads() || coords.getRows() != s.getRows())
    return op->emitOpError() << "coords must be " << s.getHeads() << "x"
                             << s.getRows() << ", got " << coords.getHeads()
                             << "x" << coords.getRows() << " (T10)";
  return expectTile(op, "result", result, s.getHeads(), s.getRows(),
                    s.getCols());
}

LogicalResult MapScoresOp::verify() {
  return verifyScoreOp(*this, getS().getType(), getResult().getType(),
                       getCoords().getType());
}

LogicalResult MapScoresOp::verifyRegions() {
  return verifyRegionSignature(*this, getBody(), "score_mod",
                               scoreArguments(getContext()),
                               {Float32Type::get(getContext())});
}

LogicalResult MaskScoresOp::verify() {
  return verifyScoreOp(*this, getS().getType(), getResult().getType(),
                       getCoords().getType());
}

LogicalResult MaskScoresOp::verifyRegions() {
  return verifyRegionSignature(*this, getBody(), "mask_mod",
                               maskArguments(getContext()),
                               {IntegerType::get(getContext(), 1)});
}

LogicalResult SoftmaxStepOp::verify() {
  TileType s = getS().getType();
  auto row = [&](StringRef what, TileType type) {
    return expectTile(*this, what, type, s.getHeads(), s.getRows(), 1);
  };
  if (failed(row("m", getM().getType())) ||
      failed(row("l", getL().getType())) ||
      failed(row("m result", getMOut().getType())) ||
      failed(row("l result", getLOut().getType())) ||
      failed(row("alpha", getAlpha().getType())))
    return failure();
  return expectTile(*this, "p", getP().getType(), s.getHeads(), s.getRows(),
                    s.getCols());
}

LogicalResult RescaleOp::verify() {
  TileType o = getO().getType();
  if (getResult().getType() != o)
    return emitOpError() << "result must be " << o << ", got "
                         << getResult().getType() << " (T8)";
  return expectTile(*this, "alpha", getAlpha().getType(), o.getHeads(),
                    o.getRows(), 1);
}

LogicalResult PvOp::verify() {
  TileType p = getP().getType(), o = getO().getType();
  KvType v = getV().getType();
  if (p.getCols() != v.getKeys() || p.getHeads() != v.getHeads())
    return emitOpError() << "p and v must agree in heads and keys, got "
                         << p.getHeads() << " and " << v.getHeads()
                         << " heads, keys " << p.getCols() << " and "
                         << v.getKeys() << " (T9)";
  if (getResult().getType() != o)
    return emitOpError() << "result must be " << o << ", got "
                         << getResult().getType() << " (T8)";
  return expectTile(*this, "o", o, p.getHeads(), p.getRows(), v.getDim());
}

LogicalResult StoreOp::verify() {
  return verifyState(*this, getM().getType(), getL().getType(),
                     getO().getType());
}
