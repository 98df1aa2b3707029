//===- HarnessTest.cpp - The conformance harness finds planted faults -----===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plain kernel runs the table in place of generated ones: without a fault
// all cases pass, and each fault, planted one at a time, fails at least one.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Backend.h"
#include "tests/conformance/ManualPlan.h"
#include "tests/conformance/PlainKernel.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

class PlainBackend : public Backend {
public:
  explicit PlainBackend(Fault fault = Fault::None) : fault(fault) {}

  std::string unsupported(const Case &c) const override {
    return c.spec.window || c.spec.chunk || c.spec.softcap || c.spec.sinks ||
                   c.spec.prefixLm || !c.spec.alibiSlopes.empty() ||
                   c.spec.qType != DType::F32 || c.spec.kvType != DType::F32
               ? "not needed here"
               : "";
  }

  llvm::Error run(const Case &c, CaseData &data) override {
    PlainKernels kernels(c.spec, fault);
    KernelSet set = kernels.set();
    const pagoda_kernel_info &kernel = *set.attention[c.kernel == 0 ? 0 : 1];
    ManualPlan plan(data.problem, kernel, std::max<int64_t>(c.splits, 1));
    plan.attach(data.args);
    runKernel(kernel, &data.args, int64_t(plan.items.size()), c.threads);
    runKernel(*set.merge, &data.args, int64_t(plan.merges.size()), c.threads);
    return llvm::Error::success();
  }

private:
  Fault fault;
};

std::vector<Case> smallCases() {
  std::vector<Case> cases = fixedCases();
  for (uint64_t i = 0; i < 24; ++i)
    cases.push_back(randomCase(9, i));
  // Long lengths add time here and nothing else.
  std::erase_if(cases, [](const Case &c) {
    return std::any_of(c.lengths.begin(), c.lengths.end(),
                       [](const Length &l) { return l.kv > 110; });
  });
  return cases;
}

TEST(Harness, AFaultlessKernelPasses) {
  PlainBackend backend;
  int passed = 0;
  for (const Case &c : smallCases()) {
    Outcome outcome = runCase(backend, c);
    EXPECT_TRUE(outcome.status != Status::Fail)
        << c.name << ": " << describe(c) << ": " << outcome.message;
    passed += outcome.status == Status::Pass;
  }
  EXPECT_GT(passed, 50);
}

TEST(Harness, EveryFaultIsFound) {
  std::vector<Case> cases = smallCases();
  for (int f = 1; f < int(Fault::Count); ++f) {
    PlainBackend backend{Fault(f)};
    int failed = 0;
    for (const Case &c : cases)
      if ((failed += runCase(backend, c).status == Status::Fail) > 0)
        break;
    EXPECT_GT(failed, 0) << "fault " << f;
  }
}

TEST(Harness, TheSameSeedMakesTheSameCase) {
  for (uint64_t i : {0, 7, 23}) {
    EXPECT_EQ(describe(randomCase(3, i)), describe(randomCase(3, i)));
    EXPECT_NE(describe(randomCase(3, i)), describe(randomCase(4, i)));
    EXPECT_EQ(kernelKey(randomCase(3, i)), kernelKey(randomCase(3, i / 4 * 4)));
  }
}

TEST(Harness, GuardedBuffersEndAtAnUnmappedPage) {
  GuardedBuffer buffer(10);
  buffer.as<char>()[0] = buffer.as<char>()[9] = 1;
  EXPECT_DEATH(buffer.as<volatile char>()[10] = 1, "");
}

} // namespace
