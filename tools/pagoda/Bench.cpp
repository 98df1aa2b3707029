//===- Bench.cpp - pagoda bench -------------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which kernels on which steps; the table, the file and the comparison.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/Limits.h"
#include "compiler/tiling/OrderBytes.h"
#include "compiler/tune/Database.h"
#include "tools/pagoda/BenchReport.h"
#include "tools/pagoda/Commands.h"
#include "tools/pagoda/Describe.h"
#include "tools/pagoda/Records.h"
#include "tools/pagoda/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>

using namespace llvm;

namespace pagoda {

cl::SubCommand &benchCommand() {
  static cl::SubCommand command(
      "bench", "Measure a model's kernels beside this machine's limits");
  return command;
}

namespace {

template <typename T> struct BenchOpt : cl::opt<T> {
  template <typename... Mods>
  explicit BenchOpt(StringRef name, const char *help, const Mods &...mods)
      : cl::opt<T>(name, cl::desc(help), cl::sub(benchCommand()),
                   cl::cat(optionCategory()), mods...) {}
};

BenchOpt<std::string> budgetOpt("budget",
                                "Time to take, for example 60s or 5m (90s)",
                                cl::value_desc("time"), cl::init("90s"));
BenchOpt<int64_t> threadsOpt("threads", "Threads (default: one per CPU)",
                             cl::value_desc("n"), cl::init(0));
BenchOpt<std::string> jsonOpt("json",
                              "Write the table with every sample to a file",
                              cl::value_desc("file"));
BenchOpt<std::string> compareOpt("compare",
                                 "Compare with a file of --json; rows that are "
                                 "slower are an error",
                                 cl::value_desc("file"));
BenchOpt<bool> ordersOpt("orders",
                         "Measure the loop orders side by side instead: naive, "
                         "gather, kv_outer, q_outer, split_kv");

BenchOpt<std::string> onlyOpt("only",
                              "Kernels whose name holds this text, for example "
                              "decode",
                              cl::value_desc("text"));

BenchOpt<bool> noPeersOpt("no-peers", "Leave other people's code out");

bool wanted(StringRef kernel) { return kernel.contains(onlyOpt); }

double now() { return limits::now(limits::Timer::Wall); }

/// Rows that are measured together.
struct Group {
  std::string name;
  std::function<Expected<std::vector<BenchRow>>(double seconds)> measure;
};

/// The default and, where they differ from it, the schedule of a record and the
/// one that --schedule asks for.
Expected<std::vector<NamedSchedule>>
schedulesOf(const Specification &specification, const AttentionSpec &spec,
            Variant variant) {
  const CompileOptions &options = specification.compile;
  Expected<TileCandidate> standard = selectTile(options.machine, spec, variant);
  if (!standard)
    return standard.takeError();
  std::vector<NamedSchedule> result = {{"default", standard->schedule}};
  auto add = [&](const char *name, const Schedule &schedule) {
    if (!(schedule == standard->schedule))
      result.push_back({name, schedule});
  };
  for (const KernelSchedules &settled : options.settled)
    if (settled.spec == spec.name)
      add("tuned", settled.schedules[variant == Variant::Decode]);
  if (!options.schedule.empty()) {
    Expected<TileCandidate> given =
        selectTile(options.machine, spec, variant, options.schedule);
    if (!given)
      return given.takeError();
    add("given", given->schedule);
  }
  return result;
}

/// Steps of prompts, one whole, one in chunks, and of decoding, a short and a
/// long context; fewer where the model takes fewer tokens.
std::vector<std::pair<Variant, StepShape>> steps(const AttentionSpec &spec,
                                                 int threads, int64_t cache) {
  std::vector<std::pair<Variant, StepShape>> result;
  StepShape prefill = prefillStep(spec, threads);
  result.push_back({Variant::Prefill, prefill});
  StepShape chunk = prefill;
  chunk.qLen = std::max<int64_t>(prefill.qLen / 4, 1);
  result.push_back({Variant::Prefill, chunk});
  for (int64_t tokens : {2048, 16384})
    result.push_back(
        {Variant::Decode, decodeStep(spec, threads, cache, tokens)});
  return result;
}

Expected<std::vector<Group>> usualGroups(const Specification &specification,
                                         int threads, peers::Peers &peers) {
  const Machine &machine = specification.compile.machine;
  int64_t cache = Machine::host().l3Bytes;
  std::vector<Group> groups;
  for (const AttentionSpec &spec : specification.specs) {
    for (auto [variant, shape] : steps(spec, threads, cache)) {
      if (!wanted((spec.name + " " + nameOf(variant)).str()))
        continue;
      Expected<std::vector<NamedSchedule>> found =
          schedulesOf(specification, spec, variant);
      if (!found)
        return found.takeError();
      std::vector<NamedSchedule> schedules = std::move(*found);
      groups.push_back(
          {spec.name, [=, &spec, &machine, &peers](double seconds) {
             return benchAttention(spec, variant, machine, shape, schedules,
                                   seconds, &peers);
           }});
    }
    std::vector<int32_t> writers;
    for (int32_t role : {PAGODA_ROLE_APPEND, PAGODA_ROLE_COPY})
      if (wanted(spec.name + " " + roleName(role)))
        writers.push_back(role);
    if (writers.empty())
      continue;
    groups.push_back({spec.name, [=, &spec, &machine](double seconds) {
                        return benchCacheWrites(spec, machine, writers, 2048,
                                                threads, seconds);
                      }});
  }
  return groups;
}

/// The orders on a prompt, and flash decoding beside an undivided pass.
Expected<std::vector<Group>> orderGroups(const Specification &specification,
                                         int threads) {
  const Machine &machine = specification.compile.machine;
  int64_t cache = Machine::host().l3Bytes;
  std::vector<Group> groups;
  for (const AttentionSpec &spec : specification.specs)
    for (Variant variant : {Variant::Prefill, Variant::Decode}) {
      if (!wanted((spec.name + " " + nameOf(variant)).str()))
        continue;
      bool prefill = variant == Variant::Prefill;
      StepShape shape = prefill ? prefillStep(spec, threads)
                                : decodeStep(spec, threads, cache);
      std::vector<NamedSchedule> schedules;
      for (const char *order :
           {prefill ? "q_outer" : "split_kv", "kv_outer", "gather", "naive"}) {
        Expected<TileCandidate> tile =
            selectTile(machine, spec, variant, {std::string("order=") + order});
        if (!tile)
          return tile.takeError();
        schedules.push_back({order, tile->schedule});
      }
      groups.push_back({spec.name,
                        [=, &spec, &machine](
                            double seconds) -> Expected<std::vector<BenchRow>> {
                          auto rows = benchAttention(spec, variant, machine,
                                                     shape, schedules, seconds);
                          if (rows)
                            for (auto [row, named] : zip(*rows, schedules))
                              row.modelBytes =
                                  double(shape.batch) *
                                  orderBytes(machine, spec, named.schedule,
                                             {shape.qLen, shape.kvLen},
                                             {machine.l2Bytes})
                                      .total();
                          return rows;
                        }});
    }
  return groups;
}

llvm::Error writeJson(const Specification &specification, int threads,
                      const std::vector<BenchRow> &rows) {
  json::Object root{{"machine", specification.compile.machine.name},
                    {"cpu", Machine::host().cpu},
                    {"threads", threads},
                    {"rows", toJson(rows)}};
  return writeFile(jsonOpt,
                   formatv("{0:2}\n", json::Value(std::move(root))).str());
}

/// Says what the earlier run had and this one has not.
llvm::Error compareWith(const std::vector<BenchRow> &before,
                        const std::vector<BenchRow> &rows) {
  std::vector<RowChange> changes = compareRows(before, rows);
  outs() << "\nagainst " << compareOpt << ": " << changes.size() << " of "
         << count_if(rows, [](const BenchRow &row) { return !row.peer; })
         << " rows; a change counts beyond "
         << formatv("{0:F0}%", 100 * runToRun) << "\n\n";
  printChanges(outs(), changes);
  if (changes.empty())
    return createStringError("--compare " + compareOpt +
                             ": expected rows of the same kernels, got none");
  size_t slower =
      size_t(count_if(changes, [](const RowChange &c) { return c.slower(); }));
  if (slower)
    return createStringError(formatv("{0} of {1} rows are slower than in {2}",
                                     slower, changes.size(),
                                     compareOpt.getValue()));
  return llvm::Error::success();
}

} // namespace

llvm::Error bench() {
  double begin = now();
  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  const Machine &machine = specification->compile.machine;
  Expected<double> budget = checkMeasuring(budgetOpt, threadsOpt, machine);
  if (!budget)
    return budget.takeError();
  std::vector<BenchRow> before;
  if (!compareOpt.empty()) {
    Expected<std::vector<BenchRow>> read = readRows(compareOpt);
    if (!read)
      return read.takeError();
    before = std::move(*read);
  }
  // Before measuring: a file that cannot be written must not cost the samples.
  if (!jsonOpt.empty()) {
    std::error_code error;
    raw_fd_ostream(jsonOpt, error, sys::fs::OF_Append);
    if (error)
      return createStringError(jsonOpt + ": " + error.message());
  }
  if (llvm::Error error = useRecords(*specification))
    return error;
  int threads = ThreadPool(int(threadsOpt)).threads();
  peers::Peers peers;
  if (!noPeersOpt && !ordersOpt)
    peers = peers::findPeers(threads);
  Expected<std::vector<Group>> groups =
      ordersOpt ? orderGroups(*specification, threads)
                : usualGroups(*specification, threads, peers);
  if (!groups)
    return groups.takeError();

  if (groups->empty())
    return createStringError("--only " + onlyOpt +
                             ": expected a text of some kernel's name");
  std::vector<BenchRow> rows;
  for (size_t i = 0; i < groups->size(); ++i) {
    double left = begin + *budget - now();
    Expected<std::vector<BenchRow>> measured =
        (*groups)[i].measure(left / double(groups->size() - i));
    if (!measured)
      return measured.takeError();
    for (BenchRow &row : *measured) {
      auto spec = find_if(specification->specs, [&](const AttentionSpec &s) {
        return s.name == (*groups)[i].name;
      });
      row.spec = describe(*spec);
      rows.push_back(std::move(row));
    }
  }

  for (const AttentionSpec &spec : specification->specs)
    outs() << spec.name << ": " << describe(spec) << '\n';
  outs() << "machine " << machine.name << " (" << Machine::host().cpu << "), "
         << threads << (threads == 1 ? " thread" : " threads")
         << formatv("; {0:F0} s\n\n", now() - begin);
  ordersOpt ? printOrders(outs(), rows) : printRows(outs(), rows);
  if (!peers.missing.empty()) {
    outs() << "\npeers without a row:\n";
    for (const std::string &reason : peers.missing)
      outs() << "  " << reason << '\n';
  }
  if (!jsonOpt.empty())
    if (llvm::Error error = writeJson(*specification, threads, rows))
      return error;
  for (const BenchRow &row : rows)
    if (!row.wrong.empty())
      return createStringError(row.kernel + ", " + row.step + ", " +
                               row.variant + ": wrong output: " + row.wrong);
  return before.empty() ? llvm::Error::success() : compareWith(before, rows);
}

} // namespace pagoda
