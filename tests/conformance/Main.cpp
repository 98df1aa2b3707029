//===- Main.cpp - pagoda-conformance --------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the case table and a random sweep against a backend. A failing case
// prints the command that runs it alone; so does one that kills the process.
//
//===----------------------------------------------------------------------===//

#ifdef PAGODA_HAS_EMULATOR
#include "tests/conformance/EmulatorBackend.h"
#endif
#include "tests/conformance/Backend.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstring>
#include <unistd.h>

using namespace llvm;
using namespace pagoda;
using namespace pagoda::conformance;

namespace {

/// Tells CTest that nothing was run.
constexpr int SkipExitCode = 77;

struct Options {
  cl::OptionCategory category{"Options"}; // without one, help omits them
  cl::opt<uint64_t> seed{"seed", cl::cat(category),
                         cl::desc("Seed of the random sweep"), cl::init(1)};
  cl::opt<uint64_t> cases{"cases", cl::cat(category),
                          cl::desc("Random cases to run"), cl::init(0)};
  cl::opt<std::string> filter{"filter", cl::cat(category),
                              cl::desc("Only cases whose name matches"),
                              cl::value_desc("regex"), cl::init(".*")};
  cl::opt<bool> list{"list", cl::cat(category),
                     cl::desc("List the cases and run none")};
  cl::opt<std::string> backend{
      "backend", cl::cat(category),
      cl::desc("cpu, or emulator for kernels of an NVIDIA machine"),
      cl::init("cpu")};
  cl::opt<std::string> machine{
      "machine", cl::cat(category),
      cl::desc("Machine to compile for; with the cpu backend this one must be "
               "able to run its code (default: host, or sm_80)")};
  cl::opt<std::string> dtype{
      "dtype", cl::cat(category),
      cl::desc("f32, f16 or bf16 for cases of f32 (default: f32, or f16 with "
               "the emulator)")};
  cl::list<std::string> schedule{
      "schedule", cl::cat(category), cl::desc("Override of the schedule"),
      cl::value_desc("key=value"), cl::CommaSeparated};
  cl::opt<int64_t> decodeTokens{
      "decode-tokens", cl::cat(category),
      cl::desc("Tokens of a second decode kernel (CPU)"), cl::init(1)};
  cl::opt<int> threads{"threads", cl::cat(category),
                       cl::desc("Threads for every case"), cl::init(0)};
  cl::opt<bool> verbose{"v", cl::cat(category), cl::desc("Print every case")};
};

std::string reproduce(const char *program, const Options &options,
                      const Case &c) {
  std::string command = program;
  if (StringRef(c.name).starts_with("random."))
    command += " --seed " + std::to_string(options.seed) + " --cases " +
               std::to_string(options.cases);
  command += " --filter '^" + Regex::escape(c.name) + "$'";
  if (options.backend != "cpu")
    command += " --backend " + options.backend;
  command += " --dtype " + options.dtype;
  if (!options.machine.empty())
    command += " --machine " + options.machine;
  for (const std::string &entry : options.schedule)
    command += " --schedule " + entry;
  if (options.decodeTokens > 1)
    command += " --decode-tokens " + std::to_string(options.decodeTokens);
  if (options.threads)
    command += " --threads " + std::to_string(options.threads);
  return command;
}

/// What to say when the process dies; set before each case, so that the
/// handler only has to write it.
std::string lastWords;

void onCrash(int number) {
  (void)!write(2, lastWords.data(), lastWords.size());
  signal(number, SIG_DFL);
  raise(number);
}

/// The backend that the options name; what is missing here is told by `skip`.
Expected<std::unique_ptr<Backend>> makeBackend(const Options &options,
                                               bool &skip) {
  bool emulates = options.backend == "emulator";
  BackendOptions backend;
  backend.machine = options.machine;
  if (backend.machine.empty())
    backend.machine = emulates ? "sm_80" : "host";
  backend.schedule.assign(options.schedule.begin(), options.schedule.end());
  backend.decodeTokens = options.decodeTokens;
  if (options.backend == "cpu")
    return makeCpuBackend(backend, skip);
  if (!emulates)
    return createStringError("--backend " + options.backend +
                             ": expected cpu or emulator");
#ifdef PAGODA_HAS_EMULATOR
  return makeEmulatorBackend(backend);
#else
  skip = true;
  return createStringError("this build has no emulator");
#endif
}

} // namespace

int main(int argc, char **argv) {
  // Options of the libraries that are linked in are not ours, and some have
  // the same names.
  cl::ResetCommandLineParser();
  Options options;
  cl::ParseCommandLineOptions(
      argc, argv, "Runs Pagoda's conformance cases against the f64 oracle\n");

  std::vector<Case> cases = fixedCases();
  for (uint64_t i = 0; i < options.cases; ++i)
    cases.push_back(randomCase(options.seed, i));
  Regex regex(options.filter);
  std::string regexError;
  if (!regex.isValid(regexError)) {
    errs() << "--filter '" << options.filter << "': " << regexError << '\n';
    return 2;
  }
  erase_if(cases, [&](const Case &c) { return !regex.match(c.name); });
  if (cases.empty()) {
    errs() << "no case matches '" << options.filter << "'\n";
    return 2;
  }
  if (options.dtype.empty())
    options.dtype = options.backend == "emulator" ? "f16" : "f32";
  std::optional<DType> type = StringSwitch<std::optional<DType>>(options.dtype)
                                  .Case("f32", DType::F32)
                                  .Case("f16", DType::F16)
                                  .Case("bf16", DType::BF16)
                                  .Default(std::nullopt);
  if (!type) {
    errs() << "--dtype " << options.dtype << ": expected f32, f16 or bf16\n";
    return 2;
  }
  retype(cases, *type);
#ifdef PAGODA_HAS_EMULATOR
  if (options.backend == "emulator")
    cases = gpuTable(cases, *type);
#endif
  if (options.list) {
    for (const Case &c : cases)
      outs() << c.name << ": " << describe(c) << '\n';
    return 0;
  }

  bool missingFeature = false;
  Expected<std::unique_ptr<Backend>> backend =
      makeBackend(options, missingFeature);
  if (!backend) {
    errs() << (missingFeature ? "skipped: " : "")
           << toString(backend.takeError()) << '\n';
    return missingFeature ? SkipExitCode : 2;
  }

  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    signal(number, onCrash);

  size_t passed = 0, skipped = 0, failed = 0;
  double worst = 0;
  std::string worstName;
  for (Case &c : cases) {
    if (options.threads)
      c.threads = options.threads;
    lastWords = "crash in " + c.name + " (" + describe(c) +
                ")\n  reproduce: " + reproduce(argv[0], options, c) + '\n';
    Outcome outcome = runCase(**backend, c);
    switch (outcome.status) {
    case Status::Pass: {
      ++passed;
      double ratio = outcome.comparison.worst.ratio();
      if (ratio > worst) {
        worst = ratio;
        worstName = c.name;
      }
      if (options.verbose)
        outs() << "pass " << c.name << ": " << describe(c)
               << formatv(", {0:F3} of the bound: ", ratio)
               << outcome.comparison.worst.text() << '\n';
      break;
    }
    case Status::Skip:
      ++skipped;
      if (options.verbose)
        outs() << "skip " << c.name << ": " << outcome.message << '\n';
      break;
    case Status::Fail:
      ++failed;
      outs() << "FAIL " << c.name << ": " << describe(c) << "\n  "
             << outcome.message
             << "\n  reproduce: " << reproduce(argv[0], options, c) << '\n';
      break;
    }
    outs().flush();
  }
  outs() << formatv("{0} passed, {1} failed, {2} skipped; largest error {3:F3} "
                    "of its bound{4}\n",
                    passed, failed, skipped, worst,
                    worstName.empty() ? "" : " (" + worstName + ")");
  if (failed)
    return 1;
  return passed ? 0 : SkipExitCode;
}
