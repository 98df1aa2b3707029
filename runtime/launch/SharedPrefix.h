//===- SharedPrefix.h - Which block tables begin alike ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the tree that block tables form when equal beginnings are laid over
// each other, and hands out its runs: "these sequences share these blocks". The
// caller says which runs are worth attending to as a group; a run that is not
// is offered again as the beginning of the runs below it. Each table entry is
// compared once, so the time is that of reading the shared entries.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_LAUNCH_SHAREDPREFIX_H
#define PAGODA_LAUNCH_SHAREDPREFIX_H

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda {

/// Blocks [begin, end) of the tables of several sequences.
struct SharedRun {
  int32_t begin;
  int32_t end;
  int32_t membersBegin; ///< into SharedPrefix::members()
  int32_t membersEnd;
};

class SharedPrefix {
public:
  struct Input {
    const int32_t *tables; ///< [rows, stride]
    int64_t stride;
    std::span<const int32_t> rows;   ///< [sequences] rows of tables
    std::span<const int32_t> blocks; ///< [sequences] entries that may be shared
    int32_t align;                   ///< runs end at multiples of this
  };
  /// Whether the sequences \p members should attend together to \p blocks
  /// blocks.
  using Worth = bool (*)(void *context, std::span<const int32_t> members,
                         int32_t blocks);

  void find(const Input &input, Worth worth, void *context);

  /// The runs taken, outer ones before those nested in them.
  std::span<const SharedRun> runs() const { return Runs; }
  std::span<const int32_t> members() const { return Members; }
  /// [sequences] the first block that no run covers.
  std::span<const int32_t> ownBegin() const { return OwnBegin; }

private:
  /// Sequences Order[begin, end) share blocks [0, depth); runs cover [0,
  /// covered). With fresh unset, Common holds what each shares with the first.
  struct Node {
    int32_t begin;
    int32_t end;
    int32_t depth;
    int32_t covered;
    bool fresh;
  };
  int32_t common(const Input &input, int32_t a, int32_t b, int32_t from,
                 int32_t limit) const;
  void split(const Input &input, const Node &node, int32_t depth,
             int32_t covered);

  std::vector<SharedRun> Runs;
  std::vector<int32_t> Members;
  std::vector<int32_t> OwnBegin;
  std::vector<int32_t> Order;
  std::vector<int32_t> Common; ///< [sequences]
  std::vector<Node> Stack;
};

} // namespace pagoda

#endif // PAGODA_LAUNCH_SHAREDPREFIX_H
