//===- IrFuzz.cpp - Damaged IR never crashes the compiler -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fuzz target in libFuzzer's form, and a driver for any compiler: it mutates
// the IR of the tests below a folder from a seed, so that a failure comes back
// by its number.
//
//   pagoda-ir-fuzz FOLDER SEED COUNT    COUNT inputs, from seed SEED
//   pagoda-ir-fuzz FILE...              each file as one input
//
// Whatever goes in is refused with a diagnostic, or prints as text that reads
// back the same and goes through every phase to the LLVM dialect, each of which
// may refuse it with a diagnostic. Everything else, and an input that takes
// more than a minute of processor time, kills the process.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipeline.h"
#include "tests/unit/pipeline/IrMutator.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <sys/time.h>
#include <unistd.h>

using namespace llvm;
using namespace pagoda;

namespace {

/// Seconds of processor time after which an input counts as a hang.
constexpr long HangSeconds = 60;

void require(bool condition, const char *what) {
  if (condition)
    return;
  errs() << "violated: " << what << "\n";
  std::abort();
}

/// How far an input came.
struct Progress {
  bool parsed = false;
  bool lowered = false; ///< all the way to the LLVM dialect
};

/// One input in a context of its own.
class Run {
public:
  explicit Run(StringRef text) : text(text) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) {
      errors += d.getSeverity() == mlir::DiagnosticSeverity::Error;
    });
  }

  Progress all() {
    Progress progress;
    module = parse(text);
    require(bool(module) || errors > 0, "a parser that refuses says why");
    if (!module)
      return progress;
    progress.parsed = true;
    std::string printed = print(*module);
    mlir::OwningOpRef<mlir::ModuleOp> again = parse(printed);
    require(bool(again), "what is printed can be read");
    require(print(*again) == printed, "what is read prints the same");
    progress.lowered = lower();
    return progress;
  }

private:
  mlir::OwningOpRef<mlir::ModuleOp> parse(StringRef source) {
    return mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  }
  static std::string print(mlir::ModuleOp module) {
    std::string result;
    raw_string_ostream(result) << module;
    return result;
  }
  bool lower() {
    Expected<Machine> machine = Machine::named("x86-64-v3");
    require(bool(machine), "the machine is known");
    for (Phase phase : {Phase::Attention, Phase::Tiled, Phase::Fragments,
                        Phase::Target, Phase::Llvm}) {
      mlir::PassManager passes(&context, mlir::ModuleOp::getOperationName());
      buildPhase(passes, phase, *machine, {});
      errors = 0;
      if (failed(passes.run(*module))) {
        require(errors > 0, "a phase that fails says why");
        return false;
      }
    }
    return true;
  }

  StringRef text;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int errors = 0;
};

Progress runInput(StringRef text) {
  auto limit = [](long seconds) {
    itimerval timer{};
    timer.it_value.tv_sec = seconds;
    setitimer(ITIMER_PROF, &timer, nullptr);
  };
  limit(HangSeconds);
  Progress progress = Run(text).all();
  limit(0);
  return progress;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  runInput(StringRef(reinterpret_cast<const char *>(data), size));
  return 0;
}

#ifndef PAGODA_LIBFUZZER
namespace {

/// What to say when an input kills the process.
std::string lastWords;

void onDeath(int number) {
  (void)!write(2, lastWords.data(), lastWords.size());
  sys::PrintStackTrace(errs());
  signal(number, SIG_DFL);
  raise(number);
}

int fuzzFolder(StringRef program, StringRef folder, uint64_t seed,
               uint64_t count) {
  IrMutator mutator(folder);
  if (mutator.seeds() == 0) {
    errs() << folder << ": no .mlir files\n";
    return 1;
  }
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGPROF})
    signal(number, onDeath);
  uint64_t parsed = 0, lowered = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::string text = mutator.input(seed + i);
    lastWords = text +
                "\n(killed by the input above; reproduce: " + program.str() +
                " " + folder.str() + " " + std::to_string(seed + i) + " 1)\n";
    Progress progress = runInput(text);
    parsed += progress.parsed;
    lowered += progress.lowered;
  }
  outs() << count << " inputs from seed " << seed << ", " << parsed
         << " valid, " << lowered << " lowered to the LLVM dialect\n";
  // All or none would mean that the mutations test nothing.
  return count < 100 || (parsed > count / 20 && parsed < count - count / 20 &&
                         lowered > 0 && lowered < parsed)
             ? 0
             : 1;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t seed, count;
  if (argc == 4 && !StringRef(argv[2]).getAsInteger(10, seed) &&
      !StringRef(argv[3]).getAsInteger(10, count))
    return fuzzFolder(argv[0], argv[1], seed, count);
  for (int i = 1; i < argc; ++i) {
    auto buffer = MemoryBuffer::getFile(argv[i]);
    if (!buffer) {
      errs() << argv[i] << ": " << buffer.getError().message() << "\n";
      return 1;
    }
    runInput((*buffer)->getBuffer());
  }
  return 0;
}
#endif
