//===- ConfigReader.h - Typed look-ups in a config.json ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One place that turns keys into checked values: it knows every spelling of a
// key, takes the model family's default where a key is absent and writes that
// down, and words the diagnostics. What a key means is the business of the
// rules.
//
// The first fault is kept and every later look-up returns the least legal
// value, so that rules read as a list of facts; whoever runs them asks failed()
// after.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_IMPORT_CONFIGREADER_H
#define PAGODA_COMPILER_IMPORT_CONFIGREADER_H

#include "compiler/import/ModelConfig.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

namespace pagoda {

/// What one import has found out so far; shared by the readers of all objects
/// of one file.
struct ImportLog {
  std::string fileName;
  std::string fault; ///< the first diagnostic; empty: none
  std::vector<DefaultTaken> defaults;
  std::vector<std::string> notes;
  /// Fields that are absent and were not misspelt either: rules ask again for
  /// every layer.
  llvm::StringSet<> absent;

  /// Keeps the first fault: `<file>: <field>: <what>`.
  void fail(llvm::StringRef field, const llvm::Twine &what);
  /// Notes the same thing once.
  void note(const llvm::Twine &text);
};

/// Inclusive.
struct IntRange {
  int64_t min, max;
};

// What no published model comes near; beyond it a file is damaged.
inline constexpr IntRange layerRange{1, 4096};
inline constexpr IntRange headRange{1, 65536};
inline constexpr IntRange headDimRange{1, 8192};
inline constexpr IntRange widthRange{1, 1 << 24};
inline constexpr IntRange positionRange{1, std::numeric_limits<int32_t>::max()};

class ConfigReader {
public:
  /// Reads `object`, which lies under the key path `path` ("" for the whole
  /// file). `classDefaults`: what the configuration class `className` holds for
  /// keys that are absent; may be null.
  ConfigReader(const llvm::json::Object &object, std::string path,
               const llvm::json::Object *classDefaults, std::string className,
               ImportLog &log)
      : object(&object), path(std::move(path)), classDefaults(classDefaults),
        className(std::move(className)), log(&log) {}

  /// The value under any spelling of `key`; null if none is there. Two
  /// spellings that disagree are a fault, and so is a misspelt key.
  const llvm::json::Value *find(llvm::StringRef key);

  /// Whether `key` is there, and not null.
  bool has(llvm::StringRef key);

  /// A key that must have a value; an absent one takes the class's default.
  int64_t integer(llvm::StringRef key, IntRange range);
  double number(llvm::StringRef key, double above = -HUGE_VAL);
  /// The size of the model itself: no default at the top level of a file, where
  /// every writer puts it (a nested object may leave out what the class says).
  int64_t coreInteger(llvm::StringRef key, IntRange range);

  /// A key that may be absent (then: the class's default) or null.
  std::optional<int64_t> maybeInteger(llvm::StringRef key, IntRange range);
  std::optional<double> maybeNumber(llvm::StringRef key,
                                    double above = -HUGE_VAL);
  std::optional<std::string> maybeString(llvm::StringRef key);
  std::optional<bool> maybeBool(llvm::StringRef key);
  bool boolean(llvm::StringRef key, bool fallback);
  /// Arrays of one type; an empty array counts as absent.
  std::optional<std::vector<int64_t>> maybeIntegers(llvm::StringRef key,
                                                    IntRange range);
  std::optional<std::vector<double>> maybeNumbers(llvm::StringRef key,
                                                  double above = -HUGE_VAL);
  std::optional<std::vector<std::string>> maybeStrings(llvm::StringRef key);

  /// The object under `key`, or else the class's default; none if null.
  std::optional<ConfigReader> maybeObject(llvm::StringRef key);
  /// The object under `key` with a default for each of its keys: those of the
  /// object of that name in the class's defaults. An absent one reads as empty.
  ConfigReader subObject(llvm::StringRef key);

  /// Records that `field` was not given and what is used instead.
  void tookDefault(llvm::StringRef field, const llvm::json::Value &value,
                   const llvm::Twine &reason);

  /// A fault at `key`, spelt as this file spells it.
  void fail(llvm::StringRef key, const llvm::Twine &what);
  /// A fault at `key`: the value found there (or that it is missing), and what
  /// was expected.
  void failExpected(llvm::StringRef key, const llvm::Twine &expected);
  bool failed() const { return !log->fault.empty(); }

  const llvm::json::Object &raw() const { return *object; }
  bool nested() const { return !path.empty(); }
  std::string fieldName(llvm::StringRef key) const;
  ImportLog &importLog() { return *log; }

private:
  const llvm::json::Value *findOrDefault(llvm::StringRef key);
  std::optional<ConfigReader> asObject(llvm::StringRef key,
                                       const llvm::json::Value *value);
  const llvm::json::Value *required(llvm::StringRef key,
                                    const llvm::Twine &expected);
  template <typename T, typename Convert>
  std::optional<std::vector<T>>
  maybeArray(llvm::StringRef key, const llvm::Twine &expected, Convert convert);

  const llvm::json::Object *object;
  std::string path;
  const llvm::json::Object *classDefaults;
  std::string className;
  ImportLog *log;
};

/// Of `known`, the spelling closest to `word`; empty if none is close.
llvm::StringRef nearestSpelling(llvm::StringRef word,
                                llvm::ArrayRef<llvm::StringRef> known);

} // namespace pagoda

#endif // PAGODA_COMPILER_IMPORT_CONFIGREADER_H
