//===- PairBench.cpp - Generated libraries side by side -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// pagoda-bench-pair: libraries that `pagoda gen` wrote, of two builds or of two
// schedules, run the same steps in turns in one process. Their ratio is that of
// neighbouring steps, so it stands where the times of two runs differ by more
// than what is asked. A library is checked before it is timed.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/ManifestSpec.h"
#include "compiler/emit/Emit.h"
#include "tools/pagoda/BenchReport.h"
#include "tools/pagoda/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace pagoda;

namespace {

struct Options {
  cl::OptionCategory category{"Options"}; // without one, help omits them
  cl::list<std::string> libraries{cl::Positional, cl::OneOrMore,
                                  cl::cat(category), cl::desc("library...")};
  cl::list<int64_t> prefill{"prefill", cl::cat(category),
                            cl::desc("Prompts of so many tokens"),
                            cl::value_desc("n,..."), cl::CommaSeparated};
  cl::list<int64_t> decode{"decode", cl::cat(category),
                           cl::desc("One new token, the last of so many"),
                           cl::value_desc("n,..."), cl::CommaSeparated};
  cl::opt<int64_t> batch{"batch", cl::cat(category),
                         cl::desc("Sequences of a step (1)"),
                         cl::value_desc("n"), cl::init(1)};
  cl::opt<int64_t> threads{
      "threads", cl::cat(category),
      cl::desc("Threads (1, which is timed by its CPU time)"),
      cl::value_desc("n"), cl::init(1)};
  cl::opt<std::string> spec{
      "spec", cl::cat(category),
      cl::desc("Which of the manifest's specifications (the first)"),
      cl::value_desc("name")};
  cl::opt<double> seconds{"seconds", cl::cat(category),
                          cl::desc("Time for each step (5)"),
                          cl::value_desc("s"), cl::init(5)};
  cl::opt<std::string> json{"json", cl::cat(category),
                            cl::desc("Write the table with every sample"),
                            cl::value_desc("file")};
};

struct Library {
  std::string path;
  KernelLibrary code;
  KernelSet kernels;
};

struct Step {
  Variant variant;
  StepShape shape;
};

/// Rows of a step, one a library, and how far each output is from the first's.
struct Measured {
  std::vector<BenchRow> rows;
  std::vector<double> differences;
};

llvm::Error expectRange(const char *option, int64_t value, int64_t most) {
  if (value >= 1 && value <= most)
    return llvm::Error::success();
  return createStringError(formatv("--{0} {1}: expected a number from 1 to {2}",
                                   option, value, most));
}

llvm::Error checkOptions(const Options &options) {
  constexpr int64_t mostTokens = 1 << 20, mostBatch = 4096, mostThreads = 1024;
  if (options.libraries.size() < 2)
    return createStringError("expected two libraries or more, got " +
                             Twine(options.libraries.size()));
  for (int64_t tokens : options.prefill)
    if (llvm::Error error = expectRange("prefill", tokens, mostTokens))
      return error;
  for (int64_t tokens : options.decode)
    if (llvm::Error error = expectRange("decode", tokens, mostTokens))
      return error;
  if (llvm::Error error = expectRange("batch", options.batch, mostBatch))
    return error;
  if (llvm::Error error = expectRange("threads", options.threads, mostThreads))
    return error;
  if (!(options.seconds > 0 && options.seconds <= 3600))
    return createStringError(
        formatv("--seconds {0}: expected a number above 0, at most 3600",
                options.seconds.getValue()));
  return llvm::Error::success();
}

/// What the libraries are run as: the values of the first one's manifest.
Expected<AttentionSpec> readSpec(const Options &options) {
  std::string path = manifestPath(options.libraries.front());
  Expected<std::vector<AttentionSpec>> specs = readManifestSpecs(path);
  if (!specs)
    return specs.takeError();
  if (options.spec.empty())
    return specs->front();
  std::string known;
  for (AttentionSpec &spec : *specs) {
    if (spec.name == options.spec)
      return std::move(spec);
    known += (known.empty() ? "" : ", ") + spec.name;
  }
  return createStringError("--spec " + options.spec + ": " + path + " has " +
                           known);
}

Expected<std::vector<Step>> steps(const Options &options,
                                  const AttentionSpec &spec) {
  std::vector<int64_t> prefill(options.prefill.begin(), options.prefill.end());
  std::vector<int64_t> decode(options.decode.begin(), options.decode.end());
  if (prefill.empty() && decode.empty()) {
    prefill = {256, 1024};
    decode = {4096};
  }
  constexpr double most = 1e9; // what decodeStep puts into a pool
  double token = double(spec.kvHeads * (spec.headDim + spec.vHeadDim) *
                        byteSize(spec.kvType));
  for (int64_t tokens : concat<int64_t>(prefill, decode))
    if (double(options.batch) * double(tokens) * token > most)
      return createStringError(
          formatv("{0} x {1} tokens: expected keys and values of at most {2}, "
                  "got {3}",
                  options.batch.getValue(), tokens, bytesText(most),
                  bytesText(double(options.batch) * double(tokens) * token)));
  int threads = int(options.threads);
  std::vector<Step> result;
  for (int64_t tokens : prefill) {
    StepShape shape{tokens, tokens, options.batch, options.batch};
    shape.threads = threads;
    result.push_back({Variant::Prefill, shape});
  }
  for (int64_t tokens : decode)
    result.push_back(
        {Variant::Decode, decodeStep(spec, threads, Machine::host().l3Bytes,
                                     tokens, options.batch)});
  return result;
}

/// The output row that is farthest from the first library's, and how far.
struct Difference {
  int64_t row = -1;
  double distance = 0;
};

Difference difference(const std::vector<double> &first,
                      const std::vector<double> &other, int64_t dim) {
  Difference result;
  for (size_t i = 0; i < first.size(); ++i) {
    double distance = std::fabs(first[i] - other[i]);
    if (std::isnan(distance))
      distance = std::numeric_limits<double>::infinity();
    if (distance > result.distance)
      result = {int64_t(i) / dim, distance};
  }
  return result;
}

/// Runs one step by each library. Compares sampled rows with the reference, and
/// the row in which it differs most from the first library, be it sampled or
/// not. The distances from the first, or what is wrong.
Expected<std::vector<double>> check(const AttentionSpec &spec, Workbench &bench,
                                    const std::vector<Library> &libraries) {
  std::vector<double> first, distances;
  for (const Library &library : libraries) {
    bench.use(library.kernels);
    bench.plan(0);
    bench.clearOutput();
    bench.run();
    std::vector<double> output = bench.output();
    if (first.empty())
      first = output;
    Difference worst = difference(first, output, spec.vHeadDim);
    reference::RowFilter sampled = bench.sampled(48);
    const StepShape &shape = bench.shape();
    reference::Comparison compared = reference::compare(
        bench.problem(), shape.threads,
        [&](int64_t seq, int64_t token, int64_t head) {
          int64_t row = (seq * shape.qLen + token) * spec.qHeads + head;
          return row == worst.row || sampled(seq, token, head);
        });
    if (!compared.ok() || compared.elements == 0)
      return createStringError(library.path + ", " + shape.str() +
                               ": wrong output: " + compared.worst.text());
    distances.push_back(worst.distance);
  }
  return distances;
}

Expected<Measured> measure(const Options &options, const AttentionSpec &spec,
                           const Step &step,
                           const std::vector<Library> &libraries) {
  Workbench bench(spec, libraries.front().kernels, step.shape);
  Expected<std::vector<double>> distances = check(spec, bench, libraries);
  if (!distances)
    return distances.takeError();
  Measured result{{}, std::move(*distances)};
  std::vector<limits::Arithmetic> arithmetic;
  for (const Library &library : libraries) {
    const pagoda_kernel_info &kernel =
        kernelFor(library.kernels, step.shape.qLen);
    arithmetic.push_back(arithmeticOf(kernel));
    BenchRow row = emptyRow(spec, step.variant, arithmetic.back(), bench);
    row.variant = library.path;
    row.schedule = kernel.schedule;
    result.rows.push_back(std::move(row));
  }
  // Steps go on to other sequences, so that no library finds the keys that
  // another one has just read.
  int64_t index = 1;
  auto timeStep = [&] {
    limits::Timer timer = limits::timerFor(step.shape.threads);
    bench.plan(index++);
    double start = limits::now(timer);
    bench.run();
    return limits::now(timer) - start;
  };
  // A turn of less than this is mostly what it takes to find code and tables
  // again.
  constexpr double shortest = 0.02;
  int64_t repeats =
      std::clamp<int64_t>(int64_t(shortest / timeStep()) + 1, 1, 10000);
  const BenchRow &row = result.rows.front();
  sampleRows(
      result.rows, options.seconds,
      step.variant == Variant::Prefill ? row.flops : row.bytes,
      [&](size_t i) { return limitNow(step.variant, arithmetic[i], bench); },
      [&](size_t i) {
        bench.use(libraries[i].kernels);
        double seconds = 0;
        for (int64_t r = 0; r < repeats; ++r)
          seconds += timeStep();
        return seconds / double(repeats);
      });
  return result;
}

std::string intervalText(const std::optional<Interval> &interval) {
  return interval
             ? formatv("{0:F3} to {1:F3}", interval->low, interval->high).str()
             : "";
}

void print(raw_ostream &os, const std::vector<Measured> &all) {
  Table table({"step", "library", ">ms", ">of limit", "", ">turns",
               ">times as fast", ">quartiles", ">99% interval", ">differs by"});
  for (const Measured &measured : all)
    for (auto [row, distance] : zip(measured.rows, measured.differences))
      table.row(
          {row.step, row.variant, numberText(1e3 * median(row.seconds)),
           formatv("{0:F0}%", 100 * median(row.shares)).str(), row.limit,
           std::to_string(row.seconds.size()),
           row.speedup ? formatv("{0:F3}", row.speedup->median).str() : "",
           intervalText(row.quarters), intervalText(row.speedup),
           row.speedup ? formatv("{0:E1}", distance).str() : ""});
  table.print(os);
}

llvm::Error writeJson(const Options &options,
                      const std::vector<Measured> &all) {
  json::Array rows;
  for (const Measured &measured : all) {
    json::Array some = toJson(measured.rows);
    for (auto [row, distance] : zip(some, measured.differences)) {
      (*row.getAsObject())["difference"] = distance;
      rows.push_back(std::move(row));
    }
  }
  json::Object root{{"machine", Machine::host().name},
                    {"cpu", Machine::host().cpu},
                    {"threads", options.threads.getValue()},
                    {"rows", std::move(rows)}};
  return writeFile(options.json,
                   formatv("{0:2}\n", json::Value(std::move(root))).str());
}

llvm::Error compareLibraries(const Options &options) {
  if (llvm::Error error = checkOptions(options))
    return error;
  Expected<AttentionSpec> spec = readSpec(options);
  if (!spec)
    return spec.takeError();
  std::vector<Library> libraries;
  for (const std::string &path : options.libraries) {
    KernelLibrary code = KernelLibrary::open(path);
    KernelSet kernels = code.select(kernelSpecOf(*spec));
    libraries.push_back({path, std::move(code), std::move(kernels)});
  }
  std::vector<Measured> all;
  Expected<std::vector<Step>> wanted = steps(options, *spec);
  if (!wanted)
    return wanted.takeError();
  for (const Step &step : *wanted) {
    Expected<Measured> measured = measure(options, *spec, step, libraries);
    if (!measured)
      return measured.takeError();
    all.push_back(std::move(*measured));
  }
  print(outs(), all);
  return options.json.empty() ? llvm::Error::success()
                              : writeJson(options, all);
}

} // namespace

int main(int argc, char **argv) {
  cl::ResetCommandLineParser(); // LLVM has options, --threads among them
  Options options;
  cl::ParseCommandLineOptions(
      argc, argv,
      "Libraries of pagoda gen in turns in one process; ratios are to the "
      "first\n");
  std::string fault;
  try {
    fault = toString(compareLibraries(options));
  } catch (const std::exception &exception) {
    fault = exception.what();
  }
  if (fault.empty())
    return 0;
  WithColor::error(errs(), "pagoda-bench-pair") << fault << '\n';
  return 1;
}
