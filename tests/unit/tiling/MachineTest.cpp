//===- MachineTest.cpp - The host as it is, and machines by name ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "runtime/include/pagoda/kernel_abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Triple.h"
#include "gtest/gtest.h"

#include <sched.h>

using namespace pagoda;
using namespace pagoda::test;

TEST(Machine, HostHasWhatTheProcessorReports) {
  Machine host = Machine::host();
  EXPECT_EQ(host.name, "host");
  EXPECT_EQ(host.kind, TargetKind::Cpu);
  EXPECT_FALSE(host.cpu.empty());
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_EQ(host.cores, CPU_COUNT(&set));
  EXPECT_GE(host.l1Bytes, 8 << 10);
  EXPECT_LE(host.l1Bytes, 1 << 20);
  EXPECT_GT(host.l2Bytes, host.l1Bytes);
#if defined(__x86_64__)
  // The compiler's own detection, which shares no code with LLVM's.
  __builtin_cpu_init();
  auto expectBit = [&](uint64_t bit, bool supported, const char *name) {
    EXPECT_EQ(bool(host.cpuFeatures & bit), supported) << name;
  };
  expectBit(PAGODA_CPU_AVX2, __builtin_cpu_supports("avx2"), "avx2");
  expectBit(PAGODA_CPU_FMA, __builtin_cpu_supports("fma"), "fma");
  expectBit(PAGODA_CPU_F16C, __builtin_cpu_supports("f16c"), "f16c");
  expectBit(PAGODA_CPU_AVX512F, __builtin_cpu_supports("avx512f"), "avx512f");
  expectBit(PAGODA_CPU_AVX512BW, __builtin_cpu_supports("avx512bw"), "bw");
  expectBit(PAGODA_CPU_AVX512DQ, __builtin_cpu_supports("avx512dq"), "dq");
  expectBit(PAGODA_CPU_AVX512VL, __builtin_cpu_supports("avx512vl"), "vl");
  expectBit(PAGODA_CPU_AVX512_BF16, __builtin_cpu_supports("avx512bf16"),
            "avx512bf16");
  expectBit(PAGODA_CPU_NEON, false, "neon");
  int64_t bits = __builtin_cpu_supports("avx512f") ? 512
                 : __builtin_cpu_supports("avx2")  ? 256
                                                   : 128;
  EXPECT_EQ(host.vectorBits, bits);
  EXPECT_EQ(host.vectorRegisters, bits == 512 ? 32 : 16);
#endif
}

TEST(Machine, HostSpellsOutMissingFeatures) {
  // A virtual machine may hide features that the processor's name implies.
  llvm::SmallVector<llvm::StringRef> features;
  std::string text = Machine::host().features;
  llvm::SplitString(text, features, ",");
  ASSERT_FALSE(features.empty());
  bool minus = false;
  for (llvm::StringRef feature : features) {
    EXPECT_TRUE(feature.starts_with("+") || feature.starts_with("-"));
    minus |= feature.starts_with("-");
  }
  EXPECT_TRUE(minus);
}

TEST(Machine, NamedCpus) {
  struct Row {
    const char *name;
    int64_t bits, registers;
    uint64_t features;
    llvm::Triple::ArchType arch;
  };
  const uint64_t avx2 = PAGODA_CPU_AVX2 | PAGODA_CPU_FMA | PAGODA_CPU_F16C;
  const uint64_t avx512 = avx2 | PAGODA_CPU_AVX512F | PAGODA_CPU_AVX512BW |
                          PAGODA_CPU_AVX512DQ | PAGODA_CPU_AVX512VL;
  const Row rows[] = {
      {"x86-64-v3", 256, 16, avx2, llvm::Triple::x86_64},
      {"x86-64-v4", 512, 32, avx512, llvm::Triple::x86_64},
      {"avx512-bf16", 512, 32, avx512 | PAGODA_CPU_AVX512_BF16,
       llvm::Triple::x86_64},
      {"neon", 128, 32, PAGODA_CPU_NEON, llvm::Triple::aarch64}};
  for (const Row &row : rows) {
    Machine m = machine(row.name);
    EXPECT_EQ(m.name, row.name);
    EXPECT_EQ(m.kind, TargetKind::Cpu);
    EXPECT_EQ(m.vectorBits, row.bits) << row.name;
    EXPECT_EQ(m.lanesF32(), row.bits / 32) << row.name;
    EXPECT_EQ(m.vectorRegisters, row.registers) << row.name;
    EXPECT_EQ(m.cpuFeatures, row.features) << row.name;
    EXPECT_EQ(llvm::Triple(m.triple).getArch(), row.arch) << row.name;
    EXPECT_LT(m.l1Bytes, m.l2Bytes);
    EXPECT_LT(m.l2Bytes, m.l3Bytes);
  }
  EXPECT_NE(machine("avx512-bf16").features.find("+avx512bf16"),
            std::string::npos);
  EXPECT_EQ(machine("x86-64-v3").features, "+avx2,+fma,+f16c");
}

TEST(Machine, NamedGpus) {
  const std::pair<const char *, int64_t> rows[] = {
      {"sm_80", 163},  {"sm_86", 99},    {"sm_89", 99},
      {"sm_90a", 227}, {"sm_100a", 227}, {"sm_120a", 99}};
  for (auto [name, kib] : rows) {
    Machine m = machine(name);
    EXPECT_EQ(m.kind, TargetKind::Nvidia);
    EXPECT_EQ(m.cpu, name);
    EXPECT_EQ(m.sharedBytes, kib * 1024) << name;
    EXPECT_EQ(m.registersPerThread, 255);
    EXPECT_TRUE(llvm::Triple(m.triple).isNVPTX());
    EXPECT_TRUE(llvm::StringRef(m.features).starts_with("+ptx"));
    EXPECT_EQ(m.cpuFeatures, 0u);
  }
}

TEST(Machine, EveryKnownNameIsFoundAndNoOther) {
  for (const std::string &name : Machine::knownNames())
    EXPECT_EQ(machine(name).name, name);
  EXPECT_EQ(text(Machine::named("sm_75").takeError()),
            "unknown machine 'sm_75', known are host, x86-64-v3, x86-64-v4, "
            "avx512-bf16, neon, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a");
}
