//===- Ptx.cpp - NVVM to PTX, and PTX to a cubin --------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas runs as a program, on temporary files. Its report is text for people; a
// line that this parser does not know is passed over.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Ptx.h"

#include "compiler/tiling/Occupancy.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pagoda;

Expected<std::unique_ptr<Module>>
pagoda::translateDevice(mlir::ModuleOp module, LLVMContext &context,
                        TargetMachine &target) {
  auto devices = module.getOps<mlir::gpu::GPUModuleOp>();
  if (devices.empty())
    return createStringError("no gpu.module to translate");
  std::unique_ptr<Module> result =
      mlir::translateModuleToLLVMIR(*devices.begin(), context, "pagoda");
  if (!result)
    return createStringError("translation to LLVM IR failed");
  result->setDataLayout(target.createDataLayout());
  result->setTargetTriple(target.getTargetTriple());
  for (Function &function : *result)
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (auto *call = dyn_cast<CallInst>(&instruction))
          if (call->isInlineAsm())
            call->setConvergent();
  return result;
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

std::optional<std::string> pagoda::findPtxas() {
  if (ErrorOr<std::string> found = sys::findProgramByName("ptxas"))
    return *found;
  if (ErrorOr<std::string> found =
          sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"}))
    return *found;
  return std::nullopt;
}

/// The number before `unit` in `line`, 0 if there is none: "12 bytes spill".
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at).rtrim();
  size_t begin = before.find_last_not_of("0123456789");
  int64_t value = 0;
  before.drop_front(begin + 1).getAsInteger(10, value);
  return value;
}

std::vector<KernelResources> pagoda::parsePtxasReport(StringRef report) {
  std::vector<KernelResources> result;
  for (StringRef line : split(report, '\n')) {
    if (line.contains("Compiling entry function")) {
      result.emplace_back().name = line.split('\'').second.split('\'').first;
    } else if (!result.empty() && line.contains("bytes stack frame")) {
      KernelResources &kernel = result.back();
      kernel.stackBytes = numberBefore(line, "bytes stack frame");
      kernel.spillStores = numberBefore(line, "bytes spill stores");
      kernel.spillLoads = numberBefore(line, "bytes spill loads");
    } else if (!result.empty() && line.contains("registers")) {
      KernelResources &kernel = result.back();
      kernel.registers = numberBefore(line, "registers");
      kernel.sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return result;
}

/// A temporary file's contents; empty if it cannot be read.
static std::string contentsOf(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

Expected<Cubin> pagoda::assemblePtx(StringRef ptxas, StringRef ptx,
                                    StringRef chip) {
  SmallString<128> source, image, report;
  for (auto [path, suffix] :
       {std::pair(&source, "ptx"), {&image, "cubin"}, {&report, "txt"}})
    if (std::error_code code =
            sys::fs::createTemporaryFile("pagoda", suffix, *path))
      return createStringError("temporary file: " + code.message());
  FileRemover removeSource(source), removeImage(image), removeReport(report);
  {
    std::error_code code;
    raw_fd_ostream stream(source, code);
    stream << ptx;
    stream.close();
    if (!code)
      code = stream.error();
    stream.clear_error(); // unasked for, it would end the process
    if (code)
      return createStringError(source + ": " + code.message());
  }
  std::string arch = ("-arch=" + chip).str(), message;
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(report),
                                          StringRef(report)};
  int status = sys::ExecuteAndWait(
      ptxas, {ptxas, "-v", "-O3", arch, source, "-o", image},
      /*Env=*/std::nullopt, redirects, /*SecondsToWait=*/0, /*MemoryLimit=*/0,
      &message);
  std::string text = contentsOf(report);
  if (status != 0)
    return createStringError(ptxas + " failed for " + chip + " with status " +
                             Twine(status) + ": " +
                             (message.empty() ? text : message));
  return Cubin{contentsOf(image), parsePtxasReport(text)};
}

Error pagoda::assemble(Artifact &artifact, const Machine &machine) {
  std::optional<std::string> ptxas = findPtxas();
  if (artifact.ptx.empty() || !ptxas)
    return Error::success();
  Expected<Cubin> cubin = assemblePtx(*ptxas, artifact.ptx, machine.name);
  if (!cubin)
    return cubin.takeError();
  artifact.cubin = std::move(cubin->image);
  for (KernelSummary &kernel : artifact.kernels)
    for (const KernelResources &resources : cubin->kernels)
      if (resources.name == kernel.name) {
        kernel.resources = resources;
        kernel.resources->blocks =
            residentBlocks(machine, resources.registers, kernel.info.threads,
                           kernel.info.shared_bytes + resources.sharedBytes)
                .total();
      }
  return Error::success();
}
