//===- Runner.cpp - Cases on a GPU ----------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the cases of a packed folder on the GPU of this machine, compares with
// the references in them, and prints a line for each; a JSON report goes to the
// file that is named. Needs a driver and nothing else. Exit codes: 0, 1 (a case
// failed), 2 (bad arguments), 77 (no driver or no device).
//
//===----------------------------------------------------------------------===//

#include "tests/device/CaseImage.h"

#include "pagoda/CudaDevice.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

using namespace pagoda;
using namespace pagoda::device;

namespace {

std::vector<char> contentsOf(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  std::vector<char> result{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open())
    throw std::runtime_error(path.string() + ": cannot be read");
  return result;
}

struct Outcome {
  std::string name, fault; ///< empty: as expected
  double microseconds = 0; ///< of all launches of the case
};

/// The memory of one case on the device.
class DeviceCase {
public:
  DeviceCase(CudaDevice &device, const CaseImage &image,
             const std::filesystem::path &folder)
      : device(device), image(image), args(image.args),
        cubin(contentsOf(folder / image.cubin)) {
    cubin.push_back(0); // PTX is text
    for (const ImageBuffer &buffer : image.buffers) {
      memory.push_back(device.allocate(buffer.bytes.size()));
      char *target = static_cast<char *>(memory.back()) + buffer.offset;
      std::memcpy(reinterpret_cast<char *>(&args) + buffer.field, &target,
                  sizeof(target));
    }
    for (const KernelLaunch &launch : image.launches)
      kernels.push_back(device.load(cubin.data(), launch.kernel, launch.threads,
                                    launch.sharedBytes));
  }
  ~DeviceCase() {
    for (void *buffer : memory)
      try {
        device.release(buffer);
      } catch (const std::exception &) {
        // A device that has failed says so elsewhere.
      }
  }

  std::string check() {
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

  double microseconds() {
    double total = 0;
    constexpr int times = 20;
    for (size_t i = 0; i < kernels.size(); ++i)
      total += 1000 *
               device.time(kernels[i], image.launches[i].blocks, &args, times);
    return total;
  }

private:
  CudaDevice &device;
  const CaseImage &image;
  pagoda_attention_args args;
  std::vector<char> cubin;
  std::vector<void *> memory;
  std::vector<CudaDevice::Kernel> kernels;
};

Outcome runCase(CudaDevice &device, const std::filesystem::path &path) {
  Outcome outcome{path.stem().string(), "", 0};
  try {
    CaseImage image = CaseImage::read(path.string());
    outcome.name = image.name;
    DeviceCase onDevice(device, image, path.parent_path());
    outcome.fault = onDevice.check();
    if (outcome.fault.empty())
      outcome.microseconds = onDevice.microseconds();
  } catch (const std::exception &error) {
    outcome.fault = error.what();
  }
  return outcome;
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\')
      result += '\\';
    result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return result + "\"";
}

void writeJson(const std::string &path, const CudaDevice &device,
               const std::vector<Outcome> &outcomes) {
  std::ofstream stream(path);
  stream << "{\"device\": " << quoted(device.name())
         << ", \"capability\": " << device.capability() << ", \"cases\": [";
  const char *separator = "\n";
  for (const Outcome &outcome : outcomes) {
    stream << separator << "{\"name\": " << quoted(outcome.name)
           << ", \"passed\": " << (outcome.fault.empty() ? "true" : "false")
           << ", \"fault\": " << quoted(outcome.fault)
           << ", \"microseconds\": " << outcome.microseconds << "}";
    separator = ",\n";
  }
  stream << "\n]}\n";
  if (!stream)
    throw std::runtime_error(path + ": cannot be written");
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s folder [report.json]\n", argv[0]);
    return 2;
  }
  try {
    std::vector<std::filesystem::path> paths;
    for (const auto &entry : std::filesystem::directory_iterator(argv[1]))
      if (entry.path().extension() == ".case")
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    if (paths.empty())
      throw std::runtime_error(std::string(argv[1]) + ": no *.case in it");
    std::string why;
    std::unique_ptr<CudaDevice> device = CudaDevice::open(why);
    if (!device) {
      std::printf("skipped: %s\n", why.c_str());
      return 77;
    }
    std::printf("%s, compute capability %d.%d, %d multiprocessors\n",
                device->name().c_str(), device->capability() / 10,
                device->capability() % 10, device->multiprocessors());
    std::vector<Outcome> outcomes;
    size_t failed = 0;
    for (const auto &path : paths) {
      outcomes.push_back(runCase(*device, path));
      const Outcome &last = outcomes.back();
      bool good = last.fault.empty();
      failed += !good;
      std::printf("%s %-40s %s\n", good ? "pass" : "FAIL", last.name.c_str(),
                  good ? (std::to_string(last.microseconds) + " us").c_str()
                       : last.fault.c_str());
      std::fflush(stdout);
    }
    std::printf("%zu passed, %zu failed\n", outcomes.size() - failed, failed);
    if (argc == 3)
      writeJson(argv[2], *device, outcomes);
    return failed ? 1 : 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
