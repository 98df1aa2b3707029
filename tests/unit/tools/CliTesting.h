//===- CliTesting.h - Running the tool in a test ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Starts the pagoda executable with arguments and looks at what it prints.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_TOOLS_CLITESTING_H
#define PAGODA_TESTS_UNIT_TOOLS_CLITESTING_H

#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace pagoda::test {

struct Outcome {
  int code;
  std::string out; ///< standard output and standard error
};

/// `database`: what the environment names as tuning database. What a user has
/// tuned must not change what a test sees.
inline Outcome pagodaTool(const std::string &arguments, bool withErrors = true,
                          const std::string &database = "none") {
  std::string command = "PAGODA_DB='" + database + "' " PAGODA_TOOL " " +
                        arguments + (withErrors ? " 2>&1" : " 2>/dev/null");
  FILE *pipe = popen(command.c_str(), "r");
  Outcome outcome{-1, ""};
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof(buffer), pipe))
    outcome.out.append(buffer, n);
  int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return outcome;
}

inline void expectError(const std::string &arguments,
                        const std::string &message) {
  Outcome outcome = pagodaTool(arguments);
  EXPECT_NE(outcome.code, 0) << arguments;
  EXPECT_NE(outcome.code, 128) << arguments << ": crashed\n" << outcome.out;
  EXPECT_TRUE(llvm::StringRef(outcome.out).contains(message))
      << arguments << "\n  expected: " << message << "\n  got: " << outcome.out;
}

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_TOOLS_CLITESTING_H
