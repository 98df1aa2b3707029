//===- JsonTextTest.cpp - Text that nobody vouches for --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the JSON reader takes, what it refuses and where it points.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/JsonText.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace pagoda;

namespace {

std::string fault(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseJsonText(text, "f");
  if (!value)
    return llvm::toString(value.takeError());
  ADD_FAILURE() << "no fault in " << text.str();
  return "";
}

llvm::json::Value value(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseJsonText(text, "f");
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return nullptr;
}

TEST(JsonText, AgreesWithLLVM) {
  for (const char *text :
       {"null", "true", " false ", "0", "-0", "17", "-9223372036854775808",
        "9223372036854775807", "1.5", "-1e3", "2E-2", "0.0", "\"\"", "[]", "{}",
        "[1, [2], {\"a\": []}]", R"({"a":1,"b":{"c":[true,null]}})",
        R"("\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00")", "\"\xc3\xa9\""}) {
    llvm::Expected<llvm::json::Value> theirs = llvm::json::parse(text);
    ASSERT_TRUE(bool(theirs)) << text;
    EXPECT_EQ(value(text), *theirs) << text;
  }
}

TEST(JsonText, TakesWhatPythonWrites) {
  EXPECT_TRUE(std::isnan(value("NaN").getAsNumber().value_or(0)));
  EXPECT_EQ(value("Infinity").getAsNumber(), HUGE_VAL);
  EXPECT_EQ(value("-Infinity").getAsNumber(), -HUGE_VAL);
  // Half of a surrogate pair is no character.
  EXPECT_EQ(value(R"("\ud83d")").getAsString(), "\xEF\xBF\xBD");
}

TEST(JsonText, Faults) {
  EXPECT_EQ(fault(""), "f: line 1, column 1: no value, expected '{'");
  EXPECT_EQ(fault(" \n "), "f: line 2, column 2: no value, expected '{'");
  EXPECT_EQ(fault("\xEF\xBB\xBF{}"),
            "f: line 1, column 1: a byte order mark, expected '{'");
  EXPECT_EQ(fault(llvm::StringRef("\xFF\xFE{\0}\0", 6)),
            "f: line 1, column 1: UTF-16 text, expected UTF-8");
  EXPECT_EQ(fault("{\"a\": \"\xff\"}"),
            "f: line 1, column 8: a byte that is not UTF-8");
  EXPECT_EQ(fault("{\"a\":1,\n \"b\" 2}"),
            "f: line 2, column 6: '2', expected ':'");
  EXPECT_EQ(fault("{\"a\":1,}"), "f: line 1, column 8: '}', expected '\"'");
  EXPECT_EQ(fault("[1 2]"), "f: line 1, column 4: '2', expected ',' or ']'");
  EXPECT_EQ(fault("[1"),
            "f: line 1, column 3: the file ends here, expected ',' or ']'");
  EXPECT_EQ(fault("{\"a\":1"),
            "f: line 1, column 7: the file ends here, expected ',' or '}'");
  EXPECT_EQ(fault("{a:1}"), "f: line 1, column 2: 'a', expected '\"'");
  EXPECT_EQ(fault("{} {}"),
            "f: line 1, column 4: text after the end of the value");
  EXPECT_EQ(fault("01"), "f: line 1, column 1: a number with a leading zero");
  EXPECT_EQ(fault("1."),
            "f: line 1, column 1: a number without digits after its point");
  EXPECT_EQ(fault("1e"),
            "f: line 1, column 1: a number without digits in its exponent");
  EXPECT_EQ(fault("1e999"), "f: line 1, column 1: a number that is too large");
  EXPECT_EQ(fault("-"), "f: line 1, column 1: '-', expected a value");
  EXPECT_EQ(fault("nul"), "f: line 1, column 1: 'n', expected a value");
  EXPECT_EQ(fault("\"a\nb\""),
            "f: line 1, column 3: a control character in a string");
  EXPECT_EQ(fault("\"\\x\""),
            "f: line 1, column 3: an unknown escape in a string");
  EXPECT_EQ(fault("\"\\u12g4\""), "f: line 1, column 4: an escape \\u without "
                                  "four hexadecimal digits");
  EXPECT_EQ(fault("\"abc"),
            "f: line 1, column 5: the file ends here, expected '\"'");
  EXPECT_EQ(fault(llvm::StringRef("[\0]", 3)),
            "f: line 1, column 2: byte 0x00, expected a value");
}

TEST(JsonText, RefusesEqualKeys) {
  EXPECT_EQ(fault("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 1}}"),
            "f: line 2, column 16: a second \"c\" in one object");
  EXPECT_EQ(fault(R"({"a":1,"\u0061":2})"),
            "f: line 1, column 8: a second \"a\" in one object");
  value(R"([{"a":1},{"a":1}])");
}

TEST(JsonText, BoundsNesting) {
  auto nested = [](int depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  value(nested(maxJsonDepth));
  EXPECT_EQ(fault(nested(maxJsonDepth + 1)),
            "f: line 1, column 65: nested more than 64 deep");
  for (int depth : {10000, 1000000}) {
    EXPECT_EQ(fault(nested(depth)),
              "f: line 1, column 65: nested more than 64 deep");
    std::string objects;
    for (int i = 0; i < depth; ++i)
      objects += "{\"a\":";
    EXPECT_NE(fault(objects).find("nested more than 64 deep"),
              std::string::npos);
  }
}

TEST(JsonText, Descriptions) {
  EXPECT_EQ(describeJson(nullptr), "null");
  EXPECT_EQ(describeJson(7), "7");
  EXPECT_EQ(describeJson(0.1), "0.1");
  EXPECT_EQ(describeJson("x"), "\"x\" (a string)");
  EXPECT_EQ(describeJson(true), "true (a boolean)");
  EXPECT_EQ(describeJson(llvm::json::Array{1, 2}), "[1,2] (an array)");
  EXPECT_EQ(describeJson(llvm::json::Object{}), "{} (an object)");
  EXPECT_EQ(describeJson(HUGE_VAL), "Infinity");
  EXPECT_EQ(describeJson(std::nan("")), "NaN");
  // Long ones are cut, between characters.
  std::string longText;
  for (int i = 0; i < 50; ++i)
    longText += "\xc3\xa9";
  std::string shown = describeJson(longText);
  EXPECT_LT(shown.size(), 80u);
  EXPECT_TRUE(llvm::json::isUTF8(shown));
}

} // namespace
