//===- ThreadSafetyTest.cpp - What may run beside what --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The promises of the headers, for the thread sanitizer to see: objects of
// their own need no care, const members may run beside each other, a built plan
// may be run by many, and launchers may share a pool. LauncherTest has callers
// that share a launcher.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "PrefixTesting.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace pagoda;
using namespace pagoda::test;

template <typename Fn> static void inThreads(int count, Fn fn) {
  std::vector<std::thread> threads;
  for (int t = 0; t != count; ++t)
    threads.emplace_back([&fn, t] { fn(t); });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(ThreadSafety, ObjectsOfTheirOwn) {
  inThreads(4, [](int t) {
    Cached c(16);
    for (int32_t i = 0; i != 50; ++i)
      c.runAndEnd(tokens(t * 1000 + i % 5 * 10, 9));
    EXPECT_EQ(c.hitTokens, 8);
  });
}

TEST(ThreadSafety, ConstMembersBesideEachOther) {
  Cached c(32);
  SeqId seq = c.run(tokens(0, 21));
  std::atomic<int> hits{0};
  inThreads(4, [&](int) {
    PrefixHit hit;
    for (int i = 0; i != 100; ++i) {
      Ids prompt = tokens(0, 21);
      hits += c.cache.lookup(prompt, {}, hit) == 20;
      hits += c.kv.table(seq).size() == 6;
      hits += c.blocks.refs(c.kv.tables()[0]) == 2;
      std::vector<int64_t> slots(21);
      c.kv.slotMapping(seq, 0, slots);
      hits += c.cache.checkInvariants().empty();
    }
  });
  EXPECT_EQ(hits, 4 * 400);
}

TEST(ThreadSafety, LaunchersShareAPool) {
  ThreadPool pool(3);
  inThreads(3, [&](int t) {
    int64_t sum = 0;
    for (int i = 0; i != 50; ++i) {
      std::vector<int32_t> out(97);
      pool.forEach(
          97, 2,
          [](void *context, int64_t begin, int64_t end, int) {
            auto &out = *static_cast<std::vector<int32_t> *>(context);
            for (int64_t k = begin; k != end; ++k)
              out[k] = static_cast<int32_t>(k);
          },
          &out);
      for (int32_t value : out)
        sum += value;
    }
    EXPECT_EQ(sum, 50 * 96 * 97 / 2) << t;
  });
}
