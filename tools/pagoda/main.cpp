//===- main.cpp - The command line tool -----------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the subcommand and reports its error. Exit code: 0 if and only if all
// that was asked for was done and right.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Commands.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

struct Command {
  cl::SubCommand &(*sub)();
  llvm::Error (*run)();
};

constexpr Command commands[] = {
    {pagoda::genCommand, pagoda::gen},
    {pagoda::explainCommand, pagoda::explain},
    {pagoda::planCommand, pagoda::plan},
    {pagoda::runCommand, pagoda::run},
    {pagoda::tuneCommand, pagoda::tune},
    {pagoda::benchCommand, pagoda::bench},
};

/// Refuses options that `sub` does not have. LLVM's parser would take any that
/// begins with h for help, and exit with 0.
llvm::Error checkNames(cl::SubCommand &sub, ArrayRef<char *> arguments) {
  const auto &known = cl::getRegisteredOptions(sub);
  for (StringRef argument : arguments) {
    if (argument == "--")
      break;
    if (!argument.consume_front("--"))
      continue;
    StringRef name = argument.split('=').first;
    if (known.contains(name))
      continue;
    StringRef nearest;
    unsigned best = 4;
    for (const auto &entry : known)
      if (unsigned distance = name.edit_distance(entry.first, true, best);
          entry.second->getOptionHiddenFlag() == cl::NotHidden &&
          distance < best) {
        nearest = entry.first;
        best = distance;
      }
    std::string hint =
        nearest.empty() ? "" : ("; did you mean '--" + nearest + "'?").str();
    return createStringError("unknown option '--" + name + "'" + hint);
  }
  return llvm::Error::success();
}

/// The parser would take some options of an unknown subcommand for --help.
llvm::Error checkCommand(StringRef name) {
  std::string known;
  for (const Command &command : commands) {
    if (command.sub().getName() == name)
      return llvm::Error::success();
    known += (known.empty() ? "" : ", ") + command.sub().getName().str();
  }
  return createStringError("unknown subcommand '" + name + "', known are " +
                           known);
}

/// Reports `error`, if it is one, and says whether it was.
bool report(llvm::Error error) {
  if (!error)
    return false;
  outs().flush();
  WithColor::error(errs(), "pagoda") << toString(std::move(error)) << '\n';
  return true;
}

} // namespace

llvm::cl::OptionCategory &pagoda::optionCategory() {
  static cl::OptionCategory category("Options");
  return category;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(pagoda::optionCategory());
  for (const Command &command : commands)
    cl::HideUnrelatedOptions(pagoda::optionCategory(), command.sub());
  if (argc > 1 && argv[1][0] != '-' && report(checkCommand(argv[1])))
    return 1;
  if (argc > 1)
    for (const Command &command : commands)
      if (command.sub().getName() == argv[1] &&
          report(checkNames(command.sub(), ArrayRef(argv + 2, argc - 2))))
        return 1;
  cl::ParseCommandLineOptions(
      argc, argv,
      "Pagoda: paged attention kernels for a model and a machine\n");

  for (const Command &command : commands) {
    if (!command.sub())
      continue;
    // Compiler and tools report by value; the runtime throws.
    try {
      return report(command.run()) ? 1 : 0;
    } catch (const std::exception &exception) {
      report(createStringError(exception.what()));
      return 1;
    }
  }
  cl::PrintHelpMessage();
  return 1;
}
