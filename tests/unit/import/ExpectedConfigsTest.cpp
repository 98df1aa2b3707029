//===- ExpectedConfigsTest.cpp - The shipped configs, field by field ------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every file of tools/configs against expected.json, which was derived by hand:
// each field there must be in the importer's JSON with the same value, and what
// it leaves out (soft cap, chunk, ALiBi, sinks, latent rows) must be absent
// here, too.
//
//===----------------------------------------------------------------------===//

#include "TestConfigs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace llvm;
using namespace pagoda;

namespace {

json::Object readExpected() {
  auto buffer =
      cantFail(errorOrToExpected(MemoryBuffer::getFile(PAGODA_EXPECTED_JSON)));
  return *cantFail(json::parse(buffer->getBuffer())).getAsObject();
}

std::string text(const json::Value &value) {
  std::string out;
  raw_string_ostream(out) << value;
  return out;
}

/// Numbers in expected.json are rounded to eight digits.
bool same(const json::Value &expected, const json::Value &actual) {
  if (expected.kind() == json::Value::Number &&
      actual.kind() == json::Value::Number) {
    double e = *expected.getAsNumber(), a = *actual.getAsNumber();
    return std::abs(e - a) <= 1e-7 * std::abs(e);
  }
  return expected == actual;
}

class ShippedConfig : public testing::TestWithParam<std::string> {};

std::vector<std::string> configNames() {
  std::vector<std::string> names;
  for (const auto &entry : readExpected())
    names.push_back(StringRef(entry.first).str());
  sort(names);
  return names;
}

TEST_P(ShippedConfig, IsAsExpected) {
  json::Object all = readExpected();
  const json::Object &expected = *all.getObject(GetParam());
  Expected<ModelConfig> model = loadModelConfig(
      std::string(PAGODA_CONFIG_DIR "/") + GetParam() + ".json");
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  json::Value value = model->toJson();
  const json::Object &actual = *value.getAsObject();
  for (const auto &entry : expected) {
    StringRef key = entry.first;
    if (key == "notes") // remarks for a person
      continue;
    const json::Value *found = actual.get(key);
    ASSERT_TRUE(found) << key.str();
    EXPECT_TRUE(same(entry.second, *found))
        << key.str() << ": expected " << text(entry.second) << ", actual "
        << text(*found);
  }
  const json::Value absent[] = {nullptr, false};
  for (StringRef key :
       {"softcap", "chunk", "alibi", "attention_sink", "mla_cache_row"}) {
    if (expected.get(key))
      continue;
    const json::Value *found = actual.get(key);
    EXPECT_TRUE(!found || is_contained(absent, *found))
        << key.str() << ": expected nothing, actual " << text(*found);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedConfig, testing::ValuesIn(configNames()),
                         [](const auto &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             if (!isalnum(static_cast<unsigned char>(c)))
                               c = '_';
                           return name;
                         });

TEST(ShippedConfigs, EachFileHasItsExpectation) {
  std::set<std::string> files, expected;
  std::error_code error;
  for (sys::fs::directory_iterator it(PAGODA_CONFIG_DIR, error), end;
       it != end && !error; it.increment(error))
    files.insert(sys::path::stem(it->path()).str());
  ASSERT_FALSE(error) << error.message();
  for (const std::string &name : configNames())
    expected.insert(name);
  EXPECT_EQ(files, expected);
  EXPECT_EQ(files.size(), 58u);
}

} // namespace
