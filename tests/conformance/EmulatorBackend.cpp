//===- EmulatorBackend.cpp - NVIDIA kernels run on the emulator -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/EmulatorBackend.h"

#include "tests/conformance/CpuBackend.h"
#include "tests/conformance/ManualPlan.h"
#include "tests/conformance/Planning.h"
#include "tools/pagoda/Engine.h"

#include <algorithm>

namespace pagoda::conformance {

/// Compiled libraries that are kept; a random sweep makes many.
constexpr size_t MaxLibraries = 24;

std::string EmulatorBackend::unsupported(const Case &c) const {
  auto is16Bit = [](DType type) {
    return type == DType::F16 || type == DType::BF16;
  };
  if (!is16Bit(c.spec.qType) || c.spec.qType != c.spec.kvType)
    return std::string("no NVIDIA kernels of ") +
           dtypeName(int32_t(c.spec.qType)) + " over " +
           dtypeName(int32_t(c.spec.kvType)) + " yet";
  return "";
}

CompileOptions EmulatorBackend::optionsOf(const Case &c) const {
  CompileOptions options;
  options.machine = machine;
  options.schedule = schedule;
  options.schedule.insert(options.schedule.end(), c.schedule.begin(),
                          c.schedule.end());
  options.mods = c.mods;
  options.emulate = true;
  return options;
}

llvm::Expected<const pagoda_library_info *>
EmulatorBackend::kernels(const Case &c) {
  std::string key = kernelKey(c);
  if (auto it = libraries.find(key); it != libraries.end())
    return it->second->info();
  auto built = JitLibrary::compile({c.spec}, optionsOf(c));
  if (!built)
    return built.takeError();
  if (libraries.size() == MaxLibraries)
    libraries.clear();
  return (libraries[key] = std::move(*built))->info();
}

/// Everything that the oracle's problem says about sizes.
static AttentionExtents extentsOf(const CaseData &data) {
  const pagoda_attention_args &args = data.args;
  AttentionExtents result;
  result.rows = data.rows();
  result.sequences = result.tableRows = int64_t(data.problem.sequences.size());
  int64_t entries = result.tableRows * args.block_table_stride;
  const int32_t *last =
      std::max_element(args.block_table, args.block_table + entries);
  result.blocks = entries ? int64_t(*last) + 1 : 0;
  return result;
}

static emulator::Statistics runSplits(const KernelSet &set, const Case &c,
                                      CaseData &data,
                                      const EmulatedDevice &device) {
  const pagoda_kernel_info &kernel = kernelOf(set, c);
  ManualPlan plan(data.problem, kernel, c.splits);
  plan.attach(data.args);
  PlanExtents sizes = {int64_t(plan.items.size()), int64_t(plan.rowMap.size()),
                       int64_t(plan.merges.size()),
                       int64_t(plan.mergeSlots.size()),
                       int64_t(plan.partialMl.size()) / (2 * kernel.q_heads)};
  auto buffers = attentionBuffers(kernel, data.args, extentsOf(data), sizes);
  emulator::Statistics statistics;
  if (sizes.items)
    statistics = emulate(kernel, data.args, sizes.items, device, buffers);
  if (sizes.merges)
    emulate(*set.merge, data.args, sizes.merges, device, buffers);
  return statistics;
}

llvm::Error EmulatorBackend::run(const Case &c, CaseData &data) {
  auto library = kernels(c);
  if (!library)
    return library.takeError();
  EmulatedDevice used = device;
  used.hostThreads = c.threads;
  try {
    KernelSpec wanted = kernelSpecOf(c.spec);
    if (!c.mods.empty()) {
      wanted.features |= PAGODA_FEATURE_CUSTOM;
      wanted.modsHash = (*library)->kernels[0].mods_hash;
    }
    KernelSet set = KernelLibrary::wrap(*library).select(wanted);
    if (c.splits != 0) {
      statistics = runSplits(set, c, data, used);
      return llvm::Error::success();
    }
    AttentionPlan plan = planOf(set, data, device.multiprocessors);
    EmulatedLauncher(used).run(plan, set.merge, data.args, extentsOf(data));
  } catch (const std::exception &error) {
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}

Case forGpu(const Case &c, DType type) {
  Case result = c;
  if (c.spec.qType == DType::F32)
    result.spec.qType = result.spec.kvType = type;
  constexpr int64_t chunk = 8; // elements
  result.padding = (c.padding + chunk - 1) / chunk * chunk;
  return result;
}

std::vector<Case> gpuTable(const std::vector<Case> &cases, DType type) {
  std::vector<Case> result;
  for (const Case &c : cases) {
    if (c.kernel == 1 || !c.schedule.empty())
      continue;
    Case reduced = forGpu(c, type);
    AttentionSpec &spec = reduced.spec;
    int64_t kvHeads = std::min<int64_t>(spec.kvHeads, 2);
    spec.qHeads = spec.qHeads / spec.kvHeads * kvHeads;
    spec.kvHeads = kvHeads;
    if (!spec.alibiSlopes.empty())
      spec.alibiSlopes.resize(size_t(spec.qHeads));
    result.push_back(std::move(reduced));
  }
  return result;
}

llvm::Expected<std::unique_ptr<Backend>>
makeEmulatorBackend(const BackendOptions &options) {
  llvm::Expected<Machine> machine = Machine::named(options.machine);
  if (!machine)
    return machine.takeError();
  if (machine->kind != TargetKind::Nvidia)
    return llvm::createStringError(machine->name + " is no NVIDIA target");
  return std::make_unique<EmulatorBackend>(std::move(*machine),
                                           options.schedule);
}

} // namespace pagoda::conformance
