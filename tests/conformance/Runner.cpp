//===- Runner.cpp - Judges one case ---------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Data, backend, oracle, guards: one case from start to verdict.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Backend.h"

namespace pagoda::conformance {

Backend::~Backend() = default;

Outcome runCase(Backend &backend, const Case &c) {
  if (std::string reason = backend.unsupported(c); !reason.empty())
    return {Status::Skip, reason, {}};
  CaseData data(c);
  return runCase(backend, c, data);
}

Outcome runCase(Backend &backend, const Case &c, CaseData &data) {
  Outcome outcome;
  if (llvm::Error error = backend.run(c, data))
    return {Status::Fail, llvm::toString(std::move(error)), {}};
  outcome.comparison = reference::compare(data.problem);
  std::string damage = data.damage();
  if (!outcome.comparison.ok()) {
    outcome.status = Status::Fail;
    outcome.message = std::to_string(outcome.comparison.failures) + " of " +
                      std::to_string(outcome.comparison.elements) +
                      " elements outside their bounds; " +
                      outcome.comparison.worst.text();
  }
  if (!damage.empty()) {
    outcome.status = Status::Fail;
    outcome.message += (outcome.message.empty() ? "" : "; ") + damage;
  }
  return outcome;
}

} // namespace pagoda::conformance
