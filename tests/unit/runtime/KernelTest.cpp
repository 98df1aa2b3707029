//===- KernelTest.cpp - Kernels found, checked, refused ---===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Libraries in memory and from files, selection among variants, and messages
// that print both sides of a mismatch.
//
//===----------------------------------------------------------------------===//

#include "FakeKernels.h"
#include "TestErrors.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace pagoda;
using namespace pagoda::test;

TEST(Kernel, SelectsByMaxRows) {
  FakeSpec spec;
  spec.maxRows = {64, 1, 8};
  FakeLibrary fake(spec);
  KernelLibrary library = KernelLibrary::wrap(fake.info());
  KernelSet set = library.select(fake.spec());
  ASSERT_EQ(set.attention.size(), 3u);
  EXPECT_EQ(set.attention[0]->max_rows, 1);
  EXPECT_EQ(set.attention[2]->max_rows, 64);
  EXPECT_STREQ(set.merge->name, "merge");
  EXPECT_STREQ(set.append->name, "append");
  EXPECT_STREQ(set.copy->name, "copy");
  EXPECT_EQ(library.find("attend_8"), set.attention[1]);
  EXPECT_EQ(library.find("attend_9"), nullptr);
}

TEST(Kernel, TakesTheVariantThatUsesTheMachine) {
  FakeSpec spec;
  spec.maxRows = {1, 1, 1};
  FakeLibrary fake(spec);
  fake.kernel(0).cpu_features = PAGODA_CPU_AVX2;
  fake.kernel(1).cpu_features = PAGODA_CPU_AVX2 | PAGODA_CPU_FMA;
  fake.kernel(2).cpu_features =
      PAGODA_CPU_AVX2 | PAGODA_CPU_FMA | PAGODA_CPU_AVX512F;
  KernelLibrary library = KernelLibrary::wrap(fake.info());
  auto pick = [&](uint64_t features) {
    return library.select(fake.spec(), features).attention.at(0);
  };
  EXPECT_EQ(pick(~0ull), &library.kernels()[2]);
  EXPECT_EQ(pick(PAGODA_CPU_AVX2 | PAGODA_CPU_FMA), &library.kernels()[1]);
  EXPECT_EQ(pick(PAGODA_CPU_AVX2), &library.kernels()[0]);
  EXPECT_PAGODA_ERROR(pick(PAGODA_CPU_NEON), ErrorCode::Mismatch,
                      "kernel needs avx2, machine lacks avx2");
}

TEST(Kernel, MismatchPrintsBothSides) {
  FakeLibrary fake({});
  KernelLibrary library = KernelLibrary::wrap(fake.info());
  struct {
    void (*change)(KernelSpec &);
    const char *part;
  } cases[] = {
      {[](KernelSpec &s) { s.qHeads = 8; },
       "q_heads: kernel has 4, caller has 8"},
      {[](KernelSpec &s) { s.kvHeads = 1; },
       "kv_heads: kernel has 2, caller has 1"},
      {[](KernelSpec &s) { s.headDim = 64; },
       "head_dim: kernel has 8, caller has 64"},
      {[](KernelSpec &s) { s.vHeadDim = 9; },
       "v_head_dim: kernel has 8, caller has 9"},
      {[](KernelSpec &s) { s.blockSize = 16; },
       "block_size: kernel has 4, caller has 16"},
      {[](KernelSpec &s) { s.layout = PAGODA_NHD; },
       "layout: kernel has hnd, caller has nhd"},
      {[](KernelSpec &s) { s.qType = PAGODA_F16; },
       "q_dtype: kernel has f32, caller has f16"},
      {[](KernelSpec &s) { s.kType = PAGODA_I8; },
       "k_dtype: kernel has f32, caller has i8"},
      {[](KernelSpec &s) { s.vType = PAGODA_F8E4M3; },
       "v_dtype: kernel has f32, caller has f8e4m3"},
      {[](KernelSpec &s) { s.oType = PAGODA_BF16; },
       "o_dtype: kernel has f32, caller has bf16"},
      {[](KernelSpec &s) { s.features |= PAGODA_FEATURE_WINDOW; },
       "features: kernel has causal, caller has causal, window"},
      {[](KernelSpec &s) { s.modsHash = 5; },
       "mods_hash: kernel has 0, caller has 5"},
  };
  for (auto &c : cases) {
    KernelSpec spec = fake.spec();
    c.change(spec);
    EXPECT_PAGODA_ERROR((void)library.select(spec), ErrorCode::Mismatch,
                        c.part);
  }
}

TEST(Kernel, RotationsAreNotGuessed) {
  FakeLibrary fake({});
  std::vector<pagoda_kernel_info> kernels(
      fake.info()->kernels, fake.info()->kernels + fake.info()->kernel_count);
  pagoda_kernel_info rotating = kernels.end()[-2];
  ASSERT_EQ(rotating.role, PAGODA_ROLE_APPEND);
  rotating.name = "append_rotating";
  rotating.rotary_dim = 8;
  kernels.push_back(rotating);
  pagoda_library_info both = {PAGODA_ABI_VERSION, uint32_t(kernels.size()),
                              kernels.data()};
  KernelLibrary library = KernelLibrary::wrap(&both);
  KernelSpec spec = fake.spec();
  EXPECT_PAGODA_ERROR((void)library.select(spec), ErrorCode::Mismatch,
                      "append kernels differ: append rotates 0 dims, "
                      "append_rotating rotates 8 dims");
  for (int32_t dims : {0, 8}) {
    spec.rotaryDim = dims;
    EXPECT_EQ(library.select(spec).append->rotary_dim, dims);
  }
}

TEST(Kernel, CacheIsCheckedAgainstTheKernel) {
  FakeLibrary fake({});
  KernelLibrary library = KernelLibrary::wrap(fake.info());
  KernelSet set = library.select(fake.spec());
  KvFormat format = fake.spec().format();
  for (const pagoda_kernel_info &kernel : library.kernels())
    EXPECT_NO_THROW(checkCompatible(kernel, format));
  format.blockSize = 32;
  EXPECT_PAGODA_ERROR(checkCompatible(*set.attention[0], format),
                      ErrorCode::Mismatch,
                      "block_size: kernel has 4, caller has 32");
  EXPECT_PAGODA_ERROR(checkCompatible(*set.copy, format), ErrorCode::Mismatch,
                      "kernel copy does not fit the cache");
}

TEST(Kernel, OtherVersionsAreRefused) {
  FakeLibrary fake({});
  pagoda_library_info info = *fake.info();
  info.abi_version = 77;
  EXPECT_PAGODA_ERROR(KernelLibrary::wrap(&info, "x.so"), ErrorCode::BadLibrary,
                      "library x.so: library: abi version: kernels have 77, "
                      "runtime has " +
                          std::to_string(PAGODA_ABI_VERSION));
  fake.kernel(1).abi_version = 78;
  EXPECT_PAGODA_ERROR(KernelLibrary::wrap(fake.info()), ErrorCode::BadLibrary,
                      "kernel 1: abi version: kernels have 78");
  fake.kernel(1).abi_version = PAGODA_ABI_VERSION;
  fake.kernel(1).struct_size = 100;
  EXPECT_PAGODA_ERROR(KernelLibrary::wrap(fake.info()), ErrorCode::BadLibrary,
                      "kernels have 100 bytes, runtime has 144");
  EXPECT_PAGODA_ERROR(KernelLibrary::wrap(nullptr), ErrorCode::BadLibrary,
                      "got null");
}

TEST(Kernel, ImpossibleShapesAreRefused) {
  FakeSpec spec;
  spec.headsPerItem = 3; // of 2
  FakeLibrary fake(spec);
  EXPECT_PAGODA_ERROR(KernelLibrary::wrap(fake.info()), ErrorCode::BadLibrary,
                      "heads_per_item");
}

TEST(Kernel, KernelsForAGpuAreNotRun) {
  FakeLibrary fake({});
  for (size_t i = 0; i != fake.info()->kernel_count; ++i)
    fake.kernel(i).entry = nullptr;
  KernelLibrary library = KernelLibrary::wrap(fake.info());
  EXPECT_PAGODA_ERROR((void)library.select(fake.spec()), ErrorCode::Mismatch,
                      "it has none for a cpu");
}

TEST(Kernel, OpenNamesTheFile) {
  EXPECT_PAGODA_ERROR((void)KernelLibrary::open("no/such/file.so"),
                      ErrorCode::BadLibrary, "library no/such/file.so");
  // A shared library, but not one of kernels.
  EXPECT_PAGODA_ERROR((void)KernelLibrary::open(PAGODA_RUNTIME_FILE),
                      ErrorCode::BadLibrary,
                      "expected the symbol pagoda_library");
}

// Not what the loader would find of that name elsewhere.
TEST(Kernel, OpenTakesAPathWithoutAFolder) {
  namespace fs = std::filesystem;
  fs::path before = fs::current_path(), file = FAKE_KERNELS_FILE;
  fs::current_path(file.parent_path());
  EXPECT_NO_THROW((void)KernelLibrary::open(file.filename()));
  EXPECT_PAGODA_ERROR((void)KernelLibrary::open("libm.so.6"),
                      ErrorCode::BadLibrary, "library libm.so.6: cannot be");
  fs::current_path(before);
}
