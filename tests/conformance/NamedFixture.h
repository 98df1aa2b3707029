//===- NamedFixture.h - GoogleTest over the CPU backend ---------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fixture of tests that have a name of their own: one backend for all, and
// a check of a whole case.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_NAMEDFIXTURE_H
#define PAGODA_TESTS_CONFORMANCE_NAMEDFIXTURE_H

#include "tests/conformance/CpuBackend.h"
#include "gtest/gtest.h"

#include <limits>

namespace pagoda::conformance {

class NamedTest : public testing::Test {
protected:
  static CpuBackend &backend() {
    static CpuBackend instance(Machine::host(), {});
    return instance;
  }

  static bool supported(const Case &c) {
    return backend().unsupported(c).empty();
  }

  /// Runs `c` on `data` and compares everything.
  static void check(const Case &c, CaseData &data) {
    Outcome outcome = runCase(backend(), c, data);
    EXPECT_TRUE(outcome.status == Status::Pass)
        << c.name << ": " << describe(c) << "\n  " << outcome.message;
  }
  static void check(const Case &c) {
    CaseData data(c);
    check(c, data);
  }
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_NAMEDFIXTURE_H
