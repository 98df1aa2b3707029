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
  Result (*allocateHost)(void **, size_t);
  Result (*releaseHost)(void *);
  Result (*uploadAsync)(Address, const void *, size_t, void *);
  Result (*occupancy)(int *, void *, int, size_t);
  Result (*createStream)(void **, unsigned);
  Result (*destroyStream)(void *);
  Result (*beginCapture)(void *, int);
  Result (*endCapture)(void *, void **);
  Result (*instantiate)(void **, void *, unsigned long long);
  Result (*destroyTemplate)(void *);
  Result (*launchGraph)(void *, void *);
  Result (*destroyGraph)(void *);
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
  symbol(driver.allocateHost, "cuMemAllocHost_v2");
  symbol(driver.releaseHost, "cuMemFreeHost");
  symbol(driver.uploadAsync, "cuMemcpyHtoDAsync_v2");
  symbol(driver.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  symbol(driver.createStream, "cuStreamCreate");
  symbol(driver.destroyStream, "cuStreamDestroy_v2");
  symbol(driver.beginCapture, "cuStreamBeginCapture_v2");
  symbol(driver.endCapture, "cuStreamEndCapture");
  symbol(driver.instantiate, "cuGraphInstantiateWithFlags");
  symbol(driver.destroyTemplate, "cuGraphDestroy");
  symbol(driver.launchGraph, "cuGraphLaunch");
  symbol(driver.destroyGraph, "cuGraphExecDestroy");
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

std::unique_ptr<CudaDevice> CudaDevice::open(std::string &why, int index,
                                             const char *driver) {
  std::unique_ptr<CudaDevice> result(new CudaDevice());
  Impl &p = *result->P;
  p.library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
  if (!p.library) {
    why = std::string("no ") + driver;
    return nullptr;
  }
  if (std::string missing = find(p.library, p.driver); !missing.empty()) {
    why = std::string(driver) + " has no " + missing;
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

int CudaDevice::blocksPerMultiprocessor(const Kernel &kernel) {
  int blocks = 0;
  P->check(P->driver.occupancy(&blocks, kernel.function, kernel.threads,
                               size_t(kernel.sharedBytes)),
           "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

void CudaDevice::launch(const Kernel &kernel, int64_t blocks, const void *args,
                        CudaStream stream) {
  void *parameters[] = {const_cast<void *>(args)};
  P->check(P->driver.launch(kernel.function, unsigned(blocks), 1, 1,
                            unsigned(kernel.threads), 1, 1,
                            unsigned(kernel.sharedBytes), stream, parameters,
                            nullptr),
           "cuLaunchKernel");
}

void CudaDevice::synchronize() {
  P->check(P->driver.synchronize(), "cuCtxSynchronize");
}

double CudaDevice::time(const Kernel &kernel, int64_t blocks, const void *args,
                        int times) {
  return time([&] { launch(kernel, blocks, args); }, times);
}

double CudaDevice::time(const std::function<void()> &body, int times) {
  void *events[] = {createEvent(), createEvent()};
  record(events[0], nullptr);
  for (int i = 0; i < times; ++i)
    body();
  record(events[1], nullptr);
  wait(events[1]);
  float milliseconds = 0;
  P->check(P->driver.elapsedTime(&milliseconds, events[0], events[1]),
           "cuEventElapsedTime");
  for (void *event : events)
    destroyEvent(event);
  return double(milliseconds) / times;
}

//===----------------------------------------------------------------------===//
// Streams, events, graphs
//===----------------------------------------------------------------------===//

void *CudaDevice::allocatePinned(size_t bytes) {
  void *memory = nullptr;
  P->check(P->driver.allocateHost(&memory, bytes ? bytes : 1),
           "cuMemAllocHost");
  return memory;
}

void CudaDevice::releasePinned(void *memory) {
  P->check(P->driver.releaseHost(memory), "cuMemFreeHost");
}

void CudaDevice::uploadAsync(void *to, const void *from, size_t bytes,
                             CudaStream stream) {
  P->check(P->driver.uploadAsync(addressOf(to), from, bytes, stream),
           "cuMemcpyHtoDAsync");
}

CudaStream CudaDevice::createStream() {
  CudaStream stream = nullptr;
  constexpr unsigned nonBlocking = 1;
  P->check(P->driver.createStream(&stream, nonBlocking), "cuStreamCreate");
  return stream;
}

void CudaDevice::destroyStream(CudaStream stream) {
  P->check(P->driver.destroyStream(stream), "cuStreamDestroy");
}

void *CudaDevice::createEvent() {
  void *event = nullptr;
  P->check(P->driver.createEvent(&event, 0), "cuEventCreate");
  return event;
}

void CudaDevice::destroyEvent(void *event) {
  P->check(P->driver.destroyEvent(event), "cuEventDestroy");
}

void CudaDevice::record(void *event, CudaStream stream) {
  P->check(P->driver.recordEvent(event, stream), "cuEventRecord");
}

void CudaDevice::wait(void *event) {
  P->check(P->driver.synchronizeEvent(event), "cuEventSynchronize");
}

void *CudaDevice::capture(CudaStream stream,
                          const std::function<void()> &body) {
  constexpr int threadLocal = 1;
  P->check(P->driver.beginCapture(stream, threadLocal), "cuStreamBeginCapture");
  void *recorded = nullptr, *graph = nullptr;
  try {
    body();
  } catch (...) {
    P->driver.endCapture(stream, &recorded);
    if (recorded)
      P->driver.destroyTemplate(recorded);
    throw;
  }
  P->check(P->driver.endCapture(stream, &recorded), "cuStreamEndCapture");
  Result result = P->driver.instantiate(&graph, recorded, 0);
  P->driver.destroyTemplate(recorded);
  P->check(result, "cuGraphInstantiate");
  return graph;
}

void CudaDevice::launchGraph(void *graph, CudaStream stream) {
  P->check(P->driver.launchGraph(graph, stream), "cuGraphLaunch");
}

void CudaDevice::destroyGraph(void *graph) {
  P->check(P->driver.destroyGraph(graph), "cuGraphExecDestroy");
}
