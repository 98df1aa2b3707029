//===- Compilation.h - One machine's kernels, phase by phase ----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each arrow of the path config -> attention IR -> tiled IR -> target IR ->
// LLVM IR is one function here. Driver.cpp makes artifacts of what they leave.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_COMPILATION_H
#define PAGODA_COMPILER_COMPILATION_H

#include "compiler/Driver.h"
#include "compiler/Pipeline.h"
#include "compiler/target/KernelAbi.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <chrono>

namespace pagoda {

/// Runs `body` and adds its wall time to the phase `name` of `timings`.
template <typename Body>
auto timed(PhaseTimings &timings, llvm::StringRef name, Body body) {
  auto start = std::chrono::steady_clock::now();
  auto add = llvm::scope_exit([&] {
    std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    auto phase = llvm::find_if(
        timings, [&](const auto &entry) { return entry.first == name; });
    if (phase == timings.end())
      timings.emplace_back(name, elapsed.count());
    else
      phase->second += elapsed.count();
  });
  return body();
}

/// One machine's kernels: the IR as it goes through the phases.
class Compilation {
public:
  /// `suffix` joins the kernels' names, for variants of one library.
  Compilation(const std::vector<AttentionSpec> &specs,
              const CompileOptions &options, const Machine &machine,
              llvm::StringRef suffix, PhaseTimings &timings)
      : specs(specs), options(options), machine(machine), suffix(suffix),
        timings(timings), context(createContext()) {}

  /// Everything up to and including `last`.
  llvm::Error runTo(Phase last);
  llvm::Error build();
  llvm::Error run(Phase phase);
  llvm::Expected<std::unique_ptr<llvm::Module>>
  translate(llvm::LLVMContext &llvmContext, llvm::TargetMachine &target);
  std::vector<KernelDescription> descriptions() {
    return descriptionsOf(*module);
  }
  std::vector<KernelSummary> summaries();
  std::string text();
  /// Of the user's functions, once built.
  uint64_t modsHash() const { return hash; }
  const std::vector<AuxTensor> &aux() const { return auxTensors; }

private:
  static std::unique_ptr<mlir::MLIRContext> createContext() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    // One compilation is one thread's work: no pool.
    return std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
  }
  /// Runs `body` with diagnostics collected into the error.
  llvm::Error collect(llvm::function_ref<bool()> body);
  /// The tile of a kernel, settled or chosen. `tokens`: as in selectTile.
  llvm::Expected<TileCandidate> tileOf(const AttentionSpec &spec,
                                       Variant variant, int64_t tokens);
  /// One for each kernel: those that summaries() will explain.
  llvm::Expected<std::vector<Schedule>> schedulesFor(const AttentionSpec &spec);
  /// The settled schedules of `spec`, or null.
  const std::vector<Schedule> *settledFor(const AttentionSpec &spec) const;
  void explain(KernelSummary &summary, const AttentionSpec &spec);

  const std::vector<AttentionSpec> &specs;
  const CompileOptions &options;
  const Machine &machine;
  const llvm::StringRef suffix;
  PhaseTimings &timings;
  uint64_t hash = 0;
  std::vector<AuxTensor> auxTensors;
  std::vector<std::string> names; ///< of the specs' functions
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_COMPILATION_H
