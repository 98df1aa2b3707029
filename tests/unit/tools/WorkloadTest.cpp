//===- WorkloadTest.cpp - Synthetic runs and what --verify sees -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs workloads through plain kernels: what is counted, what copy-on-write
// does, and that the verification finds a faulty kernel.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Workload.h"
#include "tests/conformance/PlainKernel.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace pagoda;
using conformance::Fault;
using conformance::PlainKernels;

namespace {

AttentionSpec smallSpec() {
  AttentionSpec spec;
  spec.qHeads = 4;
  spec.kvHeads = 2;
  spec.headDim = 16;
  spec.vHeadDim = 24;
  spec.scale = 0.25;
  return spec;
}

SyntheticOptions smallOptions() {
  SyntheticOptions options;
  options.seqs = 3;
  options.promptLen = 70;
  options.sharedPrefix = 37;
  options.decodeSteps = 5;
  options.chunk = 20;
  options.layers = 2;
  options.threads = 2;
  options.verify = true;
  return options;
}

TEST(Workload, CascadeVisitsASharedPrefixOnce) {
  AttentionSpec spec = smallSpec();
  PlainKernels kernels(spec);
  auto visits = [&](bool cascade) {
    EngineOptions options;
    options.blocks = 200;
    options.maxSequences = 9;
    options.maxTokens = 1024;
    options.cascade = cascade;
    Engine engine(spec, kernels.set(), options);
    SeqId prefix = engine.sequences().add();
    engine.append(prefix, 800);
    std::vector<SeqId> ids;
    for (int i = 0; i < 8; ++i) {
      ids.push_back(engine.sequences().fork(prefix));
      engine.append(ids.back(), 20);
    }
    engine.plan(ids, std::vector<int32_t>(ids.size(), 1));
    int64_t keys = 0;
    for (const pagoda_work_item &item : engine.currentPlan().items())
      keys += int64_t(item.kv_end - item.kv_begin) * item.head_count;
    return keys / spec.kvHeads;
  };
  EXPECT_EQ(visits(false), 8 * 820);
  EXPECT_EQ(visits(true), 800 + 8 * 20);

  SyntheticOptions options = smallOptions();
  options.cascade = true;
  options.seqs = 8;
  options.promptLen = 820;
  options.sharedPrefix = 800;
  RunResult result = runSynthetic(spec, kernels.set(), options);
  EXPECT_TRUE(result.comparison.ok()) << result.comparison.worst.text();
}

TEST(Workload, EveryElementIsVerified) {
  for (KvLayout layout : {KvLayout::HND, KvLayout::NHD})
    for (bool causal : {true, false}) {
      AttentionSpec spec = smallSpec();
      spec.layout = layout;
      spec.causal = causal;
      PlainKernels kernels(spec);
      RunResult result = runSynthetic(spec, kernels.set(), smallOptions());
      EXPECT_TRUE(result.comparison.ok()) << result.comparison.worst.text();
      // The prefix once, the rest of the prompts and the decoded tokens of each
      // sequence; v_head_dim values and one lse per row, head and layer.
      int64_t tokens = 37 + 3 * (70 - 37 + 5);
      EXPECT_EQ(result.comparison.elements, tokens * 4 * (24 + 1) * 2);
      ASSERT_EQ(result.phases.size(), 2u);
      EXPECT_EQ(result.phases[0].tokens + result.phases[1].tokens, tokens);
      // 37 is not a multiple of 16: each but the last owner of the block at the
      // fork must copy it before writing.
      EXPECT_EQ(result.copiedBlocks, 2);
    }
}

TEST(Workload, SharedBlocksAreCountedOnce) {
  AttentionSpec spec = smallSpec();
  PlainKernels kernels(spec);
  SyntheticOptions options = smallOptions();
  options.sharedPrefix = 64;
  options.promptLen = 80;
  options.decodeSteps = 0;
  options.verify = false;
  RunResult shared = runSynthetic(spec, kernels.set(), options);
  EXPECT_EQ(shared.peakBlocks, 4 + 3 * 1);
  EXPECT_EQ(shared.copiedBlocks, 0);
  options.sharedPrefix = 0;
  RunResult separate = runSynthetic(spec, kernels.set(), options);
  EXPECT_EQ(separate.peakBlocks, 3 * 5);
}

TEST(Workload, FaultyKernelsAreFound) {
  for (Fault fault :
       {Fault::TailKeys, Fault::CausalOffByOne, Fault::StartAligned,
        Fault::HeadMap, Fault::LostLastRow, Fault::Log2Lse,
        Fault::LseNotWritten, Fault::IdentityTable}) {
    AttentionSpec spec = smallSpec();
    // A causal mask hides keys past the end: the last query does not see them.
    spec.causal = fault != Fault::TailKeys;
    PlainKernels kernels(spec, fault);
    RunResult result = runSynthetic(spec, kernels.set(), smallOptions());
    EXPECT_FALSE(result.comparison.ok()) << "fault " << int(fault);
    EXPECT_FALSE(result.worstWhere.empty());
  }
}

TEST(Workload, CountsVisiblePairsAndBytes) {
  AttentionSpec spec = smallSpec(); // 40 dims of k and v, 4 q, 2 kv heads
  Phase phase;
  phase.add(spec, 3, 5, 1); // 3 + 4 + 5 pairs, 5 keys
  EXPECT_EQ(phase.flops, 2 * 40 * 12 * 4);
  EXPECT_EQ(phase.bytes, 40 * 5 * 2 * 4);
  spec.window = 2;
  phase = Phase();
  phase.add(spec, 3, 5, 2); // 2 + 2 + 2 pairs, keys 1 to 4
  EXPECT_EQ(phase.flops, 2 * 40 * 6 * 4 * 2);
  EXPECT_EQ(phase.bytes, 40 * 4 * 2 * 4 * 2);
  spec.window = std::nullopt;
  spec.causal = false;
  phase = Phase();
  phase.add(spec, 3, 5, 1);
  EXPECT_EQ(phase.flops, 2 * 40 * 15 * 4);
}

TEST(Workload, TensorsRunAndVerify) {
  AttentionSpec spec = smallSpec();
  PlainKernels kernels(spec);
  TensorCase input;
  input.shape = {"a test", 4, 2, 16, 24};
  input.qStarts = {0, 1, 1, 4};
  input.kvStarts = {0, 20, 25, 30};
  auto fill = [](std::vector<float> &values, int64_t count, float step) {
    for (int64_t i = 0; i < count; ++i)
      values.push_back(std::sin(step * float(i)));
  };
  fill(input.q, 4 * 4 * 16, 0.7f);
  fill(input.k, 30 * 2 * 16, 1.3f);
  fill(input.v, 30 * 2 * 24, 0.1f);
  TensorResult result =
      runTensors(spec, kernels.set(), input, 2, 1, /*verify=*/true);
  EXPECT_TRUE(result.comparison.ok()) << result.comparison.worst.text();
  EXPECT_EQ(result.comparison.elements, 4 * 4 * (24 + 1));
  PlainKernels faulty(spec, Fault::HeadMap);
  EXPECT_FALSE(
      runTensors(spec, faulty.set(), input, 1, 1, true).comparison.ok());
}

} // namespace
