//===- Pair.cpp - The runtime and the model, in step ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After each operation: answers, owners of every block, counts, hits, and what
// a read through each table finds in a simulated pool.
//
//===----------------------------------------------------------------------===//

#include "Pair.h"

#include <algorithm>
#include <map>
#include <rapidcheck.h>

using namespace pagoda;
using namespace pagoda::test;

namespace {

/// What an element of the pool holds: it stands for K and V of one position,
/// which depend on the key, on all tokens up to it, and on the layers.
uint64_t valueOf(const std::string &text, int32_t position, int32_t group) {
  uint64_t value = 0x9e3779b97f4a7c15u + uint64_t(group);
  for (int32_t i = 0; i <= position + 1; ++i)
    value = (value ^ uint8_t(text[i])) * 0x100000001b3u;
  return value;
}

PagedKVOptions kvOptions(const ModelConfig &config) {
  PagedKVOptions options;
  options.blockSize = config.blockSize;
  options.maxSequences = config.maxSequences;
  options.maxTokens = config.maxTokens;
  options.groups.clear();
  for (size_t g = 0; g != config.windows.size(); ++g)
    options.groups.push_back({config.windows[g], config.sinks[g]});
  return options;
}

PrefixCacheOptions cacheOptions(const ModelConfig &config, bool badHash) {
  PrefixCacheOptions options;
  options.blockSize = config.blockSize;
  options.groups = kvOptions(config).groups;
  options.retain = config.retain;
  options.eventCapacity = 64;
  if (badHash)
    options.hash = [](const Hash128 &parent, std::span<const int32_t> tokens,
                      std::string_view, uint64_t) {
      return Hash128{uint64_t(tokens[0]) % 2 + parent.low % 2, 0};
    };
  return options;
}

std::vector<int32_t> tokensOf(const std::string &text) {
  std::vector<int32_t> tokens;
  for (size_t i = 1; i < text.size(); ++i)
    tokens.push_back(text[i]);
  return tokens;
}

} // namespace

Pair::Pair(const ModelConfig &config, bool badHash)
    : Config(config), Groups(int32_t(config.windows.size())),
      Blocks(config.numBlocks), Cache(Blocks, cacheOptions(config, badHash)),
      Kv(Blocks, kvOptions(config)), Naive(config),
      Pool(size_t(config.numBlocks) * config.blockSize) {}

ModelSequence Pair::empty() const {
  ModelSequence seq;
  seq.tables.resize(Groups);
  return seq;
}

std::vector<ExtraKey> Pair::keysOf(const std::string &text) {
  if (text[0] == 'a')
    return {};
  Salt = text.substr(0, 1);
  return {{KeySalt, Salt, 0}};
}

/// Prompts come from a small tree, so that beginnings are often shared.
std::string Pair::prompt(const Operation &op) const {
  std::string text(1, static_cast<char>('a' + (op.c % 8 == 0)));
  // A choice of two every six tokens.
  for (uint32_t i = 0, n = 1 + op.b % 40; i != n; ++i)
    text += static_cast<char>(1 + (i % 6 == 0 ? (op.a >> (i / 6)) % 2 : 0));
  return text;
}

int32_t Pair::lookup(const std::string &text) {
  int32_t hit = Cache.lookup(tokensOf(text), keysOf(text), Hit);
  RC_ASSERT(hit == Naive.lookup(text, int32_t(text.size()) - 1));
  return hit;
}

/// Appends the tokens \p more; they are written at the next flush.
void Pair::extend(Both &seq, const std::string &more) {
  int32_t count = static_cast<int32_t>(more.size());
  if (seq.model.length + count > Config.maxTokens) {
    bool refused = false;
    try {
      (void)Kv.append(seq.id, count);
    } catch (const Error &error) {
      refused = error.code() == ErrorCode::TooLong;
    }
    RC_ASSERT(refused);
    return;
  }
  bool room = Kv.append(seq.id, count);
  RC_ASSERT(room == Naive.append(seq.model, count));
  if (room)
    seq.model.text += more;
}

/// Makes the pending copies, in some order, and writes the new tokens.
void Pair::flush(uint32_t order) {
  std::vector<pagoda_block_copy> copies(Kv.pendingCopies().begin(),
                                        Kv.pendingCopies().end());
  RC_ASSERT(int64_t(copies.size()) == Naive.pendingCopies());
  for (size_t i = 0; i != copies.size(); ++i)
    std::swap(copies[i], copies[(i + order) % copies.size()]);
  for (auto [from, to] : copies)
    std::copy_n(Pool.begin() + from * Config.blockSize, Config.blockSize,
                Pool.begin() + to * Config.blockSize);
  Kv.copiesDone();
  Naive.copiesDone();
  for (Both &seq : Seqs) {
    if (seq.model.preempted)
      continue;
    int32_t from = static_cast<int32_t>(seq.written.size()) - 1;
    std::vector<int64_t> slots(seq.model.length - from);
    for (int32_t g = 0; g != Groups; ++g) {
      Kv.slotMapping(seq.id, from, slots, g);
      for (size_t i = 0; i != slots.size(); ++i)
        if (slots[i] >= 0)
          Pool[slots[i]] = valueOf(seq.model.text, from + int32_t(i), g);
    }
    seq.written = seq.model.text;
  }
}

void Pair::store(Both &seq, uint32_t priority) {
  std::vector<int32_t> tokens = tokensOf(seq.model.text);
  Kv.storePrefix(seq.id, Cache, tokens, keysOf(seq.model.text),
                 int32_t(priority));
  Naive.store(seq.model, seq.model.length, int32_t(priority));
}

void Pair::remove(Both &seq) {
  RC_ASSERT(Kv.remove(seq.id));
  RC_ASSERT(!Kv.remove(seq.id));
  Naive.drop(seq.model);
  Seqs.erase(Seqs.begin() + (&seq - Seqs.data()));
}

void Pair::admit(const Operation &op) {
  std::string text = prompt(op);
  int32_t hit = lookup(text);
  SeqId id = Kv.add();
  RC_ASSERT((id == NoSequence) ==
            (int32_t(Seqs.size()) == Config.maxSequences));
  if (id == NoSequence)
    return;
  Seqs.push_back({id, empty(), ""});
  Both &seq = Seqs.back();
  RC_ASSERT(Kv.attachPrefix(id, Cache, Hit));
  Naive.attach(seq.model, text, hit);
  seq.written = seq.model.text;
  extend(seq, text.substr(1 + hit));
  if (seq.model.text != text)
    remove(seq);
}

void Pair::resume(Both &seq, const Operation &op) {
  if (op.b % 2) {
    std::string text = seq.model.text;
    int32_t hit = lookup(text);
    RC_ASSERT(Kv.attachPrefix(seq.id, Cache, Hit));
    Naive.attach(seq.model, text, hit);
    seq.written = seq.model.text;
    return;
  }
  std::string text = seq.model.text;
  int32_t length = std::exchange(seq.model.length, 0);
  bool room = Kv.resume(seq.id);
  RC_ASSERT(room == Naive.append(seq.model, length));
  seq.model.length = length;
  seq.model.preempted = !room;
  seq.written = room ? text.substr(0, 1) : text;
}

void Pair::pin(const Operation &op) {
  if (Pins.size() > 2 || (op.a % 2 && !Pins.empty())) {
    Pinned &pinned = Pins[op.b % Pins.size()];
    Cache.unpin(pinned.hit);
    for (size_t i = pinned.blocks.size(); i-- > 0;)
      Naive.release(pinned.blocks[i]);
    Pins.erase(Pins.begin() + (&pinned - Pins.data()));
    return;
  }
  std::string text = prompt(op);
  int32_t hit = lookup(text);
  if (hit == 0)
    return;
  RC_ASSERT(Cache.pin(Hit));
  Pins.push_back({Hit, Naive.hitBlocks(text, hit)});
  for (const BlockPtr &block : Pins.back().blocks)
    Naive.share(block);
}

/// Somebody who uses the BlockManager directly, and sometimes wrongly.
void Pair::outsider(const Operation &op) {
  if (op.a % 4 == 0 && !Outside.empty()) {
    auto [id, block] = Outside[op.b % Outside.size()];
    std::vector<int32_t> wrong(Blocks.refs(id) + 1, id);
    bool refused = false;
    try {
      Blocks.release(wrong);
    } catch (const Error &error) {
      refused = error.code() == ErrorCode::DoubleRelease;
    }
    RC_ASSERT(refused);
    return;
  }
  if (op.a % 2 && !Outside.empty()) {
    auto it = Outside.begin() + op.b % Outside.size();
    Blocks.release(it->first);
    Naive.release(it->second);
    Outside.erase(it);
    return;
  }
  std::vector<int32_t> ids(op.b % 6);
  std::vector<BlockPtr> blocks;
  bool room = Blocks.allocate(ids);
  RC_ASSERT(room == Naive.allocate(blocks, int32_t(ids.size())));
  if (room)
    for (size_t i = 0; i != ids.size(); ++i) {
      std::fill_n(Pool.begin() + ids[i] * Config.blockSize, Config.blockSize,
                  0xdead);
      Outside.push_back({ids[i], blocks[i]});
    }
}

void Pair::apply(const Operation &op) {
  enum {
    Admit,
    Append,
    More,
    Store,
    Fork,
    Truncate,
    Window,
    Remove,
    Preempt,
    Pin,
    Raw,
    Recency,
    Flush,
    Count
  };
  uint32_t kind = op.kind % (Count + 2);
  // Several appends, and the ends of sequences, may come before the copies.
  if (kind != Append && kind != More && kind != Remove && kind != Window)
    flush(op.c);
  Both *seq = pick(op.a);
  bool running = seq && !seq->model.preempted;
  switch (kind) {
  case Admit:
    admit(op);
    break;
  case Append:
  case More:
    if (running)
      extend(*seq, std::string(kind == More ? 1 : op.b % 10,
                               static_cast<char>(1 + op.c % 2)));
    break;
  case Store:
  case Count:
  case Count + 1:
    if (running)
      store(*seq, op.b % 8 == 0 ? op.c % 4 : 0);
    break;
  case Fork: {
    if (!running)
      break;
    int32_t at = int32_t(op.b) % (seq->model.length + 1);
    if (!Naive.canCut(seq->model, at))
      break;
    SeqId id = Kv.fork(seq->id, at);
    RC_ASSERT((id == NoSequence) ==
              (int32_t(Seqs.size()) == Config.maxSequences));
    if (id == NoSequence)
      break;
    ModelSequence child = Naive.fork(seq->model, at);
    std::string text = child.text;
    Seqs.push_back({id, std::move(child), text});
    break;
  }
  case Truncate: {
    if (!running)
      break;
    int32_t at = op.c % 2 ? std::max(0, seq->model.length - int32_t(op.b % 6))
                          : int32_t(op.b) % (seq->model.length + 1);
    if (!Naive.canCut(seq->model, at))
      break;
    Kv.truncate(seq->id, at);
    Naive.truncate(seq->model, at);
    seq->written.resize(1 + at);
    break;
  }
  case Window:
    if (running) {
      int32_t first =
          std::max(0, std::min(int32_t(seq->written.size()) - 1,
                               seq->model.length - int32_t(op.b % 3)));
      RC_ASSERT(Kv.releaseWindow(seq->id, first) ==
                Naive.releaseWindow(seq->model, first));
    }
    break;
  case Remove:
    if (seq)
      remove(*seq);
    break;
  case Preempt:
    if (running) {
      Kv.preempt(seq->id);
      Naive.drop(seq->model);
      seq->model.preempted = true;
    } else if (seq) {
      resume(*seq, op);
    }
    break;
  case Pin:
    pin(op);
    break;
  case Raw:
    outsider(op);
    break;
  case Recency: {
    std::string text = prompt(op);
    int32_t hit = lookup(text);
    if (op.b % 2) {
      Cache.touch(Hit);
      Naive.touch(text, hit);
    } else {
      Cache.setPriority(Hit, int32_t(op.b / 2 % 4));
      Naive.setPriority(text, hit, int32_t(op.b / 2 % 4));
    }
    break;
  }
  case Flush:
    break;
  }
}

/// Every position that a table still names holds what was written there.
void Pair::checkContent() {
  for (const Both &seq : Seqs) {
    if (seq.model.preempted)
      continue;
    for (int32_t g = 0; g != Groups; ++g) {
      auto table = Kv.table(seq.id, g);
      for (int32_t p = 0; p + 1 < int32_t(seq.written.size()); ++p) {
        int32_t block = table[p / Config.blockSize];
        if (block >= 0)
          RC_ASSERT(Pool[block * Config.blockSize + p % Config.blockSize] ==
                    valueOf(seq.model.text, p, g));
      }
    }
  }
}

/// The ids and the model's blocks correspond one to one, with equal owners.
void Pair::checkOwners() {
  std::map<int32_t, BlockPtr> ofId;
  std::map<ModelBlock *, int32_t> ofBlock;
  auto same = [&](int32_t id, const BlockPtr &block) {
    RC_ASSERT((id < 0) == (block == nullptr));
    if (id < 0)
      return;
    RC_ASSERT(ofId.try_emplace(id, block).first->second == block);
    RC_ASSERT(ofBlock.try_emplace(block.get(), id).first->second == id);
  };
  for (const Both &seq : Seqs) {
    RC_ASSERT(Kv.length(seq.id) == seq.model.length);
    for (int32_t g = 0; g != Groups; ++g) {
      auto table = Kv.table(seq.id, g);
      RC_ASSERT(table.size() == seq.model.tables[g].size());
      for (size_t i = 0; i != table.size(); ++i)
        same(table[i], seq.model.tables[g][i]);
    }
  }
  for (auto &[id, block] : Outside)
    same(id, block);
  for (auto &[id, block] : ofId)
    RC_ASSERT(int32_t(Blocks.refs(id)) == Naive.refs(block));
  int64_t refs = 0, used = 0;
  for (int32_t b = 0; b != Config.numBlocks; ++b) {
    refs += Blocks.refs(b);
    used += Blocks.refs(b) > (Config.retain && Blocks.watched(b) ? 1u : 0u);
  }
  RC_ASSERT(refs == Kv.heldReferences() + Cache.numPins() +
                        int64_t(Outside.size()) +
                        (Config.retain ? Cache.numStored() : 0));
  RC_ASSERT(Blocks.numFree() + used + Cache.numIdle() == Config.numBlocks);
  RC_ASSERT(Blocks.numFree() == Naive.numFree());
  RC_ASSERT(Cache.numIdle() == Naive.numIdle());
  RC_ASSERT(Cache.numStored() == Naive.numStored());
}

void Pair::check() {
  checkOwners();
  RC_ASSERT(Cache.checkInvariants() == std::string());
  if (Kv.pendingCopies().empty())
    checkContent();
}
