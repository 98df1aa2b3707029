//===- DeviceCase.cpp - A case in the memory of a GPU ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/device/DeviceCase.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace pagoda::device {

static std::vector<char> codeIn(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  std::vector<char> result{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open())
    throw std::runtime_error(path.string() + ": cannot be read");
  result.push_back(0);
  return result;
}

KernelCode::KernelCode(std::filesystem::path file)
    : file(std::move(file)), code(codeIn(this->file)) {}

CudaDevice::Kernel KernelCode::load(CudaDevice &device, const std::string &name,
                                    int threads, int sharedBytes) {
  try {
    return device.load(code.data(), name, threads, sharedBytes);
  } catch (const std::runtime_error &) {
    std::filesystem::path ptx = file;
    ptx.replace_extension(".ptx");
    if (ptx == file || !std::filesystem::exists(ptx))
      throw;
    file = std::move(ptx);
    code = codeIn(file);
    return device.load(code.data(), name, threads, sharedBytes);
  }
}

DeviceCase::DeviceCase(CudaDevice &device, const CaseImage &image,
                       const std::filesystem::path &folder)
    : device(device), image(image), args(image.args) {
  KernelCode code(folder / image.cubin);
  for (const KernelLaunch &launch : image.launches)
    kernels.push_back(
        code.load(device, launch.kernel, launch.threads, launch.sharedBytes));
  for (const ImageBuffer &buffer : image.buffers) {
    memory.push_back(device.allocate(buffer.bytes.size()));
    char *target = static_cast<char *>(memory.back()) + buffer.offset;
    std::memcpy(reinterpret_cast<char *>(&args) + buffer.field, &target,
                sizeof(target));
  }
}

DeviceCase::~DeviceCase() {
  for (void *buffer : memory)
    try {
      device.release(buffer);
    } catch (const std::exception &) {
      // A device that has failed says so elsewhere.
    }
}

std::string DeviceCase::check() {
  for (size_t i = 0; i < memory.size(); ++i)
    device.upload(memory[i], image.buffers[i].bytes.data(),
                  image.buffers[i].bytes.size());
  for (size_t i = 0; i < kernels.size(); ++i)
    device.launch(kernels[i], image.launches[i].blocks, &args);
  device.synchronize();
  for (const Expectation &expected : image.expectations) {
    std::vector<uint8_t> bytes(image.buffers[expected.buffer].bytes.size());
    device.download(bytes.data(), memory[expected.buffer], bytes.size());
    if (std::string fault = compare(expected, bytes); !fault.empty())
      return "buffer " + std::to_string(expected.buffer) + ": " + fault;
  }
  return "";
}

double DeviceCase::microseconds() {
  double total = 0;
  constexpr int times = 20;
  for (size_t i = 0; i < kernels.size(); ++i)
    total +=
        1000 * device.time(kernels[i], image.launches[i].blocks, &args, times);
  return total;
}

} // namespace pagoda::device
