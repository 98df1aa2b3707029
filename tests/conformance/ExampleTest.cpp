//===- ExampleTest.cpp - Published worked examples, through kernels -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers that explanations of online softmax and FlashAttention work out by
// hand, read from the partial states (m, l, o) that kernels write.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ManualPlan.h"
#include "tests/conformance/NamedFixture.h"

#include <cmath>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

class Example : public NamedTest {
protected:
  /// The partial state of (row, head 0) after keys 0 .. keys - 1.
  struct State {
    double m, l; ///< m is a scaled score, natural units
    std::vector<double> o;
  };
  static std::vector<State> statesAfter(const pagoda_kernel_info &kernel,
                                        CaseData &data, int64_t keys) {
    ManualPlan plan(data.problem, kernel, 1);
    for (pagoda_work_item &item : plan.items) {
      item.kv_end = int32_t(keys);
      item.partial_slot = item.row_map_offset;
    }
    size_t rows = plan.rowMap.size();
    plan.partialO.assign(rows * kernel.q_heads * kernel.v_head_dim, NAN);
    plan.partialMl.assign(rows * kernel.q_heads * 2, NAN);
    plan.attach(data.args);
    runKernel(kernel, &data.args, int64_t(plan.items.size()), 1);
    std::vector<State> states;
    for (size_t row = 0; row < rows; ++row) {
      const float *ml = &plan.partialMl[row * kernel.q_heads * 2];
      const float *o = &plan.partialO[row * kernel.q_heads * kernel.v_head_dim];
      states.push_back(
          {ml[0] * data.args.scale, ml[1], {o, o + kernel.v_head_dim}});
    }
    return states;
  }

  static KernelSet kernels(const Case &c) {
    llvm::Expected<KernelSet> set = backend().kernels(c);
    EXPECT_TRUE(bool(set)) << llvm::toString(set.takeError());
    return set ? *set : KernelSet();
  }
};

TEST_F(Example, online_softmax_four_scores) {
  const double scores[] = {2, 1, 4, 3};
  const double m[] = {2, 2, 4, 4}, l[] = {1, 1.3679, 1.1851, 1.5530};
  Case c = makeCase("online_softmax_four_scores", {{1, 4}});
  c.spec.qHeads = c.spec.kvHeads = 1;
  c.spec.headDim = c.spec.vHeadDim = 1;
  c.spec.scale = 1;
  c.spec.causal = false;
  CaseData data(c);
  *data.queryRow(0, 0, 0) = 1;
  for (int64_t t = 0; t < 4; ++t)
    *data.keyRow(0, t, 0) = float(scores[t]);
  data.sealInputs();
  KernelSet set = kernels(c);
  ASSERT_FALSE(set.attention.empty());
  for (const pagoda_kernel_info *kernel : set.attention) {
    for (int64_t keys = 1; keys <= 4; ++keys) {
      State state = statesAfter(*kernel, data, keys)[0];
      EXPECT_EQ(state.m, m[keys - 1]) << kernel->name;
      EXPECT_NEAR(state.l, l[keys - 1], 1e-4) << kernel->name;
    }
    EXPECT_NEAR(statesAfter(*kernel, data, 4)[0].l,
                std::exp(2.0 - 4) + std::exp(1.0 - 4) + 1 + std::exp(3.0 - 4),
                1e-6);
  }
}

TEST_F(Example, flash_two_tiles) {
  const float q[4][2] = {{1, 0}, {0, 1}, {1, 1}, {0, 0}};
  const float k[4][2] = {{1, 1}, {0, 1}, {1, 0}, {0, 0}};
  const float v[4][2] = {{1, 0}, {0, 1}, {1, 1}, {0, 0}};
  Case c = makeCase("flash_two_tiles", {{4, 4}});
  c.spec.qHeads = c.spec.kvHeads = 1;
  c.spec.headDim = c.spec.vHeadDim = 2;
  c.spec.scale = 1 / std::sqrt(2.0);
  c.spec.causal = false;
  CaseData data(c);
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t d = 0; d < 2; ++d) {
      data.queryRow(0, t, 0)[d] = q[t][d];
      data.keyRow(0, t, 0)[d] = k[t][d];
      data.valueRow(0, t, 0)[d] = v[t][d];
    }
  data.sealInputs();
  // FlashAttention-2's order and FlashAttention-1's, in tiles of two keys.
  for (const char *order : {"q_outer", "kv_outer"}) {
    c.schedule = {std::string("prefill.order=") + order, "prefill.kv_tile=2",
                  "prefill.block_rows=2"};
    KernelSet set = kernels(c);
    ASSERT_FALSE(set.attention.empty());
    EXPECT_EQ(set.attention.back()->kv_tile, 2);
    for (const pagoda_kernel_info *kernel : set.attention) {
      std::vector<State> first = statesAfter(*kernel, data, 2);
      std::vector<State> second = statesAfter(*kernel, data, 4);
      const double l[2] = {1.4931, 2.0};
      const double o[2][2] = {{0.6698, 0.5}, {0.5, 0.5}};
      for (int row = 0; row < 2; ++row) {
        EXPECT_NEAR(first[row].m, 0.7071, 1e-4) << kernel->name;
        EXPECT_NEAR(first[row].l, l[row], 1e-4) << kernel->name;
        EXPECT_EQ(std::exp(first[row].m - second[row].m), 1) << kernel->name;
      }
      for (int splits : {1, 2}) {
        c.splits = splits;
        c.kernel = kernel == set.attention.back() ? 1 : 0;
        data.resetOutputs();
        check(c, data);
        for (int row = 0; row < 2; ++row)
          for (int d = 0; d < 2; ++d)
            EXPECT_NEAR(data.outputRow(0, row, 0)[d], o[row][d], 1e-4) << order;
      }
    }
  }
}

TEST_F(Example, score_matrix_memory) {
  // The whole score matrix of 100,000 tokens has 1e10 elements: 40 GB of f32
  // for one head. A kernel's memory must not depend on the length at all, and
  // what a plan adds must grow no faster than the queries.
  constexpr int64_t Tokens = 100'000;
  EXPECT_EQ(double(Tokens) * Tokens * sizeof(float), 40e9);
  Case c = makeCase("score_matrix_memory", {{64, Tokens}, {1, Tokens}});
  c.spec.qHeads = c.spec.kvHeads = 1;
  c.spec.headDim = c.spec.vHeadDim = 16;
  c.spec.scale = 0.25;
  check(c);
  KernelSet set = kernels(c);
  for (const pagoda_kernel_info *kernel : set.attention)
    EXPECT_LT(kernel->scratch_bytes, Tokens * 16) << kernel->name;
}

} // namespace
