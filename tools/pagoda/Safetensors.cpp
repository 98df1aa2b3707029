//===- Safetensors.cpp - Reads and writes .safetensors files --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsing, checking, conversion to f32 and int64, writing.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Safetensors.h"

#include "tests/reference/Element.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <optional>

using namespace llvm;

namespace pagoda {

namespace {

/// The format's own cap on the header.
constexpr uint64_t MaxHeaderBytes = 100'000'000;

std::optional<int64_t> dtypeBytes(StringRef dtype) {
  int64_t bytes = StringSwitch<int64_t>(dtype)
                      .Cases({"F64", "I64", "U64"}, 8)
                      .Cases({"F32", "I32", "U32"}, 4)
                      .Cases({"F16", "BF16", "I16", "U16"}, 2)
                      .Cases({"I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"}, 1)
                      .Default(0);
  return bytes ? std::optional(bytes) : std::nullopt;
}

/// Nesting depth of JSON text. LLVM's parser recurses, so a hostile header
/// could otherwise exhaust the stack.
size_t jsonDepth(StringRef text) {
  size_t depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth) {
      --depth;
    }
  }
  return deepest;
}

llvm::Error fail(const Twine &where, const Twine &what) {
  return createStringError(where + ": " + what);
}

std::string quoted(const json::Value &value) {
  std::string text = formatv("{0}", value).str();
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}

/// The list `field` of non-negative integers of one header entry.
Expected<std::vector<int64_t>>
integerList(const json::Object &entry, StringRef field, const Twine &where) {
  const json::Array *array = entry.getArray(field);
  if (!array)
    return fail(where, "'" + field + "' is missing or not an array");
  std::vector<int64_t> result;
  for (const json::Value &value : *array) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 0)
      return fail(where, "'" + field + "' holds " + quoted(value) +
                             ", expected integers from 0");
    result.push_back(*number);
  }
  return result;
}

/// Checks one header entry against the `data` part of the file.
Expected<Tensor> parseTensor(const json::Value &value, StringRef data,
                             const Twine &where) {
  const json::Object *entry = value.getAsObject();
  if (!entry)
    return fail(where, "is " + quoted(value) + ", expected an object");
  Tensor tensor;
  std::optional<StringRef> dtype = entry->getString("dtype");
  if (!dtype)
    return fail(where, "'dtype' is missing or not a string");
  std::optional<int64_t> bytes = dtypeBytes(*dtype);
  if (!bytes)
    return fail(where, "unknown dtype '" + *dtype + "'");
  tensor.dtype = dtype->str();

  Expected<std::vector<int64_t>> shape = integerList(*entry, "shape", where);
  if (!shape)
    return shape.takeError();
  tensor.shape = *shape;
  uint64_t size = *bytes;
  bool overflow = false;
  for (int64_t extent : tensor.shape) {
    bool step = false;
    size = SaturatingMultiply<uint64_t>(size, extent, &step);
    overflow |= step;
  }

  Expected<std::vector<int64_t>> offsets =
      integerList(*entry, "data_offsets", where);
  if (!offsets)
    return offsets.takeError();
  if (offsets->size() != 2)
    return fail(where, "'data_offsets' has " + Twine(offsets->size()) +
                           " numbers, expected 2");
  uint64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end || end > data.size())
    return fail(where, "data_offsets [" + Twine(begin) + ", " + Twine(end) +
                           "] are not a range within the " +
                           Twine(data.size()) + " bytes of data");
  if (overflow || end - begin != size)
    return fail(where, "data_offsets span " + Twine(end - begin) + " bytes, " +
                           tensor.text() +
                           (overflow ? std::string(" overflows")
                                     : " takes " + std::to_string(size)));
  tensor.data = data.slice(begin, end);
  return tensor;
}

} // namespace

int64_t Tensor::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

std::string Tensor::text() const {
  std::string result;
  raw_string_ostream os(result);
  os << dtype << " [";
  interleaveComma(shape, os);
  os << ']';
  return result;
}

Expected<SafetensorsFile> SafetensorsFile::open(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(path, buffer.getError().message());
  return parse(std::move(*buffer));
}

Expected<SafetensorsFile>
SafetensorsFile::parse(std::unique_ptr<MemoryBuffer> buffer) {
  SafetensorsFile file;
  file.fileName = buffer->getBufferIdentifier().str();
  StringRef bytes = buffer->getBuffer();
  if (bytes.size() < 8)
    return fail(file.fileName, "has " + Twine(bytes.size()) +
                                   " bytes, expected a header length of 8");
  uint64_t headerSize = support::endian::read64le(bytes.data());
  if (headerSize > bytes.size() - 8 || headerSize > MaxHeaderBytes)
    return fail(file.fileName, "header length " + Twine(headerSize) +
                                   " exceeds the " + Twine(bytes.size() - 8) +
                                   " bytes that follow or the format's " +
                                   Twine(MaxHeaderBytes));
  StringRef header = bytes.substr(8, headerSize);
  StringRef data = bytes.substr(8 + headerSize);
  if (!header.starts_with("{"))
    return fail(file.fileName, "header does not start with '{'");
  if (size_t depth = jsonDepth(header); depth > 8)
    return fail(file.fileName, "header is nested " + Twine(depth) +
                                   " deep, expected at most 8");
  Expected<json::Value> root = json::parse(header);
  if (!root)
    return fail(file.fileName, "header: " + toString(root.takeError()));

  for (const auto &[key, value] : *root->getAsObject()) {
    if (key == "__metadata__")
      continue;
    Expected<Tensor> tensor = parseTensor(
        value, data, file.fileName + ": tensor '" + StringRef(key) + "'");
    if (!tensor)
      return tensor.takeError();
    file.entries.emplace(StringRef(key).str(), std::move(*tensor));
  }

  // The format wants the data covered exactly once.
  std::vector<const Tensor *> order;
  for (const auto &[name, tensor] : file.entries)
    order.push_back(&tensor);
  llvm::sort(order, [](const Tensor *a, const Tensor *b) {
    return std::pair(a->data.begin(), a->data.end()) <
           std::pair(b->data.begin(), b->data.end());
  });
  const char *position = data.begin();
  for (const Tensor *tensor : order) {
    if (tensor->data.begin() != position)
      return fail(file.fileName,
                  "tensors overlap or leave a gap at data byte " +
                      Twine(position - data.begin()));
    position = tensor->data.end();
  }
  if (position != data.end())
    return fail(file.fileName, Twine(data.end() - position) +
                                   " bytes at the end belong to no tensor");
  file.buffer = std::move(buffer);
  return std::move(file);
}

Expected<const Tensor *> SafetensorsFile::get(StringRef name,
                                              size_t rank) const {
  auto it = entries.find(name.str());
  if (it == entries.end()) {
    std::vector<std::string> names;
    for (const auto &[key, tensor] : entries)
      names.push_back(key);
    return fail(fileName, "no tensor '" + name +
                              "' (there is: " + join(names, ", ") + ")");
  }
  if (it->second.shape.size() != rank)
    return fail(fileName, "tensor '" + name + "' is " + it->second.text() +
                              ", expected " + Twine(rank) + " dimensions");
  return &it->second;
}

Expected<std::vector<float>> SafetensorsFile::floats(StringRef name,
                                                     size_t rank) const {
  Expected<const Tensor *> tensor = get(name, rank);
  if (!tensor)
    return tensor.takeError();
  const Tensor &t = **tensor;
  std::vector<float> result(t.elements());
  if (t.dtype == "F32") {
    if (!result.empty())
      std::memcpy(result.data(), t.data.data(), t.data.size());
    return result;
  }
  if (t.dtype == "F64") {
    for (size_t i = 0; i < result.size(); ++i) {
      double value;
      std::memcpy(&value, t.data.data() + 8 * i, 8);
      result[i] = float(value);
    }
    return result;
  }
  if (t.dtype != "F16" && t.dtype != "BF16")
    return fail(fileName, "tensor '" + name + "' has dtype " + t.dtype +
                              ", expected F32, F16, BF16 or F64");
  int32_t dtype = t.dtype == "F16" ? PAGODA_F16 : PAGODA_BF16;
  for (size_t i = 0; i < result.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, t.data.data() + 2 * i, 2);
    double value;
    reference::loadRow(&bits, dtype, 0, 1, &value);
    result[i] = float(value);
  }
  return result;
}

Expected<std::vector<int64_t>> SafetensorsFile::integers(StringRef name,
                                                         size_t rank) const {
  Expected<const Tensor *> tensor = get(name, rank);
  if (!tensor)
    return tensor.takeError();
  const Tensor &t = **tensor;
  std::vector<int64_t> result(t.elements());
  for (size_t i = 0; i < result.size(); ++i) {
    if (t.dtype == "I64")
      result[i] = support::endian::read64le(t.data.data() + 8 * i);
    else if (t.dtype == "I32")
      result[i] = int32_t(support::endian::read32le(t.data.data() + 4 * i));
    else
      break;
  }
  if (t.dtype != "I64" && t.dtype != "I32")
    return fail(fileName, "tensor '" + name + "' has dtype " + t.dtype +
                              ", expected I32 or I64");
  return result;
}

llvm::Error writeSafetensors(StringRef path,
                             const std::map<std::string, Tensor> &tensors) {
  json::Object header;
  int64_t offset = 0;
  for (const auto &[name, tensor] : tensors) {
    int64_t end = offset + int64_t(tensor.data.size());
    header[name] = json::Object{{"dtype", tensor.dtype},
                                {"shape", json::Array(tensor.shape)},
                                {"data_offsets", json::Array{offset, end}}};
    offset = end;
  }
  std::string text = formatv("{0}", json::Value(std::move(header))).str();
  text.resize(alignTo(text.size(), 8), ' '); // aligned data for readers' sake

  std::error_code ec;
  raw_fd_ostream os(path, ec);
  if (ec)
    return fail(path, ec.message());
  char length[8];
  support::endian::write64le(length, text.size());
  os << StringRef(length, 8) << text;
  for (const auto &[name, tensor] : tensors)
    os << tensor.data;
  os.close();
  if (os.has_error()) {
    llvm::Error error = fail(path, os.error().message());
    os.clear_error();
    return error;
  }
  return llvm::Error::success();
}

} // namespace pagoda
