//===- main.cpp - Measures exported candidates on a GPU -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `run [results.json]`, in a folder that `pagoda tune --export` wrote. Needs a
// driver and nothing else. Exit codes: 0, 2 (an error), 77 (no driver or no
// device).
//
//===----------------------------------------------------------------------===//

#include "tools/tune-runner/Candidates.h"

#include "pagoda/CudaDevice.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

using namespace pagoda;
using namespace pagoda::device;

namespace {

class Gpu : public MeasuredDevice {
public:
  explicit Gpu(std::unique_ptr<CudaDevice> opened)
      : device(std::move(opened)) {}

  std::string name() const override { return device->name(); }
  int capability() const override { return device->capability(); }
  void *allocate(size_t bytes) override { return device->allocate(bytes); }
  void release(void *memory) override { device->release(memory); }
  void upload(void *to, const void *from, size_t bytes) override {
    device->upload(to, from, bytes);
  }
  void download(void *to, const void *from, size_t bytes) override {
    device->download(to, from, bytes);
  }
  size_t load(const std::string &path, const KernelLaunch &kernel) override {
    std::string &code = files[path];
    if (code.empty()) { // a string ends in 0, as PTX must
      std::ifstream stream(path, std::ios::binary);
      code.assign(std::istreambuf_iterator<char>(stream), {});
      if (code.empty())
        throw std::runtime_error(path + ": cannot be read");
    }
    kernels.push_back(device->load(code.c_str(), kernel.kernel, kernel.threads,
                                   kernel.sharedBytes));
    return kernels.size() - 1;
  }
  void run(size_t kernel, int64_t blocks,
           const pagoda_attention_args &args) override {
    device->launch(kernels[kernel], blocks, &args);
    device->synchronize();
  }
  double time(size_t kernel, int64_t blocks, const pagoda_attention_args &args,
              int times) override {
    return 1e-3 * device->time(kernels[kernel], blocks, &args, times);
  }

private:
  std::unique_ptr<CudaDevice> device;
  std::map<std::string, std::string> files;
  std::vector<CudaDevice::Kernel> kernels;
};

} // namespace

int main(int argc, char **argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: %s [results.json]\n", argv[0]);
    return 2;
  }
  try {
    std::filesystem::path folder =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::filesystem::path results =
        argc == 2 ? argv[1] : folder / "results.json";
    std::string why;
    std::unique_ptr<CudaDevice> opened = CudaDevice::open(why);
    if (!opened) {
      std::printf("skipped: %s\n", why.c_str());
      return 77;
    }
    Gpu gpu(std::move(opened));
    std::string text =
        measureCandidates(folder.string(), gpu, [](const std::string &line) {
          std::printf("%s\n", line.c_str());
          std::fflush(stdout);
        });
    std::ofstream stream(results);
    stream << text;
    stream.close();
    if (!stream)
      throw std::runtime_error(results.string() + ": cannot be written");
    std::printf("written to %s\n", results.c_str());
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
