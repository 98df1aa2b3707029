//===- Pack.cpp - Cases and kernels for a machine with a GPU --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles primitives, the conformance table and the kernels of a few workloads
// for one target and writes, into a folder, cubins (PTX where there is no
// ptxas) and a file for each case. Runner.cpp runs them. With --emulated the
// kernels are for the fake driver of the tests, and only primitives and small
// workloads are packed.
//
//   pagoda-device-pack target folder [--emulated]
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"
#include "compiler/emit/Emit.h"
#include "tests/conformance/EmulatorBackend.h"
#include "tests/device/FakeGpu.h"
#include "tests/device/MakeImage.h"
#include "tests/device/Primitives.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>

using namespace llvm;
using namespace pagoda;
using namespace pagoda::conformance;

namespace {

struct Library {
  std::string file;
  Artifact artifact;

  /// With the name that the ABI keeps as a pointer.
  pagoda_kernel_info kernel(int32_t role) const {
    for (const KernelSummary &summary : artifact.kernels)
      if (summary.info.role == role) {
        pagoda_kernel_info info = summary.info;
        info.name = summary.name.c_str();
        return info;
      }
    return {};
  }
};

/// PATH.cubin and PATH.ptx: a driver older than ptxas takes the second.
llvm::Error writeCode(const std::string &path, const Artifact &artifact) {
  for (auto [suffix, code] :
       {std::pair(".cubin", &artifact.cubin), {".ptx", &artifact.ptx}})
    if (!code->empty())
      if (llvm::Error error = writeFile(path + suffix, *code))
        return error;
  return llvm::Error::success();
}

Expected<Library> build(const Case &c, const Machine &machine,
                        const std::string &folder, size_t number) {
  CompileOptions options;
  options.machine = machine;
  Expected<Artifact> artifact = compile({c.spec}, options);
  if (!artifact)
    return artifact.takeError();
  if (llvm::Error error = assemble(*artifact, machine))
    return std::move(error);
  bool assembled = !artifact->cubin.empty();
  Library library{"kernels" + std::to_string(number) +
                      (assembled ? ".cubin" : ".ptx"),
                  std::move(*artifact)};
  const Artifact &made = library.artifact;
  if (llvm::Error error =
          writeCode(folder + "/kernels" + std::to_string(number), made))
    return std::move(error);
  return library;
}

/// Under a plan by hand a case without splits is the same as with one; shapes
/// and layouts do not depend on the element type.
bool isRedundant(const Case &c, DType type) {
  StringRef name = c.name;
  return c.splits == 1 ||
         (type == DType::BF16 &&
          (name.starts_with("corner.") || name.starts_with("block.") ||
           name.starts_with("qwen3.nhd.")));
}

llvm::Error packPrimitives(const Machine &machine, const std::string &folder,
                           bool emulated) {
  Expected<Artifact> made = device::compilePrimitives(machine, emulated);
  if (!made)
    return made.takeError();
  if (emulated) {
    Expected<std::string> cubin = device::fakeCubin(made->object);
    if (!cubin)
      return cubin.takeError();
    made->cubin = std::move(*cubin);
  }
  std::string name =
      made->cubin.empty() ? "primitives.ptx" : "primitives.cubin";
  if (llvm::Error error = writeCode(folder + "/primitives", *made))
    return error;
  for (const device::CaseImage &image : device::primitiveImages(name))
    image.write(folder + "/primitive." + image.name + ".case");
  return llvm::Error::success();
}

/// Shapes that engines meet: 32 query heads over 8, as Llama 3 8B and Qwen3 8B
/// have, and a smaller head.
llvm::Error packWorkloads(const Machine &machine, const std::string &folder,
                          bool emulated) {
  std::string list;
  for (auto [type, dim] :
       {std::pair(DType::F16, 64), {DType::F16, 128}, {DType::BF16, 128}}) {
    if (emulated && dim == 128 && type == DType::F16)
      continue;
    AttentionSpec spec;
    spec.qHeads = emulated ? 4 : 32;
    spec.kvHeads = emulated ? 2 : 8;
    spec.headDim = spec.vHeadDim = dim;
    spec.qType = spec.kvType = type;
    spec.scale = 1 / std::sqrt(double(dim));
    CompileOptions options;
    options.machine = machine;
    Expected<Artifact> made = emulated ? device::compileFake({spec}, options)
                                       : compile({spec}, options);
    if (!made)
      return made.takeError();
    if (!emulated)
      if (llvm::Error error = assemble(*made, machine))
        return error;
    std::string name =
        (type == DType::F16 ? "f16_d" : "bf16_d") + std::to_string(dim);
    std::string library = "lib" + name + ".so";
    if (llvm::Error error =
            device::writeDeviceLibrary(*made, folder + "/" + library))
      return error;
    struct Size {
      const char *name;
      int sequences, qLen, kvLen;
    };
    std::vector<Size> sizes = {{"prefill_2k", 4, 2048, 2048},
                               {"prefill_8k", 1, 8192, 8192},
                               {"append_512_of_8k", 4, 512, 8192},
                               {"decode_64x4k", 64, 1, 4096},
                               {"decode_8x32k", 8, 1, 32768}};
    if (emulated)
      sizes = {{"prefill", 1, 70, 70}, {"decode", 2, 1, 300}};
    for (const Size &size : sizes)
      list += formatv("{0}.{1} {2} {3} {4} {5}\n", name, size.name, library,
                      size.sequences, size.qLen, size.kvLen);
  }
  return writeFile(folder + "/workloads.txt", list);
}

llvm::Error packCases(const Machine &machine, const std::string &folder) {
  EmulatorBackend supports(machine);
  std::map<std::string, Library> libraries;
  size_t packed = 0;
  for (DType type : {DType::F16, DType::BF16})
    for (Case &c : gpuTable(fixedCases(), type)) {
      if (!supports.unsupported(c).empty() || isRedundant(c, type))
        continue;
      c.splits = std::max<int64_t>(c.splits, 1);
      c.name = std::string(type == DType::F16 ? "f16." : "bf16.") + c.name;
      auto it = libraries.find(kernelKey(c));
      if (it == libraries.end()) {
        Expected<Library> library = build(c, machine, folder, libraries.size());
        if (!library)
          return library.takeError();
        it = libraries.emplace(kernelKey(c), std::move(*library)).first;
      }
      const Library &library = it->second;
      device::makeImage(c, library.kernel(PAGODA_ROLE_ATTENTION),
                        library.kernel(PAGODA_ROLE_MERGE), library.file)
          .write(folder + "/" + c.name + ".case");
      ++packed;
    }
  outs() << packed << " cases, " << libraries.size() << " kernel files for "
         << machine.name << " in " << folder << '\n';
  return llvm::Error::success();
}

llvm::Error pack(const Machine &machine, const std::string &folder,
                 bool emulated) {
  if (std::error_code code = sys::fs::create_directories(folder))
    return createStringError(folder + ": " + code.message());
  if (llvm::Error error = packPrimitives(machine, folder, emulated))
    return error;
  if (llvm::Error error = packWorkloads(machine, folder, emulated))
    return error;
  return emulated ? llvm::Error::success() : packCases(machine, folder);
}

} // namespace

int main(int argc, char **argv) {
  bool emulated = argc == 4 && StringRef(argv[3]) == "--emulated";
  if (argc != 3 && !emulated) {
    errs() << "usage: " << argv[0] << " target folder [--emulated]\n";
    return 2;
  }
  Expected<Machine> machine = Machine::named(argv[1]);
  llvm::Error error =
      machine ? pack(*machine, argv[2], emulated) : machine.takeError();
  if (!error)
    return 0;
  errs() << "error: " << toString(std::move(error)) << '\n';
  return 1;
}
