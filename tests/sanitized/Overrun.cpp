//===- Overrun.cpp - A caller's mistake that the sanitizer must see -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives the runtime a block table that is shorter than it says. Compiled
// without a sanitizer, so that only an instrumented runtime notices.
//
//===----------------------------------------------------------------------===//

#include "pagoda/Conversions.h"

#include <memory>

int main() {
  auto table = std::make_unique<int32_t[]>(1);
  int32_t tokens = 32;
  pagoda::toPageList({table.get(), 2}, 2, {&tokens, 1}, 16);
}
