//===- CudaDevice.cpp - An NVIDIA GPU through its driver ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, types and numbers are those of cuda.h: CUresult is an int (0:
// success), handles are pointers, device addresses 64-bit integers.
//
//===----------------------------------------------------------------------===//

#include "pagoda/CudaDevice.h"

#include <dlfcn.h>

#include <stdexcept>
#include <type_traits>
#include <vector>

using namespace pagoda;

namespace {

using Result = int;
using Address = unsigned long long;

/// The driver's entry points; those with a version suffix are the ones that
/// cuda.h maps the plain names to.
struct Driver {
  Result (*init)(unsigned);
  Result (*getDevice)(int *, int);
  Result (*getName)(char *, int, int);
  Result (*getAttribute)(int *, int, int);
  Result (*retainContext)(void **, int);
  Result (*releaseContext)(int);
  Result (*setContext)(void *);
  Result (*synchronize)();
  Result (*loadModule)(void **, const void *);
  Result (*unloadModule)(void *);
  Result (*getFunction)(void **, void *, const char *);
  Result (*setFunctionAttribute)(void *, int, int);
  Result (*allocate)(Address *, size_t);
  Result (*release)(Address);
  Result (*upload)(Address, const void *, size_t);
  Result (*download)(void *, Address, size_t);
  Result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, unsigned, void *, void **, void **);
  Result (*createEvent)(void **, unsigned);
  Result (*destroyEvent)(void *);
  Result (*recordEvent)(void *, void *);
  Result (*synchronizeEvent)(void *);
  Result (*elapsedTime)(float *, void *, void *);
  Result (*errorString)(Result, const char **);
};

// CU_DEVICE_ATTRIBUTE_... and CU_FUNC_ATTRIBUTE_...
constexpr int multiprocessorCount = 16, capabilityMajor = 75,
              capabilityMinor = 76, maxDynamicSharedBytes = 8;

/// The first symbol that is missing; empty: none.
std::string find(void *library, Driver &driver) {
  std::string missing;
  auto symbol = [&](auto &function, const char *name) {
    void *address = dlsym(library, name);
    if (!address && missing.empty())
      missing = name;
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  symbol(driver.init, "cuInit");
  symbol(driver.getDevice, "cuDeviceGet");
  symbol(driver.getName, "cuDeviceGetName");
  symbol(driver.getAttribute, "cuDeviceGetAttribute");
  symbol(driver.retainContext, "cuDevicePrimaryCtxRetain");
  symbol(driver.releaseContext, "cuDevicePrimaryCtxRelease_v2");
  symbol(driver.setContext, "cuCtxSetCurrent");
  symbol(driver.synchronize, "cuCtxSynchronize");
  symbol(driver.loadModule, "cuModuleLoadData");
  symbol(driver.unloadModule, "cuModuleUnload");
  symbol(driver.getFunction, "cuModuleGetFunction");
  symbol(driver.setFunctionAttribute, "cuFuncSetAttribute");
  symbol(driver.allocate, "cuMemAlloc_v2");
  symbol(driver.release, "cuMemFree_v2");
  symbol(driver.upload, "cuMemcpyHtoD_v2");
  symbol(driver.download, "cuMemcpyDtoH_v2");
  symbol(driver.launch, "cuLaunchKernel");
  symbol(driver.createEvent, "cuEventCreate");
  symbol(driver.destroyEvent, "cuEventDestroy_v2");
  symbol(driver.recordEvent, "cuEventRecord");
  symbol(driver.synchronizeEvent, "cuEventSynchronize");
  symbol(driver.elapsedTime, "cuEventElapsedTime");
  symbol(driver.errorString, "cuGetErrorString");
  return missing;
}

Address addressOf(const void *memory) {
  return Address(reinterpret_cast<uintptr_t>(memory));
}

} // namespace

struct CudaDevice::Impl {
  void *library = nullptr;
  Driver driver{};
  int device = 0;
  bool hasContext = false;
  std::string name;
  int capability = 0, multiprocessors = 0;
  std::vector<void *> modules;

  std::string words(Result result) const {
    const char *text = nullptr;
    driver.errorString(result, &text);
    return text ? text : "error " + std::to_string(result);
  }
  void check(Result result, const char *what) const {
    if (result != 0)
      throw std::runtime_error(std::string(what) + ": " + words(result));
  }
  ~Impl() {
    for (void *module : modules)
      driver.unloadModule(module);
    if (hasContext)
      driver.releaseContext(device);
    if (library)
      dlclose(library);
  }
};

CudaDevice::CudaDevice() : P(std::make_unique<Impl>()) {}
CudaDevice::~CudaDevice() = default;

std::unique_ptr<CudaDevice> CudaDevice::open(std::string &why, int index) {
  std::unique_ptr<CudaDevice> result(new CudaDevice());
  Impl &p = *result->P;
  p.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!p.library) {
    why = "no libcuda.so.1";
    return nullptr;
  }
  if (std::string missing = find(p.library, p.driver); !missing.empty()) {
    why = "libcuda.so.1 has no " + missing;
    return nullptr;
  }
  if (Result error = p.driver.init(0)) {
    why = "cuInit: " + p.words(error);
    return nullptr;
  }
  if (Result error = p.driver.getDevice(&p.device, index)) {
    why = "cuDeviceGet: " + p.words(error);
    return nullptr;
  }
  void *context = nullptr;
  char name[128] = "";
  p.check(p.driver.retainContext(&context, p.device),
          "cuDevicePrimaryCtxRetain");
  p.hasContext = true;
  p.check(p.driver.setContext(context), "cuCtxSetCurrent");
  p.check(p.driver.getName(name, sizeof(name), p.device), "cuDeviceGetName");
  auto attribute = [&](int which) {
    int value = 0;
    p.check(p.driver.getAttribute(&value, which, p.device),
            "cuDeviceGetAttribute");
    return value;
  };
  p.name = name;
  p.capability = 10 * attribute(capabilityMajor) + attribute(capabilityMinor);
  p.multiprocessors = attribute(multiprocessorCount);
  return result;
}

const std::string &CudaDevice::name() const { return P->name; }
int CudaDevice::capability() const { return P->capability; }
int CudaDevice::multiprocessors() const { return P->multiprocessors; }

void *CudaDevice::allocate(size_t bytes) {
  Address address = 0;
  P->check(P->driver.allocate(&address, bytes ? bytes : 1), "cuMemAlloc");
  return reinterpret_cast<void *>(uintptr_t(address));
}

void CudaDevice::release(void *memory) {
  P->check(P->driver.release(addressOf(memory)), "cuMemFree");
}

void CudaDevice::upload(void *to, const void *from, size_t bytes) {
  P->check(P->driver.upload(addressOf(to), from, bytes), "cuMemcpyHtoD");
}

void CudaDevice::download(void *to, const void *from, size_t bytes) {
  P->check(P->driver.download(to, addressOf(from), bytes), "cuMemcpyDtoH");
}

CudaDevice::Kernel CudaDevice::load(const void *image, const std::string &name,
                                    int threads, int sharedBytes) {
  Kernel kernel{nullptr, threads, sharedBytes};
  void *module = nullptr;
  P->check(P->driver.loadModule(&module, image), "cuModuleLoadData");
  P->modules.push_back(module);
  P->check(P->driver.getFunction(&kernel.function, module, name.c_str()),
           "cuModuleGetFunction");
  // More than 48 KB must be asked for.
  P->check(P->driver.setFunctionAttribute(kernel.function,
                                          maxDynamicSharedBytes, sharedBytes),
           "cuFuncSetAttribute");
  return kernel;
}

void CudaDevice::launch(const Kernel &kernel, int64_t blocks,
                        const void *args) {
  void *parameters[] = {const_cast<void *>(args)};
  P->check(P->driver.launch(kernel.function, unsigned(blocks), 1, 1,
                            unsigned(kernel.threads), 1, 1,
                            unsigned(kernel.sharedBytes), nullptr, parameters,
                            nullptr),
           "cuLaunchKernel");
}

void CudaDevice::synchronize() {
  P->check(P->driver.synchronize(), "cuCtxSynchronize");
}

double CudaDevice::time(const Kernel &kernel, int64_t blocks, const void *args,
                        int times) {
  void *events[2] = {};
  for (void *&event : events)
    P->check(P->driver.createEvent(&event, 0), "cuEventCreate");
  P->check(P->driver.recordEvent(events[0], nullptr), "cuEventRecord");
  for (int i = 0; i < times; ++i)
    launch(kernel, blocks, args);
  P->check(P->driver.recordEvent(events[1], nullptr), "cuEventRecord");
  P->check(P->driver.synchronizeEvent(events[1]), "cuEventSynchronize");
  float milliseconds = 0;
  P->check(P->driver.elapsedTime(&milliseconds, events[0], events[1]),
           "cuEventElapsedTime");
  for (void *event : events)
    P->check(P->driver.destroyEvent(event), "cuEventDestroy");
  return double(milliseconds) / times;
}
