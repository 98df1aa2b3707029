//===- Machine.cpp - The host, and machines known by name -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills in Machine: from the operating system for the host, from one table for
// machines that are not at hand. The only place in the compiler that knows
// names of processors.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/Machine.h"

#include "runtime/include/pagoda/kernel_abi.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <sched.h>
#include <unistd.h>

using namespace llvm;
using namespace pagoda;

namespace {

/// pagoda_cpu_feature bits and LLVM's names for them.
struct CpuFeature {
  uint64_t bit;
  StringRef name;
};
constexpr CpuFeature cpuFeatureNames[] = {
    {PAGODA_CPU_AVX2, "avx2"},         {PAGODA_CPU_FMA, "fma"},
    {PAGODA_CPU_F16C, "f16c"},         {PAGODA_CPU_AVX512F, "avx512f"},
    {PAGODA_CPU_AVX512BW, "avx512bw"}, {PAGODA_CPU_AVX512DQ, "avx512dq"},
    {PAGODA_CPU_AVX512VL, "avx512vl"}, {PAGODA_CPU_AVX512_BF16, "avx512bf16"},
    {PAGODA_CPU_NEON, "neon"}};

constexpr uint64_t avx2 = PAGODA_CPU_AVX2 | PAGODA_CPU_FMA | PAGODA_CPU_F16C;
constexpr uint64_t avx512 = avx2 | PAGODA_CPU_AVX512F | PAGODA_CPU_AVX512BW |
                            PAGODA_CPU_AVX512DQ | PAGODA_CPU_AVX512VL;

constexpr int64_t KiB = 1024, MiB = 1024 * 1024;

/// A CPU by instruction set. Cache sizes are those of common server cores; for
/// a particular machine use "host".
struct NamedCpu {
  StringRef name, triple, cpu, extra;
  uint64_t features;
  int64_t l1, l1Ways, l2, l3;
};
constexpr NamedCpu namedCpus[] = {
    {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "", avx2, 32 * KiB,
     8, 512 * KiB, 16 * MiB},
    // LLVM's x86-64-v4 is tuned for 256-bit vectors; our kernels ask for 512.
    {"x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit",
     avx512, 48 * KiB, 12, 1 * MiB, 32 * MiB},
    {"avx512-bf16", "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit",
     avx512 | PAGODA_CPU_AVX512_BF16, 48 * KiB, 12, 1 * MiB, 32 * MiB},
    {"neon", "aarch64-unknown-linux-gnu", "generic", "", PAGODA_CPU_NEON,
     64 * KiB, 4, 1 * MiB, 32 * MiB}};

/// An NVIDIA chip: shared memory that one block may use, what a multiprocessor
/// has of it, and its threads and blocks, from the table of compute
/// capabilities in the CUDA programming guide; the PTX version that its
/// instructions need; multiprocessors, the cache that they share, flops (dense
/// 16-bit matrices, f32 sums) and bytes of memory a cycle and multiprocessor,
/// from the data sheet of one product.
struct NamedGpu {
  StringRef name, ptx;
  int64_t sharedKiB, allSharedKiB, threads, blocks, multiprocessors, l2MiB;
  double flops, memoryBytes;
};
constexpr NamedGpu namedGpus[] = {
    {"sm_80", "+ptx70", 163, 164, 2048, 32, 108, 40, 2048, 10.2},  // A100 40 GB
    {"sm_86", "+ptx71", 99, 100, 1536, 16, 72, 6, 1024, 4.9},      // A10
    {"sm_89", "+ptx78", 99, 100, 1536, 24, 58, 48, 1024, 2.5},     // L4
    {"sm_90a", "+ptx80", 227, 228, 2048, 32, 132, 50, 4096, 13.9}, // H100 SXM
    {"sm_100a", "+ptx86", 227, 228, 2048, 32, 148, 126, 8192, 29.0}, // B200
    {"sm_120a", "+ptx87", 99, 100, 1536, 24, 170, 96, 512, 4.4}};    // RTX 5090
// Registers of a multiprocessor and the most of a thread, the same on all of
// them (the same table).
constexpr int64_t gpuRegisters = 65536, gpuThreadRegisters = 255;
// Reads of shared memory, the same on all of them (CUDA programming guide: 32
// banks of 4 bytes).
constexpr double sharedBytesPerCycle = 128;

// CPUs: two FMA units, two load ports, half a cache line of L2 a cycle, and the
// memory stream that tiles are costed with (compiler/tiling/README.md).
constexpr double fmaUnits = 2, loadPorts = 2, l2BytesPerCycle = 32,
                 streamBytesPerCycle = 4;

} // namespace

/// Vector width, register count and throughput follow from the features alone.
static void setVectors(Machine &machine) {
  bool wide = machine.cpuFeatures & PAGODA_CPU_AVX512F;
  bool neon = machine.cpuFeatures & PAGODA_CPU_NEON;
  machine.vectorBits = wide                                    ? 512
                       : machine.cpuFeatures & PAGODA_CPU_AVX2 ? 256
                                                               : 128;
  machine.vectorRegisters = wide || neon ? 32 : 16;
  machine.flopsPerCycle = fmaUnits * 2 * double(machine.lanesF32());
  machine.loadsPerCycle = loadPorts;
  machine.nearBytesPerCycle = l2BytesPerCycle;
  machine.memoryBytesPerCycle = streamBytesPerCycle;
}

/// The first line of a file, without its newline; empty if there is none.
static std::string firstLine(const Twine &path) {
  // Files of sysfs claim a size of one page, so they are read as a stream.
  auto buffer = MemoryBuffer::getFileAsStream(path);
  return buffer ? (*buffer)->getBuffer().split('\n').first.str() : "";
}

/// Bytes of the data or unified cache of `level` of processor `cpu`; 0 if the
/// system does not say. Linux: sysfs, then sysconf.
static int64_t cacheBytes(int cpu, int level) {
  for (int index = 0; index < 8; ++index) {
    std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                      "/cache/index" + std::to_string(index);
    std::string type = firstLine(dir + "/type");
    if (type.empty())
      break;
    if (type == "Instruction" ||
        firstLine(dir + "/level") != std::to_string(level))
      continue;
    std::string size = firstLine(dir + "/size"); // "512K"
    StringRef text = size;
    int64_t unit = text.consume_back("K")   ? KiB
                   : text.consume_back("M") ? MiB
                                            : 1;
    int64_t count = 0;
    if (!text.getAsInteger(10, count))
      return count * unit;
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  constexpr int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                           _SC_LEVEL3_CACHE_SIZE};
  return std::max<int64_t>(0, sysconf(names[level - 1]));
#else
  return 0;
#endif
}

/// Lines in a set of the first data cache of processor `cpu`; 0 if the system
/// does not say.
static int64_t waysOfL1(int cpu) {
  int64_t ways = 0;
  // Linux lists the first-level data cache first.
  std::string text =
      firstLine("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                "/cache/index0/ways_of_associativity");
  return StringRef(text).getAsInteger(10, ways) ? 0 : ways;
}

bool Machine::addsPairProducts() const {
  return cpuFeatures & PAGODA_CPU_AVX512_BF16;
}

Machine Machine::host() {
  Machine machine;
  machine.name = "host";
  machine.triple = sys::getProcessTriple();
  machine.cpu = sys::getHostCPUName().str();
  // Every feature is spelt out, the missing ones too: a virtual machine may
  // hide what the processor's name implies.
  std::vector<std::string> features;
  for (const auto &feature : sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features);
  machine.features = join(features, ",");
  for (const CpuFeature &feature : cpuFeatureNames)
    if (is_contained(features, "+" + feature.name.str()))
      machine.cpuFeatures |= feature.bit;
  if (Triple(machine.triple).isAArch64())
    machine.cpuFeatures |= PAGODA_CPU_NEON;
  setVectors(machine);

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int first = 0;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    machine.cores = std::max(1, CPU_COUNT(&allowed));
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &allowed))
      ++first;
  }
  for (auto [level, bytes] : {std::pair{1, &machine.l1Bytes},
                              {2, &machine.l2Bytes},
                              {3, &machine.l3Bytes}})
    if (int64_t found = cacheBytes(first, level))
      *bytes = found;
  if (int64_t ways = waysOfL1(first))
    machine.l1Ways = ways;
  return machine;
}

static Machine fromTable(const NamedCpu &entry) {
  Machine machine;
  machine.name = entry.name.str();
  machine.triple = entry.triple.str();
  machine.cpu = entry.cpu.str();
  machine.cpuFeatures = entry.features;
  std::vector<std::string> features;
  for (const CpuFeature &feature : cpuFeatureNames)
    if (entry.features & feature.bit)
      features.push_back("+" + feature.name.str());
  if (!entry.extra.empty())
    features.push_back(entry.extra.str());
  machine.features = join(features, ",");
  setVectors(machine);
  machine.l1Bytes = entry.l1;
  machine.l1Ways = entry.l1Ways;
  machine.l2Bytes = entry.l2;
  machine.l3Bytes = entry.l3;
  return machine;
}

static Machine fromTable(const NamedGpu &entry) {
  Machine machine;
  machine.name = machine.cpu = entry.name.str();
  machine.kind = TargetKind::Nvidia;
  machine.triple = "nvptx64-nvidia-cuda";
  machine.features = entry.ptx.str();
  machine.vectorBits = machine.vectorRegisters = 0;
  machine.l1Bytes = machine.l2Bytes = 0;
  machine.l3Bytes = entry.l2MiB * MiB;
  machine.sharedBytes = entry.sharedKiB * KiB;
  machine.registersPerThread = gpuThreadRegisters;
  machine.multiprocessorRegisters = gpuRegisters;
  machine.cores = entry.multiprocessors;
  machine.multiprocessorShared = entry.allSharedKiB * KiB;
  machine.multiprocessorThreads = entry.threads;
  machine.multiprocessorBlocks = entry.blocks;
  machine.flopsPerCycle = entry.flops;
  machine.nearBytesPerCycle = sharedBytesPerCycle;
  machine.memoryBytesPerCycle = entry.memoryBytes;
  return machine;
}

Expected<Machine> Machine::named(StringRef name) {
  if (name == "host")
    return host();
  for (const NamedCpu &entry : namedCpus)
    if (entry.name == name)
      return fromTable(entry);
  for (const NamedGpu &entry : namedGpus)
    if (entry.name == name)
      return fromTable(entry);
  return createStringError("unknown machine '" + name + "', known are " +
                           join(knownNames(), ", "));
}

std::vector<std::string> Machine::knownNames() {
  std::vector<std::string> names = {"host"};
  for (const NamedCpu &entry : namedCpus)
    names.push_back(entry.name.str());
  for (const NamedGpu &entry : namedGpus)
    names.push_back(entry.name.str());
  return names;
}
