//===- Run.cpp - pagoda run -----------------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles kernels in process, runs a workload through them and reports what
// was computed, how right and how fast it was, beside this machine's limits.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Commands.h"
#include "tools/pagoda/Describe.h"
#include "tools/pagoda/Emulation.h"
#include "tools/pagoda/KernelLimits.h"
#include "tools/pagoda/Records.h"
#include "tools/pagoda/Report.h"
#include "tools/pagoda/SpecOptions.h"
#include "tools/pagoda/Workload.h"

#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>
#include <optional>

using namespace llvm;

namespace pagoda {

cl::SubCommand &runCommand() {
  static cl::SubCommand command(
      "run", "Generate kernels in process and run them: synthetic prompts, or "
             "tensors from a file");
  return command;
}

namespace {

template <typename T> struct RunOpt : cl::opt<T> {
  template <typename... Mods>
  explicit RunOpt(StringRef name, const char *help, const Mods &...mods)
      : cl::opt<T>(name, cl::desc(help), cl::sub(runCommand()),
                   cl::cat(optionCategory()), mods...) {}
};

RunOpt<int64_t> seqsOpt("seqs", "Sequences (default 4)", cl::value_desc("n"),
                        cl::init(4));
RunOpt<int64_t> promptOpt("prompt-len",
                          "Tokens of each prompt, the shared prefix included "
                          "(default 512)",
                          cl::value_desc("n"), cl::init(512));
RunOpt<int64_t> prefixOpt("shared-prefix",
                          "Tokens that all prompts begin with (default 0)",
                          cl::value_desc("n"), cl::init(0));
RunOpt<int64_t> decodeOpt("decode-steps",
                          "Tokens each sequence decodes (default 8)",
                          cl::value_desc("n"), cl::init(8));
RunOpt<int64_t> chunkOpt("chunk",
                         "Prompt tokens of one sequence per step (default 256)",
                         cl::value_desc("n"), cl::init(256));
RunOpt<bool> cascadeOpt("cascade",
                        "Attend to a prefix that sequences share once for all "
                        "of them");
RunOpt<int64_t> layersOpt("layers",
                          "Layers to simulate, each with its own K and V "
                          "(default 1)",
                          cl::value_desc("n"), cl::init(1));
RunOpt<uint64_t> seedOpt("seed", "Seed of tokens and of the block order",
                         cl::value_desc("n"), cl::init(1));
RunOpt<int64_t> threadsOpt("threads", "Threads (default: one per CPU)",
                           cl::value_desc("n"), cl::init(0));
RunOpt<std::string>
    deviceOpt("device",
              "Where kernels run: cpu (default), or emulator, which runs those "
              "of an NVIDIA target on the CPU, thread by thread: for answers, "
              "not times; 2 sequences of 80 tokens, 3 decode steps, chunks of "
              "48 unless said otherwise",
              cl::value_desc("cpu|emulator"), cl::init("cpu"));
RunOpt<bool> verifyOpt("verify",
                       "Compare every output element with the f64 reference");
RunOpt<std::string> inputOpt("input",
                             "Tensors to run instead of synthetic prompts: q, "
                             "k, v, cu_seqlens_q, cu_seqlens_k",
                             cl::value_desc("file.safetensors"));
RunOpt<std::string> outputOpt("output", "Where to write o and lse",
                              cl::value_desc("file.safetensors"));
RunOpt<std::string> auxOpt("aux",
                           "Tensors that --mods reads, by name (default: the "
                           "file of --input)",
                           cl::value_desc("file.safetensors"));
RunOpt<bool> jsonOpt("json", "Report as JSON");
RunOpt<bool> verboseOpt("v", "Print schedules and the compiler's phases");

/// One kind of kernel, run.
struct KindReport {
  AttentionSpec spec;
  int64_t modelLayers = 1;
  limits::Arithmetic arithmetic = {}; ///< of prompts
  RunResult result;
};

struct Report {
  std::vector<KindReport> kinds;
  std::vector<KernelSummary> kernels;
  PhaseTimings timings;
  double compileMs = 0;
  int threads = 1;
  MachineLimits limits; ///< measured in this run
};

llvm::Error checkRange(const RunOpt<int64_t> &option, int64_t lowest,
                       int64_t highest) {
  if (option >= lowest && option <= highest)
    return llvm::Error::success();
  return createStringError(formatv("--{0} {1}: expected a number from {2} to "
                                   "{3}",
                                   option.ArgStr, option.getValue(), lowest,
                                   highest));
}

bool emulates() { return deviceOpt == "emulator"; }

/// What the emulator does in a second.
void reduceDefaults() {
  for (auto [option, value] : {std::pair(&seqsOpt, 2),
                               {&promptOpt, 80},
                               {&decodeOpt, 3},
                               {&chunkOpt, 48}})
    if (option->getNumOccurrences() == 0)
      option->setValue(value);
}

llvm::Error checkOptions() {
  const int64_t most = int64_t(1) << 30;
  struct {
    const RunOpt<int64_t> &option;
    int64_t lowest, highest;
  } const ranges[] = {{seqsOpt, 1, 1 << 20},         {promptOpt, 1, most},
                      {prefixOpt, 0, promptOpt - 1}, {decodeOpt, 0, most},
                      {chunkOpt, 1, most},           {layersOpt, 1, 1 << 16},
                      {threadsOpt, 0, 1024}};
  for (const auto &range : ranges)
    if (llvm::Error error =
            checkRange(range.option, range.lowest, range.highest))
      return error;
  if (!inputOpt.empty())
    for (const cl::Option *option : std::initializer_list<const cl::Option *>{
             &seqsOpt, &promptOpt, &prefixOpt, &decodeOpt, &chunkOpt,
             &layersOpt})
      if (option->getNumOccurrences())
        return createStringError("--" + option->ArgStr +
                                 ": not together with --input, which says it");
  if (cascadeOpt && !inputOpt.empty())
    return createStringError("--cascade: not together with --input, whose "
                             "sequences share no blocks");
  if (cascadeOpt && !prefixOpt)
    return createStringError("--cascade: expected --shared-prefix beside it");
  if (!outputOpt.empty() && inputOpt.empty())
    return createStringError("--output: expected --input beside it");
  return llvm::Error::success();
}

/// Tensors in a file belong to one kind of layer.
llvm::Error checkInput(const Specification &specification,
                       const TensorCase &input) {
  if (specification.specs.size() != 1)
    return createStringError(
        formatv("--input: the model has {0} kinds of attention layer, a file "
                "of tensors "
                "belongs to one: give its shape by options instead of --config",
                specification.specs.size()));
  const AttentionSpec &spec = specification.specs.front();
  if (spec.sinks || spec.prefixLm)
    return createStringError(
        "--input: " + Twine(spec.sinks ? "sinks" : "prefix lengths") +
        " are not read from files yet");
  return checkAgainst(spec, input.shape);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string percent(double part, double whole) {
  return formatv("{0:F0}%", whole > 0 ? 100 * part / whole : 0).str();
}

/// Seconds that all the model's layers of this kind would take.
double modelSeconds(const KindReport &kind, const Phase &phase) {
  return phase.planSeconds + phase.runSeconds * double(kind.modelLayers) /
                                 double(kind.result.layers);
}

/// Times on the emulator say nothing of a GPU's.
void printEmulatedPhases(raw_ostream &os, const Report &report) {
  Table table({"kernel", "phase", ">steps", ">tokens", ">s"});
  for (const KindReport &kind : report.kinds)
    for (const Phase &phase : kind.result.phases)
      table.row({kind.spec.name, phase.name, std::to_string(phase.steps),
                 std::to_string(phase.tokens), numberText(phase.runSeconds)});
  table.print(os);
}

void printPhases(raw_ostream &os, const Report &report) {
  Table table({"kernel", "phase", ">steps", ">tokens", ">ms", ">GFLOP/s",
               ">of peak", ">GB/s", ">of read", ">tokens/s"});
  for (const KindReport &kind : report.kinds)
    for (const Phase &phase : kind.result.phases) {
      double gflops = phase.flops / phase.runSeconds / 1e9;
      double gbs = phase.bytes / phase.runSeconds / 1e9;
      table.row({kind.spec.name, phase.name, std::to_string(phase.steps),
                 std::to_string(phase.tokens),
                 numberText(phase.runSeconds * 1e3), numberText(gflops),
                 percent(gflops, report.limits.gflops.at(kind.arithmetic)),
                 numberText(gbs), percent(gbs, report.limits.gbs),
                 numberText(double(phase.tokens) / modelSeconds(kind, phase))});
    }
  table.print(os);
}

/// Over all kinds, the comparison whose worst element is nearest its bound.
const KindReport *worstKind(const Report &report) {
  const KindReport *worst = nullptr;
  for (const KindReport &kind : report.kinds)
    if (kind.result.verified &&
        (!worst || kind.result.comparison.worst.ratio() >
                       worst->result.comparison.worst.ratio()))
      worst = &kind;
  return worst;
}

int64_t failures(const Report &report) {
  int64_t count = 0;
  for (const KindReport &kind : report.kinds)
    count += kind.result.comparison.failures;
  return count;
}

void printText(const Specification &specification, const Report &report) {
  raw_ostream &os = outs();
  if (specification.model)
    os << specification.model->modelType << ", " << specification.model->layers
       << " layers; ";
  os << (emulates() ? "emulated " : "machine ")
     << specification.compile.machine.name << ", " << report.threads
     << (report.threads == 1 ? " thread" : " threads")
     << "; kernels generated in " << numberText(report.compileMs) << " ms\n";
  for (const KindReport &kind : report.kinds) {
    const RunResult &result = kind.result;
    os << kind.spec.name << ": " << describe(kind.spec) << "; pool of "
       << result.blocks << " shuffled blocks, " << bytesText(result.poolBytes)
       << ", at most " << result.peakBlocks << " in use";
    if (result.copiedBlocks)
      os << ", " << result.copiedBlocks << " copied on write";
    os << '\n';
    if (cascadeOpt && !result.cascaded)
      os << "note: --cascade leaves out " << kind.spec.name
         << ": kernels with a window, chunks, a prefix or mods do not share\n";
  }
  os << '\n';
  printKernels(os, report.kernels);
  if (verboseOpt) {
    os << '\n';
    printSchedules(os, report.kernels);
    printTimings(os, report.timings);
  }
  os << '\n';
  emulates() ? printEmulatedPhases(os, report) : printPhases(os, report);
  int64_t layers = 0, simulated = 0;
  for (const KindReport &kind : report.kinds) {
    layers += kind.modelLayers;
    simulated += kind.result.layers;
  }
  os << '\n';
  if (!emulates()) {
    os << "limits measured in this run: ";
    for (auto [arithmetic, gflops] : report.limits.gflops)
      os << numberText(gflops) << " GFLOP/s (" << nameOf(arithmetic) << "), ";
    os << numberText(report.limits.gbs)
       << " GB/s (memory read; a pool in cache exceeds it)\n";
  }
  if (layers != 1 && !emulates())
    os << "tokens/s: attention of all the layers of its kind (" << layers
       << " in all, " << simulated << " simulated), nothing else\n";
  if (const KindReport *kind = worstKind(report)) {
    const reference::Comparison &comparison = kind->result.comparison;
    int64_t elements = 0;
    for (const KindReport &each : report.kinds)
      elements += each.result.comparison.elements;
    os << (failures(report) ? "WRONG: " : "verified: ")
       << elements - failures(report) << " of " << elements
       << " elements within their bounds\n"
       << "  largest error: " << comparison.largest.text() << '\n'
       << "  nearest its bound (" << formatv("{0:F3}", comparison.worst.ratio())
       << " of it): " << kind->result.worstWhere << ", "
       << comparison.worst.text() << '\n';
  } else {
    os << "not verified (--verify compares with the f64 reference)\n";
  }
}

json::Object elementJson(const reference::Element &element) {
  json::Object object{
      {"seq", element.seq},           {"token", element.token},
      {"head", element.head},         {"actual", element.actual},
      {"expected", element.expected}, {"error", element.error},
      {"bound", element.bound}};
  object[element.dim < 0 ? "lse" : "dim"] =
      element.dim < 0 ? json::Value(true) : json::Value(element.dim);
  for (const char *key : {"actual", "expected", "error", "bound"})
    if (std::optional<double> value = object.getNumber(key);
        value && !std::isfinite(*value)) // JSON has no such numbers
      object[key] = formatv("{0}", *value).str();
  return object;
}

void printJson(const Specification &specification, const Report &report) {
  json::Array kinds;
  for (const KindReport &kind : report.kinds) {
    json::Array phases;
    for (const Phase &phase : kind.result.phases)
      phases.push_back(
          json::Object{{"name", phase.name},
                       {"steps", phase.steps},
                       {"tokens", phase.tokens},
                       {"plan_seconds", phase.planSeconds},
                       {"run_seconds", phase.runSeconds},
                       {"gflops", phase.flops / phase.runSeconds / 1e9},
                       {"gb_per_second", phase.bytes / phase.runSeconds / 1e9},
                       {"tokens_per_second",
                        double(phase.tokens) / modelSeconds(kind, phase)}});
    json::Object object{{"spec", toJson(kind.spec)},
                        {"model_layers", kind.modelLayers},
                        {"layers", kind.result.layers},
                        {"blocks", kind.result.blocks},
                        {"peak_blocks", kind.result.peakBlocks},
                        {"copied_blocks", kind.result.copiedBlocks},
                        {"cascade", kind.result.cascaded},
                        {"pool_bytes", kind.result.poolBytes},
                        {"phases", std::move(phases)}};
    if (kind.result.verified) {
      const reference::Comparison &comparison = kind.result.comparison;
      object["verification"] =
          json::Object{{"elements", comparison.elements},
                       {"failures", comparison.failures},
                       {"worst", elementJson(comparison.worst)},
                       {"worst_where", kind.result.worstWhere},
                       {"largest_error", elementJson(comparison.largest)}};
    }
    kinds.push_back(std::move(object));
  }
  json::Object root{{"machine", specification.compile.machine.name},
                    {"threads", report.threads},
                    {"compile_ms", report.compileMs},
                    {"kernels", toJson(report.kernels)},
                    {"timings", toJson(report.timings)},
                    {"device", deviceOpt.getValue()},
                    {"runs", std::move(kinds)}};
  if (!emulates()) {
    json::Object gflops;
    for (auto [arithmetic, peak] : report.limits.gflops)
      gflops[nameOf(arithmetic)] = peak;
    root["limits"] = json::Object{{"gflops", std::move(gflops)},
                                  {"read_gb_per_second", report.limits.gbs}};
  }
  if (specification.model)
    root["model_type"] = specification.model->modelType;
  outs() << formatv("{0:2}\n", json::Value(std::move(root)));
}

} // namespace

llvm::Error run() {
  if (emulates())
    reduceDefaults();
  if (llvm::Error error = checkOptions())
    return error;
  std::optional<TensorCase> input;
  if (!inputOpt.empty()) {
    Expected<TensorCase> read = TensorCase::read(inputOpt);
    if (!read)
      return read.takeError();
    input = std::move(*read);
  }
  Expected<Specification> specification =
      readSpecification(input ? input->shape : KnownShape());
  if (!specification)
    return specification.takeError();
  if (llvm::Error error =
          checkDevice(deviceOpt, specification->compile.machine))
    return error;
  if (input)
    if (llvm::Error error = checkInput(*specification, *input))
      return error;

  std::unique_ptr<ModInputs> mods;
  if (const CompileOptions &compile = specification->compile;
      !compile.mods.empty()) {
    Expected<std::unique_ptr<ModInputs>> read = ModInputs::read(
        compile.mods, compile.modsFile, auxOpt.empty() ? inputOpt : auxOpt);
    if (!read)
      return read.takeError();
    mods = std::move(*read);
  } else if (!auxOpt.empty()) {
    return createStringError("--aux: expected --mods beside it");
  }

  if (llvm::Error error = useRecords(*specification))
    return error;
  Report report;
  auto start = std::chrono::steady_clock::now();
  specification->compile.emulate = emulates();
  std::unique_ptr<JitLibrary> code;
  auto attempt = [&](const Specification &s) {
    Expected<std::unique_ptr<JitLibrary>> made =
        JitLibrary::compile(s.specs, s.compile);
    if (made)
      code = std::move(*made);
    return made.takeError();
  };
  if (llvm::Error error = withRecords(*specification, attempt))
    return error;
  report.compileMs = std::chrono::duration<double, std::milli>(
                         std::chrono::steady_clock::now() - start)
                         .count();
  report.kernels = code->kernels();
  report.timings = code->timings();
  KernelLibrary library = KernelLibrary::wrap(code->info());
  report.threads = int(threadsOpt) ? int(threadsOpt) : ThreadPool(0).threads();
  std::unique_ptr<Device> device;
  if (emulates())
    device = emulatorDevice(report.threads, seedOpt);

  std::set<limits::Arithmetic> arithmetic;
  for (size_t i = 0; i < specification->specs.size(); ++i) {
    KindReport kind;
    kind.spec = specification->specs[i];
    kind.modelLayers = specification->layers[i];
    KernelSpec wanted = kernelSpecOf(kind.spec);
    if (mods) {
      wanted.features |= PAGODA_FEATURE_CUSTOM;
      wanted.modsHash = mods->hash();
    }
    KernelSet kernels = library.select(wanted);
    kind.arithmetic = arithmeticOf(*kernels.attention.back());
    arithmetic.insert(kind.arithmetic);
    if (input) {
      TensorResult result =
          runTensors(kind.spec, kernels, *input, report.threads, seedOpt,
                     verifyOpt, mods.get(), device.get());
      if (!outputOpt.empty())
        if (llvm::Error error = writeTensors(outputOpt, result, kind.spec))
          return error;
      kind.result = std::move(result);
    } else {
      SyntheticOptions options;
      options.seqs = seqsOpt;
      options.promptLen = promptOpt;
      options.sharedPrefix = prefixOpt;
      options.decodeSteps = decodeOpt;
      options.chunk = chunkOpt;
      options.layers = layersOpt;
      options.cascade = cascadeOpt;
      options.seed = seedOpt;
      options.threads = report.threads;
      options.verify = verifyOpt;
      options.mods = mods.get();
      options.device = device.get();
      kind.result = runSynthetic(kind.spec, kernels, options);
    }
    report.kinds.push_back(std::move(kind));
  }
  if (!emulates())
    report.limits = measureLimits(arithmetic, report.threads);

  if (jsonOpt)
    printJson(*specification, report);
  else
    printText(*specification, report);
  if (int64_t wrong = failures(report))
    return createStringError(formatv("{0} output elements differ from the "
                                     "reference by more than their bounds",
                                     wrong));
  return llvm::Error::success();
}

} // namespace pagoda
