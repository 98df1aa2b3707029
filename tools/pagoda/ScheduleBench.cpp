//===- ScheduleBench.cpp - Schedules measured side by side ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Many schedules go into one library, one kernel each: what a library has
// besides is then built once.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/ScheduleBench.h"

#include "bench/kernels/Limits.h"
#include "compiler/tune/Statistics.h"
#include "tools/pagoda/Workload.h"

#include "llvm/ADT/STLExtras.h"

#include <thread>

using namespace llvm;

namespace pagoda {

static llvm::Expected<double> parseBudget(llvm::StringRef text) {
  constexpr double longest = 24 * 3600;
  llvm::StringRef number = text;
  double unit = number.consume_back("m") ? 60 : 1, value = 0;
  number.consume_back("s");
  if (number.getAsDouble(value) || !(value > 0) || value * unit > longest)
    return createStringError("--budget " + text +
                             ": expected a time up to a day, for example 90s "
                             "or 5m");
  return value * unit;
}

static llvm::Error checkRunsHere(const Machine &machine) {
  uint64_t missing = machine.cpuFeatures & ~hostCpuFeatures();
  if (machine.kind == TargetKind::Cpu && !missing)
    return llvm::Error::success();
  return createStringError(
      "--target " + machine.name + ": this machine cannot run its code" +
      (missing ? " (no " + cpuFeatureNames(missing) + ")" : ""));
}

llvm::Expected<double> checkMeasuring(llvm::StringRef budget, int64_t threads,
                                      const Machine &machine) {
  if (threads < 0 || threads > 1024)
    return llvm::createStringError(llvm::formatv(
        "--threads {0}: expected a number from 0 to 1024", threads));
  if (llvm::Error error = checkRunsHere(machine))
    return error;
  return parseBudget(budget);
}

std::string settledName(const CompileOptions &options, size_t index) {
  return options.name + (index == 0 ? "_prefill" : "_decode") +
         (index > 1 ? std::to_string(index) : "");
}

Expected<std::unique_ptr<ScheduleBench>>
ScheduleBench::create(const AttentionSpec &spec, Variant variant,
                      const Machine &machine, const Schedule &baseline,
                      const StepShape &shape) {
  std::unique_ptr<ScheduleBench> bench(
      new ScheduleBench(spec, variant, machine, baseline));
  Expected<std::vector<Kernel>> built = bench->build(baseline);
  if (!built)
    return built.takeError();
  bench->workbench =
      std::make_unique<Workbench>(spec, built->front().set, shape);
  bench->kernels.try_emplace(baseline.str(), std::move(built->front()));
  bench->time(baseline);
  return bench;
}

Expected<std::vector<ScheduleBench::Kernel>>
ScheduleBench::build(ArrayRef<Schedule> schedules) const {
  CompileOptions options;
  options.machine = machine;
  options.settled.push_back({machine.name, spec.name, schedules.vec()});
  Expected<std::unique_ptr<JitLibrary>> compiled =
      JitLibrary::compile({spec}, options);
  if (!compiled)
    return compiled.takeError();
  std::shared_ptr<JitLibrary> code = std::move(*compiled);
  KernelLibrary library = KernelLibrary::wrap(code->info());
  KernelSet all = library.select(kernelSpecOf(spec));
  std::vector<Kernel> result;
  for (size_t i = 0; i < schedules.size(); ++i) {
    std::string name = settledName(options, i);
    Kernel kernel;
    kernel.code = code;
    kernel.set = all;
    kernel.set.attention = {library.find(name)};
    if (!kernel.set.attention.front())
      return createStringError("library has no kernel " + name);
    result.push_back(std::move(kernel));
  }
  return result;
}

std::vector<bool> ScheduleBench::prepare(ArrayRef<Schedule> schedules) {
  std::vector<Schedule> open;
  for (const Schedule &schedule : schedules)
    if (!kernels.contains(schedule.str()))
      open.push_back(schedule);
  size_t threads = std::min<size_t>(open.size(), Machine::host().cores);
  std::vector<std::vector<Kernel>> parts(threads);
  auto partOf = [&](size_t thread) {
    size_t begin = open.size() * thread / threads;
    size_t end = open.size() * (thread + 1) / threads;
    return ArrayRef(open).slice(begin, end - begin);
  };
  auto work = [&](size_t thread) {
    ArrayRef<Schedule> part = partOf(thread);
    Expected<std::vector<Kernel>> built = build(part);
    if (built) {
      parts[thread] = std::move(*built);
      return;
    }
    // One of them cannot be built: the others still count.
    consumeError(built.takeError());
    for (const Schedule &schedule : part) {
      Expected<std::vector<Kernel>> one = build(schedule);
      parts[thread].push_back(one ? std::move(one->front()) : Kernel());
      if (!one)
        consumeError(one.takeError());
    }
  };
  std::vector<std::thread> workers;
  for (size_t t = 1; t < threads; ++t)
    workers.emplace_back(work, t);
  if (threads)
    work(0);
  for (std::thread &worker : workers)
    worker.join();
  for (size_t t = 0; t < threads; ++t)
    for (auto [schedule, kernel] : zip(partOf(t), parts[t]))
      kernels.try_emplace(schedule.str(), std::move(kernel));

  std::vector<bool> made;
  for (const Schedule &schedule : schedules)
    made.push_back(at(schedule).code != nullptr);
  return made;
}

double ScheduleBench::time(const Schedule &schedule) {
  Kernel &kernel = at(schedule);
  workbench->use(kernel.set);
  if (kernel.seconds.empty()) {
    // Code and scratch are touched for the first time.
    workbench->plan(step++);
    workbench->run();
  }
  kernel.seconds.push_back(timeStep([&] { workbench->run(); }));
  return kernel.seconds.back();
}

double ScheduleBench::time(
    const std::function<void(const reference::Problem &)> &attend) {
  return timeStep([&] { attend(workbench->problem()); });
}

double ScheduleBench::timeStep(const std::function<void()> &run) {
  workbench->plan(step++);
  limits::Timer timer = limits::timerFor(workbench->shape().threads);
  double start = limits::now(timer);
  run();
  return limits::now(timer) - start;
}

double ScheduleBench::sample(const Schedule &schedule, bool baselineFirst) {
  double before = baselineFirst ? time(baseline) : 0;
  double candidate = time(schedule);
  return (baselineFirst ? before : time(baseline)) / candidate;
}

reference::Comparison ScheduleBench::verify(const Schedule &schedule) {
  Kernel &kernel = at(schedule);
  SyntheticOptions options;
  options.seqs = 2;
  options.promptLen = 150;
  options.sharedPrefix = 37;
  options.chunk = 61;
  options.decodeSteps = 2;
  options.threads = workbench->shape().threads;
  options.verify = true;
  reference::Comparison result =
      runSynthetic(spec, kernel.set, options).comparison;
  result.merge(checkSampled(schedule));
  return result;
}

reference::Comparison ScheduleBench::checkSampled(const Schedule &schedule) {
  workbench->use(at(schedule).set);
  workbench->plan(step++);
  workbench->clearOutput();
  workbench->run();
  return workbench->checkSampled(variant == Variant::Prefill ? 48 : 16);
}

double ScheduleBench::baselineSeconds() const { return seconds(baseline); }

double ScheduleBench::seconds(const Schedule &schedule) const {
  auto found = kernels.find(schedule.str());
  return median(found->second.seconds);
}

} // namespace pagoda
