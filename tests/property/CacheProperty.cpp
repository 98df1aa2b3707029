//===- CacheProperty.cpp - Random operations against the model ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs random operations on the runtime's cache and on the naive model side by
// side, for several shapes of cache. RapidCheck shortens a sequence of
// operations that fails.
//
// PAGODA_PROPERTY_CASES: cases a configuration (1000 operations each).
//
//===----------------------------------------------------------------------===//

#include "Pair.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <rapidcheck.h>

using namespace pagoda::test;

static constexpr int OpsPerCase = 1000;

namespace pagoda::test {
static std::ostream &operator<<(std::ostream &out, const Operation &op) {
  return out << "{" << op.kind << ", " << op.a << ", " << op.b << ", " << op.c
             << "}";
}

} // namespace pagoda::test

static rc::Gen<Operation> operations() {
  auto number = [] {
    return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0u, 1u << 24));
  };
  return rc::gen::build<Operation>(rc::gen::set(&Operation::kind, number()),
                                   rc::gen::set(&Operation::a, number()),
                                   rc::gen::set(&Operation::b, number()),
                                   rc::gen::set(&Operation::c, number()));
}

int main() {
  struct {
    const char *name;
    ModelConfig config;
    bool badHash;
  } configs[] = {
      {"one table for all layers", {}, false},
      {"hash of two bits", {}, true},
      {"no retention", {24, 4, 6, 64, {0}, {0}, false}, false},
      {"a table a layer", {40, 4, 6, 64, {0, 0, 0}, {0, 0, 0}, true}, false},
      {"full and windowed", {40, 4, 6, 64, {0, 7}, {0, 0}, true}, false},
      {"windowed with sinks", {24, 4, 6, 64, {6}, {5}, true}, false},
      {"windowed, no retention", {24, 4, 6, 64, {0, 9}, {0, 3}, false}, false},
      {"blocks of one token", {48, 1, 5, 40, {0}, {0}, true}, false},
  };
  int cases = 126; // 8 configurations: a million operations
  if (const char *text = std::getenv("PAGODA_PROPERTY_CASES"))
    cases = std::max(1, std::atoi(text));
  std::string params = "max_success=" + std::to_string(cases);
  if (const char *given = std::getenv("RC_PARAMS"))
    params = std::string(given) + " " + params;
  setenv("RC_PARAMS", params.c_str(), 1);
  int64_t done = 0;
  bool good = true;
  for (const auto &c : configs)
    good &= rc::check(c.name, [&] {
      auto ops =
          *rc::gen::container<std::vector<Operation>>(OpsPerCase, operations());
      Pair pair(c.config, c.badHash);
      for (const Operation &op : ops) {
        pair.apply(op);
        pair.check();
        ++done;
      }
    });
  std::printf("%lld operations\n", static_cast<long long>(done));
  return good ? 0 : 1;
}
