//===- Study.cpp - How good is the formula? -------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// pagoda-study: for each specification, the speed of the schedule that the
// SRAM-fit formula puts first, relative to the best that is found among a
// seeded sample of everything legal, the formula's other candidates and what
// lies around the best of both. The best is measured again before it counts, so
// that it is not the luckiest. Rows go to a Markdown file as they are done; a
// row that is there already is not measured again.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelConfig.h"
#include "compiler/tune/Record.h"
#include "compiler/tune/SearchSpace.h"
#include "compiler/tune/Tuner.h"
#include "tools/pagoda/ScheduleBench.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <ctime>
#include <random>

using namespace llvm;
using namespace pagoda;

namespace {

cl::OptionCategory category("pagoda-study");
cl::opt<std::string> configsOpt("configs", cl::cat(category),
                                cl::desc("Folder of config.json files"),
                                cl::init("tools/configs"));
cl::opt<std::string> outOpt("out", cl::cat(category),
                            cl::desc("Markdown file to add rows to"),
                            cl::init("formula.rows.md"));
cl::opt<double> secondsOpt("seconds", cl::cat(category),
                           cl::desc("CPU time for each kernel (25)"),
                           cl::init(25));
cl::opt<unsigned> sampleOpt("sample", cl::cat(category),
                            cl::desc("Schedules of the wide sample (24)"),
                            cl::init(24));
cl::opt<unsigned> randomOpt("random", cl::cat(category),
                            cl::desc("Random specifications beside those of "
                                     "the configs (12)"),
                            cl::init(12));
cl::opt<uint64_t> seedOpt("seed", cl::cat(category),
                          cl::desc("Of sample and random ones (1)"),
                          cl::init(1));
cl::opt<int> threadsOpt("step-threads", cl::cat(category),
                        cl::desc("Threads of a step (1, by CPU time)"),
                        cl::init(1));
cl::opt<unsigned> mostOpt("most", cl::cat(category),
                          cl::desc("Kernels to measure in this call"),
                          cl::init(1u << 30));
cl::opt<std::string> onlyOpt("only", cl::cat(category),
                             cl::desc("Kernels of this kind: prefill or "
                                      "decode"));
cl::opt<int64_t> kvLenOpt("kv-len", cl::cat(category),
                          cl::desc("Tokens of a decoding sequence (2048)"),
                          cl::init(2048));
cl::opt<bool> randomOnlyOpt("random-only", cl::cat(category),
                            cl::desc("Leave out the configs' specifications"));
cl::opt<bool> listOpt("list", cl::cat(category),
                      cl::desc("List the kernels and what the formula "
                               "puts first, and measure none"));

/// A row over fewer schedules would say nothing.
constexpr size_t leastTried = 12;
/// Steps do not become shorter than this, in tokens.
constexpr int64_t leastKvLen = 256;

struct Subject {
  std::string source;
  AttentionSpec spec;
  Variant variant;
};

/// CPU time of this process: what others take of the machine does not shorten
/// the search.
double now() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

std::string shapeText(const AttentionSpec &spec) {
  std::string text =
      formatv("{0}/{1} heads, d {2}", spec.qHeads, spec.kvHeads, spec.headDim);
  if (spec.vHeadDim != spec.headDim)
    text += formatv(" (v {0})", spec.vHeadDim);
  text += formatv(", block {0} {1}", spec.blockSize,
                  spec.layout == KvLayout::HND ? "hnd" : "nhd");
  if (spec.window)
    text += formatv(", window {0}", *spec.window);
  if (spec.chunk)
    text += formatv(", chunk {0}", *spec.chunk);
  if (spec.softcap)
    text += ", softcap";
  if (spec.sinks)
    text += ", sinks";
  if (!spec.alibiSlopes.empty())
    text += ", alibi";
  return text + (spec.causal ? "" : ", not causal");
}

/// Shapes that models might have and that no ranking was fitted to.
AttentionSpec randomSpec(std::mt19937_64 &random) {
  auto of = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  AttentionSpec spec;
  spec.kvHeads = of({1, 2, 3, 4, 6, 8, 12, 16});
  spec.qHeads = spec.kvHeads * of({1, 1, 2, 3, 4, 5, 6, 7, 8, 12});
  spec.headDim = of({32, 40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256});
  spec.vHeadDim = random() % 4 ? spec.headDim : of({32, 64, 96, 128});
  spec.blockSize = of({8, 16, 16, 32, 64, 128});
  spec.layout = random() % 3 ? KvLayout::HND : KvLayout::NHD;
  if (random() % 4 == 0)
    spec.window = of({128, 512, 1024});
  if (random() % 6 == 0)
    spec.softcap = 50;
  spec.causal = spec.window || random() % 6 != 0;
  spec.scale = 1 / std::sqrt(double(spec.headDim));
  return spec;
}

Expected<std::vector<Subject>> subjects(const Machine &machine) {
  std::vector<Subject> result;
  std::vector<TuningKey> seen;
  auto add = [&](const std::string &source, AttentionSpec spec) {
    spec.qType = spec.kvType = DType::F32;
    for (Variant variant : {Variant::Prefill, Variant::Decode}) {
      if (!onlyOpt.empty() && nameOf(variant) != onlyOpt)
        continue;
      TuningKey key = tuningKey(machine, spec, variant);
      if (is_contained(seen, key))
        continue;
      seen.push_back(key);
      result.push_back({source, spec, variant});
    }
  };
  std::error_code code;
  std::vector<std::string> files;
  for (sys::fs::directory_iterator it(configsOpt, code), end;
       it != end && !code; it.increment(code))
    if (sys::path::extension(it->path()) == ".json")
      files.push_back(it->path());
  if (code)
    return createStringError("--configs " + configsOpt + ": " + code.message());
  llvm::sort(files);
  for (const std::string &file : files) {
    if (randomOnlyOpt)
      break;
    Expected<ModelConfig> model = loadModelConfig(file, {});
    if (!model)
      return model.takeError();
    for (const AttentionSpec &spec : model->specs())
      add(sys::path::stem(file).str(), spec);
  }
  std::mt19937_64 random(seedOpt);
  for (unsigned i = 0; i < randomOpt; ++i)
    add(formatv("random {0}.{1}", uint64_t(seedOpt), i), randomSpec(random));
  return result;
}

/// The fields of `schedule` that differ from those of `from`.
std::string changes(const Schedule &from, const Schedule &schedule) {
  std::string before = from.str(), after = schedule.str(), text;
  SmallVector<StringRef> old;
  StringRef(before).split(old, ',');
  for (StringRef field : split(after, ','))
    if (!is_contained(old, field))
      text += (text.empty() ? "" : ", ") + field.str();
  return text.empty() ? "the first" : text;
}

/// What a search of `secondsOpt` on `shape` found.
Expected<TuneResult> search(const Subject &subject, const Machine &machine,
                            const Schedule &standard, const StepShape &shape) {
  double begin = now();
  const auto &[source, spec, variant] = subject;
  Expected<std::unique_ptr<ScheduleBench>> made =
      ScheduleBench::create(spec, variant, machine, standard, shape);
  if (!made)
    return made.takeError();
  ScheduleBench &bench = **made;
  double start = now();
  if (!bench.checkSampled(standard).ok())
    return createStringError(source + ": the default is wrong");

  // Sample and neighbourhood in turns, so that both are met in any time.
  std::vector<Schedule> space = {standard};
  std::vector<Schedule> wide =
      sampleSchedules(machine, spec, variant, sampleOpt, seedOpt);
  std::vector<Schedule> near = tuningSpace(machine, spec, variant, sampleOpt);
  for (size_t i = 0; i < std::max(wide.size(), near.size()); ++i)
    for (const std::vector<Schedule> *from : {&wide, &near})
      if (i < from->size() && !is_contained(space, (*from)[i]))
        space.push_back((*from)[i]);

  TuneCallbacks calls;
  calls.prepare = [&](ArrayRef<Schedule> s) { return bench.prepare(s); };
  calls.sample = [&](const Schedule &s, bool before) {
    return bench.sample(s, before);
  };
  calls.verify = [&](const Schedule &s) { return bench.checkSampled(s).ok(); };
  calls.neighbours = [&](const Schedule &s) {
    return neighbours(s, machine, spec, variant);
  };
  calls.now = now;
  TuneOptions options;
  options.verifySeconds = now() - start;
  options.batch = 4;
  options.seconds = secondsOpt - (now() - begin);
  return tune(space, {}, options, calls);
}

/// One row: what the formula's first is worth. A kernel that is too slow for
/// the time that there is gets a shorter step, which its row then names.
Expected<std::string> measure(const Subject &subject, const Machine &machine) {
  const auto &[source, spec, variant] = subject;
  Expected<TileCandidate> first = selectTile(machine, spec, variant);
  if (!first)
    return first.takeError();
  const Schedule &standard = first->schedule;
  int threads = int(threadsOpt);
  int64_t kvLen = kvLenOpt, least = std::min<int64_t>(leastKvLen, kvLen);
  for (std::string shorter;; kvLen /= 2) {
    StepShape shape =
        variant == Variant::Prefill
            ? prefillStep(spec, threads)
            : decodeStep(spec, threads, Machine::host().l3Bytes, kvLen);
    if (variant == Variant::Prefill)
      shape.qLen = shape.kvLen = std::min(shape.kvLen, kvLen);
    Expected<TuneResult> result = search(subject, machine, standard, shape);
    if (!result)
      return result.takeError();
    if (result->tried < leastTried || !result->complete) {
      kvLen = std::min(kvLen, shape.kvLen);
      if (kvLen > least) {
        shorter = ", of ";
        continue;
      }
      return createStringError(
          source + " " + nameOf(variant) + ": " + Twine(result->tried) +
          " schedules tried in " + Twine(int(secondsOpt)) + " s, expected " +
          Twine(leastTried) + " and a confirmation: give --seconds more");
    }
    if (!shorter.empty())
      shorter += shape.str();
    const Interval &s = result->leaderSpeedup;
    return formatv("| {0} | {1} | {2} | {3:F3} | {4:F3} to {5:F3} | {6}{7} | "
                   "{8} |\n",
                   source, nameOf(variant), shapeText(spec),
                   std::min(1.0, 1 / s.median), std::min(1.0, 1 / s.high),
                   std::min(1.0, 1 / s.low), result->tried, shorter,
                   changes(standard, result->leader))
        .str();
  }
}

/// Shares by variant, of all rows of the file.
void summarise(StringRef text) {
  for (StringRef variant : {"prefill", "decode"}) {
    double logs = 0, worst = 1;
    int count = 0;
    for (StringRef line : split(text, '\n')) {
      SmallVector<StringRef> cells;
      line.split(cells, '|');
      double share = 0;
      if (cells.size() < 8 || cells[2].trim() != variant ||
          cells[4].trim().getAsDouble(share))
        continue;
      logs += std::log(share);
      worst = std::min(worst, share);
      ++count;
    }
    if (count)
      outs() << formatv("{0}: {1} kernels, geometric mean {2:F3}, worst "
                        "{3:F3}\n",
                        variant, count, std::exp(logs / count), worst);
  }
}

std::string contents(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

llvm::Error study() {
  Machine machine = Machine::host();
  Expected<std::vector<Subject>> all = subjects(machine);
  if (!all)
    return all.takeError();
  std::string done = contents(outOpt);
  unsigned measured = 0;
  for (const Subject &subject : *all) {
    std::string name =
        formatv("| {0} | {1} | {2} |", subject.source, nameOf(subject.variant),
                shapeText(subject.spec));
    if (listOpt) {
      Expected<TileCandidate> first =
          selectTile(machine, subject.spec, subject.variant);
      outs() << name << ' '
             << (first ? first->schedule.str() : toString(first.takeError()))
             << '\n';
      continue;
    }
    if (StringRef(done).contains(name))
      continue;
    if (measured++ == mostOpt)
      break;
    Expected<std::string> row = measure(subject, machine);
    if (!row) { // the others may have more luck
      errs() << toString(row.takeError()) << '\n';
      continue;
    }
    std::error_code code;
    raw_fd_ostream file(outOpt, code, sys::fs::OF_Append);
    if (code)
      return createStringError("--out " + outOpt + ": " + code.message());
    file << *row;
    outs() << *row;
    outs().flush();
  }
  if (!listOpt)
    summarise(contents(outOpt));
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "How good is the formula?\n");
  try {
    if (llvm::Error error = study()) {
      errs() << "error: " << toString(std::move(error)) << '\n';
      return 1;
    }
  } catch (const std::exception &exception) {
    errs() << "error: " << exception.what() << '\n';
    return 1;
  }
}
