//===- Candidates.cpp - Exported candidates, measured ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory of a kernel's base and of one candidate at a time, verification, and
// rounds of paired samples.
//
//===----------------------------------------------------------------------===//

#include "tools/tune-runner/Candidates.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace pagoda::device {

namespace {

using std::filesystem::path;

/// Buffers of an image on the device.
class Memory {
public:
  Memory(MeasuredDevice &device, const CaseImage &image)
      : device(device), image(image) {
    for (const ImageBuffer &buffer : image.buffers) {
      places.push_back(device.allocate(buffer.total()));
      fill(places.size() - 1);
    }
  }
  ~Memory() {
    for (void *place : places)
      try {
        device.release(place);
      } catch (const std::exception &) {
        // A device that has failed says so elsewhere.
      }
  }
  Memory(const Memory &) = delete;

  /// Writes what the image says into a buffer.
  void fill(size_t index) {
    const ImageBuffer &buffer = image.buffers[index];
    char *target = static_cast<char *>(places[index]);
    for (uint64_t done = 0; done < buffer.total();) {
      uint64_t part =
          std::min<uint64_t>(buffer.bytes.size(), buffer.total() - done);
      if (part == 0)
        throw std::runtime_error("a buffer repeats nothing");
      device.upload(target + done, buffer.bytes.data(), part);
      done += part;
    }
  }
  void point(pagoda_attention_args &args) const {
    for (size_t i = 0; i < places.size(); ++i) {
      char *target = static_cast<char *>(places[i]) + image.buffers[i].offset;
      std::memcpy(reinterpret_cast<char *>(&args) + image.buffers[i].field,
                  &target, sizeof(target));
    }
  }
  std::vector<uint8_t> contents(size_t index) const {
    std::vector<uint8_t> bytes(image.buffers[index].total());
    device.download(bytes.data(), places[index], bytes.size());
    return bytes;
  }

private:
  MeasuredDevice &device;
  const CaseImage &image;
  std::vector<void *> places;
};

struct Candidate {
  CaseImage image;
  std::unique_ptr<Memory> memory;
  std::vector<size_t> kernels;
  pagoda_attention_args args{};
  std::string fault;
  size_t compared = 0;
  double worst = 0;
  std::vector<double> seconds, baseline;
};

/// One kernel's base and its candidates.
class Contest {
public:
  Contest(MeasuredDevice &device, const path &folder, const path &file)
      : device(device), folder(folder), base(CaseImage::read(file.string())),
        shared(device, base) {}

  const std::string &name() const { return base.name; }
  const std::string &note() const { return base.note; }
  std::vector<Candidate> candidates;

  void add(const path &file) {
    candidates.emplace_back();
    Candidate &candidate = candidates.back();
    candidate.image = CaseImage::read(file.string());
    if (folder / candidate.image.base != folder / (stem(file) + ".base"))
      throw std::runtime_error(file.string() + ": belongs to " +
                               candidate.image.base);
  }
  /// Whether the outputs are right goes into the candidate.
  void verify(Candidate &candidate);
  /// Times the candidates that are right, if the default is.
  void measure();

  /// "decode" of "decode.001.case".
  static std::string stem(const path &file) {
    return file.stem().stem().string();
  }

private:
  void prepare(Candidate &candidate);
  double time(const Candidate &candidate, int times);

  MeasuredDevice &device;
  path folder;
  CaseImage base;
  Memory shared;
};

void Contest::prepare(Candidate &candidate) {
  const CaseImage &image = candidate.image;
  candidate.memory = std::make_unique<Memory>(device, image);
  candidate.args = image.args;
  shared.point(candidate.args);
  candidate.memory->point(candidate.args);
  for (const KernelLaunch &launch : image.launches)
    candidate.kernels.push_back(
        device.load((folder / image.cubin).string(), launch));
}

void Contest::verify(Candidate &candidate) {
  try {
    prepare(candidate);
    // What an earlier candidate wrote must not pass for this one's.
    for (const Expectation &expected : base.expectations)
      shared.fill(expected.buffer);
    for (size_t i = 0; i < candidate.kernels.size(); ++i)
      device.run(candidate.kernels[i], candidate.image.launches[i].blocks,
                 candidate.args);
    for (const Expectation &expected : base.expectations) {
      std::vector<uint8_t> bytes = shared.contents(expected.buffer);
      candidate.fault = compare(expected, bytes);
      if (!candidate.fault.empty())
        break;
      candidate.compared += expected.values.size();
      candidate.worst = std::max(candidate.worst, worstRatio(expected, bytes));
    }
  } catch (const std::exception &error) {
    candidate.fault = error.what();
  }
  if (!candidate.fault.empty())
    candidate.memory = nullptr;
}

double Contest::time(const Candidate &candidate, int times) {
  double total = 0;
  for (size_t i = 0; i < candidate.kernels.size(); ++i)
    total +=
        device.time(candidate.kernels[i], candidate.image.launches[i].blocks,
                    candidate.args, times);
  return total;
}

void Contest::measure() {
  // So many launches that a sample takes a millisecond.
  constexpr double wanted = 1e-3, most = 50;
  Candidate &standard = candidates.front();
  if (!standard.fault.empty())
    return;
  int times =
      int(std::clamp(wanted / std::max(time(standard, 3), 1e-6), 1.0, most));
  for (int round = 0; round < samplesOfEach; ++round)
    for (Candidate &candidate : candidates) {
      if (!candidate.fault.empty())
        continue;
      try {
        bool first = round % 2;
        double before = first ? time(standard, times) : 0;
        double seconds = time(candidate, times);
        candidate.baseline.push_back(first ? before : time(standard, times));
        candidate.seconds.push_back(seconds);
      } catch (const std::exception &error) {
        candidate.fault = error.what();
      }
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

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

std::string list(const std::vector<double> &values) {
  std::string text;
  for (double value : values)
    text += (text.empty() ? "" : ", ") + number(value);
  return "[" + text + "]";
}

std::string toJson(const Candidate &candidate) {
  std::string text = "{\"schedule\": " + quoted(candidate.image.name) +
                     ", \"compared\": " + std::to_string(candidate.compared);
  if (!candidate.fault.empty())
    return text + ", \"fault\": " + quoted(candidate.fault) + "}";
  return text + ", \"worst_error\": " + number(candidate.worst) +
         ",\n  \"seconds\": " + list(candidate.seconds) +
         ",\n  \"default_seconds\": " + list(candidate.baseline) + "}";
}

std::vector<path> filesOf(const path &folder, const char *extension) {
  std::vector<path> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == extension)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace

std::string
measureCandidates(const std::string &folder, MeasuredDevice &device,
                  const std::function<void(const std::string &)> &progress) {
  std::vector<path> bases = filesOf(folder, ".base");
  if (bases.empty())
    throw std::runtime_error(folder + ": no candidates in it");
  std::string kernels;
  for (const path &file : bases) {
    Contest contest(device, folder, file);
    for (const path &one : filesOf(folder, ".case"))
      if (Contest::stem(one) == file.stem())
        contest.add(one);
    if (contest.candidates.empty())
      throw std::runtime_error(file.string() + ": has no candidates");
    for (Candidate &candidate : contest.candidates) {
      contest.verify(candidate);
      progress(contest.name() + ": " + candidate.image.name + ": " +
               (candidate.fault.empty()
                    ? std::to_string(candidate.compared) + " elements right"
                    : candidate.fault));
    }
    contest.measure();
    progress(contest.name() + ": measured");
    std::string candidates;
    for (const Candidate &candidate : contest.candidates)
      candidates += (candidates.empty() ? "" : ",\n ") + toJson(candidate);
    kernels += (kernels.empty() ? "" : ",\n") +
               ("{\"export\": " + contest.note()) + ",\n \"candidates\": [\n " +
               candidates + "]}";
  }
  return "{\"device\": " + quoted(device.name()) +
         ",\n\"capability\": " + std::to_string(device.capability()) +
         ",\n\"kernels\": [\n" + kernels + "]}\n";
}

} // namespace pagoda::device
