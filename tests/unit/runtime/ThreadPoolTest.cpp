//===- ThreadPoolTest.cpp - Every piece of work once ----------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shares of work for any number of threads, pieces and callers.
//
//===----------------------------------------------------------------------===//

#include "pagoda/ThreadPool.h"
#include "TestErrors.h"

#include <atomic>
#include <gtest/gtest.h>
#include <vector>

using namespace pagoda;
using namespace pagoda::test;

TEST(ThreadPool, EveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> seen(count + 1);
        pool.forEach(
            count, grain,
            [](void *context, int64_t begin, int64_t end, int) {
              auto &seen =
                  *static_cast<std::vector<std::atomic<int>> *>(context);
              for (int64_t i = begin; i != end; ++i)
                ++seen[i];
            },
            &seen);
        for (int64_t i = 0; i != count; ++i)
          ASSERT_EQ(seen[i], 1) << threads << " " << count << " " << grain;
        ASSERT_EQ(seen[count], 0);
      }
    }
  }
}

TEST(ThreadPool, BadCounts) {
  EXPECT_PAGODA_ERROR(ThreadPool(-1), ErrorCode::InvalidArgument, "got -1");
  EXPECT_GE(ThreadPool(0).threads(), 1);
}
