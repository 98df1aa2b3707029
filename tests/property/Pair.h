//===- Pair.h - The runtime and the model, in step ------------ -*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Applies one operation to both sides and compares them.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_PROPERTY_PAIR_H
#define PAGODA_TESTS_PROPERTY_PAIR_H

#include "Model.h"

#include "pagoda/BlockManager.h"
#include "pagoda/PagedKV.h"
#include "pagoda/PrefixCache.h"

#include <string>
#include <utility>
#include <vector>

namespace pagoda::test {

/// What to do next, as random numbers; Pair::apply gives them their meaning.
struct Operation {
  uint32_t kind, a, b, c;
};

/// The runtime and the model, in step.
class Pair {
public:
  /// \p badHash: a hash of two bits, so that nearly all prefixes collide.
  Pair(const ModelConfig &config, bool badHash);

  void apply(const Operation &op);
  void check();

private:
  struct Both {
    SeqId id;
    ModelSequence model;
    std::string written; ///< text whose K and V are in the pool
  };

  Both *pick(uint32_t n) {
    return Seqs.empty() ? nullptr : &Seqs[n % Seqs.size()];
  }
  ModelSequence empty() const;
  std::vector<ExtraKey> keysOf(const std::string &text);
  std::string prompt(const Operation &op) const;
  int32_t lookup(const std::string &text);
  void extend(Both &seq, const std::string &more);
  void flush(uint32_t order);
  void store(Both &seq, uint32_t priority);
  void remove(Both &seq);
  void admit(const Operation &op);
  void resume(Both &seq, const Operation &op);
  void pin(const Operation &op);
  void outsider(const Operation &op);
  void checkContent();
  void checkOwners();

  ModelConfig Config;
  int32_t Groups;
  BlockManager Blocks;
  PrefixCache Cache;
  PagedKV Kv;
  Model Naive;
  std::vector<uint64_t> Pool; ///< [blocks, block_size]
  std::vector<Both> Seqs;
  struct Pinned {
    PrefixHit hit;
    std::vector<BlockPtr> blocks;
  };
  std::vector<Pinned> Pins;
  std::vector<std::pair<int32_t, BlockPtr>> Outside;
  PrefixHit Hit;
  std::string Salt;
};

} // namespace pagoda::test

#endif // PAGODA_TESTS_PROPERTY_PAIR_H
