//===- FakeKernels.cpp - Plain kernels for tests of the runtime -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An entry of the ABI is not told its kernel_info, so the shape is a template
// argument by way of a static table: slot N of the table has entries of its
// own.
//
//===----------------------------------------------------------------------===//

#include "FakeKernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

using namespace pagoda;
using namespace pagoda::test;

namespace {

constexpr size_t MaxLibraries = 256;
constexpr float Infinity = std::numeric_limits<float>::infinity();
constexpr float Log2E = 1.44269504088896340736f;

FakeSpec specs[MaxLibraries];
std::atomic<size_t> usedSpecs{0};

const float *rowOf(const pagoda_kv_view &view, int64_t block, int64_t head,
                   int64_t slot) {
  return static_cast<const float *>(view.base) + block * view.block_stride +
         head * view.head_stride + slot * view.token_stride;
}

void attendRow(const FakeSpec &s, const pagoda_attention_args &a,
               const pagoda_work_item &item, int32_t i, int32_t head,
               float *o) {
  int32_t group = s.qHeads / s.kvHeads;
  int32_t row = a.row_map[item.row_map_offset + i];
  int32_t pos = a.row_pos[item.row_map_offset + i];
  const float *q = static_cast<const float *>(a.q) + row * a.q_token_stride +
                   head * a.q_head_stride;
  float c = a.scale * Log2E, m = -Infinity, l = 0;
  if ((s.features & PAGODA_FEATURE_SINKS) &&
      (item.flags & PAGODA_ITEM_FIRST_SPLIT)) {
    m = a.sinks[head] / a.scale;
    l = 1;
  }
  std::fill_n(o, s.vHeadDim, 0.0f);
  for (int32_t j = item.kv_begin; j < item.kv_end; ++j) {
    if ((s.features & PAGODA_FEATURE_CAUSAL) && j > pos)
      break;
    if ((s.features & PAGODA_FEATURE_WINDOW) && pos - j >= a.window)
      continue;
    int32_t block =
        a.block_table[item.table_row * a.block_table_stride + j / s.blockSize];
    const float *k = rowOf(a.k, block, head / group, j % s.blockSize);
    const float *v = rowOf(a.v, block, head / group, j % s.blockSize);
    float score = 0;
    for (int32_t d = 0; d != s.headDim; ++d)
      score += q[d] * k[d];
    float top = std::max(m, score);
    float old = std::exp2((m - top) * c), now = std::exp2((score - top) * c);
    for (int32_t d = 0; d != s.vHeadDim; ++d)
      o[d] = o[d] * old + v[d] * now;
    l = l * old + now;
    m = top;
  }
  if (item.partial_slot >= 0) {
    int64_t at = int64_t(item.partial_slot + i) * s.qHeads + head;
    std::copy_n(o, s.vHeadDim, a.partial_o + at * s.vHeadDim);
    a.partial_ml[at * 2] = m;
    a.partial_ml[at * 2 + 1] = l;
    return;
  }
  float *out = static_cast<float *>(a.o) + row * a.o_token_stride +
               head * a.o_head_stride;
  for (int32_t d = 0; d != s.vHeadDim; ++d)
    out[d] = l > 0 ? o[d] / l : 0;
  if (a.lse)
    a.lse[row * a.lse_token_stride + head * a.lse_head_stride] =
        l > 0 ? m * a.scale + std::log(l) : -Infinity;
}

void attend(const FakeSpec &s, const void *args, int64_t begin, int64_t end,
            void *scratch) {
  const auto &a = *static_cast<const pagoda_attention_args *>(args);
  int32_t group = s.qHeads / s.kvHeads;
  for (int64_t index = begin; index != end; ++index) {
    const pagoda_work_item &item = a.items[index];
    for (int32_t i = 0; i != item.row_count; ++i)
      for (int32_t h = item.head_begin * group;
           h != (item.head_begin + item.head_count) * group; ++h)
        attendRow(s, a, item, i, h, static_cast<float *>(scratch));
  }
}

void merge(const FakeSpec &s, const void *args, int64_t begin, int64_t end,
           void *) {
  const auto &a = *static_cast<const pagoda_attention_args *>(args);
  float c = a.scale * Log2E;
  for (int64_t index = begin; index != end; ++index) {
    const pagoda_merge_item &item = a.merges[index];
    for (int32_t head = 0; head != s.qHeads; ++head) {
      auto state = [&](int32_t i) {
        return int64_t(a.merge_slots[item.slots_begin + i]) * s.qHeads + head;
      };
      float m = -Infinity, l = 0;
      for (int32_t i = 0; i != item.slot_count; ++i)
        m = std::max(m, a.partial_ml[state(i) * 2]);
      float *out = static_cast<float *>(a.o) + item.q_row * a.o_token_stride +
                   head * a.o_head_stride;
      std::fill_n(out, s.vHeadDim, 0.0f);
      for (int32_t i = 0; i != item.slot_count; ++i) {
        float mi = a.partial_ml[state(i) * 2];
        if (mi == -Infinity)
          continue;
        float weight = std::exp2((mi - m) * c);
        l += a.partial_ml[state(i) * 2 + 1] * weight;
        for (int32_t d = 0; d != s.vHeadDim; ++d)
          out[d] += a.partial_o[state(i) * s.vHeadDim + d] * weight;
      }
      for (int32_t d = 0; d != s.vHeadDim; ++d)
        out[d] = l > 0 ? out[d] / l : 0;
      if (a.lse)
        a.lse[item.q_row * a.lse_token_stride + head * a.lse_head_stride] =
            l > 0 ? m * a.scale + std::log(l) : -Infinity;
    }
  }
}

void append(const FakeSpec &s, const void *args, int64_t begin, int64_t end,
            void *) {
  const auto &a = *static_cast<const pagoda_append_args *>(args);
  for (int64_t t = begin; t != end; ++t) {
    int64_t slot = a.slot_mapping[t];
    if (slot < 0)
      continue;
    for (int32_t h = 0; h != s.kvHeads; ++h) {
      auto to = [&](const pagoda_kv_view &view) {
        return const_cast<float *>(
            rowOf(view, slot / s.blockSize, h, slot % s.blockSize));
      };
      std::copy_n(static_cast<const float *>(a.k_new) + t * a.k_token_stride +
                      h * a.k_head_stride,
                  s.headDim, to(a.k));
      std::copy_n(static_cast<const float *>(a.v_new) + t * a.v_token_stride +
                      h * a.v_head_stride,
                  s.vHeadDim, to(a.v));
    }
  }
}

void copy(const FakeSpec &s, const void *args, int64_t begin, int64_t end,
          void *) {
  const auto &a = *static_cast<const pagoda_copy_args *>(args);
  for (int64_t i = begin; i != end; ++i)
    for (int32_t h = 0; h != s.kvHeads; ++h)
      for (int32_t slot = 0; slot != s.blockSize; ++slot) {
        auto row = [&](const pagoda_kv_view &view, int32_t block) {
          return const_cast<float *>(rowOf(view, block, h, slot));
        };
        std::copy_n(row(a.k, a.copies[i].src), s.headDim,
                    row(a.k, a.copies[i].dst));
        std::copy_n(row(a.v, a.copies[i].src), s.vHeadDim,
                    row(a.v, a.copies[i].dst));
      }
}

using Body = void (*)(const FakeSpec &, const void *, int64_t, int64_t, void *);
template <size_t N, Body body>
void entry(const void *args, int64_t begin, int64_t end, void *scratch) {
  body(specs[N], args, begin, end, scratch);
}

struct Entries {
  pagoda_kernel_fn attend, merge, append, copy;
};
template <size_t... N>
constexpr std::array<Entries, sizeof...(N)>
makeEntries(std::index_sequence<N...>) {
  return {Entries{entry<N, attend>, entry<N, merge>, entry<N, append>,
                  entry<N, copy>}...};
}
constexpr auto entries = makeEntries(std::make_index_sequence<MaxLibraries>());

} // namespace

FakeLibrary::FakeLibrary(const FakeSpec &spec) {
  size_t n = usedSpecs++;
  if (n >= MaxLibraries)
    throw std::length_error("too many fake libraries");
  specs[n] = spec;
  pagoda_kernel_info info = {};
  info.abi_version = PAGODA_ABI_VERSION;
  info.struct_size = sizeof(info);
  info.target = "cpu:test";
  info.schedule = "plain";
  info.scratch_bytes = spec.vHeadDim * sizeof(float);
  info.features = spec.features;
  info.q_heads = spec.qHeads;
  info.kv_heads = spec.kvHeads;
  info.head_dim = spec.headDim;
  info.v_head_dim = spec.vHeadDim;
  info.block_size = spec.blockSize;
  info.layout = spec.layout;
  info.heads_per_item = spec.headsPerItem;
  info.kv_tile = spec.kvTile;
  info.threads = 1;
  auto add = [&](int32_t role, pagoda_kernel_fn fn, std::string name) {
    Names.push_back(std::move(name));
    info.role = role;
    info.entry = fn;
    info.name = Names.back().c_str();
    Kernels.push_back(info);
  };
  for (int32_t rows : spec.maxRows) {
    info.max_rows = rows;
    add(PAGODA_ROLE_ATTENTION, entries[n].attend,
        "attend_" + std::to_string(rows));
  }
  info.max_rows = 0;
  add(PAGODA_ROLE_MERGE, entries[n].merge, "merge");
  add(PAGODA_ROLE_APPEND, entries[n].append, "append");
  add(PAGODA_ROLE_COPY, entries[n].copy, "copy");
  Info = {PAGODA_ABI_VERSION, static_cast<uint32_t>(Kernels.size()),
          Kernels.data()};
}
