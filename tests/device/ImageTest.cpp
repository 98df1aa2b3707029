//===- ImageTest.cpp - Packed cases on the emulator -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the runner does with a case, done with the emulator in place of a GPU: a
// case that passes here has all that its kernels need, and one with a wrong
// output is seen.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"
#include "runtime/emulator/Emulator.h"
#include "tests/conformance/EmulatorBackend.h"
#include "tests/device/MakeImage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace pagoda;
using namespace pagoda::device;
using testing::HasSubstr;

namespace {

class Image : public testing::Test {
protected:
  Image() {
    c = conformance::forGpu(
        conformance::makeCase("packed", {{1, 97}, {20, 40}, {2, 0}}),
        DType::F16);
    c.splits = 3;
    c.padding = 8;
    c.spec.sinks = true;
    CompileOptions options;
    options.machine = llvm::cantFail(Machine::named("sm_80"));
    options.schedule = {"kv_tile=32"};
    options.emulate = true;
    code = llvm::cantFail(JitLibrary::compile({c.spec}, options));
  }

  const pagoda_kernel_info &kernel(int32_t role) {
    for (uint32_t i = 0; i < code->info()->kernel_count; ++i)
      if (code->info()->kernels[i].role == role)
        return code->info()->kernels[i];
    throw std::runtime_error("no such kernel");
  }
  CaseImage make() {
    return makeImage(c, kernel(PAGODA_ROLE_ATTENTION),
                     kernel(PAGODA_ROLE_MERGE), "none");
  }

  /// The first fault or wrong output of `image`.
  std::string run(const CaseImage &image) {
    std::vector<ImageBuffer> memory = image.buffers;
    pagoda_attention_args args = image.args;
    std::vector<emulator::GlobalBuffer> buffers;
    for (ImageBuffer &buffer : memory) {
      uint8_t *target = buffer.bytes.data() + buffer.offset;
      std::memcpy(reinterpret_cast<char *>(&args) + buffer.field, &target,
                  sizeof(target));
      buffers.push_back({"field " + std::to_string(buffer.field),
                         buffer.bytes.data(), buffer.bytes.size(), true});
    }
    for (const KernelLaunch &wanted : image.launches) {
      emulator::Launch launch;
      for (int32_t role : {PAGODA_ROLE_ATTENTION, PAGODA_ROLE_MERGE})
        if (wanted.kernel == kernel(role).name)
          launch.kernel = reinterpret_cast<emulator::ThreadFunction>(
              reinterpret_cast<void *>(kernel(role).entry));
      launch.args = &args;
      launch.gridSize = int(wanted.blocks);
      launch.threads = wanted.threads;
      launch.sharedBytes = wanted.sharedBytes;
      launch.buffers = buffers;
      emulator::Result result = emulator::run(launch);
      if (!result.ok())
        return result.fault;
    }
    for (const Expectation &expected : image.expectations)
      if (std::string fault = compare(expected, memory[expected.buffer].bytes);
          !fault.empty())
        return fault;
    return "";
  }

  conformance::Case c;
  std::unique_ptr<JitLibrary> code;
};

TEST_F(Image, HasAllThatItsKernelsNeed) {
  CaseImage image = make();
  ASSERT_EQ(image.launches.size(), 2u);
  ASSERT_EQ(image.expectations.size(), 2u);
  EXPECT_EQ(run(image), "");
}

TEST_F(Image, WrongOutputsAreSeen) {
  CaseImage image = make();
  image.launches.pop_back(); // nobody joins the splits
  EXPECT_THAT(run(image), HasSubstr("expected"));
}

TEST_F(Image, ComesBackFromItsFile) {
  CaseImage image = make();
  std::string path = testing::TempDir() + "pagoda-image-test.case";
  image.write(path);
  CaseImage back = CaseImage::read(path);
  EXPECT_EQ(back.name, "packed");
  EXPECT_EQ(back.buffers.size(), image.buffers.size());
  EXPECT_EQ(run(back), "");
  // Cut off anywhere, it is refused.
  std::ifstream whole(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  for (size_t length : {size_t(0), size_t(7), size_t(40), bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, length);
    EXPECT_THROW(CaseImage::read(path), std::runtime_error) << length;
  }
  std::remove(path.c_str());
}

} // namespace
