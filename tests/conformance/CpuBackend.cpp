//===- CpuBackend.cpp - Kernels built in process, run on this CPU ---------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case either goes the whole way of a user (select, plan, launch), or through
// a plan made by hand that calls the kernels' entries directly.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/CpuBackend.h"

#include "tests/conformance/ManualPlan.h"
#include "tests/conformance/Planning.h"
#include "tools/pagoda/Engine.h"

#include "pagoda/AttentionPlan.h"
#include "pagoda/CpuLauncher.h"

#include <algorithm>
#include <cmath>

namespace pagoda::conformance {

namespace {

/// What the compiler's CPU path does today. A case that needs more is skipped;
/// a case on this list that fails to compile is a failure.
constexpr uint32_t SupportedFeatures =
    PAGODA_FEATURE_CAUSAL | PAGODA_FEATURE_WINDOW | PAGODA_FEATURE_SOFTCAP |
    PAGODA_FEATURE_ALIBI | PAGODA_FEATURE_SINKS | PAGODA_FEATURE_CHUNK |
    PAGODA_FEATURE_PREFIX_LM;
bool isSupported(DType type) {
  return type == DType::F32 || type == DType::F16 || type == DType::BF16;
}

/// Compiled libraries that are kept; a random sweep makes many.
constexpr size_t MaxLibraries = 24;

} // namespace

std::string CpuBackend::unsupported(const Case &c) const {
  if (uint32_t missing = featuresOf(c.spec) & ~SupportedFeatures)
    return "no CPU kernels with " + featureNames(missing) + " yet";
  if (!isSupported(c.spec.qType) || !isSupported(c.spec.kvType))
    return std::string("no CPU kernels of ") +
           dtypeName(int32_t(c.spec.qType)) + " over " +
           dtypeName(int32_t(c.spec.kvType)) + " yet";
  return "";
}

llvm::Expected<KernelSet> CpuBackend::kernels(const Case &c) {
  std::string key = kernelKey(c);
  if (auto it = libraries.find(key); it != libraries.end())
    return it->second.kernels;
  CompileOptions options;
  options.machine = machine;
  options.schedule = schedule;
  options.schedule.insert(options.schedule.end(), c.schedule.begin(),
                          c.schedule.end());
  options.mods = c.mods;
  options.decodeTokens = decodeTokens;
  llvm::Expected<std::unique_ptr<JitLibrary>> code =
      JitLibrary::compile({c.spec}, options);
  if (!code)
    return code.takeError();
  if (libraries.size() == MaxLibraries)
    libraries.clear();
  Entry &entry = libraries[key];
  entry.code = std::move(*code);
  try {
    KernelSpec wanted = kernelSpecOf(c.spec);
    if (!c.mods.empty()) {
      const pagoda_library_info *info = entry.code->info();
      wanted.features |= PAGODA_FEATURE_CUSTOM;
      wanted.modsHash = info->kernels[0].mods_hash;
    }
    entry.kernels = KernelLibrary::wrap(entry.code->info()).select(wanted);
  } catch (const std::exception &error) {
    libraries.erase(key);
    return llvm::createStringError(error.what());
  }
  return entry.kernels;
}

llvm::Error CpuBackend::run(const Case &c, CaseData &data) {
  llvm::Expected<KernelSet> set = kernels(c);
  if (!set)
    return set.takeError();
  if (c.splits != 0)
    return runSplits(*set, c, data);
  try {
    return runPlanned(*set, c, data);
  } catch (const std::exception &error) {
    return llvm::createStringError(error.what());
  }
}

llvm::Error CpuBackend::runSplits(const KernelSet &set, const Case &c,
                                  CaseData &data) {
  const pagoda_kernel_info &kernel = kernelOf(set, c);
  ManualPlan plan(data.problem, kernel, c.splits);
  plan.attach(data.args);
  runKernel(kernel, &data.args, int64_t(plan.items.size()), c.threads);
  if (!plan.merges.empty()) {
    if (!set.merge)
      return llvm::createStringError("the library has no merge kernel");
    runKernel(*set.merge, &data.args, int64_t(plan.merges.size()), c.threads);
  }
  return llvm::Error::success();
}

llvm::Error CpuBackend::runPlanned(const KernelSet &set, const Case &c,
                                   CaseData &data) {
  AttentionPlan plan = planOf(set, data, c.threads);
  std::unique_ptr<ThreadPool> &pool = pools[c.threads];
  if (!pool)
    pool = std::make_unique<ThreadPool>(c.threads);
  CpuLauncher(*pool).run(plan, set.merge, data.args);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Backend>>
makeCpuBackend(const BackendOptions &options, bool &isMissingFeature) {
  llvm::Expected<Machine> machine = Machine::named(options.machine);
  if (!machine)
    return machine.takeError();
  uint64_t missing = machine->cpuFeatures & ~hostCpuFeatures();
  isMissingFeature = missing != 0 || machine->kind != TargetKind::Cpu;
  if (missing)
    return llvm::createStringError("this CPU lacks " +
                                   cpuFeatureNames(missing) + ", which " +
                                   machine->name + " needs");
  if (machine->kind != TargetKind::Cpu)
    return llvm::createStringError(machine->name + " is no CPU");
  return std::make_unique<CpuBackend>(std::move(*machine), options);
}

} // namespace pagoda::conformance
