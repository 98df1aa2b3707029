//===- LaunchChecks.cpp - What kernels can be given -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "launch/LaunchChecks.h"

#include "pagoda/CpuLauncher.h"

#include <algorithm>
#include <string>

using namespace pagoda;

[[noreturn]] static void bad(const std::string &text) {
  throw Error(ErrorCode::InvalidArgument, "launch: " + text);
}

void pagoda::checkView(const pagoda_kernel_info &kernel,
                       const pagoda_kv_view &view, int32_t dim,
                       const char *what) {
  bool nhd = kernel.layout == PAGODA_NHD;
  const char *innerName = nhd ? "head_stride" : "token_stride";
  const char *outerName = nhd ? "token_stride" : "head_stride";
  int64_t inner = nhd ? view.head_stride : view.token_stride;
  int64_t outer = nhd ? view.token_stride : view.head_stride;
  int64_t innerCount = nhd ? kernel.kv_heads : kernel.block_size;
  int64_t outerCount = nhd ? kernel.block_size : kernel.kv_heads;
  auto stride = [&](const char *name, int64_t got, int64_t atLeast) {
    if (got < atLeast)
      bad(std::string(what) + ": " + name + ": kernel " + kernel.name +
          " with layout " + layoutName(kernel.layout) + " expects " +
          std::to_string(atLeast) + " or more for " +
          std::to_string(kernel.kv_heads) + " heads and " +
          std::to_string(kernel.block_size) + " tokens a block, got " +
          std::to_string(got));
  };
  if (!view.base)
    bad(std::string(what) + ": base: expected memory, got null");
  stride(innerName, inner, dim);
  int64_t inside = (innerCount - 1) * inner + dim;
  stride(outerName, outer, outerCount > 1 ? std::max(inner, inside) : inner);
  // Blocks may lie within a head, as in a pool [heads, blocks, ...].
  int64_t taken = dim;
  if (view.block_stride >= inner)
    taken += (innerCount - 1) * inner;
  if (view.block_stride >= outer)
    taken += (outerCount - 1) * outer;
  stride("block_stride", view.block_stride, taken);
}

/// Strides of a tensor [count, heads, dim] of the caller's. Those of a
/// dimension of one are not read.
static void checkRows(const char *what, int64_t count, int64_t tokenStride,
                      int64_t heads, int64_t headStride, int64_t dim) {
  auto apart = [&](const char *name, int64_t of, int64_t got) {
    if (of > 1 && got < dim)
      bad(std::string(what) + name + ": expected " + std::to_string(dim) +
          " or more, got " + std::to_string(got));
  };
  apart("_token_stride", count, tokenStride);
  apart("_head_stride", heads, headStride);
}

void pagoda::checkTensors(const pagoda_kernel_info &kernel, int64_t rows,
                          const pagoda_attention_args &args) {
  checkRows("q", rows, args.q_token_stride, kernel.q_heads, args.q_head_stride,
            kernel.head_dim);
  checkRows("o", rows, args.o_token_stride, kernel.q_heads, args.o_head_stride,
            kernel.v_head_dim);
  if (args.lse)
    checkRows("lse", rows, args.lse_token_stride, kernel.q_heads,
              args.lse_head_stride, 1);
}

void pagoda::checkLaunch(const pagoda_kernel_info &kernel,
                         const PlanOptions &options,
                         const pagoda_attention_args &args) {
  if (!args.q)
    bad("q: expected memory, got null");
  if (!args.o)
    bad("o: expected memory, got null");
  if (!args.block_table)
    bad("block_table: expected memory, got null");
  if (!(args.scale > 0))
    bad("scale: expected a number greater than 0, got " +
        std::to_string(args.scale));
  checkView(kernel, args.k, kernel.head_dim, "k");
  checkView(kernel, args.v, kernel.v_head_dim, "v");
  auto needs = [&](uint32_t feature, bool given, const char *field) {
    if ((kernel.features & feature) && !given)
      bad(std::string(field) + ": expected a value for kernel " + kernel.name +
          " with " + featureNames(feature) + ", got none");
  };
  needs(PAGODA_FEATURE_WINDOW, args.window > 0, "window");
  needs(PAGODA_FEATURE_CHUNK, args.chunk > 0, "chunk");
  needs(PAGODA_FEATURE_SOFTCAP, args.softcap > 0, "softcap");
  needs(PAGODA_FEATURE_ALIBI, args.alibi_slopes, "alibi_slopes");
  needs(PAGODA_FEATURE_SINKS, args.sinks, "sinks");
  needs(PAGODA_FEATURE_PREFIX_LM, args.prefix_lens, "prefix_lens");
  auto planned = [&](uint32_t feature, int32_t planned, int32_t given,
                     const char *field) {
    if ((kernel.features & feature) && planned && planned != given)
      bad(std::string(field) + ": expected " + std::to_string(planned) +
          " as the plan was built for, got " + std::to_string(given));
  };
  planned(PAGODA_FEATURE_WINDOW, options.window, args.window, "window");
  planned(PAGODA_FEATURE_CHUNK, options.chunk, args.chunk, "chunk");
}

void pagoda::checkTable(const AttentionPlan &plan,
                        const pagoda_attention_args &args) {
  int64_t blockSize = plan.kernel().block_size;
  int64_t blocks = (plan.longest() + blockSize - 1) / blockSize;
  if (args.block_table_stride < blocks)
    bad("block_table_stride: expected " + std::to_string(blocks) +
        " or more for a sequence of " + std::to_string(plan.longest()) +
        " tokens, got " + std::to_string(args.block_table_stride));
  // Sequences that share blocks in one table may not in another.
  if (plan.blockTable() && plan.blockTable() != args.block_table)
    bad("block_table: expected the one that the cascade plan was built from, "
        "got another");
}

void pagoda::checkCpu(const pagoda_kernel_info &kernel) {
  if (!kernel.entry)
    throw Error(ErrorCode::Mismatch,
                std::string("launch: kernel ") + kernel.name +
                    ": expected a kernel for a CPU, got one for " +
                    (kernel.target ? kernel.target : "an unknown target"));
}

void pagoda::checkPlanned(const AttentionPlan &plan,
                          std::span<const pagoda_kernel_info *const> kernels) {
  auto planned = plan.kernels();
  if (std::equal(planned.begin(), planned.end(), kernels.begin(),
                 kernels.end()))
    return;
  if (kernels.empty())
    bad("kernels: expected an attention kernel, got none");
  std::string why = mismatch(*kernels.front(), KernelSpec::of(plan.kernel()));
  throw Error(ErrorCode::Mismatch,
              std::string("launch: kernels: expected those that the plan was "
                          "made for, ") +
                  plan.kernel().name + ", got " + kernels.front()->name +
                  (why.empty() ? " of another library" : ":\n" + why));
}

void pagoda::checkMerge(const AttentionPlan &plan,
                        const pagoda_kernel_info *merge) {
  const pagoda_kernel_info &kernel = plan.kernel();
  if (!merge)
    bad("merge: expected a kernel for a plan with " +
        std::to_string(plan.merges().size()) + " merges, got null");
  if (merge->role != PAGODA_ROLE_MERGE)
    bad(std::string("merge: expected a merge kernel, got ") + merge->name +
        " with role " + roleName(merge->role));
  std::string why = mismatch(*merge, KernelSpec::of(kernel));
  if (!why.empty())
    throw Error(ErrorCode::Mismatch, std::string("kernel ") + merge->name +
                                         " does not join the states of " +
                                         kernel.name + ":\n" + why);
}

/// The role and the layout of an append or copy kernel.
static void checkKernel(const pagoda_kernel_info &kernel, int32_t role,
                        const pagoda_kv_view &k, const pagoda_kv_view &v) {
  if (kernel.role != role)
    bad(std::string("kernel ") + kernel.name + ": expected role " +
        roleName(role) + ", got " + roleName(kernel.role));
  checkView(kernel, k, kernel.head_dim, "k");
  checkView(kernel, v, kernel.v_head_dim, "v");
}

void pagoda::checkLaunch(const pagoda_kernel_info &kernel,
                         const pagoda_append_args &args, int64_t tokens) {
  checkKernel(kernel, PAGODA_ROLE_APPEND, args.k, args.v);
  if (!args.k_new || !args.v_new || !args.slot_mapping)
    bad("append: expected k_new, v_new and slot_mapping, got null");
  checkRows("append: k", tokens, args.k_token_stride, kernel.kv_heads,
            args.k_head_stride, kernel.head_dim);
  checkRows("append: v", tokens, args.v_token_stride, kernel.kv_heads,
            args.v_head_stride, kernel.v_head_dim);
  if (kernel.rotary_dim && args.rope_cos) {
    if (!args.rope_sin || !args.positions)
      bad("append: expected positions and rope_sin beside rope_cos, got null");
    if (args.rope_stride < kernel.rotary_dim / 2)
      bad(std::string("append: rope_stride: kernel ") + kernel.name +
          " with rotary_dim " + std::to_string(kernel.rotary_dim) +
          " expects " + std::to_string(kernel.rotary_dim / 2) +
          " or more, got " + std::to_string(args.rope_stride));
  }
  if (!kernel.rotary_dim && args.rope_cos)
    bad(std::string("append: rope_cos: kernel ") + kernel.name +
        " rotates no keys, got a table");
}

void pagoda::checkLaunch(const pagoda_kernel_info &kernel,
                         const pagoda_copy_args &args) {
  checkKernel(kernel, PAGODA_ROLE_COPY, args.k, args.v);
  if (!args.copies)
    bad("copy: copies: expected memory, got null");
}
