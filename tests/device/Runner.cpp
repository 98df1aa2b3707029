//===- Runner.cpp - Cases on a GPU ----------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs what is in a packed folder on the GPU of this machine, in phases that
// each have a time limit: primitives, then cases, against the references in
// them; workloads: what the GPU can do, and, relative to that, attention at
// sizes that engines meet. A phase for which nothing is packed is left out.
// Prints a line each and a JSON report to the file that is named, anew after
// each line, so that what was found outlives a kernel that hangs. Needs a
// driver and nothing else. Exit codes: 0, 1 (something failed), 2 (bad
// arguments), 77 (no driver or no device).
//
//===----------------------------------------------------------------------===//

#include "tests/device/CaseImage.h"
#include "tests/device/DeviceCase.h"
#include "tests/device/Measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

using namespace pagoda;
using namespace pagoda::device;

namespace {

using Path = std::filesystem::path;

/// Seconds that a phase may begin new work in; run.sh ends it a little later.
constexpr int primitiveSeconds = 40, caseSeconds = 130, workloadSeconds = 110;

class Clock {
public:
  explicit Clock(int seconds)
      : end(std::chrono::steady_clock::now() + std::chrono::seconds(seconds)) {}
  bool isOver() const { return std::chrono::steady_clock::now() > end; }

private:
  std::chrono::steady_clock::time_point end;
};

struct Outcome {
  std::string name, fault; ///< empty: as expected
  double microseconds = 0; ///< of all launches of the case
};

struct Report {
  std::vector<Outcome> primitives, cases;
  bool hasLimits = false;
  Limits limits;
  std::vector<WorkloadResult> workloads;
  size_t passed = 0, failed = 0, left = 0; ///< left: no time for it
};

Outcome runCase(CudaDevice &device, const Path &path) {
  Outcome outcome{path.stem().string(), "", 0};
  try {
    CaseImage image = CaseImage::read(path.string());
    outcome.name = image.name;
    DeviceCase onDevice(device, image, path.parent_path());
    outcome.fault = onDevice.check();
    if (outcome.fault.empty())
      outcome.microseconds = onDevice.microseconds();
  } catch (const std::exception &error) {
    outcome.fault = error.what();
  }
  return outcome;
}

using Save = std::function<void()>;

void runCases(CudaDevice &device, const std::vector<Path> &paths, int seconds,
              std::vector<Outcome> &outcomes, Report &report,
              const Save &save) {
  Clock clock(seconds);
  for (const Path &path : paths) {
    if (clock.isOver()) {
      ++report.left;
      continue;
    }
    outcomes.push_back(runCase(device, path));
    const Outcome &last = outcomes.back();
    bool good = last.fault.empty();
    ++(good ? report.passed : report.failed);
    std::printf("%s %-44s %s\n", good ? "pass" : "FAIL", last.name.c_str(),
                good ? (std::to_string(last.microseconds) + " us").c_str()
                     : last.fault.c_str());
    std::fflush(stdout);
    save();
  }
}

/// The kernels that measure the GPU are in the primitives' file.
void runLimits(CudaDevice &device, const Path &folder, Report &report) {
  for (const char *name : {"primitives.cubin", "primitives.ptx"})
    if (std::filesystem::exists(folder / name)) {
      // A GPU copies a gigabyte in a millisecond; the emulator of the tests
      // takes seconds.
      bool emulated = device.name() == "emulator";
      try {
        report.limits =
            measureLimits(device, folder / name, emulated ? 64 << 10 : 1 << 30,
                          emulated ? 1 : 20000);
        report.hasLimits = true;
      } catch (const std::exception &error) {
        ++report.failed;
        std::printf("FAIL limits %s\n", error.what());
      }
      return;
    }
}

void runWorkloads(CudaDevice &device, const Path &folder, Report &report,
                  const Save &save) {
  if (!std::filesystem::exists(folder / "workloads.txt"))
    return;
  Clock clock(workloadSeconds);
  for (const Workload &workload : readWorkloads(folder / "workloads.txt")) {
    if (clock.isOver()) {
      ++report.left;
      continue;
    }
    WorkloadResult result;
    try {
      result = runWorkload(device, workload, folder);
    } catch (const std::exception &error) {
      result.workload = workload;
      result.fault = error.what();
    }
    ++(result.fault.empty() ? report.passed : report.failed);
    report.workloads.push_back(std::move(result));
    save();
  }
}

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

void printWorkloads(const Report &report) {
  if (report.hasLimits)
    std::printf("\ncopy %.0f GB/s, mma.sync %.1f TFLOP/s f16, %.1f bf16\n",
                report.limits.copyBytes * 1e-9,
                report.limits.productsF16 * 1e-12,
                report.limits.productsBf16 * 1e-12);
  if (report.workloads.empty())
    return;
  std::printf("%-28s %10s %10s %6s %9s %6s\n", "workload", "ms", "TFLOP/s",
              "of mma", "GB/s", "of copy");
  for (const WorkloadResult &w : report.workloads) {
    if (!w.fault.empty()) {
      std::printf("%-28s FAIL %s\n", w.workload.name.c_str(), w.fault.c_str());
      continue;
    }
    double seconds = w.milliseconds * 1e-3;
    double rate = w.flop / seconds, bytes = w.bytes / seconds;
    double products = w.dtype == PAGODA_F16 ? report.limits.productsF16
                                            : report.limits.productsBf16;
    std::printf("%-28s %10.3f %10.2f %5.1f%% %9.1f %5.1f%%\n",
                w.workload.name.c_str(), w.milliseconds, rate * 1e-12,
                percent(rate, products), bytes * 1e-9,
                percent(bytes, report.limits.copyBytes));
  }
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\')
      result += '\\';
    result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return result + "\"";
}

void writeOutcomes(std::ofstream &stream, const char *key,
                   const std::vector<Outcome> &outcomes) {
  stream << ",\n\"" << key << "\": [";
  const char *separator = "\n";
  for (const Outcome &outcome : outcomes) {
    stream << separator << "{\"name\": " << quoted(outcome.name)
           << ", \"passed\": " << (outcome.fault.empty() ? "true" : "false")
           << ", \"fault\": " << quoted(outcome.fault)
           << ", \"microseconds\": " << outcome.microseconds << "}";
    separator = ",\n";
  }
  stream << "\n]";
}

void writeJson(const std::string &path, const CudaDevice &device,
               const Report &report) {
  std::string unfinished = path + ".tmp";
  std::ofstream stream(unfinished);
  stream << "{\"device\": " << quoted(device.name())
         << ", \"capability\": " << device.capability()
         << ", \"failed\": " << report.failed
         << ", \"not_run\": " << report.left;
  if (report.hasLimits)
    stream << ",\n\"limits\": {\"copy_bytes_per_s\": "
           << report.limits.copyBytes
           << ", \"mma_f16_flop_per_s\": " << report.limits.productsF16
           << ", \"mma_bf16_flop_per_s\": " << report.limits.productsBf16
           << "}";
  writeOutcomes(stream, "primitives", report.primitives);
  writeOutcomes(stream, "cases", report.cases);
  stream << ",\n\"workloads\": [";
  const char *separator = "\n";
  for (const WorkloadResult &w : report.workloads) {
    stream << separator << "{\"name\": " << quoted(w.workload.name)
           << ", \"sequences\": " << w.workload.sequences
           << ", \"q_len\": " << w.workload.qLen
           << ", \"kv_len\": " << w.workload.kvLen
           << ", \"q_heads\": " << w.qHeads << ", \"kv_heads\": " << w.kvHeads
           << ", \"head_dim\": " << w.headDim << ", \"dtype\": "
           << (w.dtype == PAGODA_F16 ? "\"f16\"" : "\"bf16\"")
           << ", \"fault\": " << quoted(w.fault)
           << ", \"milliseconds\": " << w.milliseconds
           << ", \"flop\": " << w.flop << ", \"bytes\": " << w.bytes << "}";
    separator = ",\n";
  }
  stream << "\n]}\n";
  stream.close();
  if (!stream)
    throw std::runtime_error(path + ": cannot be written");
  std::filesystem::rename(unfinished, path);
}

} // namespace

int main(int argc, char **argv) {
  std::string phase = argc == 4 ? argv[3] : "all";
  auto runs = [&](const char *name) { return phase == "all" || phase == name; };
  if (argc < 2 || argc > 4 ||
      !(runs("primitives") || runs("cases") || runs("workloads"))) {
    std::fprintf(
        stderr, "usage: %s folder [report.json [primitives|cases|workloads]]\n",
        argv[0]);
    return 2;
  }
  try {
    Path folder = argv[1];
    std::vector<Path> primitives, cases;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".case")
        (entry.path().stem().string().starts_with("primitive.") ? primitives
                                                                : cases)
            .push_back(entry.path());
    std::sort(primitives.begin(), primitives.end());
    std::sort(cases.begin(), cases.end());
    if (primitives.empty() && cases.empty())
      throw std::runtime_error(folder.string() + ": no *.case in it");
    std::string why;
    std::unique_ptr<CudaDevice> device = CudaDevice::open(why);
    if (!device) {
      std::printf("skipped: %s\n", why.c_str());
      return 77;
    }
    std::printf("%s, compute capability %d.%d, %d multiprocessors\n",
                device->name().c_str(), device->capability() / 10,
                device->capability() % 10, device->multiprocessors());
    Report report;
    auto save = [&] {
      if (argc >= 3)
        writeJson(argv[2], *device, report);
    };
    if (runs("primitives"))
      runCases(*device, primitives, primitiveSeconds, report.primitives, report,
               save);
    if (runs("cases"))
      runCases(*device, cases, caseSeconds, report.cases, report, save);
    if (runs("workloads")) {
      runLimits(*device, folder, report);
      runWorkloads(*device, folder, report, save);
      printWorkloads(report);
    }
    save();
    std::printf("%zu passed, %zu failed, %zu not run for lack of time\n",
                report.passed, report.failed, report.left);
    return report.failed ? 1 : 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
