//===- CudaBackend.cpp - Conformance cases through CudaLauncher -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/device/CudaBackend.h"

#include "tests/conformance/CpuBackend.h"
#include "tests/conformance/Planning.h"
#include "tests/device/FakeGpu.h"
#include "tools/pagoda/Engine.h"

#include "llvm/Support/FileSystem.h"

#include <algorithm>

using namespace pagoda::conformance;

namespace pagoda::device {

GpuKernels::~GpuKernels() {
  launcher.reset();
  (void)llvm::sys::fs::remove(path);
}

std::unique_ptr<GpuKernels> makeGpuKernels(CudaDevice &device,
                                           const AttentionSpec &spec) {
  CompileOptions options;
  options.machine = llvm::cantFail(Machine::named("sm_80"));
  Artifact artifact = llvm::cantFail(compileFake({spec}, options));
  llvm::SmallString<128> path;
  llvm::sys::fs::createUniquePath("pagoda-gpu-%%%%%%%%.so", path, true);
  llvm::cantFail(writeDeviceLibrary(artifact, std::string(path)));
  KernelLibrary library = KernelLibrary::open(std::string(path));
  KernelSet set = library.selectForGpu(kernelSpecOf(spec));
  std::unique_ptr<GpuKernels> result(new GpuKernels{
      std::string(path), std::move(library), std::move(set), {}});
  result->launcher = std::make_unique<CudaLauncher>(device, result->set,
                                                    *result->library.image());
  return result;
}

namespace {

struct Tensor {
  size_t field;
  const void *start;
  size_t bytes;
  const void *named; ///< what the field points to, in it
};

/// In the order in which CaseData names them, and then the small ones.
std::vector<Tensor> tensorsOf(const CaseData &data) {
  const pagoda_attention_args &args = data.args;
  std::vector<Tensor> result = {
      {offsetof(pagoda_attention_args, q), nullptr, 0, args.q},
      {offsetof(pagoda_attention_args, k.base), nullptr, 0, args.k.base},
      {offsetof(pagoda_attention_args, v.base), nullptr, 0, args.v.base},
      {offsetof(pagoda_attention_args, o), nullptr, 0, args.o},
      {offsetof(pagoda_attention_args, lse), nullptr, 0, args.lse},
      {offsetof(pagoda_attention_args, block_table), nullptr, 0,
       args.block_table}};
  size_t index = 0;
  data.forEachTensor([&](const void *start, size_t bytes) {
    result[index].start = start;
    result[index++].bytes = bytes;
  });
  auto add = [&](size_t field, const void *start, size_t bytes) {
    result.push_back({field, start, start ? bytes : 0, start});
  };
  size_t heads = size_t(data.problem.shape.qHeads) * sizeof(float);
  add(offsetof(pagoda_attention_args, sinks), args.sinks, heads);
  add(offsetof(pagoda_attention_args, alibi_slopes), args.alibi_slopes, heads);
  add(offsetof(pagoda_attention_args, prefix_lens), args.prefix_lens,
      data.problem.sequences.size() * sizeof(int32_t));
  return result;
}

} // namespace

DeviceTensors::DeviceTensors(CudaDevice &device,
                             const std::vector<const CaseData *> &cases)
    : device(device) {
  std::vector<size_t> bytes;
  for (const CaseData *data : cases) {
    std::vector<Tensor> tensors = tensorsOf(*data);
    bytes.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i)
      bytes[i] = std::max(bytes[i], tensors[i].bytes);
  }
  for (size_t size : bytes)
    memory.push_back(size ? device.allocate(size) : nullptr);
}

DeviceTensors::~DeviceTensors() {
  for (void *held : memory)
    if (held)
      device.release(held);
}

pagoda_attention_args DeviceTensors::upload(const CaseData &data) {
  pagoda_attention_args args = data.args;
  size_t index = 0;
  for (const Tensor &tensor : tensorsOf(data)) {
    char *to = static_cast<char *>(memory[index++]);
    if (!tensor.bytes)
      continue;
    device.upload(to, tensor.start, tensor.bytes);
    to += static_cast<const char *>(tensor.named) -
          static_cast<const char *>(tensor.start);
    std::memcpy(reinterpret_cast<char *>(&args) + tensor.field, &to,
                sizeof(to));
  }
  return args;
}

void DeviceTensors::download(CaseData &data) {
  std::vector<Tensor> tensors = tensorsOf(data);
  for (size_t i : {3, 4}) // o, lse
    if (tensors[i].bytes)
      device.download(const_cast<void *>(tensors[i].start), memory[i],
                      tensors[i].bytes);
}

std::string CudaBackend::unsupported(const Case &c) const {
  return c.mods.empty() ? "" : "captured tensors are not copied to the device";
}

llvm::Error CudaBackend::run(const Case &c, CaseData &data) {
  try {
    std::unique_ptr<GpuKernels> kernels = makeGpuKernels(device, c.spec);
    CudaLauncher &launcher = *kernels->launcher;
    DeviceTensors tensors(device, {&data});
    AttentionPlan plan = planOf(kernels->set, data, launcher.threads());
    launcher.reserve(PlanExtents::of(plan));
    launcher.upload(plan);
    launcher.run(tensors.upload(data));
    device.synchronize();
    tensors.download(data);
  } catch (const std::exception &error) {
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}

} // namespace pagoda::device
