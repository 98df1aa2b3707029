//===- ExportTest.cpp - From an export to the record of its results -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Candidates for a GPU are exported, measured by the runner's own code with the
// emulator in the GPU's place, and imported; then gen, explain and run make the
// kernel that won. The emulator says what is right; what is fast is made up.
//
//===----------------------------------------------------------------------===//

#include "CliTesting.h"
#include "compiler/tune/Database.h"
#include "runtime/emulator/Emulator.h"
#include "tools/pagoda/DeviceExport.h"
#include "tools/pagoda/ScheduleBench.h"
#include "tools/tune-runner/Candidates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>
#include <map>

using namespace llvm;
using namespace pagoda;
using namespace pagoda::test;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr const char *shape =
    "--target sm_80 --heads 2 --kv-heads 1 --head-dim 16 --dtype f16 ";

AttentionSpec specification() {
  AttentionSpec spec;
  spec.qHeads = 2;
  spec.kvHeads = 1;
  spec.headDim = spec.vHeadDim = 16;
  spec.scale = 0.25;
  spec.qType = spec.kvType = DType::F16;
  return spec;
}

/// Runs emulated twins of the exported kernels.
class EmulatedGpu : public device::MeasuredDevice {
public:
  EmulatedGpu(const Machine &machine, const AttentionSpec &spec,
              ArrayRef<ExportedContest> contests) {
    std::map<std::string, std::vector<Schedule>> files;
    for (const ExportedContest &contest : contests)
      for (const ExportedCandidate &candidate : contest.candidates) {
        files[candidate.file].push_back(
            cantFail(parseSchedule(candidate.schedule)));
        schedules[candidate.file + candidate.kernel] = candidate.schedule;
      }
    CompileOptions options;
    options.machine = machine;
    options.emulate = true;
    for (auto &[file, inFile] : files) {
      options.settled = {{machine.name, spec.name, inFile}};
      libraries[file] = cantFail(JitLibrary::compile({spec}, options));
    }
  }
  ~EmulatedGpu() override {
    for (auto &[memory, bytes] : memories)
      std::free(memory);
  }

  /// The candidate that is twice as fast as the others, and the one that does
  /// nothing, which is faster still.
  std::string fast, broken;

  std::string name() const override { return "the emulator"; }
  int capability() const override { return 80; }
  void *allocate(size_t bytes) override {
    void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    memories[memory] = bytes;
    return memory;
  }
  void release(void *memory) override {
    memories.erase(memory);
    std::free(memory);
  }
  void upload(void *to, const void *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void *to, const void *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  size_t load(const std::string &path,
              const device::KernelLaunch &kernel) override {
    std::string file = sys::path::filename(path).str();
    if (!sys::fs::exists(path))
      throw std::runtime_error(path + ": cannot be read");
    const pagoda_library_info &info = *libraries.at(file)->info();
    for (uint32_t i = 0; i < info.kernel_count; ++i)
      if (kernel.kernel == info.kernels[i].name) {
        kernels.push_back(
            {kernel, info.kernels[i].entry, schedules[file + kernel.kernel]});
        return kernels.size() - 1;
      }
    throw std::runtime_error(file + " has no kernel " + kernel.kernel);
  }
  void run(size_t kernel, int64_t blocks,
           const pagoda_attention_args &args) override {
    const Loaded &loaded = kernels[kernel];
    if (!broken.empty() && loaded.schedule == broken)
      return;
    emulator::Launch launch;
    launch.kernel = reinterpret_cast<emulator::ThreadFunction>(
        reinterpret_cast<void *>(loaded.entry));
    launch.args = &args;
    launch.gridSize = int(blocks);
    launch.threads = loaded.launch.threads;
    launch.sharedBytes = loaded.launch.sharedBytes;
    for (auto &[memory, bytes] : memories)
      launch.buffers.push_back({"memory", memory, bytes, true});
    emulator::Result result = emulator::run(launch);
    if (!result.ok())
      throw std::runtime_error(result.fault);
  }
  double time(size_t kernel, int64_t, const pagoda_attention_args &,
              int) override {
    const std::string &schedule = kernels[kernel].schedule;
    return schedule == broken ? 1e-6 : schedule == fast ? 1e-5 : 2e-5;
  }

private:
  struct Loaded {
    device::KernelLaunch launch;
    pagoda_kernel_fn entry;
    std::string schedule; ///< empty: the merge kernel
  };
  std::map<std::string, std::unique_ptr<JitLibrary>> libraries;
  std::map<std::string, std::string> schedules;
  std::map<void *, size_t> memories;
  std::vector<Loaded> kernels;
};

class ExportTest : public ::testing::Test {
protected:
  ExportTest() {
    (void)sys::fs::createUniqueDirectory("pagoda-export", folder);
    db = (" --db " + folder + "/tune.db").str();
    results = (folder + "/results.json").str();
  }
  ~ExportTest() override { sys::fs::remove_directories(folder); }

  void write(const std::string &text) { std::ofstream(results) << text; }
  std::string import() { return "tune --import " + results + db; }

  SmallString<128> folder;
  std::string db, results;
};

} // namespace

TEST_F(ExportTest, FromExportToRecord) {
  Machine machine = cantFail(Machine::named("sm_80"));
  AttentionSpec spec = specification();
  DeviceExportOptions options;
  options.folder = folder.str().str();
  options.candidates = 3;
  machine.cores = 5; // the plan splits keys, so that there is a merge
  StepShape prefill, decode;
  prefill.qLen = 40;
  prefill.kvLen = 75;
  decode.batch = decode.sequences = 2;
  decode.kvLen = 300;
  std::vector<ExportedContest> contests;
  for (auto [variant, step] : {std::pair{Variant::Prefill, prefill},
                               std::pair{Variant::Decode, decode}})
    contests.push_back(
        cantFail(exportContest(spec, variant, machine, step, options)));
  for (const ExportedContest &contest : contests)
    ASSERT_EQ(contest.candidates.size(), 3u);

  EmulatedGpu gpu(machine, spec, contests);
  gpu.fast = contests[1].candidates[2].schedule;
  gpu.broken = contests[1].candidates[1].schedule;
  std::string said;
  std::string text = device::measureCandidates(
      folder.str().str(), gpu,
      [&](const std::string &line) { said += line + "\n"; });
  EXPECT_THAT(said,
              HasSubstr("attention decode: " + gpu.broken + ": element "));
  EXPECT_THAT(said, HasSubstr("attention decode: " + gpu.fast + ": "));
  EXPECT_THAT(said, HasSubstr(" elements right"));
  write(text);

  Outcome imported = pagodaTool(import());
  EXPECT_EQ(imported.code, 0) << imported.out;
  EXPECT_THAT(imported.out,
              HasSubstr("warning: " + results + ": decode: " + gpu.broken +
                        ": its output was wrong: element "));
  EXPECT_THAT(imported.out, HasSubstr("2.000 to 2.000"));
  EXPECT_THAT(imported.out, HasSubstr("the default stands"));
  EXPECT_THAT(imported.out, HasSubstr("2 x 1 of 300 tokens on the emulator"));

  // The record is what the other commands use, for this target and lengths like
  // those alone.
  std::string same = shape + db + " --context 300 ";
  Schedule won = cantFail(parseSchedule(gpu.fast));
  std::string tile = "kv_tile = " + std::to_string(won.kvTile);
  Outcome made = pagodaTool("gen -v " + same + "-o " + (folder + "/out").str());
  EXPECT_EQ(made.code, 0) << made.out;
  EXPECT_THAT(made.out, HasSubstr("2 of 2 schedules are from the tuning "
                                  "database"));
  EXPECT_THAT(made.out, HasSubstr("attention decode: tuned, 2.00 times as fast "
                                  "as the default"));
  EXPECT_THAT(made.out, HasSubstr(tile));
  EXPECT_THAT(pagodaTool("explain " + same).out,
              HasSubstr("attention_decode\n  order=split_kv,q_tile=" +
                        std::to_string(won.qTile) +
                        ",kv_tile=" + std::to_string(won.kvTile)));
  Outcome ran = pagodaTool("run --device emulator --verify --prompt-len 20 "
                           "--seqs 1 --shared-prefix 0 --decode-steps 1 " +
                           same);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("2 of 2 schedules are from the tuning "
                                 "database"));
  EXPECT_THAT(pagodaTool("explain --block-size 32 " + same).out,
              Not(HasSubstr("tuning database")));

  // With options, results must be for what they name.
  EXPECT_EQ(pagodaTool(import() + " --context 300 " + shape).code, 0);
  expectError(import() + " --block-size 32 " + shape,
              "--import " + results +
                  ": kernels[0]: spec: expected what the options ask for, got "
                  "decode (rows=1 kv<=1024) of q_heads=2");
}

TEST_F(ExportTest, TheCommandWritesAllThatARunNeeds) {
  std::string target = (folder + "/out").str();
  Outcome made =
      pagodaTool("tune --candidates 2 --export " + target + " " + shape);
  EXPECT_EQ(made.code, 0) << made.out;
  EXPECT_THAT(made.out, HasSubstr("attention prefill"));
  EXPECT_THAT(made.out, HasSubstr("attention decode"));
  for (const char *file :
       {"run", "manifest.json", "attention_decode.base",
        "attention_decode.000.case", "attention_prefill.001.case"})
    EXPECT_TRUE(sys::fs::exists(target + "/" + file)) << file;
  expectError("tune --export " + target + " " + shape,
              "--export " + target + ": expected an empty folder or none");
}

TEST_F(ExportTest, MistakesAreNamed) {
  std::string target = (folder + "/out").str();
  expectError("tune --export " + target + " --heads 2 --head-dim 16",
              "--export: expected an nvidia --target, got host");
  expectError("tune --export x --import y " + std::string(shape),
              "--export and --import: give one of them");
  expectError("tune --candidates 0 --export " + target + " " + shape,
              "--candidates 0: expected 1 or more");
  expectError("tune --import /no/such/file" + db,
              "--import /no/such/file: No such file");
  write("{}");
  expectError(import(), "--import " + results + ": expected the device");
  EXPECT_THROW(
      {
        Machine machine = cantFail(Machine::named("sm_80"));
        EmulatedGpu gpu(machine, specification(), {});
        device::measureCandidates(folder.str().str(), gpu,
                                  [](const std::string &) {});
      },
      std::runtime_error);
}
