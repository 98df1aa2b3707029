//===- CacheKernelsTest.cpp - NVIDIA kernels that write the cache ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// append_kv and copy_blocks on the emulator, against the same expectations as
// the CPU's: every element that should be written is, and no other one.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/RopeTables.h"
#include "runtime/emulator/EmulatedLauncher.h"
#include "tests/conformance/CacheFixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace pagoda;
using namespace pagoda::conformance;
using testing::HasSubstr;

namespace {

constexpr int64_t lastPosition = 1023;

class Kernels {
public:
  explicit Kernels(const AttentionSpec &spec) {
    CompileOptions options;
    options.machine = llvm::cantFail(Machine::named("sm_80"));
    options.emulate = options.cacheOnly = true;
    code = llvm::cantFail(JitLibrary::compile({spec}, options));
    for (uint32_t i = 0; i < code->info()->kernel_count; ++i) {
      const pagoda_kernel_info &kernel = code->info()->kernels[i];
      (kernel.role == PAGODA_ROLE_APPEND ? append : copy) = &kernel;
    }
  }
  const pagoda_kernel_info *append = nullptr, *copy = nullptr;

private:
  std::unique_ptr<JitLibrary> code;
};

AttentionSpec halfShape(int64_t heads, int64_t kDim, int64_t vDim,
                        int64_t block) {
  AttentionSpec spec = CacheTest::shape(heads, kDim, vDim, block);
  spec.qType = spec.kvType = DType::F16;
  return spec;
}

/// Rows of whole chunks stay aligned; others need not be.
int64_t paddingOf(const AttentionSpec &spec) {
  return spec.headDim % 8 && spec.vHeadDim % 8 ? 3 : 8;
}

void checkAppend(const Kernels &kernels, const AttentionSpec &spec,
                 const RopeConfig &rope) {
  std::vector<int32_t> positions = {0, lastPosition, 17, 1, 512};
  constexpr int64_t blocks = 5;
  CachePools pools(spec, blocks, paddingOf(spec));
  NewTokens tokens(spec, int64_t(positions.size()), paddingOf(spec));
  RopeTables tables = ropeTables(rope, lastPosition + 1, lastPosition + 1);
  tokens.rotate(rope, lastPosition + 1, positions);
  for (size_t t = 0; t < positions.size(); ++t)
    tokens.slots[t] = int64_t(t * 7 + 3) % (blocks * spec.blockSize);
  pagoda_append_args args = tokens.args(pools);
  if (tables.pairs) {
    args.rope_cos = tables.cos.data();
    args.rope_sin = tables.sin.data();
    args.rope_stride = tables.pairs;
  }
  EmulatedLauncher({}).append(*kernels.append, args,
                              {tokens.count, blocks, lastPosition + 1});
  pools.expectWritten(tokens);
}

TEST(NvidiaCache, ShapesTypesAndRotations) {
  struct {
    int64_t heads, kDim, vDim, rotary, block;
    bool interleaved;
    KvLayout layout;
    DType from, to;
  } const shapes[] = {
      {1, 1, 1, 0, 1, false, KvLayout::HND, DType::F16, DType::F16},
      {2, 2, 3, 2, 1, true, KvLayout::NHD, DType::BF16, DType::BF16},
      {3, 71, 33, 70, 3, false, KvLayout::NHD, DType::F16, DType::F16},
      {3, 71, 33, 62, 17, true, KvLayout::HND, DType::F16, DType::BF16},
      {2, 192, 128, 64, 16, true, KvLayout::NHD, DType::BF16, DType::BF16},
      {1, 80, 80, 32, 256, false, KvLayout::HND, DType::F16, DType::F16},
      {2, 256, 256, 256, 8, false, KvLayout::HND, DType::BF16, DType::F16},
      {8, 64, 96, 64, 5, true, KvLayout::NHD, DType::F16, DType::F16}};
  for (const auto &s : shapes) {
    AttentionSpec spec = halfShape(s.heads, s.kDim, s.vDim, s.block);
    spec.layout = s.layout;
    spec.rotaryDim = s.rotary;
    spec.ropeInterleaved = s.interleaved;
    spec.qType = s.from;
    spec.kvType = s.to;
    SCOPED_TRACE(describeCache(spec));
    Kernels kernels(spec);
    RopeConfig rope;
    rope.kind = s.rotary ? RopeKind::Default : RopeKind::None;
    rope.rotaryDim = s.rotary;
    rope.interleaved = s.interleaved;
    checkAppend(kernels, spec, rope);
    // The same kernel without tables, for layers that do not rotate.
    checkAppend(kernels, spec, RopeConfig());

    constexpr int64_t blocks = 7;
    CachePools pools(spec, blocks, paddingOf(spec));
    std::vector<pagoda_block_copy> copies = {
        {0, 3}, {6, 1}, {-1, 2}, {4, -1}, {0, 5}};
    EmulatedLauncher({}).copy(*kernels.copy, pools.copyArgs(copies),
                              int64_t(copies.size()), blocks);
    pools.expectCopied(copies);
  }
}

TEST(NvidiaCache, A13_PaddingSlotWritesNothing) {
  AttentionSpec spec = halfShape(2, 8, 8, 4);
  Kernels kernels(spec);
  for (int64_t padding : {int64_t(-1), int64_t(0xffffffff), int64_t(-7)}) {
    SCOPED_TRACE(padding);
    CachePools pools(spec, /*blocks=*/2, /*padding=*/0);
    NewTokens tokens(spec, 3, /*padding=*/0);
    tokens.slots = {5, padding, 7};
    EmulatedLauncher({}).append(*kernels.append, tokens.args(pools), {3, 2, 0});
    pools.expectWritten(tokens);
  }
}

TEST(NvidiaCache, SlotsOutsideThePoolAreReported) {
  AttentionSpec spec = halfShape(2, 8, 8, 4);
  Kernels kernels(spec);
  CachePools pools(spec, /*blocks=*/2, /*padding=*/0);
  NewTokens tokens(spec, 1, /*padding=*/0);
  tokens.slots = {8}; // of 0 to 7
  try {
    EmulatedLauncher({}).append(*kernels.append, tokens.args(pools), {1, 2, 0});
    FAIL() << "expected a fault";
  } catch (const std::runtime_error &error) {
    EXPECT_THAT(error.what(), HasSubstr("writes 16 bytes outside of every"));
  }
}

TEST(NvidiaCache, MisalignedRowsAreRefused) {
  AttentionSpec spec = halfShape(2, 8, 8, 4);
  Kernels kernels(spec);
  CachePools pools(spec, /*blocks=*/2, /*padding=*/0);
  NewTokens tokens(spec, 1, /*padding=*/0);
  pagoda_append_args args = tokens.args(pools);
  auto messageOf = [&] {
    try {
      EmulatedLauncher({}).append(*kernels.append, args, {1, 2, 0});
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  args.k.token_stride += 2;
  EXPECT_EQ(messageOf(),
            "launch: k.token_stride: expected a multiple of 8, got 10");
  args = tokens.args(pools);
  args.v_new = static_cast<const char *>(args.v_new) + 4;
  EXPECT_EQ(messageOf(),
            "launch: v_new: expected a multiple of 16 bytes, got one of 4");
}

} // namespace
