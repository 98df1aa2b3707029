//===- SharedPrefix.cpp - Which block tables begin alike ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits the set of sequences from the root down. The first sequence of a set
// stands for it: what each other one has in common with it is found once and
// stays valid in the subset that the first one goes to.
//
//===----------------------------------------------------------------------===//

#include "launch/SharedPrefix.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace pagoda;

/// How many entries the tables of \p a and \p b have in common, given that the
/// first \p from are, and looking no further than \p limit.
int32_t SharedPrefix::common(const Input &input, int32_t a, int32_t b,
                             int32_t from, int32_t limit) const {
  const int32_t *x = input.tables + input.rows[a] * input.stride;
  const int32_t *y = input.tables + input.rows[b] * input.stride;
  constexpr int32_t Step = 64;
  while (from + Step <= limit &&
         std::memcmp(x + from, y + from, Step * sizeof(int32_t)) == 0)
    from += Step;
  while (from < limit && x[from] == y[from])
    ++from;
  return from;
}

void SharedPrefix::find(const Input &input, Worth worth, void *context) {
  int32_t count = static_cast<int32_t>(input.rows.size());
  Runs.clear();
  Members.clear();
  Stack.clear();
  OwnBegin.assign(count, 0);
  Common.assign(count, 0);
  Order.clear();
  for (int32_t s = 0; s != count; ++s)
    if (input.blocks[s] > 0)
      Order.push_back(s);
  Stack.push_back({0, static_cast<int32_t>(Order.size()), 0, 0, true});
  while (!Stack.empty()) {
    Node node = Stack.back();
    Stack.pop_back();
    if (node.end - node.begin < 2) {
      if (node.begin != node.end)
        OwnBegin[Order[node.begin]] = node.covered;
      continue;
    }
    int32_t first = Order[node.begin];
    if (node.fresh) {
      // An entry below 0 names no block: nothing is shared from there on.
      const int32_t *table = input.tables + input.rows[first] * input.stride;
      int32_t end = static_cast<int32_t>(
          std::find_if(table + node.depth, table + input.blocks[first],
                       [](int32_t block) { return block < 0; }) -
          table);
      Common[first] = end;
      for (int32_t i = node.begin + 1; i != node.end; ++i) {
        int32_t s = Order[i];
        Common[s] =
            common(input, first, s, node.depth, std::min(end, input.blocks[s]));
      }
    }
    int32_t depth = Common[first];
    for (int32_t i = node.begin; i != node.end; ++i)
      depth = std::min(depth, Common[Order[i]]);
    int32_t covered = node.covered;
    int32_t end = depth / input.align * input.align;
    if (end > covered &&
        worth(context,
              {Order.data() + node.begin, size_t(node.end - node.begin)},
              end - covered)) {
      int32_t at = static_cast<int32_t>(Members.size());
      Members.insert(Members.end(), Order.begin() + node.begin,
                     Order.begin() + node.end);
      Runs.push_back({covered, end, at, static_cast<int32_t>(Members.size())});
      covered = end;
    }
    split(input, node, depth, covered);
  }
}

/// Puts the subsets of \p node that have one block in common at \p depth on the
/// stack.
void SharedPrefix::split(const Input &input, const Node &node, int32_t depth,
                         int32_t covered) {
  auto block = [&](int32_t s) {
    return input.tables[input.rows[s] * input.stride + depth];
  };
  auto live = [&](int32_t s) {
    return depth < input.blocks[s] && block(s) >= 0;
  };
  auto push = [&](auto from, auto to, bool fresh) {
    Stack.push_back({static_cast<int32_t>(from - Order.begin()),
                     static_cast<int32_t>(to - Order.begin()), depth, covered,
                     fresh});
  };
  auto begin = Order.begin() + node.begin;
  bool firstLives = live(*begin);
  // Tables that end here, or name no block, go alone. std::partition leaves a
  // first element that satisfies the predicate where it is.
  auto end = std::partition(begin, Order.begin() + node.end, live);
  for (auto it = end; it != Order.begin() + node.end; ++it)
    OwnBegin[*it] = covered;
  if (firstLives) {
    auto rest = std::partition(begin, end,
                               [&](int32_t s) { return Common[s] > depth; });
    push(begin, rest, false);
    begin = rest;
  }
  std::sort(begin, end, [&](int32_t a, int32_t b) {
    return std::pair(block(a), a) < std::pair(block(b), b);
  });
  while (begin != end) {
    auto next = std::find_if(
        begin, end, [&](int32_t s) { return block(s) != block(*begin); });
    push(begin, next, true);
    begin = next;
  }
}
