//===- BenchTest.cpp - What bench measures, writes and compares -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows with times that the test makes up; kernels that write the cache, run
// many times over; schedules side by side. No time is asserted.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/SramFit.h"
#include "tools/pagoda/BenchReport.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace llvm;
using namespace pagoda;

namespace {

/// 40 samples about `share` of the limit.
BenchRow row(double share, uint64_t seed, double noise = 0.03) {
  BenchRow result;
  result.kernel = "full_attention prefill";
  result.spec = "16 q heads";
  result.step = "1 x 1024 of 1024 tokens";
  result.dtype = "f32";
  result.variant = "default";
  result.schedule = Schedule().str();
  result.limit = "256-bit FMA";
  result.flops = 1e9;
  result.bytes = 1e6;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(0, noise);
  for (int i = 0; i < 40; ++i) {
    result.shares.push_back(share * std::exp(draw(random)));
    result.seconds.push_back(0.01 / result.shares.back());
  }
  return result;
}

AttentionSpec spec(KvLayout layout = KvLayout::HND) {
  AttentionSpec spec;
  spec.qHeads = 4;
  spec.kvHeads = 2;
  spec.headDim = 24;
  spec.vHeadDim = 16;
  spec.layout = layout;
  spec.scale = 1 / std::sqrt(24.0);
  return spec;
}

struct File {
  SmallString<128> path;
  explicit File(StringRef contents) {
    int handle = 0;
    (void)sys::fs::createTemporaryFile("pagoda-bench", "json", handle, path);
    raw_fd_ostream(handle, true) << contents;
  }
  ~File() { sys::fs::remove(path); }
};

std::string refusal(StringRef contents) {
  File file(contents);
  return toString(readRows(file.path).takeError());
}

} // namespace

TEST(BenchRows, ReadBack) {
  std::vector<BenchRow> rows = {row(0.5, 1), row(0.7, 2)};
  rows[1].variant = "tuned";
  File file(
      formatv("{0}", json::Value(json::Object{{"rows", toJson(rows)}})).str());
  Expected<std::vector<BenchRow>> read = readRows(file.path);
  ASSERT_TRUE(bool(read));
  ASSERT_EQ(read->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*read)[i].kernel, rows[i].kernel);
    EXPECT_EQ((*read)[i].step, rows[i].step);
    EXPECT_EQ((*read)[i].variant, rows[i].variant);
    EXPECT_EQ((*read)[i].seconds, rows[i].seconds);
    EXPECT_EQ((*read)[i].shares, rows[i].shares);
  }
  // The same samples are no change.
  for (const RowChange &change : compareRows(*read, rows)) {
    EXPECT_DOUBLE_EQ(change.change.median, 1);
    EXPECT_FALSE(change.slower() || change.faster());
  }
}

TEST(BenchRows, OtherFilesAreRefused) {
  EXPECT_TRUE(StringRef(refusal("")).contains("pagoda-bench"));
  EXPECT_TRUE(
      StringRef(refusal("[]")).contains("expected an object with rows"));
  EXPECT_TRUE(
      StringRef(refusal("{\"rows\": [{}]}")).contains("row 0: expected"));
  json::Array rows = toJson({row(0.5, 1)});
  (*rows[0].getAsObject())["shares"] = json::Array{0.5, -1};
  EXPECT_TRUE(StringRef(refusal(formatv("{0}", json::Value(json::Object{
                                                   {"rows", std::move(rows)}}))
                                    .str()))
                  .contains("row 0: expected"));
  EXPECT_TRUE(StringRef(toString(readRows("/no/such/file").takeError()))
                  .contains("/no/such/file"));
}

TEST(BenchCompare, SaysWhatTheSamplesSay) {
  auto verdict = [](double then, double now, double noise = 0.03) {
    RowChange change =
        compareRows({row(then, 1, noise)}, {row(now, 2, noise)}).front();
    return change.slower() ? -1 : change.faster() ? 1 : 0;
  };
  EXPECT_EQ(verdict(0.6, 0.6), 0);
  EXPECT_EQ(verdict(0.6, 0.48), -1);
  EXPECT_EQ(verdict(0.48, 0.6), 1);
  EXPECT_EQ(verdict(0.6, 0.585), 0);     // within what two runs differ by
  EXPECT_EQ(verdict(0.6, 0.55, 0.5), 0); // lost in the noise
}

TEST(BenchCompare, OnlyRowsOfTheSameThing) {
  BenchRow base = row(0.6, 1);
  EXPECT_EQ(compareRows({base}, {base}).size(), 1u);
  for (auto field : {&BenchRow::kernel, &BenchRow::spec, &BenchRow::step,
                     &BenchRow::dtype, &BenchRow::variant}) {
    BenchRow other = base;
    other.*field += "x";
    EXPECT_TRUE(compareRows({base}, {other}).empty());
  }
}

TEST(KernelLimits, FollowTheInstruction) {
  using limits::Arithmetic;
  Schedule plain, pairs;
  plain.pack = 1;
  pairs.pack = 2;
  auto named = [](const char *name) {
    return cantFail(Machine::named(name)).cpuFeatures;
  };
  EXPECT_EQ(arithmeticOf(named("neon"), plain), Arithmetic::Fma128);
  EXPECT_EQ(arithmeticOf(named("x86-64-v3"), plain), Arithmetic::Fma256);
  EXPECT_EQ(arithmeticOf(named("x86-64-v4"), plain), Arithmetic::Fma512);
  EXPECT_EQ(arithmeticOf(named("avx512-bf16"), plain), Arithmetic::Fma512);
  EXPECT_EQ(arithmeticOf(named("avx512-bf16"), pairs), Arithmetic::Bf16Pairs);
  // Where the instruction is expanded, each pair is two products.
  EXPECT_EQ(arithmeticOf(named("x86-64-v4"), pairs), Arithmetic::Fma512);

  // A kernel of a library says it in the text of its attribute.
  pagoda_kernel_info decode{}, prefill{};
  decode.max_rows = 1;
  decode.schedule = "#pagoda.schedule<order = split_kv, q_tile = 2>";
  prefill.max_rows = 192;
  prefill.schedule = "#pagoda.schedule<order = q_outer, pack = 2>";
  decode.cpu_features = prefill.cpu_features = named("avx512-bf16");
  KernelSet kernels;
  kernels.attention = {&decode, &prefill};
  EXPECT_EQ(arithmeticOf(kernelFor(kernels, 1)), Arithmetic::Fma512);
  EXPECT_EQ(arithmeticOf(kernelFor(kernels, 2)), Arithmetic::Bf16Pairs);
  EXPECT_EQ(arithmeticOf(kernelFor(kernels, 500)), Arithmetic::Bf16Pairs);
}

TEST(KernelLimits, RowsOfOneLimitShareItsSamples) {
  std::vector<BenchRow> rows(3);
  rows[0].limit = rows[2].limit = "512-bit FMA";
  rows[1].limit = "bf16 pairs";
  int asked[3] = {};
  sampleRows(
      rows, 0, 100,
      [&](size_t i) {
        ++asked[i];
        return i == 1 ? 200.0 : 100.0;
      },
      [](size_t) { return 2.0; });
  EXPECT_EQ(asked[0], int(rows[0].shares.size()));
  EXPECT_EQ(asked[1], asked[0]);
  EXPECT_EQ(asked[2], 0);
  EXPECT_DOUBLE_EQ(rows[0].shares.front(), 0.5);
  EXPECT_DOUBLE_EQ(rows[1].shares.front(), 0.25);
  EXPECT_DOUBLE_EQ(rows[2].shares.front(), 0.5);
}

// What this machine has can be measured; the rest is 0.
TEST(KernelLimits, PeaksAreOfThisMachine) {
  using limits::Arithmetic;
  for (Arithmetic each : {Arithmetic::Fma128, Arithmetic::Fma256,
                          Arithmetic::Fma512, Arithmetic::Bf16Pairs})
    EXPECT_EQ(limits::peak(each, 1, 0.001, limits::Timer::ThreadCpu, 1) > 0,
              limits::has(each))
        << nameOf(each);
  EXPECT_TRUE(limits::has(limits::widestFma()));
}

// CASES.md H1: run again and again, a kernel that writes its inputs leaves the
// cache as one run does. Tokens that fill no whole block, and heads and rows
// with gaps between them.
TEST(BenchRows, CacheWritesLeaveWhatOneRunLeaves) {
  for (KvLayout layout : {KvLayout::HND, KvLayout::NHD}) {
    Expected<std::vector<BenchRow>> rows = benchCacheWrites(
        spec(layout), Machine::host(), {PAGODA_ROLE_APPEND, PAGODA_ROLE_COPY},
        /*tokens=*/37, /*threads=*/2, 0);
    ASSERT_TRUE(bool(rows)) << toString(rows.takeError());
    ASSERT_EQ(rows->size(), 2u);
    for (const BenchRow &row : *rows) {
      EXPECT_EQ(row.wrong, "") << row.kernel;
      EXPECT_GE(row.seconds.size(), 9u);
      EXPECT_EQ(row.bytes, 2. * 37 * 2 * (24 + 16) * 4);
    }
  }
}

// Other people's code has a row beside ours if it does the step, and does it
// right; else a line that says why not.
TEST(BenchRows, PeersThatAreRight) {
  auto product = [](float factor) {
    return [=](bool transposeB, int64_t m, int64_t n, int64_t k, float alpha,
               const void *left, int64_t lda, const void *right, int64_t ldb,
               float beta, float *c, int64_t ldc) {
      auto *a = static_cast<const float *>(left);
      auto *b = static_cast<const float *>(right);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          float sum = 0;
          for (int64_t x = 0; x < k; ++x)
            sum +=
                a[i * lda + x] * (transposeB ? b[j * ldb + x] : b[x * ldb + j]);
          c[i * ldc + j] =
              (beta == 0 ? 0 : beta * c[i * ldc + j]) + factor * alpha * sum;
        }
    };
  };
  peers::Peers peers;
  for (float factor : {1.f, 1.01f}) {
    peers::Sgemm sgemm;
    sgemm.name = factor == 1 ? "right" : "wrong";
    sgemm.version = "1.0";
    sgemm.multiply = product(factor);
    peers.present.push_back(
        std::make_shared<peers::SgemmAttention>(sgemm, /*threads=*/2));
  }
  Machine host = Machine::host();
  StepShape step;
  step.kvLen = 90;
  step.sequences = 3;
  step.threads = 2;
  AttentionSpec shape = spec();
  shape.name = "layer";
  auto rows = [&] {
    Schedule standard =
        cantFail(selectTile(host, shape, Variant::Decode)).schedule;
    return cantFail(benchAttention(shape, Variant::Decode, host, step,
                                   {{"default", standard}}, 0, &peers));
  };
  std::vector<BenchRow> measured = rows();
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_FALSE(measured[0].peer);
  EXPECT_TRUE(measured[1].peer);
  EXPECT_EQ(measured[1].variant, "right");
  EXPECT_EQ(measured[1].schedule, "1.0");
  EXPECT_EQ(measured[1].seconds.size(), measured[0].seconds.size());
  EXPECT_TRUE(measured[1].speedup.has_value());
  ASSERT_EQ(peers.missing.size(), 1u);
  EXPECT_TRUE(StringRef(peers.missing[0])
                  .starts_with("wrong, layer: wrong output: seq"))
      << peers.missing[0];
  // A change of theirs is none of ours.
  EXPECT_EQ(compareRows(measured, measured).size(), 1u);

  shape.window = 40;
  EXPECT_EQ(rows().size(), 1u);
  EXPECT_EQ(peers.missing[1],
            "right, layer: has causal and full attention only");
}

TEST(ScheduleBench, SchedulesSideBySide) {
  AttentionSpec shape = spec();
  shape.sinks = true;
  shape.window = 40;
  shape.alibiSlopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  for (Variant variant : {Variant::Prefill, Variant::Decode}) {
    Machine host = Machine::host();
    Schedule standard = cantFail(selectTile(host, shape, variant)).schedule;
    Schedule other = standard, impossible = standard;
    other.kvTile = 32;
    impossible.qTile = 1; // holds no token's two heads
    StepShape step;
    step.qLen = variant == Variant::Prefill ? 70 : 1;
    step.kvLen = 90;
    step.batch = 2;
    step.sequences = 6;
    step.threads = 2;
    auto bench =
        cantFail(ScheduleBench::create(shape, variant, host, standard, step));
    EXPECT_EQ(bench->prepare({other, impossible, standard}),
              (std::vector<bool>{true, false, true}));
    for (bool first : {true, false})
      EXPECT_GT(bench->sample(other, first), 0);
    for (const Schedule &schedule : {standard, other}) {
      reference::Comparison checked = bench->verify(schedule);
      EXPECT_TRUE(checked.ok()) << checked.worst.text();
      EXPECT_GT(checked.elements, 10000);
    }
  }
}

// The check of a step sees a wrong output: that of another step's queries.
TEST(ScheduleBench, AWrongOutputIsSeen) {
  AttentionSpec shape = spec();
  Machine host = Machine::host();
  StepShape step;
  step.kvLen = 64;
  step.sequences = 2;
  auto bench = cantFail(ScheduleBench::create(
      shape, Variant::Decode, host,
      cantFail(selectTile(host, shape, Variant::Decode)).schedule, step));
  Workbench &work = bench->bench();
  work.plan(0);
  work.run();
  EXPECT_TRUE(work.checkSampled(4).ok());
  work.plan(1); // not run
  EXPECT_FALSE(work.checkSampled(4).ok());
}
