//===- MakeImage.cpp - Cases to files -------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the memory of a conformance case as it is: poison, padding and guards
// come along, and what lies between rows of the output is expected to stay.
//
//===----------------------------------------------------------------------===//

#include "tests/device/MakeImage.h"

#include "tests/conformance/Data.h"
#include "tests/conformance/ManualPlan.h"
#include "tests/reference/Compare.h"
#include "tests/reference/Element.h"

#include <algorithm>
#include <cstddef>

namespace pagoda::device {

using conformance::CaseData;
using conformance::ManualPlan;

namespace {

class ImageMaker {
public:
  explicit ImageMaker(CaseImage &image) : image(image) {}

  /// `bytes` of memory from `start` on, in which `named` lies.
  void add(size_t field, const void *start, size_t bytes, const void *named) {
    auto first = static_cast<const uint8_t *>(start);
    image.buffers.push_back(
        {uint32_t(field), uint64_t(static_cast<const uint8_t *>(named) - first),
         std::vector<uint8_t>(first, first + bytes)});
  }
  template <typename T> void add(size_t field, const std::vector<T> &values) {
    if (!values.empty())
      add(field, values.data(), values.size() * sizeof(T), values.data());
  }

  /// The last buffer, in elements of `dtype`, stays as it is...
  void expectUnchanged(int32_t dtype) {
    const std::vector<uint8_t> &bytes = image.buffers.back().bytes;
    size_t count = bytes.size() / reference::elementBytes(dtype);
    std::vector<double> values(count);
    reference::loadRow(bytes.data(), dtype, 0, int64_t(count), values.data());
    image.expectations.push_back(
        {uint32_t(image.buffers.size() - 1), dtype,
         std::vector<float>(values.begin(), values.end()),
         std::vector<float>(count, 0)});
  }
  /// ... but for element `at`.
  void expect(int64_t at, double value, double bound) {
    Expectation &expected = image.expectations.back();
    expected.values[size_t(at)] = float(value);
    expected.bounds[size_t(at)] = float(bound);
  }

private:
  CaseImage &image;
};

/// Calls `body(row of q and o, head, oracle's row)` for each.
template <typename Body>
void forEachRow(const reference::Problem &problem, Body body) {
  reference::Row row;
  for (size_t s = 0; s < problem.sequences.size(); ++s)
    for (int64_t t = 0; t < problem.sequences[s].qLen; ++t)
      for (int64_t h = 0; h < problem.shape.qHeads; ++h) {
        reference::attendRow(problem, int64_t(s), t, h, row);
        body(problem.sequences[s].qBegin + t, h, row);
      }
}

} // namespace

CaseImage makeImage(const conformance::Case &c,
                    const pagoda_kernel_info &attention,
                    const pagoda_kernel_info &merge, std::string cubin) {
  CaseData data(c);
  ManualPlan plan(data.problem, attention, c.splits);
  const pagoda_attention_args &args = data.args;
  CaseImage image;
  image.name = c.name;
  image.cubin = std::move(cubin);
  image.args = args;
  ImageMaker maker(image);

  // In the order in which CaseData names them.
  constexpr size_t fields[] = {offsetof(pagoda_attention_args, q),
                               offsetof(pagoda_attention_args, k.base),
                               offsetof(pagoda_attention_args, v.base),
                               offsetof(pagoda_attention_args, o),
                               offsetof(pagoda_attention_args, lse),
                               offsetof(pagoda_attention_args, block_table)};
  const void *const named[] = {args.q, args.k.base, args.v.base,
                               args.o, args.lse,    args.block_table};
  size_t index = 0;
  data.forEachTensor([&](const void *start, size_t bytes) {
    size_t at = index++;
    maker.add(fields[at], start, bytes, named[at]);
    int32_t dtype = data.problem.shape.qType;
    if (named[at] == args.o) {
      maker.expectUnchanged(dtype);
      int64_t guard = conformance::GuardElements;
      forEachRow(data.problem, [&](int64_t q, int64_t h,
                                   const reference::Row &row) {
        for (int64_t d = 0; d < int64_t(row.o.size()); ++d)
          maker.expect(guard + q * args.o_token_stride +
                           h * args.o_head_stride + d,
                       row.o[size_t(d)], reference::outputBound(row, d, dtype));
      });
    } else if (named[at] == args.lse) {
      maker.expectUnchanged(PAGODA_F32);
      int64_t guard = conformance::GuardElements;
      forEachRow(data.problem,
                 [&](int64_t q, int64_t h, const reference::Row &row) {
                   maker.expect(guard + q * args.lse_token_stride +
                                    h * args.lse_head_stride,
                                row.lse, reference::lseBound(row, dtype));
                 });
    }
  });
  auto floats = [&](size_t field, const float *values, int64_t count) {
    if (values && count)
      maker.add(field, values, size_t(count) * sizeof(float), values);
  };
  int64_t heads = data.problem.shape.qHeads;
  floats(offsetof(pagoda_attention_args, sinks), args.sinks, heads);
  floats(offsetof(pagoda_attention_args, alibi_slopes), args.alibi_slopes,
         int64_t(c.spec.alibiSlopes.size()));
  maker.add(offsetof(pagoda_attention_args, prefix_lens), args.prefix_lens,
            data.problem.sequences.size() * sizeof(int32_t), args.prefix_lens);

  maker.add(offsetof(pagoda_attention_args, items), plan.items);
  maker.add(offsetof(pagoda_attention_args, row_map), plan.rowMap);
  maker.add(offsetof(pagoda_attention_args, row_pos), plan.rowPos);
  maker.add(offsetof(pagoda_attention_args, row_seq), plan.rowSeq);
  maker.add(offsetof(pagoda_attention_args, merges), plan.merges);
  maker.add(offsetof(pagoda_attention_args, merge_slots), plan.mergeSlots);
  maker.add(offsetof(pagoda_attention_args, partial_o), plan.partialO);
  maker.add(offsetof(pagoda_attention_args, partial_ml), plan.partialMl);
  maker.add(offsetof(pagoda_attention_args, counts),
            std::vector<int32_t>{int32_t(plan.items.size()),
                                 int32_t(plan.merges.size())});
  // Null until someone has memory for them.
  const void *null = nullptr;
  for (const ImageBuffer &buffer : image.buffers)
    std::copy_n(reinterpret_cast<const char *>(&null), sizeof(null),
                reinterpret_cast<char *>(&image.args) + buffer.field);

  auto launch = [&](const pagoda_kernel_info &kernel, size_t blocks) {
    if (blocks)
      image.launches.push_back(
          {kernel.name, kernel.threads, kernel.shared_bytes, int64_t(blocks)});
  };
  launch(attention, plan.items.size());
  launch(merge, plan.merges.size());
  return image;
}

} // namespace pagoda::device
