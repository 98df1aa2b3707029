//===- Backend.h - Whatever can run a conformance case ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface between the case table and the things that compute attention,
// and the judge between them and the oracle. A backend only fills o and lse.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_BACKEND_H
#define PAGODA_TESTS_CONFORMANCE_BACKEND_H

#include "tests/conformance/Data.h"
#include "tests/reference/Compare.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace pagoda::conformance {

class Backend {
public:
  virtual ~Backend();
  /// Why the backend does not even try `c`, from a list that is kept by hand: a
  /// compiler that refuses what is not on it fails the case. Empty: it tries.
  virtual std::string unsupported(const Case &c) const = 0;
  /// Computes `data`, made from `c`.
  virtual llvm::Error run(const Case &c, CaseData &data) = 0;
};

struct BackendOptions {
  std::string machine = "host";
  std::vector<std::string> schedule; ///< overrides for every case
  int64_t decodeTokens = 1;          ///< of a second decode kernel, on a CPU
};

/// Kernels of the compiler, built in process and run on this CPU. An error when
/// the machine is unknown or this CPU lacks its features: `isMissingFeature`
/// tells the second.
llvm::Expected<std::unique_ptr<Backend>>
makeCpuBackend(const BackendOptions &options, bool &isMissingFeature);

/// Kernels of an NVIDIA machine on the emulator, in builds that have one. An
/// error when the machine is none.
llvm::Expected<std::unique_ptr<Backend>>
makeEmulatorBackend(const BackendOptions &options);

enum class Status { Pass, Skip, Fail };

struct Outcome {
  Status status = Status::Pass;
  std::string message; ///< why skipped or failed
  reference::Comparison comparison;
};

/// Makes the data of `c`, runs it and compares everything: each output element
/// with the oracle, guards and padding with the sentinel, inputs with
/// themselves.
Outcome runCase(Backend &backend, const Case &c);

/// The same on data that the caller has prepared.
Outcome runCase(Backend &backend, const Case &c, CaseData &data);

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_BACKEND_H
