//===- GpuArgs.cpp - What GPU kernels ask of their arguments --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pagoda/GpuArgs.h"

#include "pagoda/Error.h"

#include <string>

using namespace pagoda;

static void checkBase(const char *field, const void *base, uintptr_t multiple) {
  if (auto address = reinterpret_cast<uintptr_t>(base); address % multiple)
    throw Error(ErrorCode::InvalidArgument,
                std::string("launch: ") + field + ": expected a multiple of " +
                    std::to_string(multiple) + " bytes, got one of " +
                    std::to_string(address & -address));
}

static void checkStride(const char *field, int64_t stride, int64_t multiple) {
  if (stride % multiple)
    throw Error(ErrorCode::InvalidArgument,
                std::string("launch: ") + field + ": expected a multiple of " +
                    std::to_string(multiple) + ", got " +
                    std::to_string(stride));
}

/// Whether kernels move rows of \p dim elements 16 bytes at a time, and so ask
/// for aligned ones.
static bool movesWholeChunks(int32_t dim) { return dim % 8 == 0; }

constexpr int64_t ChunkElements = 8;
constexpr uintptr_t ChunkBytes = 16;

static void checkPool(const char *name, int32_t dim,
                      const pagoda_kv_view &view) {
  if (!movesWholeChunks(dim))
    return;
  auto field = [&](const char *part) { return std::string(name) + part; };
  checkBase(field(".base").c_str(), view.base, ChunkBytes);
  checkStride(field(".block_stride").c_str(), view.block_stride, ChunkElements);
  checkStride(field(".head_stride").c_str(), view.head_stride, ChunkElements);
  checkStride(field(".token_stride").c_str(), view.token_stride, ChunkElements);
}

static void checkRows(const char *name, const void *base, int64_t tokenStride,
                      int64_t headStride, uintptr_t bytes, int64_t elements) {
  checkBase(name, base, bytes);
  checkStride((std::string(name) + ": token stride").c_str(), tokenStride,
              elements);
  checkStride((std::string(name) + ": head stride").c_str(), headStride,
              elements);
}

void pagoda::checkGpuArgs(const pagoda_kernel_info &kernel,
                          const pagoda_attention_args &args) {
  if (movesWholeChunks(kernel.head_dim))
    checkRows("q", args.q, args.q_token_stride, args.q_head_stride, ChunkBytes,
              ChunkElements);
  checkPool("k", kernel.head_dim, args.k);
  checkPool("v", kernel.v_head_dim, args.v);
  if (kernel.v_head_dim % 2 == 0)
    checkRows("o", args.o, args.o_token_stride, args.o_head_stride, 4, 2);
  checkBase("partial_o", args.partial_o, 8);
  checkBase("partial_ml", args.partial_ml, 8);
}

void pagoda::checkGpuArgs(const pagoda_kernel_info &kernel,
                          const pagoda_append_args &args) {
  checkPool("k", kernel.head_dim, args.k);
  checkPool("v", kernel.v_head_dim, args.v);
  if (movesWholeChunks(kernel.head_dim))
    checkRows("k_new", args.k_new, args.k_token_stride, args.k_head_stride,
              ChunkBytes, ChunkElements);
  if (movesWholeChunks(kernel.v_head_dim))
    checkRows("v_new", args.v_new, args.v_token_stride, args.v_head_stride,
              ChunkBytes, ChunkElements);
}

void pagoda::checkGpuArgs(const pagoda_kernel_info &kernel,
                          const pagoda_copy_args &args) {
  checkPool("k", kernel.head_dim, args.k);
  checkPool("v", kernel.v_head_dim, args.v);
}
