//===- PtxTest.cpp - PTX, and what ptxas says about it --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels for every chip must assemble without spilling; skipped where ptxas is
// not installed. The report's parser is tested on text.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Ptx.h"
#include "compiler/Driver.h"
#include "tests/unit/target/nvidia/Claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace pagoda;
using testing::HasSubstr;
using testing::Not;

namespace {

AttentionSpec specOf(int64_t headDim) {
  AttentionSpec spec;
  spec.qHeads = 16;
  spec.kvHeads = 8;
  spec.headDim = spec.vHeadDim = headDim;
  spec.qType = spec.kvType = DType::F16;
  spec.scale = 0.125;
  return spec;
}

llvm::Expected<Artifact> compileFor(const std::string &chip,
                                    const AttentionSpec &spec) {
  CompileOptions options;
  options.machine = llvm::cantFail(Machine::named(chip));
  return compile({spec}, options);
}

std::string errorFor(const AttentionSpec &spec, std::string schedule = "") {
  CompileOptions options;
  options.machine = llvm::cantFail(Machine::named("sm_80"));
  if (!schedule.empty())
    options.schedule = {schedule};
  auto artifact = compile({spec}, options);
  return artifact ? "" : llvm::toString(artifact.takeError());
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

TEST(Ptxas, AssemblesAndReports) {
  if (!findPtxas())
    GTEST_SKIP() << "ptxas is not on the path or in /usr/local/cuda/bin";
  auto artifact = compileFor("sm_80", specOf(64));
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  EXPECT_EQ(artifact->object, "");
  EXPECT_EQ(artifact->cubin, "");
  auto error = assemble(*artifact, llvm::cantFail(Machine::named("sm_80")));
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  EXPECT_THAT(artifact->cubin, HasSubstr("\x7f"
                                         "ELF"));
  for (const KernelSummary &kernel : artifact->kernels) {
    ASSERT_TRUE(kernel.resources.has_value()) << kernel.name;
    EXPECT_GT(kernel.resources->registers, 0) << kernel.name;
    EXPECT_LE(kernel.resources->registers, 255) << kernel.name;
    EXPECT_EQ(kernel.resources->stackBytes, 0) << kernel.name;
    EXPECT_GE(kernel.resources->blocks, 1) << kernel.name;
  }
}

// A kernel held to the registers that it says it needs does not spill; held to
// fewer than the formula counts, it does.
TEST(Ptxas, NeedIsAClaimThatCanFail) {
  std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "ptxas is not on the path or in /usr/local/cuda/bin";
  auto artifact = compileFor("sm_90a", specOf(128));
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  auto spills = [&](int64_t below) {
    std::string ptx = test::heldToNeed(*artifact, below);
    int64_t bytes = 0;
    for (const KernelResources &kernel :
         llvm::cantFail(assemblePtx(*ptxas, ptx, "sm_90a")).kernels)
      bytes += kernel.spillStores;
    return bytes;
  };
  EXPECT_EQ(spills(0), 0);
  EXPECT_GT(spills(64), 0);
}

TEST(Ptxas, BrokenClaimsAreNamed) {
  KernelSummary kernel;
  kernel.resources = KernelResources{"k", 168, 0, 0, 0, 0, 3};
  kernel.tile.emplace().claim = RegisterClaim{150, 3, 168};
  EXPECT_EQ(test::brokenClaim(kernel), "");
  kernel.resources->registers = 169;
  EXPECT_EQ(test::brokenClaim(kernel), "takes 169 registers, claims 168");
  kernel.resources->registers = 168;
  kernel.resources->blocks = 2;
  EXPECT_EQ(test::brokenClaim(kernel), "leaves room for 2 blocks, claims 3");
  kernel.tile.reset(); // as of merge kernels, which only have to fit
  EXPECT_EQ(test::brokenClaim(kernel), "");
  kernel.resources->blocks = 0;
  EXPECT_EQ(test::brokenClaim(kernel), "leaves room for 0 blocks, claims 1");
  kernel.resources->spillLoads = 4;
  EXPECT_EQ(test::brokenClaim(kernel),
            "spills 0 bytes and loads 4, with 0 bytes of stack");
}

TEST(Ptxas, SaysWhatItDoesNotLike) {
  std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "ptxas is not on the path or in /usr/local/cuda/bin";
  auto cubin = assemblePtx(*ptxas, "this is no PTX\n", "sm_80");
  ASSERT_FALSE(bool(cubin));
  EXPECT_THAT(llvm::toString(cubin.takeError()),
              testing::AllOf(HasSubstr("failed for sm_80 with status"),
                             HasSubstr("fatal")));
}

TEST(Ptxas, ReportIsRead) {
  auto kernels = parsePtxasReport(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_80'\n"
      "ptxas info    : Function properties for first\n"
      "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem, "
      "704 bytes cmem[0]\n"
      "ptxas info    : Compile time = 83.267 ms\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_80'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "first");
  EXPECT_EQ(kernels[0].registers, 168);
  EXPECT_EQ(kernels[0].stackBytes, 8);
  EXPECT_EQ(kernels[0].spillStores, 4);
  EXPECT_EQ(kernels[0].spillLoads, 12);
  EXPECT_EQ(kernels[0].sharedBytes, 1024);
  EXPECT_EQ(kernels[1].name, "second");
  EXPECT_EQ(kernels[1].registers, 40);
  EXPECT_EQ(kernels[1].spillStores, 0);
}

//===----------------------------------------------------------------------===//
// Artifacts and diagnostics
//===----------------------------------------------------------------------===//

TEST(Ptx, DescribesItsKernels) {
  auto artifact = compileFor("sm_80", specOf(64));
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  // One for prefill and decode, merge, append, copy.
  ASSERT_EQ(artifact->kernels.size(), 4u);
  const pagoda_kernel_info &prefill = artifact->kernels[0].info;
  EXPECT_EQ(prefill.role, PAGODA_ROLE_ATTENTION);
  EXPECT_EQ(prefill.q_dtype, PAGODA_F16);
  EXPECT_EQ(prefill.threads, 128);
  // Q and two stages of K and V.
  EXPECT_EQ(prefill.shared_bytes, 64 * 64 * 2 + 2 * 2 * 64 * 64 * 2);
  EXPECT_EQ(prefill.max_rows, 32);
  EXPECT_EQ(prefill.heads_per_item, 1);
  EXPECT_EQ(artifact->kernels[1].info.role, PAGODA_ROLE_MERGE);
  EXPECT_EQ(artifact->kernels[1].info.shared_bytes, 0);
  EXPECT_EQ(artifact->kernels[2].info.role, PAGODA_ROLE_APPEND);
  EXPECT_EQ(artifact->kernels[3].info.role, PAGODA_ROLE_COPY);
  EXPECT_THAT(artifact->ptx, HasSubstr(".target sm_80"));
  for (const KernelSummary &kernel : artifact->kernels)
    EXPECT_THAT(artifact->ptx,
                HasSubstr(".visible .entry " + kernel.name + "("));
}

TEST(Ptx, NothingInItIsCalled) {
  auto artifact = compileFor("sm_90a", specOf(64));
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  EXPECT_THAT(artifact->ptx, Not(HasSubstr("call")));
  EXPECT_THAT(artifact->ptx, Not(HasSubstr("__nv_")));
}

TEST(Ptx, UnsupportedCasesAreNamed) {
  AttentionSpec f32 = specOf(64);
  f32.qType = f32.kvType = DType::F32;
  EXPECT_THAT(errorFor(f32),
              HasSubstr("q_type must be f16 or bf16 on nvidia, got 'f32'"));
  EXPECT_THAT(errorFor(specOf(272)),
              HasSubstr("cache k_dim must be at most 256 on nvidia, got 272"));
  // Latent attention: o alone would fill the registers.
  AttentionSpec latent = specOf(576);
  latent.vHeadDim = 512;
  EXPECT_THAT(errorFor(latent), HasSubstr("registers, sm_80 has 240 (M7)"));
  AttentionSpec mixed = specOf(64);
  mixed.kvType = DType::BF16;
  EXPECT_THAT(errorFor(mixed), HasSubstr("got 'bf16'"));
  EXPECT_THAT(errorFor(specOf(64), "order=naive"),
              HasSubstr("order must be q_outer or split_kv"));
}

TEST(Ptx, StagesOfOtherTargetsAreRefused) {
  CompileOptions gpu, cpu;
  gpu.machine = llvm::cantFail(Machine::named("sm_80"));
  cpu.machine = llvm::cantFail(Machine::named("x86-64-v3"));
  auto message = [&](const CompileOptions &options, Stage stage) {
    auto text = printStage({specOf(64)}, options, stage);
    return text ? "" : llvm::toString(text.takeError());
  };
  EXPECT_EQ(message(gpu, Stage::Asm),
            "stage asm does not exist for sm_80, expected ptx");
  EXPECT_EQ(message(cpu, Stage::Ptx),
            "stage ptx does not exist for x86-64-v3, expected asm");
  EXPECT_EQ(message(cpu, Stage::Fragments),
            "stage fragments does not exist for x86-64-v3, expected target");
}

TEST(Ptx, OnlyNvidiaTargetsAreEmulated) {
  CompileOptions options;
  options.emulate = true;
  auto artifact = compile({specOf(64)}, options);
  ASSERT_FALSE(bool(artifact));
  EXPECT_EQ(llvm::toString(artifact.takeError()),
            "the emulator runs kernels of nvidia targets, got host");
}

} // namespace
