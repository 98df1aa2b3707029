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
#include "llvm/Config/llvm-config.h"
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

/// " did you mean '--heads'?" where `name` is nearly that of an option.
std::string nearest(StringRef name,
                    const DenseMap<StringRef, cl::Option *> &known) {
  std::string hint;
  unsigned best = std::min<unsigned>(4, 2 + unsigned(name.size()) / 3);
  for (const auto &entry : known)
    if (unsigned distance = name.edit_distance(entry.first, true, best);
        entry.second->getOptionHiddenFlag() == cl::NotHidden &&
        distance < best) {
      hint = ("; did you mean '--" + entry.first + "'?").str();
      best = distance;
    }
  return hint;
}

/// Whether `value` is what the option's help says: <n> a whole number, <x> any.
llvm::Error checkValue(StringRef name, StringRef value,
                       const cl::Option &option) {
  bool isList = option.ValueStr == "n,n,...";
  const char *expected = nullptr;
  int64_t whole;
  double number;
  SmallVector<StringRef> parts;
  value.split(parts, ',', isList ? -1 : 0);
  for (StringRef part : parts)
    if ((isList || option.ValueStr == "n") && part.getAsInteger(0, whole))
      expected = isList ? "whole numbers between commas"
                        : "a whole number of at most 64 bits";
  if (option.ValueStr == "x" && value.getAsDouble(number))
    expected = "a number";
  if (!expected)
    return llvm::Error::success();
  return createStringError("--" + name + " " + value + ": expected " +
                           expected);
}

/// Refuses what `sub` does not know. LLVM's parser would take any option that
/// begins with h for help and exit with 0; what it says of a value names
/// neither the value expected nor this tool's way to say it.
llvm::Error checkArguments(cl::SubCommand &sub, ArrayRef<char *> arguments) {
  const auto &known = cl::getRegisteredOptions(sub);
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "--")
      break;
    bool isLong = argument.consume_front("--");
    if (!isLong && !argument.consume_front("-"))
      return createStringError("unexpected argument '" + argument + "'");
    auto [name, value] = argument.split('=');
    auto found = known.find(name);
    if (found == known.end()) {
      if (!isLong)
        continue; // the parser knows more spellings
      return createStringError("unknown option '--" + name + "'" +
                               nearest(name, known));
    }
    const cl::Option &option = *found->second;
    if (option.getValueExpectedFlag() == cl::ValueRequired &&
        !argument.contains('=')) {
      if (++i == arguments.size())
        return createStringError((isLong ? "--" : "-") + name +
                                 ": expected a value");
      value = arguments[i];
    }
    if (llvm::Error error = checkValue(name, value, option))
      return error;
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
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "pagoda " PAGODA_VERSION " (LLVM " LLVM_VERSION_STRING ")\n";
  });
  cl::HideUnrelatedOptions(pagoda::optionCategory());
  for (const Command &command : commands)
    cl::HideUnrelatedOptions(pagoda::optionCategory(), command.sub());
  if (argc > 1 && argv[1][0] != '-' && report(checkCommand(argv[1])))
    return 1;
  if (argc > 1)
    for (const Command &command : commands)
      if (command.sub().getName() == argv[1] &&
          report(checkArguments(command.sub(), ArrayRef(argv + 2, argc - 2))))
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
