//===- FragmentDialect.cpp - Syntax and verifiers of pagoda_nv ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/ir/FragmentDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda::nv;

#include "compiler/target/nvidia/ir/FragmentDialect.cpp.inc"
#include "compiler/target/nvidia/ir/FragmentEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/target/nvidia/ir/FragmentAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/target/nvidia/ir/FragmentTypes.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/target/nvidia/ir/FragmentOps.cpp.inc"

void NvDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/target/nvidia/ir/FragmentAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/target/nvidia/ir/FragmentTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/target/nvidia/ir/FragmentOps.cpp.inc"
      >();
}

static constexpr int64_t rowsPerWarp = 16;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

using Emit = function_ref<InFlightDiagnostic()>;

static bool isOperandElement(Type elt) { return elt.isF16() || elt.isBF16(); }

/// rows `x` cols `x` elt
static ParseResult parseMatrix(AsmParser &parser, int64_t &rows, int64_t &cols,
                               Type &elt) {
  SmallVector<int64_t> dims;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(dims, /*allowDynamic=*/false,
                                /*withTrailingX=*/true))
    return failure();
  if (dims.size() != 2)
    return parser.emitError(loc)
           << "expected 2 dimensions, got " << dims.size();
  rows = dims[0];
  cols = dims[1];
  return parser.parseType(elt);
}

template <typename Matrix>
static void printMatrix(AsmPrinter &printer, Matrix type) {
  printer << type.getRows() << "x" << type.getCols() << "x" << type.getElt();
}

Type FragmentType::parse(AsmParser &parser) {
  int64_t rows = 0, cols = 0;
  Type elt;
  if (parser.parseLess() || parseMatrix(parser, rows, cols, elt) ||
      parser.parseComma())
    return {};
  FailureOr<Form> form = FieldParser<Form>::parse(parser);
  if (failed(form) || parser.parseGreater())
    return {};
  return parser.getChecked<FragmentType>(parser.getContext(), rows, cols, elt,
                                         *form);
}

void FragmentType::print(AsmPrinter &printer) const {
  printer << "<";
  printMatrix(printer, *this);
  printer << ", " << stringifyForm(getForm()) << ">";
}

LogicalResult FragmentType::verify(Emit emitError, int64_t rows, int64_t cols,
                                   Type elt, Form form) {
  if (rows < 1 || rows % rowsPerWarp != 0)
    return emitError() << "fragment rows must be a multiple of " << rowsPerWarp
                       << ", got " << rows;
  if (cols < 1)
    return emitError() << "fragment columns must be at least 1, got " << cols;
  if (form == Form::row && cols != 1)
    return emitError() << "fragment of form row must have 1 column, got "
                       << cols;
  if (form == Form::a
          ? !isOperandElement(elt)
          : !elt.isF32() && !(form == Form::row && elt.isInteger(32)))
    return emitError() << "fragment of form " << stringifyForm(form)
                       << " must have elements of "
                       << (form == Form::a     ? "f16 or bf16"
                           : form == Form::acc ? "f32"
                                               : "f32 or i32")
                       << ", got " << elt;
  return success();
}

Type SharedType::parse(AsmParser &parser) {
  int64_t rows = 0, cols = 0;
  Type elt;
  if (parser.parseLess() || parseMatrix(parser, rows, cols, elt) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<SharedType>(parser.getContext(), rows, cols, elt);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  printMatrix(printer, *this);
  printer << ">";
}

LogicalResult SharedType::verify(Emit emitError, int64_t rows, int64_t cols,
                                 Type elt) {
  if (rows < 1 || rows % rowsPerWarp != 0)
    return emitError() << "shared tile rows must be a multiple of "
                       << rowsPerWarp << ", got " << rows;
  if (cols < 1)
    return emitError() << "shared tile columns must be at least 1, got "
                       << cols;
  if (!isOperandElement(elt))
    return emitError() << "shared tile must have elements of f16 or bf16, got "
                       << elt;
  return success();
}

Type PipelineType::parse(AsmParser &parser) {
  int64_t stages = 0;
  SmallVector<SharedType> tiles;
  auto parseTile = [&]() -> ParseResult {
    int64_t rows = 0, cols = 0;
    Type elt;
    if (parseMatrix(parser, rows, cols, elt))
      return failure();
    tiles.push_back(
        parser.getChecked<SharedType>(parser.getContext(), rows, cols, elt));
    return success(bool(tiles.back()));
  };
  if (parser.parseLess() || parser.parseInteger(stages) ||
      parser.parseKeyword("of") || parser.parseCommaSeparatedList(parseTile) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<PipelineType>(parser.getContext(), stages, tiles);
}

void PipelineType::print(AsmPrinter &printer) const {
  printer << "<" << getStages() << " of ";
  llvm::interleaveComma(getTiles(), printer,
                        [&](SharedType tile) { printMatrix(printer, tile); });
  printer << ">";
}

LogicalResult PipelineType::verify(Emit emitError, int64_t stages,
                                   ArrayRef<SharedType> tiles) {
  if (stages < 1)
    return emitError() << "pipeline must have at least 1 slot, got " << stages;
  if (tiles.empty())
    return emitError() << "pipeline slots must hold at least 1 tile, got 0";
  return success();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// The region takes values of `inputs` and yields those of `outputs`.
static LogicalResult verifyRegion(Operation *op, TypeRange inputs,
                                  TypeRange outputs) {
  Block &block = op->getRegion(0).front();
  if (block.getArgumentTypes() != inputs)
    return op->emitOpError() << "region must take (" << inputs << "), got ("
                             << block.getArgumentTypes() << ")";
  auto yield =
      dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return op->emitOpError() << "region must end in pagoda_nv.yield";
  TypeRange yielded = yield.getOperandTypes();
  if (yielded != outputs)
    return op->emitOpError()
           << "region must yield (" << outputs << "), got (" << yielded << ")";
  return success();
}

static SmallVector<Type> elements(ValueRange fragments) {
  return llvm::map_to_vector(fragments, [](Value value) {
    return cast<FragmentType>(value.getType()).getElt();
  });
}

/// The row's number, then an element of each of `fragments`.
static SmallVector<Type> rowInputs(MLIRContext *context, ValueRange fragments) {
  SmallVector<Type> result{IntegerType::get(context, 32)};
  llvm::append_range(result, elements(fragments));
  return result;
}

static LogicalResult verifyPointerRegion(Operation *op) {
  MLIRContext *context = op->getContext();
  Type row = IntegerType::get(context, 32);
  Type pointer = LLVM::LLVMPointerType::get(context, /*addressSpace=*/1);
  return verifyRegion(op, row, pointer);
}

static LogicalResult verifySameRows(Operation *op, ValueRange fragments) {
  for (Value value : fragments) {
    int64_t first = cast<FragmentType>(fragments[0].getType()).getRows();
    int64_t rows = cast<FragmentType>(value.getType()).getRows();
    if (rows != first)
      return op->emitOpError() << "fragments must have the same rows, got "
                               << first << " and " << rows;
  }
  return success();
}

LogicalResult CopyRowsOp::verifyRegions() { return verifyPointerRegion(*this); }
LogicalResult StoreOp::verifyRegions() { return verifyPointerRegion(*this); }

LogicalResult PerRowOp::verifyRegions() {
  SmallVector<Value> all(getSources());
  llvm::append_range(all, getResults());
  if (failed(verifySameRows(*this, all)))
    return failure();
  return verifyRegion(*this, rowInputs(getContext(), getSources()),
                      elements(getResults()));
}

LogicalResult ForRowsOp::verifyRegions() {
  if (failed(verifySameRows(*this, getSources())))
    return failure();
  return verifyRegion(*this, rowInputs(getContext(), getSources()), {});
}

LogicalResult MapOp::verifyRegions() {
  SmallVector<Value> all{getSource()};
  llvm::append_range(all, getRows());
  if (failed(verifySameRows(*this, all)))
    return failure();
  SmallVector<Type> inputs = elements(all);
  inputs.push_back(IntegerType::get(getContext(), 32));
  return verifyRegion(*this, inputs, elements(getResult()));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

// %k, %v = pagoda_nv.slot %kv[%i] : !pagoda_nv.pipeline<...>
ParseResult SlotOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand pipeline, index;
  PipelineType type;
  if (parser.parseOperand(pipeline) || parser.parseLSquare() ||
      parser.parseOperand(index) || parser.parseRSquare() ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperand(pipeline, type, result.operands) ||
      parser.resolveOperand(index, parser.getBuilder().getI32Type(),
                            result.operands))
    return failure();
  llvm::append_range(result.types, type.getTiles());
  return success();
}

void SlotOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPipeline() << '[' << getIndex() << ']';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getPipeline().getType();
}

LogicalResult SlotOp::verify() {
  ArrayRef<SharedType> tiles = getPipeline().getType().getTiles();
  if (!llvm::equal(getResultTypes(), tiles))
    return emitOpError() << "must give the slot's " << tiles.size()
                         << " tiles, got (" << getResultTypes() << ")";
  return success();
}

LogicalResult LoadOp::verify() {
  SharedType source = getSource().getType();
  FragmentType result = getResult().getType();
  if (source.getRows() != result.getRows() ||
      source.getCols() != result.getCols() ||
      source.getElt() != result.getElt())
    return emitOpError() << "must keep rows, columns and element, got "
                         << source << " and " << result;
  return success();
}

static SharedType sharedOf(Value b) { return cast<SharedType>(b.getType()); }

int64_t MmaOp::getM() { return getC().getType().getRows(); }
int64_t MmaOp::getN() { return getC().getType().getCols(); }
int64_t MmaOp::getK() {
  SharedType b = sharedOf(getB());
  return getTransposed() ? b.getCols() : b.getRows();
}

LogicalResult MmaOp::verify() {
  int64_t rows = 0, cols = 0;
  Type elt;
  auto read = [&](auto a) {
    rows = a.getRows();
    cols = a.getCols();
    elt = a.getElt();
  };
  TypeSwitch<Type>(getA().getType()).Case<FragmentType, SharedType>(read);
  SharedType b = sharedOf(getB());
  if (rows != getM())
    return emitOpError() << "A and C must have the same rows, got " << rows
                         << " and " << getM();
  int64_t n = getTransposed() ? b.getRows() : b.getCols();
  if (n != getN())
    return emitOpError() << "B and C must have the same columns, got " << n
                         << " and " << getN();
  if (cols != getK())
    return emitOpError() << "columns of A must be rows of B, got " << cols
                         << " and " << getK();
  if (elt != b.getElt())
    return emitOpError() << "A and B must have the same elements, got " << elt
                         << " and " << b.getElt();
  return success();
}

LogicalResult ConvertOp::verify() {
  FragmentType source = getSource().getType(), result = getResult().getType();
  if (source.getRows() != result.getRows() ||
      source.getCols() != result.getCols())
    return emitOpError() << "must keep rows and columns, got " << source
                         << " and " << result;
  return success();
}

LogicalResult SplatOp::verify() {
  Type elt = cast<FragmentType>(getResult().getType()).getElt();
  if (!elt.isF32())
    return emitOpError() << "must give f32, got " << elt;
  return success();
}

LogicalResult RowReduceOp::verify() {
  FragmentType source = getSource().getType();
  // Padding would take part.
  if (source.getCols() % 16 != 0)
    return emitOpError() << "columns must be a multiple of 16, got "
                         << source.getCols();
  if (!getResult().getType().getElt().isF32())
    return emitOpError() << "must give f32, got "
                         << getResult().getType().getElt();
  return verifySameRows(*this, {getSource(), getResult()});
}

LogicalResult Exp2Op::verify() {
  return verifySameRows(*this, {getSource(), getReference()});
}

LogicalResult ScaleOp::verify() {
  return verifySameRows(*this, {getSource(), getFactors()});
}

LogicalResult StoreOp::verify() {
  if (!getElt().isF32() && !isOperandElement(getElt()))
    return emitOpError() << "must store f32, f16 or bf16, got " << getElt();
  return success();
}
