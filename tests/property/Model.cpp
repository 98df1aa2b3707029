//===- Model.cpp - The cache, written naively -----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Model.h. A text is one byte of key and then one byte a token.
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include <algorithm>
#include <utility>

using namespace pagoda::test;

//===----------------------------------------------------------------------===//
// Blocks and owners
//===----------------------------------------------------------------------===//

int32_t Model::refs(const BlockPtr &block) const {
  int32_t cache = 0;
  if (Config.retain)
    for (const auto &[key, entry] : Stored)
      cache += entry.block == block;
  return block->owners + cache;
}

int32_t Model::numFree() const {
  return Config.numBlocks - static_cast<int32_t>(Live.size());
}

bool Model::isIdle(const Entry &entry) const {
  return Config.retain && entry.block->owners == 0;
}

int32_t Model::numIdle() const {
  int32_t idle = 0;
  for (const auto &[key, entry] : Stored)
    idle += isIdle(entry);
  return idle;
}

bool Model::allocate(std::vector<BlockPtr> &out, int32_t count) {
  if (numFree() + numIdle() < count)
    return false;
  while (numFree() < count)
    evict();
  for (int32_t i = 0; i != count; ++i) {
    out.push_back(std::make_shared<ModelBlock>());
    out.back()->owners = 1;
    Live.insert(out.back().get());
  }
  return true;
}

void Model::share(const BlockPtr &block) {
  ++block->owners;
  for (auto &[key, entry] : Stored)
    if (entry.block == block)
      entry.aside = false;
}

void Model::release(const BlockPtr &block) {
  if (--block->owners > 0)
    return;
  auto it = std::find_if(Stored.begin(), Stored.end(), [&](const auto &pair) {
    return pair.second.block == block;
  });
  if (it != Stored.end() && Config.retain) {
    it->second.stamp = ++Clock;
    return;
  }
  if (it != Stored.end())
    forget(it);
  Live.erase(block.get());
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

int32_t Model::sinkBlocks(int32_t group) const {
  int32_t sinks = Config.sinks[group];
  return sinks / Config.blockSize + (sinks % Config.blockSize != 0);
}

int32_t Model::firstVisible(int32_t group, int32_t query) const {
  int32_t window = Config.windows[group];
  if (!window)
    return 0;
  int32_t oldest = std::max(0, query - window + 1);
  return std::max(sinkBlocks(group), oldest / Config.blockSize);
}

bool Model::append(ModelSequence &seq, int32_t tokens) {
  if (tokens == 0)
    return true;
  int32_t B = Config.blockSize;
  size_t blocks = size_t(seq.length + tokens + B - 1) / B;
  int32_t needed = 0;
  auto copies = [&](const std::vector<BlockPtr> &table) {
    // A block that anybody else may read is not written to.
    return seq.length % B && readers(table.back()) > 1;
  };
  for (const auto &table : seq.tables)
    needed += static_cast<int32_t>(blocks - table.size()) + copies(table);
  std::vector<BlockPtr> taken;
  if (!allocate(taken, needed))
    return false;
  auto next = taken.begin();
  for (auto &table : seq.tables) {
    if (copies(table)) {
      replace(table.back(), *next++);
    } else if (seq.length % B) {
      // Without retention a stored block may have one owner, who writes now.
      auto it =
          std::find_if(Stored.begin(), Stored.end(), [&](const auto &pair) {
            return pair.second.block == table.back();
          });
      if (it != Stored.end())
        forget(it);
    }
    while (table.size() < blocks)
      table.push_back(*next++);
  }
  seq.length += tokens;
  return true;
}

/// Owners that still need the block once the pending copies are made.
int32_t Model::readers(const BlockPtr &block) const {
  int32_t held = 0;
  for (const Copy &copy : Copies)
    held += copy.source == block;
  return refs(block) - held;
}

/// Copy-on-write of one table entry.
void Model::replace(BlockPtr &entry, const BlockPtr &fresh) {
  BlockPtr old = std::exchange(entry, fresh);
  for (const Copy &copy : Copies)
    if (copy.target == old) {
      // What is copied next is what will be in the old block.
      BlockPtr source = copy.source;
      share(source);
      Copies.push_back({source, fresh});
      release(old);
      return;
    }
  Copies.push_back({old, fresh});
}

void Model::copiesDone() {
  for (const Copy &copy : std::exchange(Copies, {}))
    release(copy.source);
}

ModelSequence Model::fork(const ModelSequence &parent, int32_t tokens) {
  ModelSequence child = parent;
  child.length = tokens;
  child.text.resize(1 + tokens);
  for (auto &table : child.tables) {
    table.resize((tokens + Config.blockSize - 1) / Config.blockSize);
    for (const BlockPtr &block : table)
      if (block)
        share(block);
  }
  return child;
}

bool Model::canCut(const ModelSequence &seq, int32_t tokens) const {
  int32_t blocks = (tokens + Config.blockSize - 1) / Config.blockSize;
  for (size_t g = 0; g != seq.tables.size(); ++g)
    for (int32_t i = 0; i < blocks; ++i)
      if (!seq.tables[g][i] && i >= firstVisible(int32_t(g), tokens))
        return false;
  return true;
}

void Model::releaseRange(std::vector<BlockPtr> &table, int32_t from,
                         int32_t to) {
  // A copy into a block that nobody will own is not made.
  for (int32_t i = from; i != to; ++i)
    for (size_t c = 0; table[i] && c != Copies.size(); ++c)
      if (Copies[c].target == table[i] && refs(table[i]) == 1) {
        BlockPtr source = Copies[c].source;
        Copies[c] = Copies.back();
        Copies.pop_back();
        release(source);
        break;
      }
  for (int32_t i = to; i-- > from;)
    if (BlockPtr block = std::exchange(table[i], nullptr))
      release(block);
}

void Model::truncate(ModelSequence &seq, int32_t tokens) {
  int32_t blocks = (tokens + Config.blockSize - 1) / Config.blockSize;
  for (size_t g = seq.tables.size(); g-- > 0;) {
    auto &table = seq.tables[g];
    releaseRange(table, blocks, static_cast<int32_t>(table.size()));
    table.resize(blocks);
  }
  seq.length = tokens;
  seq.text.resize(1 + tokens);
}

int32_t Model::releaseWindow(ModelSequence &seq, int32_t firstQuery) {
  int32_t count = 0;
  for (size_t g = 0; g != seq.tables.size(); ++g) {
    auto &table = seq.tables[g];
    int32_t end = std::min<int32_t>(firstVisible(int32_t(g), firstQuery),
                                    static_cast<int32_t>(table.size()));
    int32_t begin = std::min(sinkBlocks(int32_t(g)), end);
    count += static_cast<int32_t>(
        std::count_if(table.begin() + begin, table.begin() + end,
                      [](const BlockPtr &block) { return block != nullptr; }));
    for (int32_t i = begin; i != end; ++i) // the first block first
      releaseRange(table, i, i + 1);
  }
  return count;
}

void Model::drop(ModelSequence &seq) {
  for (size_t g = seq.tables.size(); g-- > 0;) {
    releaseRange(seq.tables[g], 0, static_cast<int32_t>(seq.tables[g].size()));
    seq.tables[g].clear();
  }
}

//===----------------------------------------------------------------------===//
// Prefix cache
//===----------------------------------------------------------------------===//

std::string Model::prefix(const std::string &text, int32_t blocks) const {
  return text.substr(0, 1 + size_t(blocks) * Config.blockSize);
}

bool Model::needed(int32_t group, int32_t index, int32_t hit) const {
  return index >= firstVisible(group, hit) || index < sinkBlocks(group);
}

int32_t Model::lookup(const std::string &text, int32_t tokens) const {
  std::set<std::string> live = liveNodes();
  int32_t best = 0;
  for (int32_t n = 1; n * Config.blockSize < tokens; ++n) {
    if (!live.count(prefix(text, n)))
      break;
    bool all = true;
    for (size_t g = 0; g != Config.windows.size(); ++g)
      for (int32_t i = 0; i != n; ++i)
        if (needed(int32_t(g), i, n * Config.blockSize))
          all = all && Stored.count({prefix(text, i + 1), int32_t(g)});
    if (all)
      best = n;
  }
  return best * Config.blockSize;
}

std::vector<BlockPtr> Model::hitBlocks(const std::string &text,
                                       int32_t hit) const {
  std::vector<BlockPtr> blocks;
  for (size_t g = 0; g != Config.windows.size(); ++g)
    for (int32_t i = 0; i != hit / Config.blockSize; ++i)
      if (needed(int32_t(g), i, hit))
        blocks.push_back(Stored.at({prefix(text, i + 1), int32_t(g)}).block);
  return blocks;
}

void Model::attach(ModelSequence &seq, const std::string &text, int32_t hit) {
  for (const BlockPtr &block : hitBlocks(text, hit))
    share(block);
  for (size_t g = 0; g != seq.tables.size(); ++g)
    for (int32_t i = 0; i != hit / Config.blockSize; ++i)
      seq.tables[g].push_back(
          needed(int32_t(g), i, hit)
              ? Stored.at({prefix(text, i + 1), int32_t(g)}).block
              : nullptr);
  seq.length = hit;
  seq.text = text.substr(0, 1 + hit);
  seq.preempted = false;
}

/// A prefix is known as long as it, or one that continues it, has a block.
std::set<std::string> Model::liveNodes() const {
  std::set<std::string> live;
  for (const auto &[key, entry] : Stored)
    for (int32_t n = 1; size_t(n) * Config.blockSize < key.first.size(); ++n)
      live.insert(prefix(key.first, n));
  return live;
}

void Model::store(ModelSequence &seq, int32_t tokens, int32_t priority) {
  bool windowed = std::any_of(Config.windows.begin(), Config.windows.end(),
                              [](int32_t window) { return window != 0; });
  size_t capacity = size_t(Config.numBlocks) * (windowed ? 2 : 1);
  for (int32_t i = 0; i != tokens / Config.blockSize; ++i) {
    std::string text = prefix(seq.text, i + 1);
    // There is room for so many prefixes; older blocks make way for new ones.
    auto isFull = [&] {
      std::set<std::string> live = liveNodes();
      if (live.count(text))
        return false;
      for (int32_t n = 1; n <= i; ++n)
        live.insert(prefix(seq.text, n));
      return live.size() >= capacity;
    };
    while (isFull())
      if (!evict())
        return;
    for (size_t g = 0; g != seq.tables.size(); ++g) {
      BlockPtr &block = seq.tables[g][i];
      if (!block)
        continue;
      auto [it, added] = Stored.try_emplace({text, int32_t(g)});
      if (added) {
        it->second.block = block;
        it->second.priority = priority;
      } else if (it->second.block != block) {
        BlockPtr known = it->second.block;
        share(known);
        release(std::exchange(block, known));
      }
    }
  }
}

bool Model::hasStoredChild(const Key &key) const {
  for (const auto &[other, entry] : Stored)
    if (other.second == key.second &&
        other.first.size() == key.first.size() + Config.blockSize &&
        other.first.compare(0, key.first.size(), key.first) == 0)
      return true;
  return false;
}

void Model::forget(std::map<Key, Entry>::iterator it) {
  auto [text, group] = it->first;
  Stored.erase(it);
  if (text.size() <= size_t(1 + Config.blockSize))
    return;
  auto above =
      Stored.find({text.substr(0, text.size() - Config.blockSize), group});
  if (above != Stored.end() && above->second.aside &&
      !hasStoredChild(above->first)) {
    above->second.aside = false;
    above->second.stamp = --Front; // before everything else
  }
}

bool Model::evict() {
  while (true) {
    auto victim = Stored.end();
    for (auto it = Stored.begin(); it != Stored.end(); ++it) {
      const Entry &entry = it->second;
      if (!isIdle(entry) || entry.aside)
        continue;
      if (victim == Stored.end() ||
          std::pair(entry.priority, entry.stamp) <
              std::pair(victim->second.priority, victim->second.stamp))
        victim = it;
    }
    if (victim == Stored.end())
      return false;
    if (!Config.windows[victim->first.second] &&
        hasStoredChild(victim->first)) {
      victim->second.aside = true;
      continue;
    }
    Live.erase(victim->second.block.get());
    forget(victim);
    return true;
  }
}

void Model::touch(const std::string &text, int32_t hit) {
  for (int32_t n = hit / Config.blockSize; n > 0; --n)
    for (size_t g = 0; g != Config.windows.size(); ++g) {
      auto it = Stored.find({prefix(text, n), int32_t(g)});
      if (it != Stored.end() && isIdle(it->second) && !it->second.aside)
        it->second.stamp = ++Clock;
    }
}

void Model::setPriority(const std::string &text, int32_t hit,
                        int32_t priority) {
  for (int32_t n = hit / Config.blockSize; n > 0; --n)
    for (size_t g = 0; g != Config.windows.size(); ++g) {
      auto it = Stored.find({prefix(text, n), int32_t(g)});
      if (it == Stored.end())
        continue;
      it->second.priority = priority;
      if (isIdle(it->second) && !it->second.aside)
        it->second.stamp = ++Clock;
    }
}
