//===- PlainKernel.cpp - A kernel without tricks, with faults -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention by its definition, over items and partial states.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/PlainKernel.h"

#include <algorithm>
#include <cmath>

namespace pagoda::conformance {

namespace {

Fault fault = Fault::None;
pagoda_kernel_info shape{};

int64_t element(const pagoda_kv_view &view, int64_t block, int64_t head,
                int64_t slot) {
  return block * view.block_stride + head * view.head_stride +
         slot * view.token_stride;
}

void attend(const void *opaque, int64_t begin, int64_t end, void *scratch) {
  const auto &args = *static_cast<const pagoda_attention_args *>(opaque);
  int64_t group = shape.q_heads / shape.kv_heads, block = shape.block_size;
  const float *k = static_cast<const float *>(args.k.base);
  const float *v = static_cast<const float *>(args.v.base);
  std::vector<double> o(shape.v_head_dim + 1);
  for (int64_t index = begin; index < end; ++index) {
    const pagoda_work_item &item = args.items[index];
    int64_t rows = item.row_count - (fault == Fault::LostLastRow);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t h = item.head_begin * group;
           h < (item.head_begin + item.head_count) * group; ++h) {
        int64_t planned = item.row_map_offset + r;
        int64_t row = args.row_map[planned], pos = args.row_pos[planned];
        int64_t kvHead =
            fault == Fault::HeadMap ? h % shape.kv_heads : h / group;
        if (fault == Fault::StartAligned)
          pos = r;
        const float *q = static_cast<const float *>(args.q) +
                         row * args.q_token_stride + h * args.q_head_stride;
        int64_t kvEnd = item.kv_end;
        if (fault == Fault::TailKeys && item.kv_end > item.kv_begin)
          kvEnd = (kvEnd + block - 1) / block * block;
        auto blockOf = [&](int64_t j) -> int64_t {
          return fault == Fault::IdentityTable
                     ? j / block
                     : args.block_table[item.table_row *
                                            args.block_table_stride +
                                        j / block];
        };
        bool causal = shape.features & PAGODA_FEATURE_CAUSAL;
        std::vector<double> scores;
        double m = -INFINITY, l = 0;
        for (int64_t j = item.kv_begin; j < kvEnd; ++j) {
          double score = 0;
          const float *key = k + element(args.k, blockOf(j), kvHead, j % block);
          for (int64_t d = 0; d < shape.head_dim; ++d)
            score += double(q[d]) * key[d];
          if (causal && j > pos - (fault == Fault::CausalOffByOne))
            score = fault == Fault::FiniteMask ? -5e4 : -INFINITY;
          scores.push_back(score);
          m = std::max(m, score);
        }
        std::fill(o.begin(), o.end(), 0);
        if (fault == Fault::NaNScratch)
          o[0] = *static_cast<float *>(scratch);
        const pagoda_kv_view &vView =
            fault == Fault::ValueStride ? args.k : args.v;
        for (size_t i = 0; i < scores.size(); ++i) {
          if (scores[i] == -INFINITY)
            continue;
          double p = std::exp(args.scale * (scores[i] - m));
          l += p;
          int64_t j = item.kv_begin + int64_t(i);
          const float *value =
              v + element(vView, blockOf(j), kvHead, j % block);
          for (int64_t d = 0; d < shape.v_head_dim; ++d)
            o[d] += p * value[d];
        }
        if (fault == Fault::TailValues && kvEnd > 0 && kvEnd % block)
          for (int64_t d = 0; d < shape.v_head_dim; ++d)
            o[d] +=
                0 *
                v[element(args.v, blockOf(kvEnd - 1), kvHead, kvEnd % block) +
                  d];
        if (fault == Fault::WritesCache && kvEnd > 0)
          const_cast<float *>(k)[element(args.k, blockOf(0), kvHead, 0)] += 1;
        if (item.partial_slot >= 0) {
          if (fault == Fault::EmptySplit && scores.empty())
            continue;
          int64_t slot = item.partial_slot + r;
          float *po =
              args.partial_o + (slot * shape.q_heads + h) * shape.v_head_dim;
          float *ml = args.partial_ml + (slot * shape.q_heads + h) * 2;
          std::copy_n(o.data(), shape.v_head_dim, po);
          ml[0] = float(m);
          ml[1] = float(l);
          continue;
        }
        bool empty = l == 0 && fault != Fault::EmptyRow;
        float *out = static_cast<float *>(args.o) + row * args.o_token_stride +
                     h * args.o_head_stride;
        for (int64_t d = 0;
             d < shape.v_head_dim + (fault == Fault::OverrunStore); ++d)
          out[d] = empty ? 0 : float(o[d] / l);
        double lse = l == 0 ? -INFINITY : m * args.scale + std::log(l);
        if (fault == Fault::Log2Lse)
          lse /= std::log(2);
        if (args.lse && fault != Fault::LseNotWritten)
          args.lse[row * args.lse_token_stride + h * args.lse_head_stride] =
              float(lse);
      }
  }
}

void merge(const void *opaque, int64_t begin, int64_t end, void *) {
  const auto &args = *static_cast<const pagoda_attention_args *>(opaque);
  for (int64_t index = begin; index < end; ++index) {
    const pagoda_merge_item &item = args.merges[index];
    for (int64_t h = 0; h < shape.q_heads; ++h) {
      int64_t count = item.slot_count - (fault == Fault::MergeForgets);
      const int32_t *slots = args.merge_slots + item.slots_begin;
      auto state = [&](int64_t i) {
        return args.partial_ml + (slots[i] * shape.q_heads + h) * 2;
      };
      double m = -INFINITY, l = 0;
      std::vector<double> o(shape.v_head_dim, 0);
      for (int64_t i = 0; i < count; ++i)
        m = std::fmax(m, state(i)[0]);
      for (int64_t i = 0; i < count; ++i) {
        if (state(i)[0] == -INFINITY)
          continue;
        double w = std::exp(args.scale * (state(i)[0] - m));
        l += w * state(i)[1];
        for (int64_t d = 0; d < shape.v_head_dim; ++d)
          o[d] +=
              w *
              args.partial_o[(slots[i] * shape.q_heads + h) * shape.v_head_dim +
                             d];
      }
      float *out = static_cast<float *>(args.o) +
                   item.q_row * args.o_token_stride + h * args.o_head_stride;
      for (int64_t d = 0; d < shape.v_head_dim; ++d)
        out[d] = l == 0 ? 0 : float(o[d] / l);
      args.lse[item.q_row * args.lse_token_stride + h * args.lse_head_stride] =
          l == 0 ? -INFINITY : float(m * args.scale + std::log(l));
    }
  }
}

float *cacheRow(const pagoda_kv_view &view, int64_t block, int64_t head,
                int64_t slot) {
  return static_cast<float *>(view.base) + block * view.block_stride +
         head * view.head_stride + slot * view.token_stride;
}

void append(const void *opaque, int64_t begin, int64_t end, void *) {
  const auto &args = *static_cast<const pagoda_append_args *>(opaque);
  for (int64_t t = begin; t < end; ++t) {
    int64_t slot = args.slot_mapping[t];
    int64_t block = slot / shape.block_size, inside = slot % shape.block_size;
    for (int64_t h = 0; h < shape.kv_heads && slot >= 0; ++h) {
      std::copy_n(static_cast<const float *>(args.k_new) +
                      t * args.k_token_stride + h * args.k_head_stride,
                  shape.head_dim, cacheRow(args.k, block, h, inside));
      std::copy_n(static_cast<const float *>(args.v_new) +
                      t * args.v_token_stride + h * args.v_head_stride,
                  shape.v_head_dim, cacheRow(args.v, block, h, inside));
    }
  }
}

void copy(const void *opaque, int64_t begin, int64_t end, void *) {
  const auto &args = *static_cast<const pagoda_copy_args *>(opaque);
  for (int64_t i = begin; i < end; ++i)
    for (int64_t h = 0; h < shape.kv_heads; ++h)
      for (int64_t slot = 0; slot < shape.block_size; ++slot) {
        auto [from, to] = args.copies[i];
        std::copy_n(cacheRow(args.k, from, h, slot), shape.head_dim,
                    cacheRow(args.k, to, h, slot));
        std::copy_n(cacheRow(args.v, from, h, slot), shape.v_head_dim,
                    cacheRow(args.v, to, h, slot));
      }
}

} // namespace

PlainKernels::PlainKernels(const AttentionSpec &spec, Fault theFault) {
  fault = theFault;
  shape = {};
  shape.abi_version = PAGODA_ABI_VERSION;
  shape.struct_size = sizeof(pagoda_kernel_info);
  shape.target = "cpu";
  shape.schedule = "";
  shape.features = spec.causal ? PAGODA_FEATURE_CAUSAL : 0;
  shape.q_heads = int32_t(spec.qHeads);
  shape.kv_heads = int32_t(spec.kvHeads);
  shape.head_dim = int32_t(spec.headDim);
  shape.v_head_dim = int32_t(spec.vHeadDim);
  shape.block_size = int32_t(spec.blockSize);
  shape.layout = int32_t(spec.layout);
  shape.kv_tile = 16;
  shape.threads = 1;
  shape.scratch_bytes = 64;
  for (pagoda_kernel_info &info : infos)
    info = shape;
  infos[0].name = "plain_decode";
  infos[1].name = "plain_prefill";
  infos[2].name = "plain_merge";
  infos[0].entry = infos[1].entry = attend;
  infos[0].max_rows = 1;
  infos[0].heads_per_item = shape.kv_heads;
  infos[1].max_rows = 8;
  infos[1].heads_per_item = 1;
  infos[2].role = PAGODA_ROLE_MERGE;
  infos[2].entry = merge;
  infos[3].name = "plain_append";
  infos[3].role = PAGODA_ROLE_APPEND;
  infos[3].entry = append;
  infos[4].name = "plain_copy";
  infos[4].role = PAGODA_ROLE_COPY;
  infos[4].entry = copy;
}

} // namespace pagoda::conformance
