//===- Plan.cpp - pagoda plan ---------------------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a model and a load from the command line and reports the memory that
// they take. What is reported is in PlanReport.cpp, the drawings in
// PlanDraw.cpp.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Commands.h"
#include "tools/pagoda/PlanReport.h"
#include "tools/pagoda/SpecOptions.h"

#include "compiler/tiling/SramFit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <map>

using namespace llvm;

namespace pagoda {

cl::SubCommand &planCommand() {
  static cl::SubCommand command(
      "plan", "Memory that a model's KV cache takes for a load: paged against "
              "contiguous");
  return command;
}

namespace {

template <typename T> struct PlanOpt : cl::opt<T> {
  template <typename... Mods>
  explicit PlanOpt(StringRef name, const char *help, const Mods &...mods)
      : cl::opt<T>(name, cl::desc(help), cl::sub(planCommand()),
                   cl::cat(optionCategory()), mods...) {}
  bool given() const { return this->getNumOccurrences() > 0; }
};

struct PlanList : cl::list<int64_t> {
  PlanList(StringRef name, const char *help)
      : cl::list<int64_t>(name, cl::desc(help), cl::value_desc("n,n,..."),
                          cl::CommaSeparated, cl::sub(planCommand()),
                          cl::cat(optionCategory())) {}
};

PlanOpt<int64_t> seqsOpt("seqs", "Sequences (default 4)", cl::value_desc("n"),
                         cl::init(4));
PlanOpt<int64_t> promptOpt("prompt-len",
                           "Tokens of each prompt, the shared prefix included "
                           "(default 512)",
                           cl::value_desc("n"), cl::init(512));
PlanOpt<int64_t> decodeOpt("decode-steps",
                           "Tokens each sequence decodes (default 8)",
                           cl::value_desc("n"), cl::init(8));
PlanList lengthsOpt("lengths", "Tokens of each sequence, instead of --seqs, "
                               "--prompt-len and --decode-steps");
PlanOpt<int64_t> prefixOpt("shared-prefix",
                           "Tokens that all sequences begin with (default 0)",
                           cl::value_desc("n"), cl::init(0));
PlanOpt<int64_t> maxLenOpt("max-len",
                           "Longest sequence, which contiguous memory is "
                           "reserved for (default: the model's, or the longest "
                           "one here)",
                           cl::value_desc("n"));
PlanOpt<std::string> reserveOpt("reserve",
                                "Contiguous memory is reserved for max-len "
                                "tokens (max, default) or for the sequence's "
                                "own (length)",
                                cl::value_desc("max|length"), cl::init("max"));
PlanOpt<std::string> memoryOpt("memory",
                               "Memory for the cache, for example 24GiB: how "
                               "many sequences it holds",
                               cl::value_desc("size"));
PlanOpt<std::string> tablesOpt("tables",
                               "Block tables of a sequence: one for the layers "
                               "of a kind (shared, default) or one for each "
                               "(per-layer)",
                               cl::value_desc("shared|per-layer"),
                               cl::init("shared"));
PlanOpt<int64_t> layersOpt("layers", "Layers, without --config (default 1)",
                           cl::value_desc("n"), cl::init(1));
PlanOpt<std::string> mlaOpt("mla",
                            "What latent attention caches: the latent rows "
                            "(latent, default) or the heads' K and V "
                            "(expanded)",
                            cl::value_desc("latent|expanded"),
                            cl::init("latent"));
PlanOpt<bool> drawOpt("draw", "Draw the pools block by block");
PlanList endedOpt("ended", "Sequences that end, by number from 1, before the "
                           "pools are looked at");
PlanOpt<int64_t> nextOpt("next",
                         "Tokens of one more request, after those have ended",
                         cl::value_desc("n"));
PlanOpt<bool> jsonOpt("json", "Report as JSON");

/// Longer sequences would not fit their positions.
constexpr int64_t MostTokens = int64_t(1) << 30;
/// Larger pools are not replayed.
constexpr int64_t MostBlocks = 1 << 16, MostRequests = 1024;

template <typename T>
llvm::Error bad(const PlanOpt<T> &option, const Twine &expected) {
  return createStringError(formatv("--{0} {1}: expected {2}", option.ArgStr,
                                   option.getValue(), expected.str()));
}

llvm::Error inRange(StringRef name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high)
    return llvm::Error::success();
  return createStringError(formatv(
      "--{0} {1}: expected a number from {2} to {3}", name, value, low, high));
}

llvm::Error oneOf(const PlanOpt<std::string> &option, StringRef a,
                  StringRef b) {
  if (option == a || option == b)
    return llvm::Error::success();
  return bad(option, a + " or " + b);
}

/// "24GiB", "1.5GB", "4096": bytes.
Expected<int64_t> parseMemory(StringRef text) {
  auto refuse = [&] {
    return createStringError("--memory " + text +
                             ": expected a size greater than 0 and less than "
                             "2^63 bytes, for example 24GiB or 80GB");
  };
  size_t digits = text.find_first_not_of("0123456789.");
  StringRef number = text.substr(0, digits);
  StringRef unit = text.substr(number.size()).trim();
  double scale = StringSwitch<double>(unit)
                     .Cases({"", "B"}, 1)
                     .Case("kB", 1e3)
                     .Case("MB", 1e6)
                     .Case("GB", 1e9)
                     .Case("TB", 1e12)
                     .Case("KiB", 0x1p10)
                     .Case("MiB", 0x1p20)
                     .Case("GiB", 0x1p30)
                     .Case("TiB", 0x1p40)
                     .Default(0);
  double value = 0;
  if (number.empty() || number.getAsDouble(value) || value * scale < 1 ||
      value * scale >= 0x1p63)
    return refuse();
  return int64_t(value * scale);
}

Expected<PlanLoad> readLoad(const Specification &specification) {
  PlanLoad load;
  if (lengthsOpt.getNumOccurrences()) {
    for (const cl::Option *option : std::initializer_list<const cl::Option *>{
             &seqsOpt, &promptOpt, &decodeOpt})
      if (option->getNumOccurrences())
        return createStringError("--" + option->ArgStr +
                                 ": not together with --lengths, which says "
                                 "it");
    for (int64_t length : lengthsOpt) {
      if (llvm::Error error = inRange("lengths", length, 0, MostTokens))
        return std::move(error);
      load.sequences.push_back({int32_t(length), 1});
    }
  } else {
    struct {
      const PlanOpt<int64_t> &option;
      int64_t low, high;
    } const ranges[] = {{seqsOpt, 1, int64_t(1) << 40},
                        {promptOpt, 1, MostTokens / 2},
                        {decodeOpt, 0, MostTokens / 2}};
    for (const auto &range : ranges)
      if (llvm::Error error =
              inRange(range.option.ArgStr, range.option, range.low, range.high))
        return std::move(error);
    load.sequences.push_back({int32_t(promptOpt + decodeOpt), seqsOpt});
  }
  if (maxLenOpt.given())
    if (llvm::Error error = inRange("max-len", maxLenOpt, 1, MostTokens))
      return std::move(error);
  int64_t limit = maxLenOpt;
  std::string source = "--max-len";
  if (!maxLenOpt.given() && specification.model) {
    limit = std::min(specification.model->maxLength, MostTokens);
    source = "the model's longest";
  }
  auto tooLong = [&](StringRef options, int64_t tokens) {
    return createStringError(
        formatv("{0}: expected at most {1} tokens in a sequence, {2}, got {3}",
                options, limit, source, tokens));
  };
  if (limit > 0 && load.longest() > limit)
    return tooLong(lengthsOpt.getNumOccurrences()
                       ? "--lengths"
                       : "--prompt-len and --decode-steps",
                   load.longest());
  load.maxLength = int32_t(
      limit > 0 ? limit : std::max<int64_t>({1, load.longest(), nextOpt}));
  load.reserveMax = reserveOpt == "max";

  int32_t shortest = load.longest();
  for (const SequenceLoad &some : load.sequences)
    shortest = std::min(shortest, some.tokens);
  if (!lengthsOpt.getNumOccurrences())
    shortest = int32_t(promptOpt);
  if (llvm::Error error = inRange("shared-prefix", prefixOpt, 0, shortest))
    return std::move(error);
  load.sharedPrefix = int32_t(prefixOpt);
  if (nextOpt.given())
    if (llvm::Error error = inRange("next", nextOpt, 1, MostTokens))
      return std::move(error);
  if (limit > 0 && nextOpt > limit)
    return tooLong("--next", nextOpt);
  for (int64_t number : endedOpt)
    if (llvm::Error error = inRange("ended", number, 1, load.count()))
      return std::move(error);
  return load;
}

KindPlan kindOf(const AttentionSpec &spec, StringRef name, int64_t layers,
                const AttentionSpec &common, DType type, bool latent) {
  KindPlan kind;
  kind.name = name.str();
  KvFormat &format = kind.layers.format;
  format.kvHeads = int32_t(spec.kvHeads);
  format.headDim = int32_t(spec.headDim);
  format.vHeadDim = int32_t(spec.vHeadDim);
  format.blockSize = int32_t(common.blockSize);
  format.layout = int32_t(common.layout);
  format.kType = format.vType = int32_t(type);
  format.vInsideK = latent;
  kind.layers.layers = int32_t(layers);
  kind.layers.tables = tablesOpt == "shared" ? 1 : int32_t(layers);
  // A chunk bounds what a query sees as a window of its length does. Who sees
  // the future lets go of nothing.
  int64_t window =
      std::min(spec.window.value_or(INT32_MAX), spec.chunk.value_or(INT32_MAX));
  if (common.causal && window < INT32_MAX)
    kind.layers.keeps.window = int32_t(window);
  kind.chunks = spec.chunk.has_value();
  return kind;
}

/// The kinds of a model, layers that read another layer's cache left out.
void addModel(MemoryReport &report, const Specification &specification,
              DType type) {
  const ModelConfig &model = *specification.model;
  std::map<std::string, int64_t> without;
  bool latent = model.mla && mlaOpt == "latent";
  for (const LayerKind &kind : model.kinds) {
    if (!kind.hasKvCache) {
      without[kind.name] += int64_t(kind.layers.size());
      continue;
    }
    int64_t own = count_if(kind.layers, [&](int64_t layer) {
      return model.kvSource[layer] == layer;
    });
    if (int64_t shared = int64_t(kind.layers.size()) - own)
      without[kind.name + " (another layer's)"] += shared;
    if (!own)
      continue;
    AttentionSpec spec = latent ? model.latentSpec(kind) : kind.spec;
    report.kinds.push_back(
        kindOf(spec, latent ? kind.name + " (latent)" : kind.name, own,
               specification.specs.front(), type, latent));
  }
  report.without.assign(without.begin(), without.end());
}

bool wasGiven(StringRef option) {
  const auto &known = cl::getRegisteredOptions(planCommand());
  auto it = known.find(option);
  return it != known.end() && it->second->getNumOccurrences() > 0;
}

ScoreMatrix scoresOf(const Specification &specification, const PlanLoad &load) {
  ScoreMatrix scores;
  scores.tokens = load.longest();
  scores.elements = scores.tokens * scores.tokens;
  // A tile's size is of interest where there is a kernel; where there is none,
  // gen says why.
  Expected<TileCandidate> tile =
      selectTile(specification.compile.machine, specification.specs.front(),
                 Variant::Prefill, specification.compile.schedule);
  if (tile) {
    scores.qTile = tile->schedule.qTile;
    scores.kvTile = tile->schedule.kvTile;
  } else {
    consumeError(tile.takeError());
  }
  return scores;
}

/// One contiguous pool, and a paged one for each kind.
Expected<std::vector<ReplayedPool>> replayAll(const MemoryReport &report) {
  const PlanLoad &load = report.load;
  int64_t blockSize = report.kinds.front().layers.format.blockSize;
  int64_t blocks = 0;
  if (report.memory) {
    // As many blocks in every layer.
    int64_t each = 0;
    for (const KindPlan &kind : report.kinds)
      each += kind.layers.layers * kind.layers.format.blockBytes();
    blocks = *report.memory / each;
  } else {
    for (const SequenceLoad &some : load.sequences)
      blocks += some.count *
                ((load.reserve(some.tokens) + blockSize - 1) / blockSize);
  }
  if (blocks > MostBlocks || load.count() > MostRequests)
    return createStringError(formatv(
        "--draw, --ended and --next: expected at most {0} blocks and {1} "
        "sequences, got {2} and {3}: give a smaller load, --max-len or "
        "--memory",
        countText(MostBlocks), countText(MostRequests), countText(blocks),
        countText(load.count())));
  Replay what;
  what.pool.blocks = int32_t(blocks);
  what.pool.blockSize = int32_t(blockSize);
  what.pool.maxRequests = int32_t(load.count()) + 1;
  what.pool.maxTokens = load.maxLength;
  for (int64_t number : endedOpt)
    what.ended.push_back(int32_t(number - 1));
  if (nextOpt.given())
    what.next = int32_t(nextOpt);
  what.pool.kind = PoolOptions::Contiguous;
  std::vector<ReplayedPool> pools = {replay(load, what, "contiguous")};
  what.pool.kind = PoolOptions::Paged;
  what.pool.sharedPrefix = load.sharedPrefix;
  for (const KindPlan &kind : report.kinds) {
    what.pool.keeps = kind.layers.keeps;
    pools.push_back(replay(load, what, "paged, " + kind.name));
  }
  return pools;
}

llvm::Error checkOptions() {
  if (llvm::Error error = oneOf(tablesOpt, "shared", "per-layer"))
    return error;
  if (llvm::Error error = oneOf(reserveOpt, "max", "length"))
    return error;
  if (llvm::Error error = oneOf(mlaOpt, "latent", "expanded"))
    return error;
  return inRange("layers", layersOpt, 1, 1 << 16);
}

} // namespace

llvm::Error plan() {
  if (llvm::Error error = checkOptions())
    return error;
  Expected<Specification> specification = readSpecification();
  if (!specification)
    return specification.takeError();
  const AttentionSpec &common = specification->specs.front();
  MemoryReport report;
  DType type = common.kvType;
  if (const std::optional<ModelConfig> &model = specification->model) {
    if (layersOpt.given())
      return createStringError(
          "--layers: not together with --config, which says it");
    if (!wasGiven("dtype") && !wasGiven("kv-dtype"))
      type = model->dtype;
    addModel(report, *specification, type);
    report.title = sys::path::stem(model->fileName).str() + ": ";
  } else {
    report.kinds.push_back(
        kindOf(common, common.name, layersOpt, common, type, false));
  }
  report.title +=
      formatv("{0} cache in blocks of {1}, {2}", dtypeName(int32_t(type)),
              common.blockSize,
              tablesOpt == "shared" ? "one block table for the layers of a kind"
                                    : "a block table for each layer");
  if (specification->model && specification->model->tensorParallel > 1)
    report.title +=
        formatv("; one of {0} ranks", specification->model->tensorParallel);
  Expected<PlanLoad> load = readLoad(*specification);
  if (!load)
    return load.takeError();
  report.load = std::move(*load);
  if (memoryOpt.given()) {
    Expected<int64_t> memory = parseMemory(memoryOpt);
    if (!memory)
      return memory.takeError();
    report.memory = *memory;
  }
  report.scores = scoresOf(*specification, report.load);
  planKinds(report);

  std::vector<ReplayedPool> pools;
  if (drawOpt || nextOpt.given() || !endedOpt.empty()) {
    Expected<std::vector<ReplayedPool>> replayed = replayAll(report);
    if (!replayed)
      return replayed.takeError();
    pools = std::move(*replayed);
  }
  if (jsonOpt) {
    json::Object object = toJson(report);
    if (!pools.empty())
      object["pools"] = toJson(pools);
    outs() << formatv("{0:2}\n", json::Value(std::move(object)));
    return llvm::Error::success();
  }
  printReport(outs(), report);
  if (!pools.empty()) {
    outs() << '\n';
    printPools(outs(), pools,
               nextOpt.given() ? std::optional(int32_t(nextOpt))
                               : std::nullopt);
  }
  if (drawOpt) {
    outs() << '\n';
    drawPools(outs(), pools);
  }
  return llvm::Error::success();
}

} // namespace pagoda
