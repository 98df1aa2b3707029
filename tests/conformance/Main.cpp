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

#include "tests/conformance/Backend.h"

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
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of the random sweep"),
                         cl::init(1)};
  cl::opt<uint64_t> cases{"cases", cl::desc("Random cases to run"),
                          cl::init(0)};
  cl::opt<std::string> filter{"filter",
                              cl::desc("Only cases whose name matches"),
                              cl::value_desc("regex"), cl::init(".*")};
  cl::opt<bool> list{"list", cl::desc("List the cases and run none")};
  cl::opt<std::string> machine{
      "machine",
      cl::desc("Machine to compile for; this one must be able to run its code"),
      cl::init("host")};
  cl::list<std::string> schedule{
      "schedule", cl::desc("Override of the schedule"),
      cl::value_desc("key=value"), cl::CommaSeparated};
  cl::opt<int> threads{"threads", cl::desc("Threads for every case"),
                       cl::init(0)};
  cl::opt<bool> verbose{"v", cl::desc("Print every case")};
};

std::string reproduce(const char *program, const Options &options,
                      const Case &c) {
  std::string command = program;
  if (StringRef(c.name).starts_with("random."))
    command += " --seed " + std::to_string(options.seed) + " --cases " +
               std::to_string(options.cases);
  command += " --filter '^" + Regex::escape(c.name) + "$'";
  if (options.machine != "host")
    command += " --machine " + options.machine;
  for (const std::string &entry : options.schedule)
    command += " --schedule " + entry;
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
  if (options.list) {
    for (const Case &c : cases)
      outs() << c.name << ": " << describe(c) << '\n';
    return 0;
  }

  BackendOptions backendOptions;
  backendOptions.machine = options.machine;
  backendOptions.schedule.assign(options.schedule.begin(),
                                 options.schedule.end());
  bool missingFeature = false;
  Expected<std::unique_ptr<Backend>> backend =
      makeCpuBackend(backendOptions, missingFeature);
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
