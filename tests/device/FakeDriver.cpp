//===- FakeDriver.cpp - A CUDA driver without a GPU -----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libcuda.so.1 with the entry points that CudaDevice uses, in front of the
// emulator: device memory is host memory that the kernels' arguments must stay
// within, and a "cubin" is a shared library of emulated kernels. Asynchronous
// copies happen when something waits for them and no earlier, so that whoever
// writes into a staging buffer too soon is seen. Every call is counted, and a
// test may make any of them fail (FakeDriver.h).
//
//===----------------------------------------------------------------------===//

#include "tests/device/FakeDriver.h"

#include "Emulator.h"
#include "runtime/include/pagoda/kernel_abi.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using Address = unsigned long long;
constexpr int success = 0, invalidValue = 1, outOfMemory = 2,
              invalidImage = 200, notFound = 500, captureInvalid = 901,
              launchFailed = 719;

/// A launch with its own copy of the arguments, as a driver keeps it.
struct FakeLaunch {
  pagoda::emulator::ThreadFunction function;
  unsigned blocks, threads, sharedBytes;
  std::vector<char> arguments;
};

struct FakeFunction {
  pagoda::emulator::ThreadFunction entry;
  size_t argumentBytes;
  int sharedLimit = 48 << 10;
};

struct FakeModule {
  void *library = nullptr;
  std::string path;
  std::map<std::string, FakeFunction> functions;
};

struct FakeStream {
  bool captures = false;
  std::vector<FakeLaunch> captured;
};

struct FakeEvent {
  std::chrono::steady_clock::time_point when;
};

struct PendingCopy {
  void *to;
  const void *from;
  size_t bytes;
};

struct State {
  std::map<std::string, int> calls;
  std::string failing; ///< this call fails ...
  int failAfter = 0;   ///< ... after so many that do not
  int failure = 0;
  std::string fault; ///< the emulator's
  std::map<const void *, size_t> allocations;
  std::vector<PendingCopy> pending;
};

State &state() {
  static State s;
  return s;
}

/// Counts a call; what it must return at once, or success.
int called(const char *name) {
  State &s = state();
  ++s.calls[name];
  if (s.failing != name || s.failAfter-- > 0)
    return success;
  s.failing.clear();
  return s.failure;
}

void settle() {
  for (const PendingCopy &copy : state().pending)
    std::memcpy(copy.to, copy.from, copy.bytes);
  state().pending.clear();
}

int runLaunch(const FakeLaunch &launch) {
  settle();
  pagoda::emulator::Launch emulated;
  emulated.kernel = launch.function;
  emulated.args = launch.arguments.data();
  emulated.gridSize = int(launch.blocks);
  emulated.threads = int(launch.threads);
  emulated.sharedBytes = int(launch.sharedBytes);
  for (auto [begin, bytes] : state().allocations)
    emulated.buffers.push_back({"device memory", begin, bytes, true});
  pagoda::emulator::Result result = pagoda::emulator::run(emulated);
  state().fault = result.fault;
  return result.ok() ? success : launchFailed;
}

/// Bytes of an ELF file in memory: its section headers come last.
size_t elfBytes(const void *image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_machine != EM_X86_64)
    return 0;
  return header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
}

} // namespace

//===----------------------------------------------------------------------===//
// What tests ask
//===----------------------------------------------------------------------===//

extern "C" {

void fakeCudaFail(const char *name, int after, int code) {
  state().failing = name;
  state().failAfter = after;
  state().failure = code;
}

int fakeCudaCalls(const char *name) { return state().calls[name]; }
int fakeCudaAllocations() { return int(state().allocations.size()); }
const char *fakeCudaFault() { return state().fault.c_str(); }

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

int cuInit(unsigned) {
  // The kernels' libraries look for the emulator among what is loaded.
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&pagoda_emu_barrier), &self))
    dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  return called("cuInit");
}
int cuDeviceGet(int *device, int index) {
  *device = index;
  int result = called("cuDeviceGet");
  return result ? result : index == 0 ? success : 101;
}
int cuDeviceGetName(char *name, int bytes, int) {
  std::strncpy(name, "emulator", size_t(bytes));
  return called("cuDeviceGetName");
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 16 ? 3 : attribute == 75 ? 8 : 0; // 3 of sm_80
  return called("cuDeviceGetAttribute");
}
int cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &state();
  return called("cuDevicePrimaryCtxRetain");
}
int cuDevicePrimaryCtxRelease_v2(int) {
  return called("cuDevicePrimaryCtxRelease_v2");
}
int cuCtxSetCurrent(void *) { return called("cuCtxSetCurrent"); }
int cuCtxSynchronize() {
  settle();
  return called("cuCtxSynchronize");
}

int cuModuleLoadData(void **module, const void *image) {
  if (int result = called("cuModuleLoadData"))
    return result;
  size_t bytes = elfBytes(image);
  if (!bytes)
    return invalidImage;
  auto loaded = std::make_unique<FakeModule>();
  char path[] = "/tmp/pagoda-fake-cubin-XXXXXX";
  int file = mkstemp(path);
  if (file < 0)
    return outOfMemory;
  close(file);
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char *>(image), std::streamsize(bytes));
  loaded->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (!loaded->library) {
    state().fault = dlerror();
    return invalidImage;
  }
  auto *library = static_cast<const pagoda_library_info *>(
      dlsym(loaded->library, PAGODA_LIBRARY_SYMBOL));
  for (uint32_t i = 0; library && i < library->kernel_count; ++i) {
    const pagoda_kernel_info &kernel = library->kernels[i];
    size_t bytes =
        kernel.role == PAGODA_ROLE_APPEND ? sizeof(pagoda_append_args)
        : kernel.role == PAGODA_ROLE_COPY ? sizeof(pagoda_copy_args)
                                          : sizeof(pagoda_attention_args);
    loaded->functions[kernel.name] = {
        reinterpret_cast<pagoda::emulator::ThreadFunction>(
            reinterpret_cast<void *>(kernel.entry)),
        bytes};
  }
  *module = loaded.release();
  return success;
}
int cuModuleUnload(void *module) {
  auto *loaded = static_cast<FakeModule *>(module);
  dlclose(loaded->library);
  delete loaded;
  return called("cuModuleUnload");
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  if (int result = called("cuModuleGetFunction"))
    return result;
  auto &functions = static_cast<FakeModule *>(module)->functions;
  auto at = functions.find(name);
  if (at == functions.end())
    return notFound;
  *function = &at->second;
  return success;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute == 8)
    static_cast<FakeFunction *>(function)->sharedLimit = value;
  return called("cuFuncSetAttribute");
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int,
                                                size_t) {
  *blocks = 2;
  return called("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

int cuMemAlloc_v2(Address *address, size_t bytes) {
  if (int result = called("cuMemAlloc_v2"))
    return result;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes); // NaN
  state().allocations[memory] = bytes;
  *address = Address(reinterpret_cast<uintptr_t>(memory));
  return success;
}
int cuMemFree_v2(Address address) {
  void *memory = reinterpret_cast<void *>(uintptr_t(address));
  if (!state().allocations.erase(memory))
    return invalidValue;
  std::free(memory);
  return called("cuMemFree_v2");
}
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
  settle();
  std::memcpy(reinterpret_cast<void *>(uintptr_t(to)), from, bytes);
  return called("cuMemcpyHtoD_v2");
}
int cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) {
  settle();
  std::memcpy(to, reinterpret_cast<void *>(uintptr_t(from)), bytes);
  return called("cuMemcpyDtoH_v2");
}
int cuMemAllocHost_v2(void **memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return called("cuMemAllocHost_v2");
}
int cuMemFreeHost(void *memory) {
  std::free(memory);
  return called("cuMemFreeHost");
}
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *) {
  if (int result = called("cuMemcpyHtoDAsync_v2"))
    return result;
  state().pending.push_back(
      {reinterpret_cast<void *>(uintptr_t(to)), from, bytes});
  return success;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z,
                   unsigned threads, unsigned threadsY, unsigned threadsZ,
                   unsigned sharedBytes, void *stream, void **parameters,
                   void **) {
  if (int result = called("cuLaunchKernel"))
    return result;
  auto *kernel = static_cast<FakeFunction *>(function);
  if (x == 0 || y != 1 || z != 1 || threadsY != 1 || threadsZ != 1 ||
      int(sharedBytes) > kernel->sharedLimit)
    return invalidValue;
  auto *arguments = static_cast<const char *>(parameters[0]);
  FakeLaunch launch{kernel->entry,
                    x,
                    threads,
                    sharedBytes,
                    {arguments, arguments + kernel->argumentBytes}};
  auto *in = static_cast<FakeStream *>(stream);
  if (!in || !in->captures)
    return runLaunch(launch);
  in->captured.push_back(std::move(launch));
  return success;
}

int cuStreamCreate(void **stream, unsigned) {
  *stream = new FakeStream();
  return called("cuStreamCreate");
}
int cuStreamDestroy_v2(void *stream) {
  delete static_cast<FakeStream *>(stream);
  return called("cuStreamDestroy_v2");
}
int cuStreamBeginCapture_v2(void *stream, int) {
  if (!stream || static_cast<FakeStream *>(stream)->captures)
    return captureInvalid;
  static_cast<FakeStream *>(stream)->captures = true;
  return called("cuStreamBeginCapture_v2");
}
int cuStreamEndCapture(void *stream, void **graph) {
  auto *in = static_cast<FakeStream *>(stream);
  in->captures = false;
  *graph = new std::vector<FakeLaunch>(std::move(in->captured));
  in->captured.clear();
  return called("cuStreamEndCapture");
}
int cuGraphInstantiateWithFlags(void **executable, void *graph,
                                unsigned long long) {
  *executable = new std::vector<FakeLaunch>(
      *static_cast<std::vector<FakeLaunch> *>(graph));
  return called("cuGraphInstantiateWithFlags");
}
int cuGraphDestroy(void *graph) {
  delete static_cast<std::vector<FakeLaunch> *>(graph);
  return called("cuGraphDestroy");
}
int cuGraphExecDestroy(void *graph) {
  delete static_cast<std::vector<FakeLaunch> *>(graph);
  return called("cuGraphExecDestroy");
}
int cuGraphLaunch(void *graph, void *) {
  if (int result = called("cuGraphLaunch"))
    return result;
  for (const FakeLaunch &launch :
       *static_cast<std::vector<FakeLaunch> *>(graph))
    if (int result = runLaunch(launch))
      return result;
  return success;
}

int cuEventCreate(void **event, unsigned) {
  *event = new FakeEvent();
  return called("cuEventCreate");
}
int cuEventDestroy_v2(void *event) {
  delete static_cast<FakeEvent *>(event);
  return called("cuEventDestroy_v2");
}
int cuEventRecord(void *event, void *) {
  static_cast<FakeEvent *>(event)->when = std::chrono::steady_clock::now();
  return called("cuEventRecord");
}
int cuEventSynchronize(void *) {
  settle();
  return called("cuEventSynchronize");
}
int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  *milliseconds = std::chrono::duration<float, std::milli>(
                      static_cast<FakeEvent *>(to)->when -
                      static_cast<FakeEvent *>(from)->when)
                      .count();
  return called("cuEventElapsedTime");
}
int cuGetErrorString(int result, const char **text) {
  *text = result == outOfMemory    ? "out of memory"
          : result == invalidImage ? "device kernel image is invalid"
          : result == launchFailed ? state().fault.c_str()
          : result == notFound     ? "named symbol not found"
          : result == invalidValue ? "invalid argument"
                                   : nullptr;
  return success;
}

} // extern "C"
