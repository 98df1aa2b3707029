//===- PrimitivesTest.cpp - One instruction at a time, emulated -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The answers that are packed for a GPU come from a plain computation; here the
// emulator gives them as well, through the code that runs them on a GPU.
//
//===----------------------------------------------------------------------===//

#include "tests/device/Primitives.h"
#include "compiler/emit/Emit.h"
#include "tests/device/DeviceCase.h"
#include "tests/device/FakeGpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace pagoda;
using namespace pagoda::device;

namespace {

class Primitives : public testing::Test {
protected:
  static void SetUpTestSuite() {
    Machine machine = llvm::cantFail(Machine::named("sm_80"));
    made = new Artifact(llvm::cantFail(compilePrimitives(machine, true)));
    std::string cubin = llvm::cantFail(fakeCubin(made->object));
    file = testing::TempDir() + "pagoda-primitives.cubin";
    llvm::cantFail(writeFile(file, cubin));
  }
  static void TearDownTestSuite() {
    std::filesystem::remove(file);
    delete made;
  }

  Primitives() {
    std::string why;
    device = CudaDevice::open(why, 0, FAKE_DRIVER);
    if (!device)
      throw std::runtime_error(why);
  }

  static Artifact *made;
  static std::string file;
  std::unique_ptr<CudaDevice> device;
};

Artifact *Primitives::made = nullptr;
std::string Primitives::file;

TEST_F(Primitives, AnswerAsTheIsaSays) {
  for (const CaseImage &image : primitiveImages(file))
    EXPECT_EQ(DeviceCase(*device, image, "").check(), "") << image.name;
}

TEST_F(Primitives, TheCodeBesideACubinThatTheDriverDoesNotTake) {
  std::filesystem::path cubin = testing::TempDir() + "pagoda-refused.cubin";
  std::filesystem::path ptx = testing::TempDir() + "pagoda-refused.ptx";
  llvm::cantFail(writeFile(cubin.string(), "assembled for another one"));
  auto load = [&] {
    KernelCode(cubin).load(*device, made->kernels.front().name, 32, 0);
  };
  EXPECT_THROW(load(), std::runtime_error);
  std::filesystem::copy_file(file, ptx);
  EXPECT_NO_THROW(load());
  std::filesystem::remove(cubin);
  std::filesystem::remove(ptx);
}

TEST_F(Primitives, EachHasItsAnswer) {
  std::vector<std::string> kernels, answers;
  for (const KernelSummary &kernel : made->kernels)
    kernels.push_back(kernel.name);
  for (const CaseImage &image : primitiveImages(file))
    answers.push_back(image.name);
  EXPECT_THAT(answers, testing::UnorderedElementsAreArray(kernels));
}

TEST_F(Primitives, WrongAnswersAreSeen) {
  // Any one element of any answer matters.
  for (CaseImage &image : primitiveImages(file)) {
    Expectation &expected = image.expectations.front();
    for (size_t at : {size_t(0), expected.values.size() - 1}) {
      float right = expected.values[at];
      expected.values[at] = right + 3 + 2 * std::abs(right);
      if (!std::isfinite(right))
        expected.values[at] = 5;
      EXPECT_NE(DeviceCase(*device, image, "").check(), "") << image.name;
      expected.values[at] = right;
    }
  }
}

TEST_F(Primitives, PtxForEveryTarget) {
  for (const char *name : {"sm_80", "sm_90a", "sm_120a"}) {
    auto ptx = compilePrimitives(llvm::cantFail(Machine::named(name)), false);
    ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
    for (const char *instruction :
         {"ldmatrix.sync.aligned.m8n8.x1.shared.b16",
          "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
          "cp.async.cg.shared.global", "cp.async.wait_group \t1",
          "ex2.approx.ftz.f32", "lg2.approx.ftz.f32", "rcp.approx.ftz.f32",
          "cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32", "shfl.sync.bfly.b32",
          "ld.global.v", "st.global.v"})
      EXPECT_NE(ptx->ptx.find(instruction), std::string::npos)
          << name << " has no " << instruction;
  }
}

} // namespace
