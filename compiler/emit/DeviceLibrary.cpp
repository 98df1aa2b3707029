//===- DeviceLibrary.cpp - Kernels for a GPU as a host library ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An engine opens kernels for a GPU as it opens those for a CPU: one shared
// library whose table says what each was built for. The code itself is data.
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"
#include "compiler/emit/Object.h"
#include "compiler/target/KernelAbi.h"

#include "llvm/IR/Constants.h"

using namespace llvm;
using namespace pagoda;

Expected<std::string> pagoda::deviceLibraryObject(const Artifact &artifact) {
  auto target = createTargetMachine(Machine::host());
  if (!target)
    return target.takeError();
  LLVMContext context;
  Module module("pagoda", context);
  module.setDataLayout((*target)->createDataLayout());
  module.setTargetTriple((*target)->getTargetTriple());

  std::vector<KernelDescription> kernels;
  for (const KernelSummary &kernel : artifact.kernels)
    kernels.push_back(
        {kernel.name, "nvidia:" + kernel.target, kernel.schedule, kernel.info});
  addLibraryTable(module, kernels);

  auto *pointer = PointerType::getUnqual(context);
  auto data = [&](StringRef bytes) -> Constant * {
    if (bytes.empty())
      return ConstantPointerNull::get(pointer);
    Constant *content =
        ConstantDataArray::getString(context, bytes, /*AddNull=*/true);
    auto *global =
        new GlobalVariable(module, content->getType(), /*isConstant=*/true,
                           GlobalValue::PrivateLinkage, content, "pagoda_code");
    global->setAlignment(Align(16));
    return global;
  };
  auto i32 = [&](uint64_t value) {
    return ConstantInt::get(Type::getInt32Ty(context), value);
  };
  auto i64 = [&](uint64_t value) {
    return ConstantInt::get(Type::getInt64Ty(context), value);
  };
  StringRef cubin = artifact.cubin, ptx = artifact.ptx;
  Constant *image = ConstantStruct::getAnon(
      {i32(PAGODA_ABI_VERSION), i32(0), data(cubin), i64(cubin.size()),
       data(ptx), i64(ptx.empty() ? 0 : ptx.size() + 1)});
  new GlobalVariable(module, image->getType(), /*isConstant=*/true,
                     GlobalValue::ExternalLinkage, image, PAGODA_IMAGE_SYMBOL);
  return emitCode(module, **target, /*assembly=*/false);
}
