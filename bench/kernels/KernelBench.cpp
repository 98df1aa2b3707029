//===- KernelBench.cpp - Attention kernels against the machine ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// pagoda-bench: prefill as a share of the peak of the instruction it multiplies
// with, decode as a share of the read bandwidth of the pool itself. Limit and
// kernel are measured in turns; the kernel's figure is the median of its steps.
// Output is checked in every configuration. One list of rows, and the few ways
// in which they are timed.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/PeerBench.h"
#include "bench/kernels/TableReporter.h"
#include "compiler/Driver.h"
#include "compiler/tune/Statistics.h"
#include "tools/pagoda/KernelLimits.h"
#include "tools/pagoda/Workbench.h"

#include "benchmark/benchmark.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>

using namespace pagoda;

namespace {

struct Settings {
  int threads = 1;
  double cacheGb = 1.1; ///< of decode, rotated
  bool peers = false;   ///< rows of other people's code, too
  std::string table;    ///< Markdown file to write
  limits::Timer timer = limits::Timer::Wall;
  CompileOptions compile;
};

/// One timed configuration.
struct Config {
  std::string name;
  AttentionSpec spec;
  StepShape shape;
};

/// f32, 16/8 heads, head dim 128, block 16, causal.
AttentionSpec defaultSpec(KvLayout layout) {
  AttentionSpec spec;
  spec.qHeads = 16;
  spec.kvHeads = 8;
  spec.headDim = spec.vHeadDim = 128;
  spec.blockSize = 16;
  spec.layout = layout;
  spec.scale = 1 / std::sqrt(128.0);
  return spec;
}

/// Kernels built in process, and a step for them.
struct Setup {
  Setup(const Config &config, const CompileOptions &options)
      : code(compiled(config, options)),
        kernels(KernelLibrary::wrap(code->info())
                    .select(kernelSpecOf(config.spec))),
        arithmetic(arithmeticOf(kernelFor(kernels, config.shape.qLen))),
        bench(config.spec, kernels, config.shape) {}

  static std::unique_ptr<JitLibrary> compiled(const Config &config,
                                              const CompileOptions &options) {
    llvm::Expected<std::unique_ptr<JitLibrary>> code =
        JitLibrary::compile({config.spec}, options);
    if (!code)
      throw std::runtime_error(llvm::toString(code.takeError()));
    return std::move(*code);
  }

  /// GFLOP/s of the instruction that the step's kernel multiplies with.
  double peak(const Settings &settings, double seconds) const {
    return limits::peak(arithmetic, bench.shape().threads, seconds,
                        settings.timer, /*samples=*/1);
  }

  std::unique_ptr<JitLibrary> code;
  KernelSet kernels;
  limits::Arithmetic arithmetic; ///< of the kernel of a step
  Workbench bench;
};

/// Times steps in turn over the configuration's sequences. `limit` samples the
/// machine, in units per second; `work` is the units of one step. Samples of
/// both take turns, about as long altogether, so that what the machine loses to
/// others hits both alike; what is reported is the median over pairs.
template <typename Limit>
void timeSteps(benchmark::State &state, Workbench &bench, limits::Timer timer,
               double work, int64_t sampledRows, Limit limit) {
  bench.plan(0); // warms code, plan and scratch, not the cache
  bench.run();
  std::vector<double> rates, ceilings, shares;
  double ceiling = 0, kernelSeconds = 0, limitSeconds = 0;
  int64_t index = 1;
  for (auto _ : state) {
    if (limitSeconds <= kernelSeconds) {
      double start = limits::now(timer);
      ceiling = limit();
      limitSeconds += limits::now(timer) - start;
      ceilings.push_back(ceiling);
    }
    bench.plan(index++); // a limit may plan steps of its own
    double start = limits::now(timer);
    bench.run();
    double elapsed = limits::now(timer) - start;
    kernelSeconds += elapsed;
    state.SetIterationTime(elapsed);
    rates.push_back(work / elapsed);
    shares.push_back(100 * rates.back() / ceiling);
  }
  state.counters["rate"] = median(rates) / 1e9;
  state.counters["limit"] = median(ceilings) / 1e9;
  state.counters["percent"] = median(shares);
  reference::Comparison checked = bench.checkSampled(sampledRows);
  if (!checked.ok() || checked.elements == 0)
    state.SkipWithError(("wrong output: " + checked.worst.text()).c_str());
}

std::string describe(const AttentionSpec &spec) {
  return std::to_string(spec.qHeads) + "/" + std::to_string(spec.kvHeads) +
         " heads, block " + std::to_string(spec.blockSize) +
         (spec.layout == KvLayout::HND ? " hnd" : " nhd");
}

void prefill(benchmark::State &state, const Config &config,
             const Settings &settings) {
  Setup setup(config, settings.compile);
  state.SetLabel("GFLOP/s; " + describe(config.spec) + ", of " +
                 nameOf(setup.arithmetic));
  timeSteps(state, setup.bench, settings.timer, setup.bench.flops(), 96,
            [&] { return 1e9 * setup.peak(settings, 0.1); });
}

void decode(benchmark::State &state, const Config &config,
            const Settings &settings) {
  Setup setup(config, settings.compile);
  char text[96];
  std::snprintf(text, sizeof(text), ", cache %.2f GB, %.0f%% in huge pages",
                double(setup.bench.pool().bytes()) / 1e9,
                100 * hugePageShare());
  state.SetLabel("GB/s; " + describe(config.spec) + text);
  const KvPool &pool = setup.bench.pool();
  std::vector<double> ofStreams;
  auto read = [&](int streams) {
    return 1e9 * limits::readBandwidth(pool.data(), pool.bytes(),
                                       config.shape.threads, 0, settings.timer,
                                       /*passes=*/1, streams);
  };
  timeSteps(state, setup.bench, settings.timer, setup.bench.bytes(), 16, [&] {
    ofStreams.push_back(read(4));
    return read(1);
  });
  // What the limit would be if memory were read as four streams.
  state.counters["four_streams"] = median(ofStreams) / 1e9;
}

/// A few queries over many keys: steps a second against the floor, the longer
/// of what the peak and the read bandwidth allow.
void between(benchmark::State &state, const Config &config,
             const Settings &settings) {
  Setup setup(config, settings.compile);
  state.SetLabel("steps/s; " + describe(config.spec) + ", of " +
                 nameOf(setup.arithmetic) + " and reads");
  const KvPool &pool = setup.bench.pool();
  timeSteps(state, setup.bench, settings.timer, 1e9, 16, [&] {
    double peak = 1e9 * setup.peak(settings, 0.05);
    double bandwidth =
        1e9 * limits::readBandwidth(pool.data(), pool.bytes(),
                                    config.shape.threads, 0, settings.timer,
                                    /*passes=*/1);
    return 1e9 / std::max(setup.bench.flops() / peak,
                          setup.bench.bytes() / bandwidth);
  });
}

/// Lengths of a batch: the same step against the sum of its sequences' own.
void mixed(benchmark::State &state, const Config &config,
           const Settings &settings) {
  Setup setup(config, settings.compile);
  Workbench &bench = setup.bench;
  state.SetLabel("steps/s; " + describe(config.spec));
  timeSteps(state, bench, settings.timer, 1e9, 64, [&] {
    double sum = 0;
    for (int64_t s = 0; s < config.shape.batch; ++s) {
      bench.planOne(s);
      double start = limits::now(settings.timer);
      bench.run();
      sum += limits::now(settings.timer) - start;
    }
    return 1e9 / sum;
  });
}

/// A shared prefix that is attended to once, against the longer of what prefill
/// of as many flops takes and what the read bandwidth allows.
void cascade(benchmark::State &state, const Config &config,
             const Settings &settings) {
  Setup setup(config, settings.compile);
  state.SetLabel("steps/s; " + describe(config.spec));
  Config prompt = config;
  prompt.shape = {2048, 2048};
  prompt.shape.threads = config.shape.threads;
  Setup prefill(prompt, settings.compile);
  const KvPool &pool = setup.bench.pool();
  timeSteps(state, setup.bench, settings.timer, 1e9, 64, [&] {
    prefill.bench.plan(0);
    double start = limits::now(settings.timer);
    prefill.bench.run();
    double rate = prefill.bench.flops() / (limits::now(settings.timer) - start);
    double bandwidth =
        1e9 * limits::readBandwidth(pool.data(), pool.bytes(),
                                    config.shape.threads, 0, settings.timer,
                                    /*passes=*/1);
    return 1e9 / std::max(setup.bench.flops() / rate,
                          setup.bench.bytes() / bandwidth);
  });
}

/// The type, head dim, tokens, block size if it is not 16, and layout.
std::string shortName(const AttentionSpec &spec, int64_t tokens) {
  std::string name = std::string(nameOf(spec.kvType)) +
                     "/d:" + std::to_string(spec.headDim) +
                     "/tokens:" + std::to_string(tokens);
  if (spec.blockSize != 16)
    name += "/block:" + std::to_string(spec.blockSize);
  return name + (spec.layout == KvLayout::HND ? "/hnd" : "/nhd");
}

/// Sequences of `tokens` tokens that fill the cache; decode takes them in turn.
int64_t rotated(const AttentionSpec &spec, int64_t tokens,
                const Settings &settings) {
  double bytes = double(tokens * spec.kvHeads) *
                 double((spec.headDim + spec.vHeadDim) * byteSize(spec.kvType));
  return std::max<int64_t>(int64_t(settings.cacheGb * 1e9 / bytes) + 1, 2);
}

void registerAll(const Settings &settings) {
  auto add = [&](Config config, auto function) {
    config.shape.threads = settings.threads;
    config.name += "/threads:" + std::to_string(settings.threads);
    benchmark::RegisterBenchmark(config.name.c_str(),
                                 [=](benchmark::State &state) {
                                   try {
                                     function(state, config, settings);
                                   } catch (const std::exception &error) {
                                     state.SkipWithError(error.what());
                                   }
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(1.5);
  };
  // The group where it is not that of most rows, 2.
  auto nameOf = [](const char *kernel, const AttentionSpec &spec,
                   int64_t tokens) {
    std::string name = kernel + shortName(spec, tokens);
    return spec.group() == 2 ? name
                             : name + "/group:" + std::to_string(spec.group());
  };
  auto addPrefill = [&](const AttentionSpec &spec, int64_t tokens) {
    add({nameOf("prefill/", spec, tokens), spec, {tokens, tokens}}, prefill);
  };
  auto addDecode = [&](const AttentionSpec &spec, int64_t tokens) {
    add({nameOf("decode/", spec, tokens),
         spec,
         {1, tokens, 1, rotated(spec, tokens, settings)}},
        decode);
  };
  for (DType type : {DType::F32, DType::BF16, DType::F16}) {
    for (KvLayout layout : {KvLayout::HND, KvLayout::NHD}) {
      AttentionSpec spec = defaultSpec(layout);
      spec.qType = spec.kvType = type;
      for (int64_t tokens : {512, 2048, 4096, 8192})
        addPrefill(spec, tokens);
      for (int64_t tokens : {1024, 4096, 16384, 32768})
        addDecode(spec, tokens);
      spec.qHeads = 32; // 8 KV heads
      addPrefill(spec, 2048);
      addDecode(spec, 16384);
    }
    // Short prompts, other head dims, large blocks.
    AttentionSpec spec = defaultSpec(KvLayout::HND);
    spec.qType = spec.kvType = type;
    for (int64_t tokens : {64, 128, 256})
      addPrefill(spec, tokens);
    for (int64_t dim : {64, 256}) {
      spec.headDim = spec.vHeadDim = dim;
      spec.scale = 1 / std::sqrt(double(dim));
      addPrefill(spec, 2048);
      addDecode(spec, 16384);
    }
    spec = defaultSpec(KvLayout::HND);
    spec.qType = spec.kvType = type;
    spec.blockSize = 256;
    addPrefill(spec, 2048);
    addDecode(spec, 16384);
  }
  // Speculated tokens, short chunks, large groups.
  for (auto [qHeads, kvHeads] : {std::pair<int64_t, int64_t>{16, 8}, {32, 4}})
    for (int64_t queries : {2, 4, 8, 16, 32}) {
      AttentionSpec spec = defaultSpec(KvLayout::HND);
      spec.qHeads = qHeads;
      spec.kvHeads = kvHeads;
      constexpr int64_t Tokens = 4096;
      add({"between/" + shortName(spec, Tokens) +
               "/group:" + std::to_string(spec.group()) +
               "/queries:" + std::to_string(queries),
           spec,
           {queries, Tokens, 1, 512 / (4 * kvHeads)}},
          between);
    }
  // A cache that stays in L3: the limit is what the pool reads at there.
  AttentionSpec plain = defaultSpec(KvLayout::HND);
  add({"decode/f32/d:128/tokens:1024/resident/hnd", plain, {1, 1024, 1, 1}},
      decode);
  // One new token each: lengths from 16 to 8k, and 32 sequences behind a
  // prefix.
  StepShape lengths;
  for (int64_t s = 0; s < 64; ++s)
    lengths.lengths.push_back(int64_t(16 * std::pow(512, double(s) / 63)));
  lengths.kvLen = lengths.lengths.back();
  lengths.batch = lengths.sequences = 64;
  add({"mixed/f32/d:128/lengths:16-8192/sequences:64/hnd", plain, lengths},
      mixed);
  StepShape behind;
  behind.sharedPrefix = 8192;
  behind.kvLen = 8192 + 16;
  behind.batch = behind.sequences = 32;
  add({"cascade/f32/d:128/prefix:8192/sequences:32/hnd", plain, behind},
      cascade);
  // What a mask saves, by the times of two rows. Windowed: a cache of 32k
  // tokens against one of 1k, as many sequences and visible bytes. Causal:
  // against the row above of the same tokens.
  constexpr int64_t Sequences = 5;
  AttentionSpec spec = defaultSpec(KvLayout::HND);
  add({"decode/f32/d:128/tokens:1024/sequences:5/hnd",
       spec,
       {1, 1024, 1, Sequences}},
      decode);
  spec.window = 1024;
  add({"decode/f32/d:128/tokens:32768/window:1024/sequences:5/hnd",
       spec,
       {1, 32768, 1, Sequences}},
      decode);
  spec.window.reset();
  spec.causal = false;
  add({"prefill/f32/d:128/tokens:2048/full/hnd", spec, {2048, 2048}}, prefill);
}

/// Blocks of 256 tokens hold a whole tile: the peer's view of dense tensors.
void registerPeerRows(const Settings &settings) {
  peers::Peers found = peers::findPeers(settings.threads);
  for (const std::string &reason : found.missing)
    std::cerr << "skipped " << reason << '\n';
  for (DType type : {DType::F32, DType::BF16})
    for (int64_t block : {16, 256}) {
      AttentionSpec spec = defaultSpec(KvLayout::HND);
      spec.qType = spec.kvType = type;
      spec.blockSize = block;
      auto add = [&](const char *step, StepShape shape) {
        shape.threads = settings.threads;
        registerPeers(found,
                      step + shortName(spec, shape.kvLen) +
                          "/threads:" + std::to_string(shape.threads),
                      describe(spec), spec, shape, settings.compile);
      };
      for (int64_t tokens : {512, 2048, 4096})
        add("prefill/", {tokens, tokens});
      for (int64_t tokens : {4096, 16384})
        add("decode/", {1, tokens, 1, rotated(spec, tokens, settings)});
    }
}

/// Takes "--name=value" or "--name value" at argv[i]; moves i past it.
std::optional<std::string> option(const char *name, int &i, int argc,
                                  char **argv) {
  size_t length = std::strlen(name);
  if (std::strncmp(argv[i], name, length))
    return std::nullopt;
  if (argv[i][length] == '=')
    return argv[i] + length + 1;
  if (argv[i][length] == 0 && i + 1 < argc)
    return argv[++i];
  return std::nullopt;
}

/// Reads our options and leaves the rest to Google Benchmark.
bool parse(int &argc, char **argv, Settings &settings) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (auto threads = option("--threads", i, argc, argv)) {
      settings.threads = std::atoi(threads->c_str());
    } else if (auto gb = option("--cache-gb", i, argc, argv)) {
      settings.cacheGb = std::atof(gb->c_str());
    } else if (auto table = option("--table", i, argc, argv)) {
      settings.table = *table;
    } else if (!std::strcmp(argv[i], "--peers")) {
      settings.peers = true;
    } else if (!std::strcmp(argv[i], "--cpu-time")) {
      settings.timer = limits::Timer::ThreadCpu;
    } else if (auto entry = option("--schedule", i, argc, argv)) {
      settings.compile.schedule.push_back(*entry);
    } else if (auto tokens = option("--decode-tokens", i, argc, argv)) {
      settings.compile.decodeTokens = std::atoi(tokens->c_str());
    } else if (auto name = option("--machine", i, argc, argv)) {
      llvm::Expected<Machine> machine = Machine::named(*name);
      if (!machine) {
        std::cerr << llvm::toString(machine.takeError()) << '\n';
        return false;
      }
      settings.compile.machine = *machine;
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  if (settings.threads < 1 || !(settings.cacheGb > 0)) {
    std::cerr << "--threads and --cache-gb: expected numbers greater than 0\n";
    return false;
  }
  if (settings.timer == limits::Timer::ThreadCpu && settings.threads != 1) {
    std::cerr << "--cpu-time: expected --threads=1\n";
    return false;
  }
  return true;
}

void printHelp() {
  std::cout << "pagoda-bench [--threads=N] [--cache-gb=X] [--table=FILE.md] "
               "[--cpu-time] [--peers] [--schedule=key=value]... "
               "[--decode-tokens=N] [--machine=NAME]\n"
               "  and the options of Google Benchmark:\n";
  benchmark::PrintDefaultHelp();
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  if (!parse(argc, argv, settings))
    return 2;
  benchmark::Initialize(&argc, argv, printHelp);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  registerAll(settings);
  if (settings.peers)
    registerPeerRows(settings);
  TableReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  if (!settings.table.empty() && !reporter.write(settings.table)) {
    std::cerr << settings.table << ": cannot be written\n";
    return 1;
  }
  return reporter.failures() ? 1 : 0;
}
