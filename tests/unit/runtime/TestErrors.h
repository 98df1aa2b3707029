//===- TestErrors.h - Expecting an error by code and text -------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_UNIT_RUNTIME_TESTERRORS_H
#define PAGODA_TESTS_UNIT_RUNTIME_TESTERRORS_H

#include "pagoda/Error.h"

#include <gtest/gtest.h>
#include <string>

namespace pagoda::test {

/// Expects an Error with this code whose text contains this part.
#define EXPECT_PAGODA_ERROR(statement, expectedCode, part)                     \
  do {                                                                         \
    try {                                                                      \
      statement;                                                               \
      ADD_FAILURE() << "expected an error, got none: " #statement;             \
    } catch (const ::pagoda::Error &error) {                                   \
      EXPECT_EQ(error.code(), expectedCode) << error.what();                   \
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)       \
          << error.what();                                                     \
    }                                                                          \
  } while (false)

} // namespace pagoda::test

#endif // PAGODA_TESTS_UNIT_RUNTIME_TESTERRORS_H
