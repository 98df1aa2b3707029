//===- Emulation.cpp - pagoda run on the emulator -------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Emulation.h"

using namespace llvm;

namespace pagoda {

llvm::Error checkDevice(StringRef device, const Machine &machine) {
  if (device != "cpu" && device != "emulator")
    return createStringError("--device " + device +
                             ": expected cpu or emulator");
  bool nvidia = machine.kind == TargetKind::Nvidia;
  if (device == "emulator") {
    if (!nvidia)
      return createStringError("--device emulator: runs kernels of nvidia "
                               "targets, --target is " +
                               machine.name);
#ifndef PAGODA_HAS_EMULATOR
    return createStringError("--device emulator: this build has none, "
                             "boost.context was missing (Debian: "
                             "libboost-context-dev)");
#endif
    return llvm::Error::success();
  }
  uint64_t missing = machine.cpuFeatures & ~hostCpuFeatures();
  if (missing || nvidia)
    return createStringError(
        "--target " + machine.name + ": this machine cannot run its code" +
        (missing  ? " (no " + cpuFeatureNames(missing) + ")"
         : nvidia ? "; --device emulator checks it on the CPU, thread by thread"
                  : ""));
  return llvm::Error::success();
}

#ifdef PAGODA_HAS_EMULATOR
namespace {

class EmulatorDevice : public Device {
public:
  explicit EmulatorDevice(const EmulatedDevice &device)
      : device(device), launcher(device) {}

  int32_t multiprocessors() const override { return device.multiprocessors; }
  void run(const AttentionPlan &plan, const pagoda_kernel_info *merge,
           const pagoda_attention_args &args,
           const AttentionExtents &tensors) override {
    launcher.run(plan, merge, args, tensors);
  }
  void append(const pagoda_kernel_info &kernel, const pagoda_append_args &args,
              int64_t tokens, int64_t blocks) override {
    // The engine's keys are written as they are: no positions, no tables.
    launcher.append(kernel, args, {tokens, blocks, /*positions=*/0});
  }
  void copy(const pagoda_kernel_info &kernel, const pagoda_copy_args &args,
            int64_t copies, int64_t blocks) override {
    launcher.copy(kernel, args, copies, blocks);
  }

private:
  EmulatedDevice device;
  EmulatedLauncher launcher;
};

} // namespace
#endif

std::unique_ptr<Device> emulatorDevice(int hostThreads, uint64_t seed) {
#ifdef PAGODA_HAS_EMULATOR
  EmulatedDevice device;
  device.hostThreads = hostThreads;
  device.seed = seed;
  return std::make_unique<EmulatorDevice>(device);
#else
  return nullptr;
#endif
}

} // namespace pagoda
