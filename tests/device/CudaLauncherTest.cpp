//===- CudaLauncherTest.cpp - Plans through a fake CUDA driver ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's side of a GPU without one: what is copied and launched reaches
// the emulator (FakeDriver.cpp), whose results the oracle judges.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/EmulatorBackend.h"
#include "tests/conformance/Planning.h"
#include "tests/device/CudaBackend.h"
#include "tests/device/FakeDriver.h"
#include "tests/reference/Compare.h"

#include "pagoda/KvPool.h"
#include "pagoda/pagoda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

using namespace pagoda;
using namespace pagoda::conformance;
using namespace pagoda::device;
using testing::HasSubstr;

namespace {

class Cuda : public testing::Test {
protected:
  Cuda() : driver(dlopen(FAKE_DRIVER, RTLD_NOW)) {
    if (!driver)
      throw std::runtime_error(dlerror());
    std::string why;
    device = CudaDevice::open(why, 0, FAKE_DRIVER);
    if (!device)
      throw std::runtime_error(why);
  }
  ~Cuda() override {
    EXPECT_EQ(ask<decltype(fakeCudaAllocations)>("fakeCudaAllocations")(), 0)
        << "device memory was not released";
  }

  template <typename Function> Function *ask(const char *name) {
    return reinterpret_cast<Function *>(dlsym(driver, name));
  }
  void fail(const char *name, int after, int code) {
    ask<decltype(fakeCudaFail)>("fakeCudaFail")(name, after, code);
  }
  int calls(const char *name) {
    return ask<decltype(fakeCudaCalls)>("fakeCudaCalls")(name);
  }
  /// What `body` throws.
  template <typename Body> std::string errorOf(Body body) {
    try {
      body();
    } catch (const std::exception &error) {
      return error.what();
    }
    return "no error";
  }

  void *driver;
  std::unique_ptr<CudaDevice> device;
};

/// Prefill beside decode, whose keys are long enough to be split.
Case mixedCase() {
  Case c = forGpu(makeCase("mixed", {{20, 40}, {1, 300}, {0, 5}, {2, 2}}),
                  DType::F16);
  c.padding = 8;
  return c;
}

TEST_F(Cuda, PlansRun) {
  CudaBackend backend(*device);
  Case sinks = mixedCase();
  sinks.spec.sinks = true;
  sinks.spec.window = 70;
  Case alibi = forGpu(makeCase("alibi", {{3, 70}}), DType::BF16);
  alibi.spec.alibiSlopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  for (const Case &c : {mixedCase(), sinks, alibi}) {
    int before = calls("cuLaunchKernel");
    Outcome outcome = runCase(backend, c);
    EXPECT_EQ(outcome.status, Status::Pass) << outcome.message;
    EXPECT_GT(calls("cuLaunchKernel"), before);
  }
}

TEST_F(Cuda, GraphServesEveryStep) {
  // Two steps that differ in everything but what a graph holds.
  Case first = mixedCase(), second = mixedCase();
  first.lengths = {{1, 1200}, {3, 20}};
  second.lengths = {{2, 9}, {1, 1200}, {1, 17}};
  second.seed = 7;
  CaseData one(first), two(second);
  auto kernels = makeGpuKernels(*device, first.spec);
  CudaLauncher &launcher = *kernels->launcher;
  AttentionPlan plan = planOf(kernels->set, one, launcher.threads());
  AttentionPlan later = planOf(kernels->set, two, launcher.threads());
  ASSERT_FALSE(plan.merges().empty());
  launcher.reserve(PlanExtents::of(plan));
  launcher.reserve(PlanExtents::of(later));
  DeviceTensors tensors(*device, {&one, &two});

  CudaStream stream = device->createStream();
  pagoda_attention_args args = tensors.upload(one);
  int before = calls("cuLaunchKernel");
  void *graph = device->capture(stream, [&] { launcher.run(args, stream); });
  int launches = calls("cuLaunchKernel") - before;
  EXPECT_EQ(size_t(launches), kernels->set.attention.size() + 1);

  for (auto [data, used] : {std::pair(&one, &plan), {&two, &later}}) {
    data->resetOutputs();
    tensors.upload(*data);
    launcher.upload(*used, stream);
    device->launchGraph(graph, stream);
    device->synchronize();
    tensors.download(*data);
    reference::Comparison result = reference::compare(data->problem);
    EXPECT_TRUE(result.ok()) << result.worst.text();
    EXPECT_EQ(data->damage(), "");
  }
  device->destroyGraph(graph);
  device->destroyStream(stream);
}

TEST_F(Cuda, PlanMayChangeOnceItIsUploaded) {
  // The copies of the first upload are still to come when the second is made.
  Case c = mixedCase();
  CaseData data(c);
  auto kernels = makeGpuKernels(*device, c.spec);
  CudaLauncher &launcher = *kernels->launcher;
  AttentionPlan plan = planOf(kernels->set, data, launcher.threads());
  launcher.reserve(PlanExtents::of(plan));
  DeviceTensors tensors(*device, {&data});
  pagoda_attention_args args = tensors.upload(data);
  launcher.upload(plan);
  std::vector<int32_t> none;
  plan.build({none, none, {}, nullptr, 0});
  launcher.run(args);
  launcher.upload(plan); // of a step without tokens
  launcher.run(args);
  device->synchronize();
  tensors.download(data);
  reference::Comparison result = reference::compare(data.problem);
  EXPECT_TRUE(result.ok()) << result.worst.text();
}

TEST_F(Cuda, BlocksAreCopied) {
  auto kernels = makeGpuKernels(*device, mixedCase().spec);
  const pagoda_kernel_info &kernel = *kernels->set.copy;
  KvFormat format = KernelSpec::of(kernel).format();
  KvPool pool(format, 6);
  auto *bytes = static_cast<uint8_t *>(pool.data());
  for (size_t i = 0; i < pool.bytes(); ++i)
    bytes[i] = uint8_t(i * 7 + i / 251);
  const pagoda_block_copy copies[] = {{0, 3}, {-1, 2}, {4, 5}};
  void *memory = device->allocate(pool.bytes());
  void *list = device->allocate(sizeof(copies));
  device->upload(memory, pool.data(), pool.bytes());
  device->upload(list, copies, sizeof(copies));
  KvPool there(format, 6, 1, memory, pool.bytes());
  pagoda_copy_args args{there.k(), there.v(),
                        static_cast<const pagoda_block_copy *>(list)};
  kernels->launcher->copy(args, 3);
  std::vector<uint8_t> result(pool.bytes());
  device->download(result.data(), memory, result.size());
  const pagoda_block_copy valid[] = {copies[0], copies[2]};
  pool.copyBlocks(valid);
  EXPECT_EQ(std::memcmp(result.data(), pool.data(), pool.bytes()), 0);
  for (void *held : {memory, list})
    device->release(held);
}

TEST_F(Cuda, MistakesAreRefused) {
  Case c = mixedCase();
  CaseData data(c);
  auto kernels = makeGpuKernels(*device, c.spec);
  CudaLauncher &launcher = *kernels->launcher;
  AttentionPlan plan = planOf(kernels->set, data, launcher.threads());
  DeviceTensors tensors(*device, {&data});
  pagoda_attention_args args = tensors.upload(data);

  EXPECT_EQ(errorOf([&] { launcher.run(args); }),
            "launch: expected a plan, got none");
  PlanExtents small = PlanExtents::of(plan);
  --small.rows;
  launcher.reserve(small);
  EXPECT_THAT(errorOf([&] { launcher.upload(plan); }),
              HasSubstr("plan: rows: expected at most 22, which were reserved, "
                        "got 23"));
  launcher.reserve(PlanExtents::of(plan));
  launcher.upload(plan);
  pagoda_attention_args odd = args;
  odd.q = static_cast<const char *>(odd.q) + 2;
  EXPECT_THAT(errorOf([&] { launcher.run(odd); }), HasSubstr("multiple of 16"));
  odd = args;
  odd.o = nullptr;
  EXPECT_THAT(errorOf([&] { launcher.run(odd); }), HasSubstr("o: expected"));
  auto others = makeGpuKernels(*device, c.spec);
  EXPECT_THAT(errorOf([&] {
                others->launcher->reserve(PlanExtents::of(plan));
                others->launcher->upload(plan);
              }),
              HasSubstr("is not one of the launcher's"));
  pagoda_device_image nothing{};
  EXPECT_THAT(errorOf([&] { CudaLauncher(*device, kernels->set, nothing); }),
              HasSubstr("expected a cubin or PTX"));
}

TEST_F(Cuda, ErrorsOfTheDriverComeWithItsWords) {
  Case c = mixedCase();
  CaseData data(c);
  auto kernels = makeGpuKernels(*device, c.spec);
  CudaLauncher &launcher = *kernels->launcher;
  AttentionPlan plan = planOf(kernels->set, data, launcher.threads());
  // Wherever the memory runs out, nothing is left behind.
  for (int after : {0, 1, 2}) {
    fail("cuMemAlloc_v2", after, 2);
    EXPECT_EQ(errorOf([&] { launcher.reserve(PlanExtents::of(plan)); }),
              "cuMemAlloc: out of memory");
  }
  launcher.reserve(PlanExtents::of(plan));
  launcher.upload(plan);
  DeviceTensors tensors(*device, {&data});
  pagoda_attention_args args = tensors.upload(data);
  fail("cuLaunchKernel", 0, 2);
  EXPECT_EQ(errorOf([&] { launcher.run(args); }),
            "cuLaunchKernel: out of memory");
  // A kernel that leaves its memory.
  pagoda_attention_args wild = args;
  wild.k.block_stride *= 1000;
  EXPECT_THAT(errorOf([&] { launcher.run(wild); }),
              HasSubstr("outside of every buffer"));
  // A capture that fails leaves the stream as it was.
  CudaStream stream = device->createStream();
  args.scale = 0;
  EXPECT_THAT(errorOf([&] {
                device->capture(stream, [&] { launcher.run(args, stream); });
              }),
              HasSubstr("scale"));
  device->destroyGraph(device->capture(stream, [] {}));
  device->destroyStream(stream);
  EXPECT_EQ(errorOf([&] { device->load("text", "k", 32, 0); }),
            "cuModuleLoadData: device kernel image is invalid");
  EXPECT_EQ(errorOf([&] {
              device->load(kernels->library.image()->cubin, "no_such", 32, 0);
            }),
            "cuModuleGetFunction: named symbol not found");
}

TEST_F(Cuda, AnotherGpuTakesThePtx) {
  Case c = mixedCase();
  auto kernels = makeGpuKernels(*device, c.spec);
  pagoda_device_image image = *kernels->library.image();
  EXPECT_EQ(image.ptx, nullptr);
  image.ptx = static_cast<const char *>(image.cubin);
  image.cubin = "assembled for another one";
  int before = calls("cuModuleLoadData");
  CudaLauncher launcher(*device, kernels->set, image);
  EXPECT_EQ(launcher.threads(), 6);
  size_t loaded = kernels->set.attention.size() + 3;
  EXPECT_EQ(size_t(calls("cuModuleLoadData") - before), 2 * loaded);
}

TEST_F(Cuda, NoDriverIsAnAnswer) {
  std::string why;
  EXPECT_EQ(CudaDevice::open(why, 0, "libno-such-driver.so"), nullptr);
  EXPECT_EQ(why, "no libno-such-driver.so");
  EXPECT_EQ(CudaDevice::open(why, 9, FAKE_DRIVER), nullptr);
  EXPECT_THAT(why, HasSubstr("cuDeviceGet"));
}

TEST_F(Cuda, TheCInterface) {
  // The fake driver is loaded and has the driver's name.
  pagoda_cuda *cuda = nullptr;
  ASSERT_EQ(pagoda_cuda_open(0, &cuda), PAGODA_OK) << pagoda_last_error();
  pagoda_cuda *none = nullptr;
  EXPECT_EQ(pagoda_cuda_open(9, &none), PAGODA_NO_DEVICE);
  EXPECT_STREQ(pagoda_status_name(PAGODA_NO_DEVICE), "no device");

  Case c = mixedCase();
  CaseData data(c);
  auto compiled = makeGpuKernels(*device, c.spec);
  const pagoda_kernel_info &info = *compiled->set.attention.front();
  pagoda_kernel_spec spec{info.q_heads,
                          info.kv_heads,
                          info.head_dim,
                          info.v_head_dim,
                          info.block_size,
                          info.layout,
                          info.q_dtype,
                          info.k_dtype,
                          info.v_dtype,
                          info.o_dtype,
                          info.features,
                          0,
                          0};
  pagoda_kernels *kernels = nullptr;
  ASSERT_EQ(pagoda_kernels_open(compiled->path.c_str(), &spec, &kernels),
            PAGODA_OK)
      << pagoda_last_error();
  pagoda_cuda_launcher *launcher = nullptr;
  ASSERT_EQ(pagoda_cuda_launcher_create(cuda, kernels, &launcher), PAGODA_OK)
      << pagoda_last_error();

  pagoda_plan_options options{};
  options.threads = pagoda_cuda_threads(launcher);
  EXPECT_EQ(options.threads, 6);
  pagoda_plan *plan = nullptr;
  ASSERT_EQ(pagoda_plan_create(kernels, nullptr, &options, &plan), PAGODA_OK);
  std::vector<int32_t> qLens = data.qLens(), kvLens = data.kvLens();
  pagoda_batch batch{};
  batch.sequences = int32_t(qLens.size());
  batch.q_lens = qLens.data();
  batch.kv_lens = kvLens.data();
  ASSERT_EQ(pagoda_plan_build(plan, &batch), PAGODA_OK);
  pagoda_plan_info most{};
  ASSERT_EQ(pagoda_plan_get_info(plan, &most), PAGODA_OK);

  DeviceTensors tensors(*device, {&data});
  pagoda_attention_args args = tensors.upload(data);
  EXPECT_EQ(pagoda_cuda_attention(launcher, &args, nullptr),
            PAGODA_INVALID_ARGUMENT);
  EXPECT_EQ(pagoda_cuda_reserve(launcher, &most), PAGODA_OK);
  EXPECT_EQ(pagoda_cuda_upload(launcher, plan, nullptr), PAGODA_OK);
  EXPECT_EQ(pagoda_cuda_attention(launcher, &args, nullptr), PAGODA_OK)
      << pagoda_last_error();
  device->synchronize();
  tensors.download(data);
  reference::Comparison result = reference::compare(data.problem);
  EXPECT_TRUE(result.ok()) << result.worst.text();

  pagoda_plan_destroy(plan);
  pagoda_cuda_launcher_destroy(launcher);
  pagoda_kernels_destroy(kernels);
  pagoda_cuda_close(cuda);
}

} // namespace
