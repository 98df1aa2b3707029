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
    {pagoda::runCommand, pagoda::run},
};

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
  cl::ParseCommandLineOptions(
      argc, argv,
      "Pagoda: paged attention kernels for a model and a machine\n");

  for (const Command &command : commands) {
    if (!command.sub())
      continue;
    // Compiler and tools report by value; the runtime throws.
    try {
      if (llvm::Error error = command.run()) {
        outs().flush();
        WithColor::error(errs(), "pagoda")
            << toString(std::move(error)) << '\n';
        return 1;
      }
    } catch (const std::exception &exception) {
      outs().flush();
      WithColor::error(errs(), "pagoda") << exception.what() << '\n';
      return 1;
    }
    return 0;
  }
  cl::PrintHelpMessage();
  return 1;
}
