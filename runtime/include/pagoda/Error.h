//===- Error.h - How the runtime reports a caller's mistake -----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One exception type with a code. It is thrown for mistakes of the caller and
// for artifacts that do not fit; a call that throws has changed nothing. What a
// correct caller meets every day (no block left, no sequence slot left) is an
// answer, not an exception.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_ERROR_H
#define PAGODA_ERROR_H

#include <stdexcept>
#include <string>

namespace pagoda {

enum class ErrorCode {
  InvalidArgument = 1, ///< a value outside its documented range
  UnknownBlock,        ///< a block id outside the pool
  DoubleRelease,       ///< a release or share of a block that nobody owns
  RefOverflow,         ///< more owners than the counter is allowed to count
  UnknownSequence,     ///< a sequence id that was never given out or is gone
  TooLong,             ///< a sequence longer than a row of the block table
  Mismatch,            ///< a kernel built for something else than what is here
  BadLibrary,          ///< a file that is no kernel library of this version
  NoDevice,            ///< no driver of a GPU, or no such GPU
};

/// The name of \p code, for example "double release".
const char *errorName(ErrorCode code);

class Error : public std::runtime_error {
public:
  Error(ErrorCode code, const std::string &message)
      : std::runtime_error(message), Code(code) {}
  ErrorCode code() const { return Code; }

private:
  ErrorCode Code;
};

} // namespace pagoda

#endif // PAGODA_ERROR_H
