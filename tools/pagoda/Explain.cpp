//===- Explain.cpp - pagoda explain ---------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says how the tile of each kernel was chosen and what binds the kernel: the
// steps that the compiler took (KernelSummary::tile, the very ones of gen), the
// candidates that lost, and the bytes and flops of a typical sequence.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/Roofline.h"
#include "tools/pagoda/Commands.h"
#include "tools/pagoda/Describe.h"
#include "tools/pagoda/Records.h"
#include "tools/pagoda/Report.h"
#include "tools/pagoda/SpecOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace pagoda {

cl::SubCommand &explainCommand() {
  static cl::SubCommand command(
      "explain", "Explain how the tiles of kernels are chosen, step by step, "
                 "and what limits each kernel");
  return command;
}

namespace {

cl::opt<int64_t> promptOpt("prompt-len",
                           cl::desc("New tokens of a typical prompt (default "
                                    "2048, or what the model can take)"),
                           cl::value_desc("n"), cl::sub(explainCommand()),
                           cl::cat(optionCategory()));
cl::opt<int64_t> kvOpt("kv-len",
                       cl::desc("Tokens of the whole sequence (default: "
                                "prompt-len)"),
                       cl::value_desc("n"), cl::sub(explainCommand()),
                       cl::cat(optionCategory()));
cl::opt<bool> jsonOpt("json",
                      cl::desc("Print the manifest, as gen --json does"),
                      cl::sub(explainCommand()), cl::cat(optionCategory()));

/// Columns that a line may take.
constexpr size_t width = 98;

/// "1234" or "0.0123".
std::string plain(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return std::to_string(int64_t(value));
  return formatv("{0:F4}", value).str();
}

void heading(raw_ostream &os, const Twine &text) { os << "  " << text << '\n'; }

/// The fields that the target reads, as --schedule takes them.
void printSchedule(raw_ostream &os, const Schedule &schedule, bool nvidia) {
  std::string text = schedule.str(), kept;
  size_t lineAt = 0;
  for (StringRef field : split(text, ',')) {
    if (!isRead(field.split('=').first,
                nvidia ? TargetKind::Nvidia : TargetKind::Cpu))
      continue;
    kept += kept.empty() ? "" : ",";
    if (kept.size() - lineAt + field.size() > width - 4) {
      kept += "\n  ";
      lineAt = kept.size();
    }
    kept += field.str();
  }
  os << "  " << kept << '\n';
}

/// Words of `text` in lines of `width`, the second and later ones indented.
void printWrapped(raw_ostream &os, size_t column, StringRef text) {
  size_t at = column;
  bool first = true;
  for (StringRef word : split(text, ' ')) {
    if (!first && at + 1 + word.size() > width) {
      os << '\n' << std::string(column, ' ');
      at = column;
    } else if (!first) {
      os << ' ';
      ++at;
    }
    os << word;
    at += word.size();
    first = false;
  }
  os << '\n';
}

/// One step: what came out, and from which numbers.
void printStep(raw_ostream &os, const Step &step) {
  constexpr size_t column = 46;
  std::string result = plain(step.result);
  if (!step.unit.empty())
    result += " " + step.unit.str();
  os << formatv("    {0,-28} {1,10}   ", step.name, result);
  std::string inputs;
  for (auto [name, value] : step.inputs)
    inputs += (inputs.empty() ? "" : ", ") + name.str() + " " + plain(value);
  std::string text = step.formula.str();
  if (inputs.empty())
    return printWrapped(os, column, text);
  if (column + text.size() + 3 + inputs.size() <= width)
    return printWrapped(os, column, text + " (" + inputs + ")");
  printWrapped(os, column, text);
  os << std::string(column, ' ');
  printWrapped(os, column, "(" + inputs + ")");
}

bool isPaper(const Step &step) { return step.name.starts_with("the paper's"); }

bool isLevel(const TileCandidate &tile, const Step &step) {
  return any_of(tile.levels,
                [&](const LevelUse &use) { return use.level == step.name; });
}

/// What a schedule keeps at each level of memory, and whether it fits.
void printLevels(raw_ostream &os, const TileCandidate &tile) {
  for (const LevelUse &use : tile.levels) {
    // As many parts to a line as fit a screen.
    constexpr size_t screen = 92;
    std::string parts, line;
    for (auto [name, amount] : use.parts) {
      std::string part = name.str() + " " + std::to_string(amount);
      if (!line.empty() && line.size() + part.size() > screen) {
        parts += StringRef(line).rtrim().str() + "\n      ";
        line.clear();
      }
      line += (parts.empty() && line.empty() ? "" : "+ ") + part + " ";
    }
    parts += StringRef(line).rtrim();
    std::string verdict = use.fits() ? "fits"
                          : use.hard ? "does not fit"
                                     : "over, which costs";
    std::string total = formatv("{0} of {1}{2}", use.total(), use.budget,
                                use.unit.empty() ? "" : " B");
    os << formatv("    {0,-14}{1,24}   {2}\n", use.level, total, verdict);
    os << "      " << parts << '\n';
  }
}

/// Terms of the cost that are larger in `next`, the largest difference first,
/// as many as go into `room` columns and one at least.
std::string differences(const TileCandidate &best, const TileCandidate &next,
                        size_t room) {
  std::vector<std::pair<double, StringRef>> terms;
  for (auto [a, b] : zip(best.steps, next.steps))
    if (a.name == b.name && a.unit.empty() && a.name != "cost" &&
        !isLevel(best, a) && b.result > a.result)
      terms.emplace_back(b.result - a.result, a.name);
  llvm::sort(terms, [](auto &a, auto &b) { return a.first > b.first; });
  std::string text;
  for (auto [difference, name] : terms) {
    std::string term = formatv("{0} +{1:F4}", name, difference);
    if (!text.empty() && text.size() + 2 + term.size() > room)
      break;
    text += (text.empty() ? "" : ", ") + term;
  }
  return text;
}

/// The best schedules of the search space beside the one that was taken.
void printCandidates(raw_ostream &os, const TileCandidate &taken,
                     ArrayRef<TileCandidate> ranked, bool nvidia) {
  constexpr size_t shown = 5, room = width - 46;
  heading(os,
          formatv("candidates, cheapest first ({0} ranked)", ranked.size()));
  Table table({"   ", ">q_tile", ">kv_tile", nvidia ? ">warps" : ">block",
               nvidia ? ">stages" : ">heads", ">cost", "loses by"});
  auto row = [&](const TileCandidate &tile, const TileCandidate *best) {
    const Schedule &s = tile.schedule;
    table.row({tile.schedule == taken.schedule ? "  >" : "",
               std::to_string(s.qTile), std::to_string(s.kvTile),
               nvidia ? std::to_string(s.warps)
                      : formatv("{0}x{1}", s.blockRows, s.blockVectors).str(),
               std::to_string(nvidia ? s.stages : s.heads),
               formatv("{0:F4}", tile.cost).str(),
               best ? differences(*best, tile, room) : ""});
  };
  const TileCandidate *best = ranked.empty() ? nullptr : &ranked.front();
  bool listed = false;
  for (const TileCandidate &tile : ranked.take_front(shown)) {
    row(tile, &tile == best ? nullptr : best);
    listed |= tile.schedule == taken.schedule;
  }
  if (!listed)
    row(taken, best);
  table.print(os);
}

/// Powers of 1000: "17.2 Gflop".
std::string countText(double value, StringRef unit) {
  StringRef prefix = "";
  for (StringRef next : {"k", "M", "G", "T"}) {
    if (value < 1000)
      break;
    value /= 1000;
    prefix = next;
  }
  return (numberText(value) + " " + prefix + unit).str();
}

std::string percentText(double share) {
  return formatv("{0:F0}%", 100 * share).str();
}

void printRoofline(raw_ostream &os, const Roofline &roofline,
                   const SequenceWork &work, double cost) {
  heading(os, formatv("work for {0} new token{1} at the end of {2}, one layer",
                      work.queries, work.queries == 1 ? "" : "s", work.keys));
  const Limit &binding = roofline.binding();
  for (const Limit &limit : roofline.limits)
    os << formatv("    {0,-14}{1,14}   at {2,4} {3,-4} a cycle {4,13}{5}\n",
                  limit.name, countText(limit.amount, limit.unit),
                  numberText(limit.perCycle), limit.unit,
                  countText(limit.cycles(), "cycles"),
                  &limit == &binding ? "   <- binds" : "");
  os << formatv("    should reach  {0,14}   {1} of what binds, by the cost "
                "above\n",
                countText(binding.cycles() * cost, "cycles"),
                percentText(1 / cost));
  os << formatv("    intensity     {0,14}   flop per byte of memory; memory "
                "binds below {1}\n",
                numberText(roofline.intensity()), numberText(roofline.ridge()));
  os << formatv("    read once     {0,14}   is the least; tiles read {1} times "
                "that\n",
                bytesText(roofline.leastBytes),
                numberText(roofline.memoryBytes() / roofline.leastBytes));
}

std::string describe(const Machine &machine) {
  if (machine.kind == TargetKind::Nvidia)
    return formatv("{0}: {1} of shared memory and {2} registers a thread; of "
                   "a multiprocessor",
                   machine.name, bytesText(double(machine.sharedBytes)),
                   machine.registersPerThread);
  return formatv("{0}: {1} registers of {2} f32, L1 {3} KiB, L2 {4} KiB; of "
                 "one core",
                 machine.name, machine.vectorRegisters, machine.lanesF32(),
                 machine.l1Bytes / 1024, machine.l2Bytes / 1024);
}

void printKernel(raw_ostream &os, const KernelSummary &kernel,
                 const AttentionSpec &spec, const Machine &machine,
                 const SequenceWork &work, int64_t tokens) {
  const TileCandidate &tile = *kernel.tile;
  Variant variant =
      kernel.role == "prefill" ? Variant::Prefill : Variant::Decode;
  bool nvidia = machine.kind == TargetKind::Nvidia;
  os << '\n' << kernel.name << '\n';
  printSchedule(os, tile.schedule, nvidia);
  heading(os, "where it starts: FlashAttention, Algorithm 1, for M elements of "
              "fast memory");
  for (const Step &step : tile.steps)
    if (isPaper(step))
      printStep(os, step);
  heading(os, "what stays where");
  printLevels(os, tile);
  heading(os, "cost, relative to a kernel at the machine's limit");
  for (const Step &step : tile.steps)
    if (!isPaper(step) && !isLevel(tile, step))
      printStep(os, step);
  printCandidates(os, tile, rankTiles(machine, spec, variant, tokens), nvidia);
  auto printWork = [&](const SequenceWork &of) {
    printRoofline(os, roofline(machine, spec, tile.schedule, of), of,
                  tile.cost);
  };
  printWork(work);
  if (nvidia && work.queries > 1) // the same kernel decodes
    printWork({1, work.keys});
}

/// The lengths to judge by.
Expected<SequenceWork> readWork(const Specification &specification) {
  constexpr int64_t typical = 2048, longest = 1 << 20;
  SequenceWork work{typical, typical};
  if (specification.model && specification.model->maxLength)
    work.queries = std::min(work.queries, specification.model->maxLength);
  if (promptOpt.getNumOccurrences())
    work.queries = promptOpt;
  work.keys = kvOpt.getNumOccurrences() ? kvOpt : work.queries;
  if (work.keys < 1 || work.keys > longest)
    return createStringError(
        formatv("--{0} {1}: expected a number from 1 to {2}",
                kvOpt.getNumOccurrences() ? "kv-len" : "prompt-len", work.keys,
                longest));
  // A shorter sequence has a shorter prompt, unless one was asked for.
  if (!promptOpt.getNumOccurrences())
    work.queries = std::min(work.queries, work.keys);
  if (work.queries < 1 || work.queries > work.keys)
    return createStringError(
        formatv("--prompt-len {0}: expected a number from 1 to the {1} tokens "
                "of the sequence",
                work.queries, work.keys));
  return work;
}

} // namespace

llvm::Error explain() {
  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  Expected<SequenceWork> work = readWork(*specification);
  if (!work)
    return work.takeError();
  if (llvm::Error error = useRecords(*specification))
    return error;
  const CompileOptions &options = specification->compile;
  std::optional<Artifact> artifact;
  auto attempt = [&](const Specification &s) {
    Expected<Artifact> made = describe(s.specs, s.compile);
    if (made)
      artifact = std::move(*made);
    return made.takeError();
  };
  if (llvm::Error error = withRecords(*specification, attempt))
    return error;
  raw_ostream &os = outs();
  if (jsonOpt) {
    os << formatv("{0:2}\n", manifest(*artifact, provenanceOf(*specification)));
    return llvm::Error::success();
  }
  std::vector<const Machine *> machines = {&options.machine};
  for (const Machine &machine : options.variants)
    machines.push_back(&machine);
  for (const Machine *machine : machines)
    os << describe(*machine) << '\n';
  for (const AttentionSpec &spec : specification->specs) {
    os << '\n' << spec.name;
    if (specification->model)
      os << ": " << describeLayers(*specification->model, spec.name);
    os << "\n  ";
    printWrapped(os, 2, describe(spec));
    for (const std::string &line : describeValues(
             spec, specification->model ? &*specification->model : nullptr)) {
      os << "  ";
      printWrapped(os, 2, line);
    }
    for (const Machine *machine : machines)
      for (const KernelSummary &kernel : artifact->kernels) {
        if (kernel.spec != spec.name || kernel.target != machine->name ||
            !kernel.tile)
          continue;
        bool one = kernel.role == "prefill" || kernel.role == "decode";
        int64_t tokens = one ? 1 : specification->compile.decodeTokens;
        printKernel(os, kernel, spec, *machine,
                    kernel.role == "prefill" ? *work
                                             : SequenceWork{tokens, work->keys},
                    tokens);
      }
  }
  if (!specification->notes.empty())
    os << '\n';
  for (const std::string &note : specification->notes) {
    os << "note: ";
    printWrapped(os, 6, note);
  }
  return llvm::Error::success();
}

} // namespace pagoda
