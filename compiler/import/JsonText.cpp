//===- JsonText.cpp - Strict reading of a config.json's text --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recursive-descent parser with a depth limit. It stops at the first fault.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/JsonText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cmath>
#include <limits>

using namespace llvm;

namespace pagoda {
namespace {

class TextParser {
public:
  explicit TextParser(StringRef text) : text(text) {}

  std::optional<json::Value> parse() {
    if (text.starts_with("\xEF\xBB\xBF"))
      return fail("a byte order mark, expected '{'");
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
      return fail("UTF-16 text, expected UTF-8");
    size_t badByte = 0;
    if (!json::isUTF8(text, &badByte)) {
      at = badByte;
      return fail("a byte that is not UTF-8");
    }
    skipSpace();
    if (at == text.size())
      return fail("no value, expected '{'");
    std::optional<json::Value> value = parseValue(0);
    if (!value)
      return std::nullopt;
    skipSpace();
    if (at != text.size())
      return fail("text after the end of the value");
    return value;
  }

  std::string message() const {
    StringRef before = text.take_front(at);
    size_t line = before.count('\n') + 1;
    size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    return ("line " + Twine(line) + ", column " + Twine(column) + ": " + fault)
        .str();
  }

private:
  std::nullopt_t fail(const Twine &what) {
    if (fault.empty())
      fault = what.str();
    return std::nullopt;
  }

  std::nullopt_t unexpected(StringRef expected) {
    if (at == text.size())
      return fail("the file ends here, expected " + expected);
    unsigned char c = text[at];
    std::string shown = c < 0x20 || c >= 0x7f
                            ? "byte 0x" + utohexstr(c, false, 2)
                            : "'" + std::string(1, c) + "'";
    return fail(shown + ", expected " + expected);
  }

  void skipSpace() {
    while (at < text.size() && StringRef(" \t\r\n").contains(text[at]))
      ++at;
  }

  bool consume(StringRef token) {
    if (!text.substr(at).starts_with(token))
      return false;
    at += token.size();
    return true;
  }

  std::optional<json::Value> parseValue(int depth) {
    if (at == text.size())
      return unexpected("a value");
    switch (text[at]) {
    case '{':
      return parseObject(depth + 1);
    case '[':
      return parseArray(depth + 1);
    case '"': {
      std::optional<std::string> string = parseString();
      if (!string)
        return std::nullopt;
      return json::Value(std::move(*string));
    }
    default:
      return parseScalar();
    }
  }

  std::optional<json::Value> parseScalar() {
    if (consume("null"))
      return json::Value(nullptr);
    if (consume("true"))
      return json::Value(true);
    if (consume("false"))
      return json::Value(false);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (consume("NaN"))
      return json::Value(std::numeric_limits<double>::quiet_NaN());
    if (consume("Infinity"))
      return json::Value(infinity);
    if (consume("-Infinity"))
      return json::Value(-infinity);
    return parseNumber();
  }

  std::optional<json::Value> parseNumber() {
    size_t end = at;
    auto digits = [&] {
      size_t from = end;
      while (end < text.size() && isDigit(text[end]))
        ++end;
      return end != from;
    };
    bool whole = true;
    if (end < text.size() && text[end] == '-')
      ++end;
    size_t firstDigit = end;
    if (!digits())
      return unexpected("a value");
    if (end - firstDigit > 1 && text[firstDigit] == '0')
      return fail("a number with a leading zero");
    if (end < text.size() && text[end] == '.') {
      ++end, whole = false;
      if (!digits())
        return fail("a number without digits after its point");
    }
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      ++end, whole = false;
      if (end < text.size() && (text[end] == '+' || text[end] == '-'))
        ++end;
      if (!digits())
        return fail("a number without digits in its exponent");
    }
    StringRef number = text.slice(at, end);
    int64_t integer;
    if (whole && !number.getAsInteger(10, integer)) {
      at = end;
      return json::Value(integer);
    }
    double real;
    if (number.getAsDouble(real) || !std::isfinite(real))
      return fail("a number that is too large");
    at = end;
    return json::Value(real);
  }

  std::optional<unsigned> parseHex4() {
    unsigned code;
    StringRef hex = text.substr(at, 4);
    if (hex.size() != 4 || !all_of(hex, isHexDigit) ||
        hex.getAsInteger(16, code))
      return fail("an escape \\u without four hexadecimal digits");
    at += 4;
    return code;
  }

  bool parseUnicodeEscape(std::string &out) {
    std::optional<unsigned> code = parseHex4();
    if (!code)
      return false;
    unsigned point = *code;
    if (point >= 0xD800 && point < 0xDC00 && consume("\\u")) {
      std::optional<unsigned> low = parseHex4();
      if (!low)
        return false;
      if (*low >= 0xDC00 && *low < 0xE000)
        point = 0x10000 + ((point - 0xD800) << 10) + (*low - 0xDC00);
    }
    if (point >= 0xD800 && point < 0xE000)
      point = 0xFFFD; // half of a pair: no character
    char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
    char *end = bytes;
    ConvertCodePointToUTF8(point, end);
    out.append(bytes, end);
    return true;
  }

  std::optional<std::string> parseString() {
    ++at; // the quote
    std::string out;
    while (at < text.size()) {
      char c = text[at];
      if (c == '"') {
        ++at;
        return out;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return fail("a control character in a string");
      ++at;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      if (at == text.size())
        break;
      char escape = text[at++];
      size_t known = StringRef("\"\\/bfnrt").find(escape);
      if (known != StringRef::npos)
        out.push_back("\"\\/\b\f\n\r\t"[known]);
      else if (escape != 'u')
        return --at, fail("an unknown escape in a string");
      else if (!parseUnicodeEscape(out))
        return std::nullopt;
    }
    return unexpected("'\"'");
  }

  bool tooDeep(int depth) {
    if (depth <= maxJsonDepth)
      return false;
    fail("nested more than " + Twine(maxJsonDepth) + " deep");
    return true;
  }

  std::optional<json::Value> parseArray(int depth) {
    if (tooDeep(depth))
      return std::nullopt;
    ++at; // the bracket
    json::Array array;
    skipSpace();
    if (consume("]"))
      return json::Value(std::move(array));
    while (true) {
      skipSpace();
      std::optional<json::Value> element = parseValue(depth);
      if (!element)
        return std::nullopt;
      array.push_back(std::move(*element));
      skipSpace();
      if (consume("]"))
        return json::Value(std::move(array));
      if (!consume(","))
        return unexpected("',' or ']'");
    }
  }

  std::optional<json::Value> parseObject(int depth) {
    if (tooDeep(depth))
      return std::nullopt;
    ++at; // the brace
    json::Object object;
    skipSpace();
    if (consume("}"))
      return json::Value(std::move(object));
    while (true) {
      skipSpace();
      if (at == text.size() || text[at] != '"')
        return unexpected("'\"'");
      size_t keyStart = at;
      std::optional<std::string> key = parseString();
      if (!key)
        return std::nullopt;
      if (object.find(*key) != object.end()) {
        at = keyStart;
        return fail("a second " + quoteJson(*key) + " in one object");
      }
      skipSpace();
      if (!consume(":"))
        return unexpected("':'");
      skipSpace();
      std::optional<json::Value> value = parseValue(depth);
      if (!value)
        return std::nullopt;
      object.try_emplace(std::move(*key), std::move(*value));
      skipSpace();
      if (consume("}"))
        return json::Value(std::move(object));
      if (!consume(","))
        return unexpected("',' or '}'");
    }
  }

  StringRef text;
  size_t at = 0;
  std::string fault;
};

} // namespace

Expected<json::Value> parseJsonText(StringRef text, StringRef fileName) {
  TextParser parser(text);
  if (std::optional<json::Value> value = parser.parse())
    return std::move(*value);
  return createStringError(fileName + ": " + parser.message());
}

std::string quoteJson(const json::Value &value) {
  std::string text;
  if (value.kind() == json::Value::Number && !value.getAsInteger()) {
    double real = *value.getAsNumber();
    if (!std::isfinite(real))
      return std::isnan(real) ? "NaN" : real > 0 ? "Infinity" : "-Infinity";
    char shortest[32]; // LLVM prints 17 digits: 0.10000000000000001
    return std::string(shortest,
                       std::to_chars(shortest, std::end(shortest), real).ptr);
  }
  raw_string_ostream(text) << value;
  if (text.size() > 60) {
    size_t cut = 57;
    while (cut > 0 && (text[cut] & 0xC0) == 0x80)
      --cut; // not inside a UTF-8 sequence
    text = text.substr(0, cut) + "...";
  }
  return text;
}

std::string describeJson(const json::Value &value) {
  std::string text = quoteJson(value);
  switch (value.kind()) {
  case json::Value::Null:
  case json::Value::Number:
    return text;
  case json::Value::Boolean:
    return text + " (a boolean)";
  case json::Value::String:
    return text + " (a string)";
  case json::Value::Array:
    return text + " (an array)";
  case json::Value::Object:
    return text + " (an object)";
  }
  llvm_unreachable("all kinds of JSON values are above");
}

} // namespace pagoda
