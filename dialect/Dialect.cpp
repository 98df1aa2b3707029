//===- Dialect.cpp - Registration and attributes --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect's types, attributes and ops, and verifies attributes.
// Types are verified in Types.cpp, ops in the file of their level. Constraint
// numbers are those of dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda;

#include "dialect/PagodaDialect.cpp.inc"
#include "dialect/PagodaEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/PagodaAttributes.cpp.inc"

void PagodaDialect::initialize() {
  registerTypes();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/PagodaAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/PagodaOps.cpp.inc"
      >();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   LoopOrder order, Lanes lanes, int64_t qTile,
                                   int64_t kvTile, int64_t heads,
                                   int64_t blockRows, int64_t blockVectors,
                                   int64_t prefetch, int64_t pack,
                                   int64_t stages, int64_t warps) {
  auto positive = [&](int64_t value, StringRef field) -> LogicalResult {
    if (value >= 1)
      return success();
    return emitError() << "schedule " << field << " must be at least 1, got "
                       << value << " (A1)";
  };
  if (failed(positive(qTile, "q_tile")) ||
      failed(positive(kvTile, "kv_tile")) || failed(positive(heads, "heads")) ||
      failed(positive(blockRows, "block_rows")) ||
      failed(positive(blockVectors, "block_vectors")) ||
      failed(positive(stages, "stages")) || failed(positive(warps, "warps")))
    return failure();
  if (prefetch < 0)
    return emitError() << "schedule prefetch must be at least 0, got "
                       << prefetch << " (A1)";
  if (pack < 0 || pack > 2)
    return emitError() << "schedule pack must be 0, 1 or 2, got " << pack
                       << " (A1)";
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef kind, StringRef name,
                                 int64_t vectorBits, int64_t registers,
                                 int64_t cpuFeatures) {
  if (kind != "cpu" && kind != "nvidia")
    return emitError() << "target kind must be cpu or nvidia, got '" << kind
                       << "' (A2)";
  if (kind == "cpu" && (vectorBits < 64 || (vectorBits & (vectorBits - 1))))
    return emitError() << "target vector_bits must be a power of two of at "
                          "least 64, got "
                       << vectorBits << " (A2)";
  return success();
}

LogicalResult
LanesLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        StringRef dim, int64_t panel) {
  if (dim != "rows" && dim != "cols")
    return emitError() << "lanes dimension must be rows or cols, got '" << dim
                       << "' (A3)";
  if (panel < 1)
    return emitError() << "lanes panel must be at least 1, got " << panel
                       << " (A3)";
  return success();
}

LogicalResult
FragmentLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           StringRef form, int64_t warps) {
  if (form != "a" && form != "acc" && form != "row")
    return emitError() << "fragment form must be a, acc or row, got '" << form
                       << "' (A4)";
  if (warps < 1)
    return emitError() << "fragment warps must be at least 1, got " << warps
                       << " (A4)";
  return success();
}
