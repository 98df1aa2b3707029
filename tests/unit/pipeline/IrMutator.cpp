//===- IrMutator.cpp - Damaged IR from a seed -----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading of seeds, and the mutations.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/pipeline/IrMutator.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <random>

using namespace llvm;
using namespace pagoda;

namespace {

using Random = std::mt19937_64;

size_t below(Random &random, size_t limit) { return random() % limit; }

/// Words (with their sigil), white space and single signs.
std::vector<std::string> tokens(StringRef text) {
  std::vector<std::string> result;
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  while (!text.empty()) {
    size_t n = 1;
    bool sigil = StringRef("%@#!^").contains(text[0]);
    if (isWord(text[0]) || (sigil && n < text.size() && isWord(text[1])))
      while (n < text.size() && (isWord(text[n]) || text[n] == '.'))
        ++n;
    else if (isSpace(text[0]))
      while (n < text.size() && isSpace(text[n]))
        ++n;
    result.push_back(text.take_front(n).str());
    text = text.drop_front(n);
  }
  return result;
}

std::vector<std::string> lines(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, '\n');
  return std::vector<std::string>(parts.begin(), parts.end());
}

std::string join(const std::vector<std::string> &parts, StringRef separator) {
  return llvm::join(parts.begin(), parts.end(), separator);
}

/// What two words must share to stand for each other: the sigil, or being a
/// number.
char kindOf(StringRef token) {
  if (isDigit(token[0]))
    return '0';
  return isAlpha(token[0]) ? 'a' : token[0];
}

/// A random token of the kind `kind`, empty if there is none.
std::string pick(const std::vector<std::string> &from, char kind,
                 Random &random) {
  std::vector<const std::string *> found;
  for (const std::string &token : from)
    if (kindOf(token) == kind)
      found.push_back(&token);
  return found.empty() ? "" : *found[below(random, found.size())];
}

/// Numbers that have caught somebody out.
const char *const numbers[] = {
    "0",     "1",     "2",          "3",          "5",
    "7",     "16",    "17",         "64",         "100",
    "255",   "256",   "4096",       "65536",      "65537",
    "-1",    "1.0",   "2147483647", "4294967296", "9223372036854775807",
    "1.0e9", "-0.0",  "0x7FC00000", "0xFF800000", "99999999999999999999",
    "true",  "false", "?"};
const char *const types[] = {
    "f32", "f16",  "bf16",          "f64",         "i1",       "i8",     "i32",
    "i64", "i128", "index",         "none",        "f8E4M3FN", "f8E5M2", "tf32",
    "i0",  "()",   "vector<4xf32>", "!pagoda.args"};

void mutateToken(std::string &text, const std::string &other, Random &random) {
  std::vector<std::string> parts = tokens(text);
  if (parts.empty())
    return;
  size_t choice = below(random, 8);
  char wanted = choice < 3 ? '0' : 0;
  std::vector<size_t> places;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!isSpace(parts[i][0]) && (!wanted || kindOf(parts[i]) == wanted))
      places.push_back(i);
  if (places.empty())
    return;
  std::string &token = parts[places[below(random, places.size())]];
  switch (choice) {
  case 0:
  case 1: {
    // Also the numbers inside 4x64x128xf32.
    size_t at = 0, length = token.find_first_not_of("0123456789");
    if (length != std::string::npos && below(random, 2))
      for (size_t i = below(random, token.size()); i < token.size(); ++i)
        if (token[i] == 'x' && i + 1 < token.size() && isDigit(token[i + 1])) {
          at = i + 1;
          length = token.find_first_not_of("0123456789", at);
          break;
        }
    size_t end = length == std::string::npos ? token.size() : length;
    token.replace(at, end - at, numbers[below(random, std::size(numbers))]);
    break;
  }
  case 2:
  case 3:
  case 4: { // another word of its kind, of this module or of another
    std::string word =
        pick(below(random, 2) ? parts : tokens(other), kindOf(token), random);
    if (!word.empty())
      token = word;
    break;
  }
  case 5:
    token = types[below(random, std::size(types))];
    break;
  case 6:
    token.clear();
    break;
  default:
    token += " " + token;
    break;
  }
  text = join(parts, "");
}

void mutateLine(std::string &text, const std::string &other, Random &random) {
  std::vector<std::string> parts = lines(text), others = lines(other);
  size_t at = below(random, parts.size());
  switch (below(random, 5)) {
  case 0:
    parts.erase(parts.begin() + at);
    break;
  case 1:
    parts.insert(parts.begin() + below(random, parts.size()), parts[at]);
    break;
  case 2:
    std::swap(parts[at], parts[below(random, parts.size())]);
    break;
  case 3:
    parts.insert(parts.begin() + at, others[below(random, others.size())]);
    break;
  default:
    parts[at] = others[below(random, others.size())];
    break;
  }
  text = join(parts, "\n");
}

void mutateBytes(std::string &text, Random &random) {
  size_t at = below(random, text.size() + 1);
  switch (below(random, 3)) {
  case 0:
    text.erase(at, 1 + below(random, 8));
    break;
  case 1:
    if (at < text.size())
      text[at] ^= 1 << below(random, 8);
    break;
  default:
    text.resize(at);
    break;
  }
}

/// Adds the modules of a file of tests to `all`, and those that are expected to
/// have no error to `valid`.
void split(StringRef file, std::vector<std::string> &all,
           std::vector<std::string> &valid) {
  std::string module;
  bool hasError = false;
  auto end = [&] {
    if (!StringRef(module).trim().empty()) {
      all.push_back(module);
      if (!hasError)
        valid.push_back(module);
    }
    module.clear();
    hasError = false;
  };
  for (const std::string &line : lines(file)) {
    if (StringRef(line).starts_with("// -----")) {
      end();
      continue;
    }
    hasError |= StringRef(line).contains("expected-error");
    StringRef code = StringRef(line).split("//").first.rtrim();
    if (!code.empty())
      module += code.str() + "\n";
  }
  end();
}

} // namespace

IrMutator::IrMutator(StringRef folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (sys::fs::recursive_directory_iterator it(folder, error), end;
       it != end && !error; it.increment(error))
    if (StringRef(it->path()).ends_with(".mlir"))
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto buffer = MemoryBuffer::getFile(path))
      split((*buffer)->getBuffer(), all, valid);
}

std::string IrMutator::input(uint64_t number) const {
  Random random(number);
  std::string text = valid[below(random, valid.size())];
  const std::string &other = all[below(random, all.size())];
  if (below(random, 8) == 0)
    return text;
  for (size_t n = 1 + below(random, 3); n > 0; --n)
    switch (below(random, 12)) {
    case 0:
      mutateBytes(text, random);
      break;
    case 1:
    case 2:
    case 3:
      mutateLine(text, other, random);
      break;
    default:
      mutateToken(text, other, random);
      break;
    }
  return text;
}
