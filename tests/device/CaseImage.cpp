//===- CaseImage.cpp - One launch as a file -------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fields one after the other, vectors and strings behind their lengths, in the
// order and endianness of the machine.
//
//===----------------------------------------------------------------------===//

#include "tests/device/CaseImage.h"

#include "tests/reference/Element.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <type_traits>

namespace pagoda::device {

namespace {

constexpr uint64_t magic = 0x32306173'61636770; // "pgcasa02"

/// One description of the format for both directions.
template <typename Stream> class Archive {
public:
  explicit Archive(Stream &stream) : stream(stream) {}

  template <typename T> void operator()(T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&value, sizeof(value));
  }
  template <typename T> void operator()(std::vector<T> &values) {
    size(values);
    if constexpr (std::is_trivially_copyable_v<T>)
      bytes(values.data(), values.size() * sizeof(T));
    else
      for (T &value : values)
        (*this)(value);
  }
  void operator()(std::string &text) {
    size(text);
    bytes(text.data(), text.size());
  }
  void operator()(KernelLaunch &launch) {
    (*this)(launch.kernel);
    (*this)(launch.threads);
    (*this)(launch.sharedBytes);
    (*this)(launch.blocks);
  }
  void operator()(ImageBuffer &buffer) {
    (*this)(buffer.field);
    (*this)(buffer.offset);
    (*this)(buffer.bytes);
    (*this)(buffer.size);
  }
  void operator()(Expectation &expectation) {
    (*this)(expectation.buffer);
    (*this)(expectation.dtype);
    (*this)(expectation.values);
    (*this)(expectation.bounds);
    (*this)(expectation.at);
  }
  void operator()(CaseImage &image) {
    (*this)(image.name);
    (*this)(image.cubin);
    (*this)(image.base);
    (*this)(image.note);
    (*this)(image.launches);
    (*this)(image.args);
    (*this)(image.buffers);
    (*this)(image.expectations);
  }

private:
  static constexpr bool reads = std::is_base_of_v<std::istream, Stream>;

  template <typename Container> void size(Container &container) {
    uint64_t count = container.size();
    (*this)(count);
    if constexpr (reads) {
      if (!stream || count > (uint64_t(1) << 32))
        throw std::runtime_error("the file is cut off or no case");
      container.resize(count);
    }
  }
  void bytes(void *data, size_t count) {
    if constexpr (reads)
      stream.read(static_cast<char *>(data), std::streamsize(count));
    else
      stream.write(static_cast<const char *>(data), std::streamsize(count));
  }

  Stream &stream;
};

} // namespace

void CaseImage::write(const std::string &path) const {
  std::ofstream stream(path, std::ios::binary);
  Archive<std::ofstream> archive(stream);
  uint64_t first = magic;
  archive(first);
  CaseImage copy = *this;
  archive(copy);
  stream.close();
  if (!stream)
    throw std::runtime_error(path + ": cannot be written");
}

CaseImage CaseImage::read(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  Archive<std::ifstream> archive(stream);
  uint64_t first = 0;
  archive(first);
  if (!stream || first != magic)
    throw std::runtime_error(path + ": expected a case, got something else");
  CaseImage image;
  archive(image);
  if (!stream)
    throw std::runtime_error(path + ": the file is cut off");
  return image;
}

/// Calls `body(element, actual, expected, bound)` for each expected element,
/// until it returns false.
template <typename Body>
static void forEachElement(const Expectation &expected,
                           const std::vector<uint8_t> &bytes, Body body) {
  for (size_t i = 0; i < expected.values.size(); ++i) {
    uint64_t at = expected.at.empty() ? i : expected.at[i];
    double actual = 0;
    reference::loadRow(bytes.data(), expected.dtype, int64_t(at), 1, &actual);
    if (!body(size_t(at), actual, double(expected.values[i]),
              double(expected.bounds[i])))
      return;
  }
}

static bool same(double actual, double value) {
  return actual == value || (std::isnan(actual) && std::isnan(value));
}

std::string compare(const Expectation &expected,
                    const std::vector<uint8_t> &bytes) {
  std::string fault;
  forEachElement(expected, bytes,
                 [&](size_t i, double actual, double value, double bound) {
                   if (same(actual, value) ||
                       std::fabs(actual - value) <= bound)
                     return true;
                   char text[160];
                   std::snprintf(text, sizeof(text),
                                 "element %zu is %.9g, expected %.9g within "
                                 "%.3g",
                                 i, actual, value, bound);
                   fault = text;
                   return false;
                 });
  return fault;
}

double worstRatio(const Expectation &expected,
                  const std::vector<uint8_t> &bytes) {
  double worst = 0;
  forEachElement(expected, bytes,
                 [&](size_t, double actual, double value, double bound) {
                   if (!same(actual, value) && bound > 0)
                     worst = std::max(worst, std::fabs(actual - value) / bound);
                   return true;
                 });
  return worst;
}

} // namespace pagoda::device
