//===- DeviceExport.cpp - Candidates for a GPU elsewhere ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is run on a device that writes down what it is asked to launch.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/DeviceExport.h"

#include "compiler/emit/Emit.h"
#include "compiler/tune/SearchSpace.h"
#include "tests/device/CaseImage.h"
#include "tests/reference/Compare.h"
#include "tests/reference/Element.h"
#include "tools/pagoda/ScheduleBench.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>

using namespace llvm;

namespace pagoda {

using device::CaseImage;
using device::Expectation;
using device::ImageBuffer;

namespace {

/// Schedules in one file of code: what a library has besides its attention
/// kernels is compiled once.
constexpr size_t batchSize = 8;

/// A candidate that was compiled.
struct Built {
  Schedule schedule;
  std::string file, kernelName, mergeName;
  pagoda_kernel_info kernel{}, merge{};
};

size_t fieldOf(StringRef name) {
  constexpr std::pair<StringRef, size_t> fields[] = {
      {"q", offsetof(pagoda_attention_args, q)},
      {"o", offsetof(pagoda_attention_args, o)},
      {"lse", offsetof(pagoda_attention_args, lse)},
      {"k", offsetof(pagoda_attention_args, k.base)},
      {"v", offsetof(pagoda_attention_args, v.base)},
      {"block_table", offsetof(pagoda_attention_args, block_table)},
      {"sinks", offsetof(pagoda_attention_args, sinks)},
      {"alibi_slopes", offsetof(pagoda_attention_args, alibi_slopes)},
      {"prefix_lens", offsetof(pagoda_attention_args, prefix_lens)},
      {"items", offsetof(pagoda_attention_args, items)},
      {"counts", offsetof(pagoda_attention_args, counts)},
      {"row_map", offsetof(pagoda_attention_args, row_map)},
      {"row_pos", offsetof(pagoda_attention_args, row_pos)},
      {"row_seq", offsetof(pagoda_attention_args, row_seq)},
      {"partial_o", offsetof(pagoda_attention_args, partial_o)},
      {"partial_ml", offsetof(pagoda_attention_args, partial_ml)},
      {"merges", offsetof(pagoda_attention_args, merges)},
      {"merge_slots", offsetof(pagoda_attention_args, merge_slots)}};
  const auto *found = find_if(fields, [&](auto &f) { return f.first == name; });
  if (found == std::end(fields))
    throw std::runtime_error("a step reads " + name.str() +
                             ", which cannot be exported");
  return found->second;
}

constexpr size_t outputFields[] = {offsetof(pagoda_attention_args, o),
                                   offsetof(pagoda_attention_args, lse)};

/// Writes down a launch instead of making it.
class RecordingDevice : public Device {
public:
  explicit RecordingDevice(int32_t multiprocessors) : count(multiprocessors) {}

  int32_t multiprocessors() const override { return count; }
  void run(const AttentionPlan &plan, const pagoda_kernel_info *merge,
           const pagoda_attention_args &args,
           const AttentionExtents &tensors) override;
  void append(const pagoda_kernel_info &, const pagoda_append_args &, int64_t,
              int64_t) override {}
  void copy(const pagoda_kernel_info &, const pagoda_copy_args &, int64_t,
            int64_t) override {}

  /// What all candidates have alike, and what the plan of the last one added.
  CaseImage base, own;

private:
  int32_t count;
};

/// Memory full of NaN, whatever its floating-point type.
ImageBuffer fullOfNaN(size_t field, size_t bytes) {
  return {uint32_t(field), 0, std::vector<uint8_t>(4, 0xff), bytes};
}

/// The memory as it is, or one run of it where it repeats.
ImageBuffer copyOf(size_t field, const void *begin, size_t bytes,
                   size_t element) {
  auto first = static_cast<const uint8_t *>(begin);
  size_t run = size_t(randomRun) * element;
  bool repeats =
      bytes > run && std::memcmp(first, first + run, bytes - run) == 0;
  return {uint32_t(field), 0,
          std::vector<uint8_t>(first, first + (repeats ? run : bytes)),
          repeats ? bytes : 0};
}

void RecordingDevice::run(const AttentionPlan &plan,
                          const pagoda_kernel_info *merge,
                          const pagoda_attention_args &given,
                          const AttentionExtents &tensors) {
  const pagoda_kernel_info &kernel = plan.kernel();
  size_t element = size_t(dtypeBytes(kernel.k_dtype));
  PlanExtents sizes = PlanExtents::of(plan);
  pagoda_attention_args args = given;
  base = own = {};
  for (const emulator::GlobalBuffer &buffer :
       attentionBuffers(kernel, args, tensors, {})) {
    size_t field = fieldOf(buffer.name);
    base.buffers.push_back(
        is_contained(outputFields, field)
            ? fullOfNaN(field, buffer.bytes)
            : copyOf(field, buffer.begin, buffer.bytes, element));
  }
  plan.fill(args);
  int32_t counts[2] = {int32_t(sizes.items), int32_t(sizes.merges)};
  args.counts = counts;
  for (const emulator::GlobalBuffer &buffer :
       attentionBuffers(kernel, args, {}, sizes))
    if (size_t field = fieldOf(buffer.name);
        none_of(base.buffers, [&](auto &b) { return b.field == field; }))
      own.buffers.push_back(copyOf(field, buffer.begin, buffer.bytes, 1));
  int64_t states = sizes.partialSlots * kernel.q_heads;
  if (states) {
    own.buffers.push_back(fullOfNaN(offsetof(pagoda_attention_args, partial_o),
                                    size_t(states * kernel.v_head_dim) * 4));
    own.buffers.push_back(fullOfNaN(offsetof(pagoda_attention_args, partial_ml),
                                    size_t(states) * 8));
  }
  for (const PlanSegment &segment : plan.segments())
    own.launches.push_back({segment.kernel->name, segment.kernel->threads,
                            segment.kernel->shared_bytes,
                            segment.end - segment.begin});
  if (sizes.merges)
    own.launches.push_back(
        {merge->name, merge->threads, merge->shared_bytes, sizes.merges});
  // Null until someone has memory for them.
  for (const CaseImage *image : {&base, &own})
    for (const ImageBuffer &buffer : image->buffers)
      std::memset(reinterpret_cast<char *>(&args) + buffer.field, 0,
                  sizeof(void *));
  own.args = args;
}

/// What o and lse must hold in the rows that are compared.
void expect(const Workbench &bench, const pagoda_attention_args &args,
            int64_t rows, CaseImage &base) {
  reference::Problem problem = bench.problem();
  int32_t type = problem.shape.qType;
  std::vector<Expectation> expected(2);
  const int32_t types[] = {type, PAGODA_F32};
  for (auto [field, dtype, expectation] : zip(outputFields, types, expected)) {
    size_t index = 0;
    while (base.buffers[index].field != field)
      ++index;
    expectation.buffer = uint32_t(index);
    expectation.dtype = dtype;
  }
  auto add = [](Expectation &expectation, int64_t at, double value,
                double bound) {
    expectation.at.push_back(uint64_t(at));
    expectation.values.push_back(float(value));
    expectation.bounds.push_back(float(bound));
  };
  reference::RowFilter wanted = bench.sampled(rows);
  reference::Row row;
  for (auto [s, sequence] : enumerate(problem.sequences))
    for (int64_t t = 0; t < sequence.qLen; ++t)
      for (int64_t h = 0; h < problem.shape.qHeads; ++h) {
        if (!wanted(int64_t(s), t, h))
          continue;
        reference::attendRow(problem, int64_t(s), t, h, row);
        int64_t q = sequence.qBegin + t;
        for (int64_t d = 0; d < int64_t(row.o.size()); ++d)
          add(expected[0], q * args.o_token_stride + h * args.o_head_stride + d,
              row.o[size_t(d)], reference::outputBound(row, d, type));
        add(expected[1], q * args.lse_token_stride + h * args.lse_head_stride,
            row.lse, reference::lseBound(row, type));
      }
  base.expectations = std::move(expected);
}

class Exporter {
public:
  Exporter(const AttentionSpec &spec, Variant variant, const Machine &machine,
           const DeviceExportOptions &options)
      : spec(spec), machine(machine), options(options),
        stem(spec.name + "_" + nameOf(variant).str()) {}

  /// Compiles `schedules` on all threads; those that cannot be are left out.
  Expected<std::vector<Built>> build(ArrayRef<Schedule> schedules);
  llvm::Error write(ArrayRef<Built> built, const StepShape &shape,
                    ExportedContest &contest);

private:
  Expected<std::vector<Built>> buildFile(ArrayRef<Schedule> schedules,
                                         const std::string &name);

  const AttentionSpec &spec;
  const Machine &machine;
  const DeviceExportOptions &options;
  std::string stem;
};

Expected<std::vector<Built>> Exporter::buildFile(ArrayRef<Schedule> schedules,
                                                 const std::string &name) {
  CompileOptions compileOptions;
  compileOptions.machine = machine;
  compileOptions.settled.push_back({machine.name, spec.name, schedules.vec()});
  Expected<Artifact> artifact = compile({spec}, compileOptions);
  if (!artifact)
    return artifact.takeError();
  if (llvm::Error error = assemble(*artifact, machine))
    return std::move(error);
  bool isCubin = !artifact->cubin.empty();
  std::string file = name + (isCubin ? ".cubin" : ".ptx");
  if (llvm::Error error = writeFile(options.folder + "/" + file,
                                    isCubin ? artifact->cubin : artifact->ptx))
    return std::move(error);
  auto summary = [&](auto matches) {
    return *find_if(artifact->kernels, matches);
  };
  KernelSummary merge = summary([](const KernelSummary &kernel) {
    return kernel.info.role == PAGODA_ROLE_MERGE;
  });
  std::vector<Built> result;
  for (auto [i, schedule] : enumerate(schedules)) {
    std::string wanted = settledName(compileOptions, i);
    KernelSummary kernel = summary(
        [&](const KernelSummary &other) { return other.name == wanted; });
    result.push_back(
        {schedule, file, kernel.name, merge.name, kernel.info, merge.info});
  }
  return result;
}

Expected<std::vector<Built>> Exporter::build(ArrayRef<Schedule> schedules) {
  size_t batches = (schedules.size() + batchSize - 1) / batchSize;
  std::vector<std::vector<Built>> parts(batches);
  std::vector<std::string> faults(batches);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t at; (at = next++) < batches;) {
      ArrayRef<Schedule> part =
          schedules.slice(at * batchSize).take_front(batchSize);
      std::string name = formatv("{0}.{1}", stem, at);
      Expected<std::vector<Built>> built = buildFile(part, name);
      if (built) {
        parts[at] = std::move(*built);
        options.progress(name + ": compiled");
        continue;
      }
      // One of them cannot be built: the others still count.
      consumeError(built.takeError());
      for (auto [i, schedule] : enumerate(part)) {
        Expected<std::vector<Built>> one =
            buildFile(schedule, formatv("{0}.{1}", name, i));
        if (one)
          append_range(parts[at], *one);
        else if (std::string text = toString(one.takeError());
                 schedule == schedules.front())
          faults[at] = text;
      }
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < options.threads; ++t)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();
  if (!faults.front().empty())
    return createStringError(
        stem + ": the default cannot be built: " + faults.front());
  std::vector<Built> result;
  for (std::vector<Built> &part : parts)
    append_range(result, part);
  return result;
}

llvm::Error Exporter::write(ArrayRef<Built> built, const StepShape &shape,
                            ExportedContest &contest) {
  std::vector<Built> all = built.vec();
  for (Built &one : all) {
    one.kernel.name = one.kernelName.c_str();
    one.merge.name = one.mergeName.c_str();
  }
  auto setOf = [](const Built &one) {
    KernelSet set;
    set.attention = {&one.kernel};
    set.merge = &one.merge;
    return set;
  };
  RecordingDevice device{int32_t(machine.cores)};
  Workbench bench(spec, setOf(all.front()), shape, &device);
  for (auto [i, one] : enumerate(all)) {
    bench.use(setOf(one));
    bench.plan(0);
    bench.run();
    CaseImage image = std::move(device.own);
    image.name = one.schedule.str();
    image.cubin = one.file;
    image.base = stem + ".base";
    image.write(
        formatv("{0}/{1}.{2}.case", options.folder, stem, format("%03zu", i)));
    contest.candidates.push_back({image.name, one.file, one.kernelName});
    contest.exported.schedules.push_back(image.name);
    contest.assembled |= StringRef(one.file).ends_with(".cubin");
    if (i + 1 < all.size())
      continue;
    CaseImage base = std::move(device.base);
    base.name = contest.name;
    base.note = formatv("{0}", json::Value(toJson(contest.exported)));
    expect(bench, image.args, options.rows, base);
    base.write(options.folder + "/" + stem + ".base");
  }
  return llvm::Error::success();
}

} // namespace

Expected<ExportedContest> exportContest(const AttentionSpec &spec,
                                        Variant variant, const Machine &machine,
                                        const StepShape &shape,
                                        const DeviceExportOptions &options) {
  std::vector<Schedule> space =
      tuningSpace(machine, spec, variant, options.candidates);
  if (space.empty()) // the formula says which limit the least tile breaks
    return selectTile(machine, spec, variant).takeError();
  Exporter exporter(spec, variant, machine, options);
  Expected<std::vector<Built>> built = exporter.build(space);
  if (!built)
    return built.takeError();
  ExportedContest contest;
  contest.name = (spec.name + " " + nameOf(variant)).str();
  contest.exported.key = tuningKey(machine, spec, variant, shape.kvLen);
  contest.exported.workload = shape.str();
  contest.unbuilt = space.size() - built->size();
  if (llvm::Error error = exporter.write(*built, shape, contest))
    return std::move(error);
  return contest;
}

json::Object toJson(const ExportedContest &contest) {
  json::Array candidates;
  for (const ExportedCandidate &candidate : contest.candidates)
    candidates.push_back(json::Object{{"schedule", candidate.schedule},
                                      {"file", candidate.file},
                                      {"kernel", candidate.kernel}});
  return json::Object{{"kernel", contest.name},
                      {"export", toJson(contest.exported)},
                      {"unbuilt", int64_t(contest.unbuilt)},
                      {"candidates", std::move(candidates)}};
}

} // namespace pagoda
