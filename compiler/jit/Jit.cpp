//===- Jit.cpp - Kernels in this process ----------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads the very object code that `gen` writes into this process through ORC,
// so that what is tuned and tested in process is what ships.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <chrono>

using namespace llvm;
using namespace pagoda;

struct JitLibrary::Impl {
  std::unique_ptr<orc::LLJIT> jit;
};

JitLibrary::JitLibrary() : impl(std::make_unique<Impl>()) {}
JitLibrary::~JitLibrary() = default;

Expected<std::unique_ptr<JitLibrary>>
JitLibrary::compile(const std::vector<AttentionSpec> &specs,
                    const CompileOptions &options) {
  Expected<Artifact> artifact = pagoda::compile(specs, options);
  if (!artifact)
    return artifact.takeError();
  if (artifact->object.empty())
    return createStringError("target %s cannot run in this process",
                             options.machine.name.c_str());

  auto start = std::chrono::steady_clock::now();
  std::unique_ptr<JitLibrary> result(new JitLibrary());
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Expected<std::unique_ptr<orc::LLJIT>> jit = orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  if (options.emulate) {
    // Kernels of CPUs call nothing; emulated ones call the emulator, which the
    // process has loaded.
    auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
        (*jit)->getDataLayout().getGlobalPrefix());
    if (!process)
      return process.takeError();
    (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  }
  if (Error error = (*jit)->addObjectFile(
          MemoryBuffer::getMemBufferCopy(artifact->object, options.name)))
    return error;
  Expected<orc::ExecutorAddr> symbol = (*jit)->lookup(PAGODA_LIBRARY_SYMBOL);
  if (!symbol)
    return symbol.takeError();
  result->impl->jit = std::move(*jit);
  result->library = symbol->toPtr<const pagoda_library_info *>();
  result->summaries = std::move(artifact->kernels);
  result->phaseTimings = std::move(artifact->timings);
  std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  result->phaseTimings.emplace_back("link", elapsed.count());
  return result;
}
