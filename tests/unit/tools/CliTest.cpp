//===- CliTest.cpp - The tool as its users meet it ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pagoda executable: exit codes and messages for mistakes, verified
// runs, the JSON report, tensors in and out, files of gen.
//
//===----------------------------------------------------------------------===//

#include "CliTesting.h"
#include "tools/pagoda/Safetensors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace llvm;
using namespace pagoda;
using namespace pagoda::test;

namespace {

/// A directory that goes away with the object.
struct Directory {
  SmallString<128> path;
  Directory() { (void)sys::fs::createUniqueDirectory("pagoda-cli", path); }
  ~Directory() { sys::fs::remove_directories(path); }
  std::string file(StringRef name) const { return (path + "/" + name).str(); }
};

TEST(Cli, Help) {
  Outcome top = pagodaTool("--help");
  EXPECT_EQ(top.code, 0);
  EXPECT_TRUE(StringRef(top.out).contains("gen "));
  Outcome run = pagodaTool("run --help");
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(StringRef(run.out).contains("--shared-prefix"));
  EXPECT_FALSE(StringRef(run.out).contains("--emit"));
  EXPECT_TRUE(StringRef(pagodaTool("gen --help").out).contains("--emit"));
  EXPECT_NE(pagodaTool("").code, 0);
  EXPECT_TRUE(StringRef(pagodaTool("--version").out).starts_with("pagoda 0."));
  // What a value is, not the type of a variable.
  for (const char *command :
       {"gen", "explain", "plan", "run", "tune", "bench"}) {
    Outcome help = pagodaTool(std::string(command) + " --help");
    for (const char *type : {"<long>", "<ulong>", "<number>", "<string>"})
      EXPECT_FALSE(StringRef(help.out).contains(type))
          << command << " " << type;
  }
}

TEST(Cli, MistakesAreNamed) {
  expectError("rnu --heads 1",
              "unknown subcommand 'rnu', known are gen, explain, plan, run, "
              "tune, bench");
  expectError("run --hed 3", "unknown option '--hed'; did you mean '--heads'?");
  expectError("run --head-dims 64 --heads 4",
              "unknown option '--head-dims'; did you mean '--head-dim'?");
  Outcome far = pagodaTool("run --bogus 3");
  EXPECT_TRUE(StringRef(far.out).ends_with("unknown option '--bogus'\n"))
      << far.out;
  expectError("run --heads many --head-dim 8",
              "error: --heads many: expected a whole number");
  expectError("plan --heads 4 --head-dim 8 --lengths 4,x",
              "error: --lengths 4,x: expected whole numbers between commas");
  expectError("gen --heads=99999999999999999999 -o x", "expected a whole");
  expectError("run --heads 4 --head-dim 8 --scale half",
              "error: --scale half: expected a number");
  expectError("gen --heads 4 --head-dim 8 -o", "error: -o: expected a value");
  expectError("run --heads 4 --head-dim", "--head-dim: expected a value");
  expectError("run --heads 4 8 --head-dim 8", "unexpected argument '8'");
  expectError("run --heads -4 --head-dim 8", "--heads -4: expected a number");
  expectError("run", "give --config, or --heads and --head-dim");
  expectError("run --heads 4 --kv-heads 3 --head-dim 8",
              "--kv-heads 3: expected a divisor of the 4 query heads");
  expectError("run --heads 0 --head-dim 8", "--heads 0: expected a number");
  expectError("run --heads 4 --head-dim 8 --block-size 257",
              "--block-size 257: expected a number from 1 to 256");
  expectError("run --heads 4 --head-dim 8 --layout hdn",
              "--layout hdn: expected hnd or nhd");
  expectError("run --heads 4 --head-dim 8 --causal --no-causal",
              "exclude each other");
  expectError("run --heads 4 --head-dim 8 --scale 0", "--scale 0");
  expectError("run --heads 4 --head-dim 8 --prompt-len 10 --shared-prefix 10",
              "--shared-prefix 10: expected a number from 0 to 9");
  expectError("run --heads 4 --head-dim 8 --target x87", "x87");
  expectError("run --heads 4 --head-dim 8 --schedule q_tlie=3", "q_tlie");
  expectError("run --config no/such.json", "no/such.json");
  expectError("run --config no/such.json --heads 3", "--heads");
  expectError("run --heads 4 --head-dim 8 --output x", "--input");
  expectError("run --heads 4 --head-dim 8 --cascade",
              "--cascade: expected --shared-prefix beside it");
  expectError("run --heads 4 --head-dim 8 --cascade --input x",
              "--cascade: not together with --input");
  expectError("run --heads 64 --head-dim 128 --seqs 1000 --prompt-len 1000000",
              "of keys and values is too large: this machine has ");
  expectError("bench --heads 4 --head-dim 8 --json no/such/folder/x",
              "no/such/folder/x: No such file or directory");
  expectError("gen --heads 4 --head-dim 8", "-o DIR");
  expectError("gen --heads 4 --head-dim 8 --emit=tield", "tield");
  expectError("gen --heads 4 --head-dim 8 --name 3x -o x", "--name '3x'");
  expectError("gen --heads 4 --head-dim 8 -o /dev/null",
              "error: /dev/null/attention.o: Not a directory");
}

TEST(Cli, SyntheticRunIsVerified) {
  std::string shape = "run --heads 4 --kv-heads 2 --head-dim 64 --seqs 3 "
                      "--prompt-len 90 --shared-prefix 41 --decode-steps 4 "
                      "--chunk 32 --layers 2 --verify --threads 2";
  Outcome outcome = pagodaTool(shape);
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  // (41 + 3 * (49 + 4)) tokens, 4 heads of 64 values and an lse, 2 layers.
  EXPECT_TRUE(
      StringRef(outcome.out).contains("verified: 104000 of 104000 elements"))
      << outcome.out;
}

TEST(Cli, CascadeSaysWhatItLeavesOut) {
  Outcome outcome = pagodaTool(
      "run --config " PAGODA_CONFIGS "/gpt-oss-20b.json --seqs 2 --prompt-len "
      "20 --shared-prefix 16 --decode-steps 0 --cascade --verify");
  EXPECT_EQ(outcome.code, 0);
  StringRef out = outcome.out;
  EXPECT_TRUE(out.contains("note: --cascade leaves out sliding_attention: "
                           "kernels with a window"))
      << outcome.out;
  EXPECT_FALSE(out.contains("leaves out full_attention")) << outcome.out;
}

TEST(Cli, JsonReport) {
  Outcome outcome = pagodaTool("run --heads 4 --head-dim 32 --seqs 2 "
                               "--prompt-len 40 --decode-steps 2 --verify "
                               "--threads 1 --no-causal --json",
                               false);
  EXPECT_EQ(outcome.code, 0);
  Expected<json::Value> report = json::parse(outcome.out);
  ASSERT_TRUE(bool(report)) << toString(report.takeError()) << outcome.out;
  const json::Object &root = *report->getAsObject();
  EXPECT_GT(root.getArray("kernels")->size(), 0u);
  const json::Object &run = *(*root.getArray("runs"))[0].getAsObject();
  EXPECT_EQ(run.getObject("verification")->getInteger("failures"), 0);
  EXPECT_EQ(run.getObject("verification")->getInteger("elements"),
            2 * (40 + 2) * 4 * (32 + 1));
}

StringRef bytesOf(const std::vector<float> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * 4};
}
StringRef bytesOf(const std::vector<int32_t> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * 4};
}

TEST(Cli, TensorsInAndOut) {
  // Two sequences, equal scores: o is the mean of the visible values.
  Directory directory;
  std::vector<float> q(3 * 2 * 8, 0), k(21 * 8, 1), v, kBad(20 * 8, 1);
  for (int t = 0; t < 21; ++t)
    v.insert(v.end(), 4, float(t));
  std::vector<int32_t> cuQ = {0, 2, 3}, cuK = {0, 3, 21}, cuBad = {0, 5, 20};
  auto write = [&](const std::string &name, StringRef kBytes, int64_t kRows,
                   const std::vector<int32_t> &starts) {
    return errorToBool(
        writeSafetensors(directory.file(name),
                         {{"q", {"F32", {3, 2, 8}, bytesOf(q)}},
                          {"k", {"F32", {kRows, 1, 8}, kBytes}},
                          {"v", {"F32", {21, 1, 4}, bytesOf(v)}},
                          {"cu_seqlens_q", {"I32", {3}, bytesOf(cuQ)}},
                          {"cu_seqlens_k", {"I32", {3}, bytesOf(starts)}}}));
  };
  ASSERT_FALSE(write("in", bytesOf(k), 21, cuK));
  Outcome outcome =
      pagodaTool("run --verify --input " + directory.file("in") + " --output " +
                 directory.file("out") + " --block-size 4");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  Expected<SafetensorsFile> out = SafetensorsFile::open(directory.file("out"));
  ASSERT_TRUE(bool(out)) << toString(out.takeError());
  std::vector<float> o = cantFail(out->floats("o", 3));
  std::vector<float> lse = cantFail(out->floats("lse", 2));
  ASSERT_EQ(o.size(), 3u * 2 * 4);
  // Causal, at the end: keys 0-1, keys 0-2, keys 3-20.
  const double means[] = {0.5, 1, 11.5}, counts[] = {2, 3, 18};
  for (int row = 0; row < 3; ++row)
    for (int head = 0; head < 2; ++head) {
      EXPECT_NEAR(lse[row * 2 + head], std::log(counts[row]), 1e-6);
      for (int d = 0; d < 4; ++d)
        EXPECT_NEAR(o[(row * 2 + head) * 4 + d], means[row], 1e-5);
    }

  ASSERT_FALSE(write("bad", bytesOf(k), 21, cuBad));
  expectError("run --input " + directory.file("bad"),
              "tensor 'cu_seqlens_k': ends with 20, expected the 21 rows");
  ASSERT_FALSE(write("short", bytesOf(kBad), 20, cuK));
  expectError("run --input " + directory.file("short"),
              "expected the same tokens and heads");
  expectError("run --heads 3 --input " + directory.file("in"),
              "--heads 3: expected 2 as in");
  expectError("run --seqs 3 --input " + directory.file("in"), "--seqs");
  expectError("run --input " + directory.file("none"), "No such file");
}

TEST(Cli, GenWritesFiles) {
  Directory directory;
  Outcome outcome =
      pagodaTool("gen --heads 4 --kv-heads 2 --head-dim 64 --name tiny "
                 "--timing -v -o " +
                 directory.file("kernels"));
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  for (const char *name : {"tiny.o", "libtiny.so", "tiny.h", "tiny.json"})
    EXPECT_TRUE(sys::fs::exists(directory.file("kernels/") + name)) << name;
  for (const char *stage : {"attention", "tiled", "target", "llvm", "asm"}) {
    Outcome text = pagodaTool(std::string("gen --heads 4 --head-dim 64 "
                                          "--emit=") +
                              stage);
    EXPECT_EQ(text.code, 0) << stage << text.out;
    EXPECT_GT(text.out.size(), 200u) << stage;
  }
  Outcome json = pagodaTool(
      "gen --json --heads 4 --head-dim 64 -o " + directory.file("json"), false);
  EXPECT_EQ(json.code, 0);
  Expected<json::Value> report = json::parse(json.out);
  ASSERT_TRUE(bool(report)) << toString(report.takeError());
  EXPECT_GT(report->getAsObject()->getArray("kernels")->size(), 0u);
  expectError("gen --heads 4 --head-dim 64 -o /dev/null/x", "/dev/null/x");
}

} // namespace
