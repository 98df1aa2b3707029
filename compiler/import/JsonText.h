//===- JsonText.h - Strict reading of a config.json's text ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text to llvm::json::Value, for text that nobody vouches for. LLVM's own
// parser recurses without a limit, lets the last of two equal keys win and
// refuses the NaN and Infinity that Python writes into published files; this
// one bounds the nesting, refuses equal keys and reads those two words. Meaning
// is not its business.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_JSONTEXT_H
#define PAGODA_COMPILER_IMPORT_JSONTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace pagoda {

/// Objects and arrays inside each other; published files use about five.
inline constexpr int maxJsonDepth = 64;

/// Parses UTF-8 text that holds one JSON value. Besides JSON it takes the words
/// NaN, Infinity and -Infinity, which become doubles. Errors are one line:
/// `<file>: line L, column C: <what>`.
llvm::Expected<llvm::json::Value> parseJsonText(llvm::StringRef text,
                                                llvm::StringRef fileName);

/// One value as a diagnostic shows it, on one line and cut after 60 bytes.
std::string quoteJson(const llvm::json::Value &value);

/// The same with the kind of value where it is not plain: `"32" (a string)`,
/// `null`, `[1,2,3] (an array)`.
std::string describeJson(const llvm::json::Value &value);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_JSONTEXT_H
