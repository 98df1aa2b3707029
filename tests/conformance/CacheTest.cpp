//===- CacheTest.cpp - Kernels that write the cache -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// append_kv and copy_blocks, from the compiler's JIT through the launcher.
// Every element of both pools is looked at afterwards: what should have been
// written against an f64 rotation, everything else for the bits it had before.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/CacheFixture.h"

#include "compiler/import/ModelConfig.h"
#include "compiler/import/RopeTables.h"
#include "llvm/Support/FileSystem.h"

#include <cmath>
#include <set>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

using CacheKernels = CacheTest;

/// Rotates tokens at `positions` by every entry of `spec`'s cache; slots spread
/// over the blocks in no order.
void appendEverywhere(CacheTest &test, const AttentionSpec &spec,
                      const RopeConfig &rope, int64_t length,
                      const std::vector<int32_t> &positions) {
  CachePools pools(spec, /*blocks=*/5, /*padding=*/3);
  NewTokens tokens(spec, int64_t(positions.size()), /*padding=*/2);
  RopeTables tables = ropeTables(rope, 1024, length);
  tokens.rotate(rope, length, positions);
  int64_t slots = 5 * spec.blockSize;
  for (size_t t = 0; t < positions.size(); ++t)
    tokens.slots[t] = int64_t(t * 7 + 3) % slots;
  pagoda_append_args args = tokens.args(pools);
  if (tables.pairs) {
    args.rope_cos = tables.cos.data();
    args.rope_sin = tables.sin.data();
    args.rope_stride = tables.pairs;
  }
  test.launcher().append(*test.kernels(spec).append, args, tokens.count);
  pools.expectWritten(tokens);
}

TEST_F(CacheKernels, A13_PaddingSlotWritesNothing) {
  AttentionSpec spec = shape(2, 8, 8, 4);
  for (int64_t padding : {int64_t(-1), int64_t(0xffffffff), int64_t(-7),
                          std::numeric_limits<int64_t>::min()}) {
    SCOPED_TRACE(padding);
    CachePools pools(spec, /*blocks=*/2, /*padding=*/0);
    NewTokens tokens(spec, 3, /*padding=*/0);
    tokens.slots = {5, padding, 7};
    launcher().append(*kernels(spec).append, tokens.args(pools), 3);
    pools.expectWritten(tokens);
  }
}

TEST_F(CacheKernels, A1_SlotBeyond2To31Elements) {
  AttentionSpec spec = shape(8, 128, 128, 16);
  // Blocks of 2^14 elements: slot 16 * 131072 begins at element 2^31.
  constexpr int64_t Block = 131072, Elements = (Block + 1) << 14;
  GuardedBuffer k(Elements * sizeof(float)), v(Elements * sizeof(float));
  NewTokens tokens(spec, 1, 0);
  pagoda_append_args args = tokens.args(CachePools(spec, 1, 0));
  args.k = {k.data(), 1 << 14, 16 * 128, 128};
  args.v = {v.data(), 1 << 14, 16 * 128, 128};
  int64_t slot = Block * 16 + 1;
  args.slot_mapping = &slot;
  launcher().append(*kernels(spec).append, args, 1);
  auto expectRow = [&](int64_t block) {
    for (int64_t h = 0; h < 8; ++h)
      for (int64_t d = 0; d < 128; ++d) {
        int64_t at = (block << 14) + (h * 16 + 1) * 128 + d;
        ASSERT_EQ(k.as<float>()[at], float(tokens.k[h * 128 + d]));
        ASSERT_EQ(v.as<float>()[at], float(tokens.v[h * 128 + d]));
      }
  };
  expectRow(Block);
  pagoda_block_copy copy = {int32_t(Block), 7};
  launcher().copy(*kernels(spec).copy, {args.k, args.v, &copy}, 1);
  expectRow(7);
}

/// Append and copy for shapes of all sorts in one layout.
void checkShapes(CacheTest &test, KvLayout layout) {
  struct {
    int64_t heads, kDim, vDim, rotary, block;
    bool interleaved;
  } const shapes[] = {
      {1, 1, 1, 0, 1, false},       {2, 2, 3, 2, 1, true},
      {3, 71, 33, 70, 3, false},    {3, 71, 33, 62, 17, true},
      {2, 192, 128, 64, 16, true},  {1, 80, 80, 32, 256, false},
      {2, 256, 256, 256, 8, false}, {8, 64, 96, 64, 5, true},
  };
  std::vector<int32_t> positions = {0, 1023, 17, 1, 512};
  for (const auto &s : shapes) {
    AttentionSpec spec = CacheTest::shape(s.heads, s.kDim, s.vDim, s.block);
    spec.layout = layout;
    spec.rotaryDim = s.rotary;
    spec.ropeInterleaved = s.interleaved;
    SCOPED_TRACE(describeCache(spec));
    RopeConfig rope;
    rope.kind = s.rotary ? RopeKind::Default : RopeKind::None;
    rope.rotaryDim = s.rotary;
    rope.interleaved = s.interleaved;
    appendEverywhere(test, spec, rope, 1024, positions);
    // The same kernel without tables, for layers that do not rotate.
    appendEverywhere(test, spec, RopeConfig(), 1024, positions);

    CachePools pools(spec, /*blocks=*/7, /*padding=*/5);
    std::vector<pagoda_block_copy> copies = {
        {0, 3}, {6, 1}, {-1, 2}, {4, -1}, {0, 5}};
    test.launcher().copy(*test.kernels(spec).copy, pools.copyArgs(copies),
                         int64_t(copies.size()));
    pools.expectCopied(copies);
  }
}

TEST_F(CacheKernels, ShapesAndBlockSizesNhd) {
  checkShapes(*this, KvLayout::NHD);
}
TEST_F(CacheKernels, ShapesAndBlockSizesHnd) {
  checkShapes(*this, KvLayout::HND);
}

TEST_F(CacheKernels, ElementTypes) {
  for (auto [from, to] : {std::pair(DType::F16, DType::F16),
                          {DType::BF16, DType::BF16},
                          {DType::F32, DType::BF16},
                          {DType::F32, DType::F16},
                          {DType::BF16, DType::F32}})
    for (bool interleaved : {false, true}) {
      AttentionSpec spec = shape(2, 71, 48, 3);
      spec.qType = from;
      spec.kvType = to;
      spec.rotaryDim = 46;
      spec.ropeInterleaved = interleaved;
      SCOPED_TRACE(describeCache(spec));
      RopeConfig rope;
      rope.kind = RopeKind::Default;
      rope.rotaryDim = 46;
      rope.interleaved = interleaved;
      appendEverywhere(*this, spec, rope, 1024, {0, 1023, 17, 1, 512});
      appendEverywhere(*this, spec, RopeConfig(), 1024, {0, 1023, 17, 1, 512});
      CachePools pools(spec, /*blocks=*/3, /*padding=*/5);
      std::vector<pagoda_block_copy> copies = {{0, 2}};
      launcher().copy(*kernels(spec).copy, pools.copyArgs(copies), 1);
      pools.expectCopied(copies);
    }
}

/// Every kind of layer of every shipped model, short and long sequences.
TEST_F(CacheKernels, RotationOfEveryConfig) {
  std::set<RopeKind> kinds;
  std::set<std::pair<bool, bool>> pairings; // interleaved, partial
  std::error_code error;
  int64_t files = 0;
  for (llvm::sys::fs::directory_iterator it(PAGODA_CONFIG_DIR, error), end;
       it != end && !error; it.increment(error)) {
    llvm::Expected<ModelConfig> model = loadModelConfig(it->path());
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    ++files;
    for (const LayerKind &kind : model->kinds) {
      const RopeConfig &rope = kind.rope;
      if (!kind.hasKvCache || rope.kind == RopeKind::None)
        continue;
      SCOPED_TRACE(it->path() + " " + kind.name);
      AttentionSpec spec = shape(1, kind.spec.headDim, 16, 4);
      spec.rotaryDim = kind.spec.rotaryDim;
      spec.ropeInterleaved = kind.spec.ropeInterleaved;
      if (rope.rotaryOffset) { // the one rotated row of latent attention
        EXPECT_EQ(spec.rotaryDim, 0);
        spec.headDim = spec.rotaryDim = rope.rotaryDim;
        spec.ropeInterleaved = rope.interleaved;
      }
      EXPECT_EQ(spec.rotaryDim, rope.rotaryDim);
      kinds.insert(rope.kind);
      pairings.insert({rope.interleaved, spec.rotaryDim < spec.headDim});
      for (int64_t length : {int64_t(1024), 4 * rope.originalMaxPosition + 5})
        appendEverywhere(*this, spec, rope, length, {1, 1023, 0, 600});
    }
  }
  EXPECT_FALSE(error) << error.message();
  EXPECT_GT(files, 50);
  EXPECT_EQ(kinds.size(), 6u) << "a kind of scaling that no config has";
  EXPECT_EQ(pairings.size(), 4u);
}

TEST_F(CacheKernels, SelectedByRotation) {
  AttentionSpec plain = shape(2, 32, 32, 16), partial = plain, pairs = plain;
  partial.name = "partial";
  partial.rotaryDim = 16;
  pairs.name = "pairs";
  pairs.rotaryDim = 32;
  pairs.ropeInterleaved = true;
  auto code = JitLibrary::compile({plain, partial, pairs}, {});
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  KernelLibrary library = KernelLibrary::wrap((*code)->info());
  for (const AttentionSpec &spec : {plain, partial, pairs}) {
    KernelSet set = library.select(kernelSpecOf(spec));
    ASSERT_TRUE(set.append && set.copy);
    EXPECT_EQ(set.append->rotary_dim, spec.rotaryDim);
    EXPECT_EQ(set.append->rope_interleaved, spec.ropeInterleaved);
    EXPECT_EQ(mismatch(*set.append, KernelSpec::of(*set.append)), "");
  }
  KernelSpec other = kernelSpecOf(plain);
  other.rotaryDim = 8;
  EXPECT_EQ(library.select(other).append, nullptr);
}

TEST_F(CacheKernels, LauncherNamesWhatDoesNotFit) {
  AttentionSpec spec = shape(1, 8, 8, 4), rotating = spec;
  rotating.rotaryDim = 8;
  CachePools pools(spec, 2, 0);
  NewTokens tokens(spec, 1, 0);
  tokens.slots = {0};
  std::vector<float> table(4, 1);
  auto message = [&](const AttentionSpec &of, const pagoda_append_args &args) {
    try {
      launcher().append(*kernels(of).append, args, 1);
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  pagoda_append_args args = tokens.args(pools);
  args.rope_cos = table.data();
  args.rope_stride = 4;
  EXPECT_NE(message(spec, args).find("rotates no keys"), std::string::npos);
  EXPECT_NE(message(rotating, args).find("rope_sin"), std::string::npos);
  args.rope_sin = table.data();
  args.positions = nullptr;
  EXPECT_NE(message(rotating, args).find("positions"), std::string::npos);
  int32_t position = 0;
  args.positions = &position;
  args.rope_stride = 3;
  EXPECT_NE(message(rotating, args).find("expects 4 or more, got 3"),
            std::string::npos);
  pools.expectWritten(NewTokens(spec, 0, 0)); // refused before anything ran
}

} // namespace
