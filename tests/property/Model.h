//===- Model.h - The cache, written naively ---------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What BlockManager, PagedKV and PrefixCache should do together, with no
// thought for speed: owners are counted by looking at who owns, prefixes are
// whole strings, the least recently used block is found by comparing time
// stamps. It shares no code and no data structure with the runtime, and it has
// blocks of its own: the driver checks that they and the runtime's ids
// correspond one to one.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_PROPERTY_MODEL_H
#define PAGODA_TESTS_PROPERTY_MODEL_H

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace pagoda::test {

struct ModelConfig {
  int32_t numBlocks = 24;
  int32_t blockSize = 4;
  int32_t maxSequences = 6;
  int32_t maxTokens = 64;
  std::vector<int32_t> windows = {0}; ///< one a table group; 0: all keys
  std::vector<int32_t> sinks = {0};
  bool retain = true;
};

/// A block is an object; who owns it is asked of the model.
struct ModelBlock {
  int32_t owners = 0; ///< tables, pins, outsiders; the cache is asked itself
};
using BlockPtr = std::shared_ptr<ModelBlock>;

struct ModelSequence {
  std::string text;                          ///< its tokens, behind its keys
  std::vector<std::vector<BlockPtr>> tables; ///< [group][block], null: let go
  int32_t length = 0;
  bool preempted = false;
};

class Model {
public:
  explicit Model(const ModelConfig &config) : Config(config) {}

  // Sequences. A false answer means that nothing changed.
  bool append(ModelSequence &seq, int32_t tokens);
  ModelSequence fork(const ModelSequence &parent, int32_t tokens);
  /// Whether a truncation or a fork to \p tokens keeps what a query needs.
  bool canCut(const ModelSequence &seq, int32_t tokens) const;
  void truncate(ModelSequence &seq, int32_t tokens);
  int32_t releaseWindow(ModelSequence &seq, int32_t firstQuery);
  void drop(ModelSequence &seq); ///< all its blocks
  void copiesDone();
  int64_t pendingCopies() const { return int64_t(Copies.size()); }

  // Prefix cache. A prefix is a text of a whole number of blocks, keys
  // included.
  int32_t lookup(const std::string &text, int32_t tokens) const;
  void attach(ModelSequence &seq, const std::string &text, int32_t hit);
  void store(ModelSequence &seq, int32_t tokens, int32_t priority);
  std::vector<BlockPtr> hitBlocks(const std::string &text, int32_t hit) const;
  void touch(const std::string &text, int32_t hit);
  void setPriority(const std::string &text, int32_t hit, int32_t priority);

  // Owners that are no sequence.
  bool allocate(std::vector<BlockPtr> &out, int32_t count);
  void release(const BlockPtr &block);
  void share(const BlockPtr &block);

  int32_t numFree() const;
  int32_t numIdle() const;
  int32_t numStored() const { return static_cast<int32_t>(Stored.size()); }
  /// Owners of \p block, the cache among them.
  int32_t refs(const BlockPtr &block) const;

private:
  struct Entry {
    BlockPtr block;
    int64_t stamp = 0; ///< when it became idle or was touched
    int32_t priority = 0;
    bool aside = false;
  };
  using Key = std::pair<std::string, int32_t>; ///< prefix, group
  struct Copy {
    BlockPtr source; ///< owned until the copy is made
    BlockPtr target;
  };

  std::string prefix(const std::string &text, int32_t blocks) const;
  int32_t firstVisible(int32_t group, int32_t query) const;
  int32_t sinkBlocks(int32_t group) const;
  bool needed(int32_t group, int32_t index, int32_t hit) const;
  bool isIdle(const Entry &entry) const;
  int32_t readers(const BlockPtr &block) const;
  void replace(BlockPtr &entry, const BlockPtr &fresh);
  bool hasStoredChild(const Key &key) const;
  bool evict();
  void forget(std::map<Key, Entry>::iterator it);
  void releaseRange(std::vector<BlockPtr> &table, int32_t from, int32_t to);
  std::set<std::string> liveNodes() const;

  ModelConfig Config;
  std::set<ModelBlock *> Live; ///< blocks with an owner
  std::map<Key, Entry> Stored;
  std::vector<Copy> Copies;
  int64_t Clock = 0;
  int64_t Front = 0;
};

} // namespace pagoda::test

#endif // PAGODA_TESTS_PROPERTY_MODEL_H
