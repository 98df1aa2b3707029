//===- EmulatedKernels.cpp - NVIDIA kernels run on the emulator -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without a mutation kernels come from the compiler's front door, with one from
// its phases.
//
//===----------------------------------------------------------------------===//

#include "EmulatedKernels.h"

#include "compiler/Pipeline.h"
#include "compiler/emit/Object.h"
#include "compiler/import/BuildAttention.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>

using namespace llvm;

namespace pagoda::conformance {

namespace {

/// Kernels whose IR was changed on the way.
class MutatedLibrary {
public:
  Error build(const AttentionSpec &spec, const CompileOptions &options,
              const Mutation &mutation);
  const pagoda_library_info *info = nullptr;

private:
  std::unique_ptr<orc::LLJIT> jit;
};

} // namespace

Error MutatedLibrary::build(const AttentionSpec &spec,
                            const CompileOptions &options,
                            const Mutation &mutation) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  buildAttention(*module, spec, "attention");
  mlir::PassManager toTarget(&context), toLlvm(&context);
  for (Phase phase : {Phase::Attention, Phase::Tiled, Phase::Target})
    buildPhase(toTarget, phase, options.machine, options.schedule);
  buildEmulatedLlvm(toLlvm);
  if (failed(toTarget.run(*module)))
    return createStringError("lowering failed");
  // One attention kernel is enough, and half the work.
  module->walk([](mlir::LLVM::LLVMFuncOp function) {
    if (function.getSymName() == "attention_decode")
      function.erase();
  });
  mutation(*module);
  if (failed(toLlvm.run(*module)))
    return createStringError("emulation failed");

  Machine host = Machine::host();
  LLVMContext llvmContext;
  auto target = createTargetMachine(host);
  if (!target)
    return target.takeError();
  auto translated = translate(*module, llvmContext, **target, host);
  if (!translated)
    return translated.takeError();
  optimize(**translated, **target);
  auto object = emitCode(**translated, **target, /*assembly=*/false);
  if (!object)
    return object.takeError();
  auto created = orc::LLJITBuilder().create();
  if (!created)
    return created.takeError();
  jit = std::move(*created);
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  jit->getMainJITDylib().addGenerator(std::move(*process));
  if (Error error = jit->addObjectFile(
          MemoryBuffer::getMemBufferCopy(*object, "mutated")))
    return error;
  auto symbol = jit->lookup(PAGODA_LIBRARY_SYMBOL);
  if (!symbol)
    return symbol.takeError();
  info = symbol->toPtr<const pagoda_library_info *>();
  return Error::success();
}

static CompileOptions optionsOf(const std::string &machine, const Case &c) {
  CompileOptions options;
  options.machine = cantFail(Machine::named(machine));
  options.schedule = c.schedule;
  options.emulate = true;
  return options;
}

/// Everything that kernels of this case may read or write.
static std::vector<emulator::GlobalBuffer> buffersOf(const CaseData &data,
                                                     const ManualPlan &plan) {
  const pagoda_attention_args &args = data.args;
  const reference::Shape &shape = data.problem.shape;
  size_t element = 2;
  std::vector<emulator::GlobalBuffer> result;
  auto add = [&](const char *name, const void *begin, int64_t bytes,
                 bool writable = false) {
    result.push_back({name, begin, size_t(bytes), writable});
  };
  auto vector = [&](const char *name, const auto &values,
                    bool writable = false) {
    add(name, values.data(), int64_t(values.size() * sizeof(values[0])),
        writable);
  };
  int64_t rows = data.rows(),
          sequences = int64_t(data.problem.sequences.size());
  add("q", args.q, rows * args.q_token_stride * int64_t(element));
  add("o", args.o, rows * args.o_token_stride * int64_t(element), true);
  add("lse", args.lse, rows * args.lse_token_stride * 4, true);
  int64_t entries = sequences * args.block_table_stride;
  add("block_table", args.block_table, entries * 4);
  int64_t blocks =
      1 + *std::max_element(args.block_table, args.block_table + entries);
  add("k", args.k.base, blocks * args.k.block_stride * int64_t(element));
  add("v", args.v.base, blocks * args.v.block_stride * int64_t(element));
  add("sinks", args.sinks, shape.qHeads * 4);
  add("alibi_slopes", args.alibi_slopes, shape.qHeads * 4);
  add("counts", args.counts, 8);
  vector("items", plan.items);
  vector("row_map", plan.rowMap);
  vector("row_pos", plan.rowPos);
  vector("row_seq", plan.rowSeq);
  vector("merges", plan.merges);
  vector("merge_slots", plan.mergeSlots);
  vector("partial_o", plan.partialO, true);
  vector("partial_ml", plan.partialMl, true);
  return result;
}

Error EmulatedKernels::launch(const pagoda_kernel_info &kernel, const Case &c,
                              const CaseData &data, const ManualPlan &plan) {
  emulator::Launch launch;
  launch.kernel = reinterpret_cast<emulator::ThreadFunction>(
      reinterpret_cast<void *>(kernel.entry));
  launch.args = &data.args;
  launch.gridSize = gridSize;
  launch.threads = kernel.threads;
  launch.sharedBytes = kernel.shared_bytes;
  launch.seed = seed;
  launch.hostThreads = c.threads;
  launch.buffers = buffersOf(data, plan);
  emulator::Result result = emulator::run(launch);
  statistics = result.statistics;
  if (!result.ok())
    return createStringError(kernel.name + (": " + result.fault));
  return Error::success();
}

Expected<const pagoda_library_info *> EmulatedKernels::compiled(const Case &c) {
  std::unique_ptr<JitLibrary> &library = libraries[kernelKey(c)];
  if (!library) {
    auto built = JitLibrary::compile({c.spec}, optionsOf(machine, c));
    if (!built)
      return built.takeError();
    library = std::move(*built);
  }
  return library->info();
}

Error EmulatedKernels::run(const Case &c, CaseData &data) {
  MutatedLibrary mutated;
  const pagoda_library_info *info = nullptr;
  if (mutation) {
    if (Error error = mutated.build(c.spec, optionsOf(machine, c), mutation))
      return error;
    info = mutated.info;
  } else {
    auto library = compiled(c);
    if (!library)
      return library.takeError();
    info = *library;
  }
  SmallVector<const pagoda_kernel_info *> attention;
  const pagoda_kernel_info *merge = nullptr;
  for (const pagoda_kernel_info &kernel :
       ArrayRef(info->kernels, info->kernel_count))
    if (kernel.role == PAGODA_ROLE_MERGE)
      merge = &kernel;
    else
      attention.push_back(&kernel);
  if (!merge || attention.empty())
    return createStringError("expected kernels for attention and merges");
  const pagoda_kernel_info &kernel =
      c.kernel == 1 ? *attention.back() : *attention.front();
  ManualPlan plan(data.problem, kernel, std::max<int64_t>(c.splits, 1));
  plan.attach(data.args);
  int32_t counts[2] = {int32_t(plan.items.size()), int32_t(plan.merges.size())};
  data.args.counts = counts;
  if (Error error = launch(kernel, c, data, plan))
    return error;
  emulator::Statistics ofItems = statistics;
  if (!plan.merges.empty())
    if (Error error = launch(*merge, c, data, plan))
      return error;
  statistics = ofItems;
  return Error::success();
}

} // namespace pagoda::conformance
