//===- Types.cpp - Types: registration, syntax, constraints ---------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Dialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda;

#define GET_TYPEDEF_CLASSES
#include "dialect/PagodaTypes.cpp.inc"

void PagodaDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/PagodaTypes.cpp.inc"
      >();
}

/// Element types that tiles and caches may have.
static bool isElement(Type type) {
  return type.isF32() || type.isF16() || type.isBF16() || type.isInteger(8) ||
         isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

LogicalResult KvCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t heads, int64_t kDim, int64_t vDim,
                                  int64_t block, CacheLayout, Type elt,
                                  ScaleGranularity scales) {
  auto within = [&](StringRef field, int64_t value, int64_t most) {
    if (value >= 1 && value <= most)
      return success();
    return LogicalResult(emitError()
                         << "cache " << field << " must be between 1 and "
                         << most << ", got " << value << " (Y1)");
  };
  if (failed(within("heads", heads, 1 << 16)) ||
      failed(within("k_dim", kDim, 1 << 16)) ||
      failed(within("v_dim", vDim, 1 << 16)) ||
      failed(within("block", block, 1 << 16)))
    return failure();
  if (!isElement(elt))
    return emitError() << "cache element must be f32, f16, bf16 or an 8-bit "
                          "type, got "
                       << elt << " (Y2)";
  bool narrow = elt.getIntOrFloatBitWidth() == 8;
  if (!narrow && scales != ScaleGranularity::none)
    return emitError() << "cache scales need an 8-bit element, got " << elt
                       << " (Y3)";
  return success();
}

/// `<` H `x` R `x` C `x` elt (`,` layout)? `>` for `count` dimensions.
static ParseResult parseShape(AsmParser &parser, MutableArrayRef<int64_t> dims,
                              Type &elt) {
  SmallVector<int64_t> parsed;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(parsed, /*allowDynamic=*/false,
                                /*withTrailingX=*/true))
    return failure();
  if (parsed.size() != dims.size())
    return parser.emitError(loc) << "expected " << dims.size()
                                 << " dimensions, got " << parsed.size();
  llvm::copy(parsed, dims.begin());
  return parser.parseType(elt);
}

Type TileType::parse(AsmParser &parser) {
  int64_t dims[3];
  Type elt;
  Attribute layout;
  if (parser.parseLess() || parseShape(parser, dims, elt))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<TileType>(parser.getContext(), dims[0], dims[1],
                                     dims[2], elt, layout);
}

void TileType::print(AsmPrinter &printer) const {
  printer << "<" << getHeads() << "x" << getRows() << "x" << getCols() << "x"
          << getElt();
  if (getLayout())
    printer << ", " << getLayout();
  printer << ">";
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t heads, int64_t rows, int64_t cols,
                               Type elt, Attribute layout) {
  if (heads < 1 || rows < 1 || cols < 1)
    return emitError() << "tile dimensions must be at least 1, got " << heads
                       << "x" << rows << "x" << cols << " (Y4)";
  if (!isElement(elt))
    return emitError() << "tile element must be f32, f16, bf16 or an 8-bit "
                          "type, got "
                       << elt << " (Y2)";
  if (layout && !isa<LanesLayoutAttr, FragmentLayoutAttr>(layout))
    return emitError() << "tile layout must be #pagoda.lanes or "
                          "#pagoda.fragment, got "
                       << layout << " (Y5)";
  return success();
}

Type KvType::parse(AsmParser &parser) {
  int64_t dims[3];
  Type elt;
  if (parser.parseLess() || parseShape(parser, dims, elt) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<KvType>(parser.getContext(), dims[0], dims[1],
                                   dims[2], elt);
}

void KvType::print(AsmPrinter &printer) const {
  printer << "<" << getHeads() << "x" << getKeys() << "x" << getDim() << "x"
          << getElt() << ">";
}

LogicalResult KvType::verify(function_ref<InFlightDiagnostic()> emitError,
                             int64_t heads, int64_t keys, int64_t dim,
                             Type elt) {
  if (heads < 1 || keys < 1 || dim < 1)
    return emitError() << "kv dimensions must be at least 1, got " << heads
                       << "x" << keys << "x" << dim << " (Y4)";
  if (!isElement(elt))
    return emitError() << "kv element must be f32, f16, bf16 or an 8-bit type, "
                          "got "
                       << elt << " (Y2)";
  return success();
}

Type CoordsType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/false,
                                /*withTrailingX=*/false) ||
      parser.parseGreater())
    return {};
  if (dims.size() != 2) {
    parser.emitError(loc) << "expected 2 dimensions, got " << dims.size();
    return {};
  }
  return parser.getChecked<CoordsType>(parser.getContext(), dims[0], dims[1]);
}

void CoordsType::print(AsmPrinter &printer) const {
  printer << "<" << getHeads() << "x" << getRows() << ">";
}

LogicalResult CoordsType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t heads, int64_t rows) {
  if (heads < 1 || rows < 1)
    return emitError() << "coords dimensions must be at least 1, got " << heads
                       << "x" << rows << " (Y4)";
  return success();
}
