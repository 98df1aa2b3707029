//===- Pack.cpp - Cases and kernels for a machine with a GPU --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the conformance table for one target and writes, into a folder, a
// cubin (PTX where there is no ptxas) for each specification and a file for
// each case. Runner.cpp runs them. Usage: pagoda-device-pack target folder.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"
#include "compiler/emit/Emit.h"
#include "tests/conformance/EmulatorBackend.h"
#include "tests/device/MakeImage.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

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
  if (llvm::Error error = writeFile(folder + "/" + library.file,
                                    assembled ? made.cubin : made.ptx))
    return std::move(error);
  return library;
}

/// Under a plan by hand a case without splits is the same as with one; shapes
/// do not depend on the element type.
bool isRedundant(const Case &c, DType type) {
  StringRef name = c.name;
  return c.splits == 1 ||
         (type == DType::BF16 &&
          (name.starts_with("corner.") || name.starts_with("block.")));
}

llvm::Error pack(const Machine &machine, const std::string &folder) {
  if (std::error_code code = sys::fs::create_directories(folder))
    return createStringError(folder + ": " + code.message());
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

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    errs() << "usage: " << argv[0] << " target folder\n";
    return 2;
  }
  Expected<Machine> machine = Machine::named(argv[1]);
  llvm::Error error = machine ? pack(*machine, argv[2]) : machine.takeError();
  if (!error)
    return 0;
  errs() << "error: " << toString(std::move(error)) << '\n';
  return 1;
}
