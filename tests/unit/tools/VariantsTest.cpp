//===- VariantsTest.cpp - Several machines in one library -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library made for AVX2 and AVX-512 is opened as an engine would: the runtime
// finds the kernels by specification, and of those the variant for the machine.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"
#include "runtime/include/pagoda/Kernel.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace pagoda;

namespace {

constexpr uint64_t avx2 = PAGODA_CPU_AVX2 | PAGODA_CPU_FMA | PAGODA_CPU_F16C;
constexpr uint64_t avx512 = avx2 | PAGODA_CPU_AVX512F | PAGODA_CPU_AVX512BW |
                            PAGODA_CPU_AVX512DQ | PAGODA_CPU_AVX512VL;

/// A library with two specifications for two machines.
class Variants : public testing::Test {
protected:
  void SetUp() override {
    AttentionSpec spec;
    spec.name = "full";
    spec.qHeads = 4;
    spec.kvHeads = 2;
    spec.headDim = spec.vHeadDim = 32;
    spec.scale = 0.25;
    AttentionSpec windowed = spec;
    windowed.name = "windowed";
    windowed.window = 64;
    std::vector<AttentionSpec> specs = {spec, windowed};

    CompileOptions options;
    options.machine = cantFail(Machine::named("x86-64-v3"));
    options.variants = {cantFail(Machine::named("x86-64-v4")),
                        cantFail(Machine::named("avx512-bf16"))};
    Expected<Artifact> artifact = compile(specs, options);
    ASSERT_TRUE(bool(artifact)) << toString(artifact.takeError());
    ASSERT_FALSE(sys::fs::createUniqueDirectory("pagoda-variants", directory));
    llvm::Error error = emitArtifact(*artifact, {specs}, directory, "kernels");
    ASSERT_FALSE(bool(error)) << toString(std::move(error));
    library = std::make_unique<KernelLibrary>(
        KernelLibrary::open((directory + "/libkernels.so").str()));
  }
  void TearDown() override {
    library.reset();
    sys::fs::remove_directories(directory);
  }

  static KernelSpec wanted(uint32_t features) {
    KernelSpec spec;
    spec.qHeads = 4;
    spec.kvHeads = 2;
    spec.headDim = spec.vHeadDim = 32;
    spec.features = features;
    return spec;
  }
  /// Targets of all kernels that are selected.
  std::vector<std::string> targets(uint64_t cpu, uint32_t features) {
    KernelSet set = library->select(wanted(features), cpu);
    EXPECT_EQ(set.attention.size(), 2u) << "prefill and decode";
    std::vector<std::string> result;
    for (const pagoda_kernel_info *kernel : set.attention)
      result.push_back(kernel->target);
    result.push_back(set.merge ? set.merge->target : "no merge");
    return result;
  }

  SmallString<128> directory;
  std::unique_ptr<KernelLibrary> library;
};

TEST_F(Variants, TheMachineDecides) {
  // Three machines, two specifications: prefill, decode, merge, append and
  // copy.
  EXPECT_EQ(library->kernels().size(), 30u);
  EXPECT_TRUE(library->find("attention_x86_64_v3_full_prefill"));
  EXPECT_TRUE(library->find("attention_x86_64_v4_windowed_decode"));
  for (uint32_t features :
       {uint32_t(PAGODA_FEATURE_CAUSAL),
        uint32_t(PAGODA_FEATURE_CAUSAL | PAGODA_FEATURE_WINDOW)}) {
    EXPECT_EQ(targets(avx2, features),
              std::vector<std::string>(3, "cpu:x86-64-v3"));
    EXPECT_EQ(targets(avx512, features),
              std::vector<std::string>(3, "cpu:x86-64-v4"));
    EXPECT_EQ(targets(avx512 | PAGODA_CPU_AVX512_BF16, features),
              std::vector<std::string>(3, "cpu:avx512-bf16"));
  }

  // What cannot run is not taken, here or elsewhere.
  try {
    (void)library->select(wanted(PAGODA_FEATURE_CAUSAL), PAGODA_CPU_AVX2);
    FAIL() << "a machine without FMA got a kernel";
  } catch (const pagoda::Error &error) {
    EXPECT_TRUE(StringRef(error.what()).contains("machine lacks fma, f16c"))
        << error.what();
  }

  uint64_t here = hostCpuFeatures();
  if ((here & avx2) != avx2)
    GTEST_SKIP() << "needs AVX2, this machine has " << cpuFeatureNames(here);
  KernelSet set = library->select(wanted(PAGODA_FEATURE_CAUSAL));
  const char *best = (here & avx512) != avx512         ? "cpu:x86-64-v3"
                     : (here & PAGODA_CPU_AVX512_BF16) ? "cpu:avx512-bf16"
                                                       : "cpu:x86-64-v4";
  for (const pagoda_kernel_info *kernel : set.attention) {
    EXPECT_EQ(kernel->cpu_features & ~here, 0u) << kernel->name;
    EXPECT_STREQ(kernel->target, best);
  }
}

} // namespace
