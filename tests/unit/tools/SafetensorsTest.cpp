//===- SafetensorsTest.cpp - Files good, bad and hostile ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Round trips, conversions, each refusal by its message, and every truncation
// and single-byte change of a small file: an answer or an error, never a crash.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Safetensors.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cstring>
#include <limits>

using namespace llvm;
using namespace pagoda;

namespace {

/// A file with `header` and `data`; the length field may lie.
std::string fileOf(StringRef header, StringRef data = "",
                   std::optional<uint64_t> length = std::nullopt) {
  char bytes[8];
  support::endian::write64le(bytes, length.value_or(header.size()));
  return (StringRef(bytes, 8) + header + data).str();
}

Expected<SafetensorsFile> parse(StringRef bytes) {
  return SafetensorsFile::parse(MemoryBuffer::getMemBufferCopy(bytes, "f"));
}

std::string errorOf(StringRef bytes) {
  Expected<SafetensorsFile> file = parse(bytes);
  return file ? "no error" : toString(file.takeError());
}

template <typename T> StringRef bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

TEST(Safetensors, RoundTrip) {
  SmallString<128> path;
  ASSERT_FALSE(sys::fs::createTemporaryFile("pagoda", "safetensors", path));
  std::vector<float> q = {
      1, -2, 3.5f, std::numeric_limits<float>::infinity(), 0, 1e-40f};
  std::vector<int32_t> lens = {0, 3, -7};
  std::vector<int64_t> wide = {int64_t(1) << 40};
  ASSERT_FALSE(
      errorToBool(writeSafetensors(path, {{"q", {"F32", {3, 2, 1}, bytesOf(q)}},
                                          {"lens", {"I32", {3}, bytesOf(lens)}},
                                          {"wide", {"I64", {1}, bytesOf(wide)}},
                                          {"empty", {"F32", {0, 4}, ""}}})));
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(bool(file)) << toString(file.takeError());
  EXPECT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(cantFail(file->floats("q", 3)), q);
  EXPECT_EQ(cantFail(file->integers("lens", 1)),
            (std::vector<int64_t>{0, 3, -7}));
  EXPECT_EQ(cantFail(file->integers("wide", 1)), wide);
  EXPECT_TRUE(cantFail(file->floats("empty", 2)).empty());
  EXPECT_EQ(cantFail(file->get("q", 3))->text(), "F32 [3, 2, 1]");
  sys::fs::remove(path);
}

TEST(Safetensors, ConvertsHalves) {
  std::string header =
      R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},)"
      R"("d":{"dtype":"F64","shape":[1],"data_offsets":[6,14]},)"
      R"("__metadata__":{"format":"pt"}})";
  std::vector<uint16_t> halves = {0x3c00, 0xc200, 0x4049};
  double pi = 3.25;
  std::string data = bytesOf(halves).str();
  data.append(reinterpret_cast<char *>(&pi), 8);
  Expected<SafetensorsFile> file = parse(fileOf(header, data));
  ASSERT_TRUE(bool(file)) << toString(file.takeError());
  EXPECT_EQ(cantFail(file->floats("h", 1)), (std::vector<float>{1, -3}));
  EXPECT_EQ(cantFail(file->floats("b", 1)), (std::vector<float>{3.140625f}));
  EXPECT_EQ(cantFail(file->floats("d", 1)), (std::vector<float>{3.25f}));
}

TEST(Safetensors, NamesWhatIsMissingOrWrong) {
  std::string header = R"({"q":{"dtype":"I32","shape":[1],)"
                       R"("data_offsets":[0,4]}})";
  Expected<SafetensorsFile> file = parse(fileOf(header, "abcd"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ(toString(file->get("k", 1).takeError()),
            "f: no tensor 'k' (there is: q)");
  EXPECT_EQ(toString(file->get("q", 3).takeError()),
            "f: tensor 'q' is I32 [1], expected 3 dimensions");
  EXPECT_EQ(toString(file->floats("q", 1).takeError()),
            "f: tensor 'q' has dtype I32, expected F32, F16, BF16 or F64");
  std::string floatHeader = R"({"q":{"dtype":"F32","shape":[1],)"
                            R"("data_offsets":[0,4]}})";
  Expected<SafetensorsFile> floats = parse(fileOf(floatHeader, "abcd"));
  ASSERT_TRUE(bool(floats));
  EXPECT_EQ(toString(floats->integers("q", 1).takeError()),
            "f: tensor 'q' has dtype F32, expected I32 or I64");
}

TEST(Safetensors, Refusals) {
  auto entry = [](StringRef fields) {
    return fileOf(("{\"q\":" + fields + "}").str(), "abcdefgh");
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "f: has 0 bytes"},
      {"1234567", "f: has 7 bytes"},
      {fileOf("{}", "", 3), "f: header length 3 exceeds the 2 bytes"},
      {fileOf("{}", "", ~uint64_t(0)), "f: header length 18446744073709551615"},
      {fileOf("[]"), "f: header does not start with '{'"},
      {fileOf(""), "f: header does not start with '{'"},
      {fileOf("{\"q\":}"), "f: header: "},
      {fileOf("{\"\xff\":1}"), "f: header: "},
      {fileOf("{\"q\":" + std::string(100000, '[')), "f: header is nested"},
      {entry("1"), "f: tensor 'q': is 1, expected an object"},
      {entry("{}"), "f: tensor 'q': 'dtype' is missing"},
      {entry(R"({"dtype":"F31"})"), "f: tensor 'q': unknown dtype 'F31'"},
      {entry(R"({"dtype":"F32","shape":2})"), "f: tensor 'q': 'shape' is"},
      {entry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,8]})"),
       "f: tensor 'q': 'shape' holds -1"},
      {entry(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,8]})"),
       "f: tensor 'q': 'shape' holds 1.5"},
      {entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"),
       "f: tensor 'q': 'data_offsets' has 1 numbers"},
      {entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
       "f: tensor 'q': data_offsets [8, 0]"},
      {entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"),
       "f: tensor 'q': data_offsets [0, 12]"},
      {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
       "f: tensor 'q': data_offsets span 8 bytes, F32 [1] takes 4"},
      // 2^62 * 4 bytes wraps to 0 in 64 bits.
      {entry(R"({"dtype":"F32","shape":[4611686018427387904],)"
             R"("data_offsets":[0,0]})"),
       "f: tensor 'q': data_offsets span 0 bytes"},
      {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
       "f: 4 bytes at the end belong to no tensor"},
      {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
       "f: tensors overlap or leave a gap at data byte 0"},
      {fileOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
              R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
              "abc"),
       "f: tensors overlap or leave a gap at data byte 2"},
  };
  for (const auto &[bytes, message] : cases)
    EXPECT_TRUE(StringRef(errorOf(bytes)).starts_with(message))
        << errorOf(bytes) << "\n  expected: " << message;
  EXPECT_EQ(errorOf(fileOf("{}")), "no error");
  Expected<SafetensorsFile> absent = SafetensorsFile::open("no/such/file");
  EXPECT_EQ(toString(absent.takeError()),
            "no/such/file: No such file or directory");
}

TEST(Safetensors, EveryTruncationAndByteChange) {
  std::string good =
      fileOf(R"({"q":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
             R"("n":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})",
             "abcdefghijklmnop");
  ASSERT_EQ(errorOf(good), "no error");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(errorOf(StringRef(good).take_front(size)), "no error") << size;
  for (size_t i = 0; i < good.size(); ++i)
    for (int change : {1, 0x20, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ change);
      Expected<SafetensorsFile> file = parse(bad);
      if (!file) {
        consumeError(file.takeError());
        continue;
      }
      for (const auto &[name, tensor] : file->tensors()) {
        // Touch all that was handed out.
        volatile char sum = 0;
        for (char c : tensor.data)
          sum = char(sum + c);
      }
    }
}

} // namespace
