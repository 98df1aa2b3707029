//===- Commands.h - The subcommands of `pagoda` -----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function pair per subcommand, each pair in a file of its own; the table
// is in main.cpp. Functions and not globals, so that options in other files can
// name a subcommand whatever the order of static initialisation.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_COMMANDS_H
#define PAGODA_TOOLS_PAGODA_COMMANDS_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace pagoda {

/// The category of every option of ours; the rest is LLVM's and stays hidden.
llvm::cl::OptionCategory &optionCategory();

llvm::cl::SubCommand &genCommand();
llvm::Error gen();

llvm::cl::SubCommand &explainCommand();
llvm::Error explain();

llvm::cl::SubCommand &planCommand();
llvm::Error plan();

llvm::cl::SubCommand &runCommand();
/// An error also when outputs were wrong; the report is printed by then.
llvm::Error run();

llvm::cl::SubCommand &tuneCommand();
llvm::Error tune();

llvm::cl::SubCommand &benchCommand();
/// An error also when outputs were wrong, or slower than those compared with.
llvm::Error bench();

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_COMMANDS_H
