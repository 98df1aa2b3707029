//===- SpecOptions.cpp - What to compile, from the command line -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options and their checks.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/SpecOptions.h"

#include "tools/pagoda/Commands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace llvm;

namespace pagoda {

namespace {

template <typename T> struct Opt : cl::opt<T> {
  template <typename... Mods>
  explicit Opt(StringRef name, const char *help, const Mods &...mods)
      : cl::opt<T>(name, cl::desc(help), cl::sub(genCommand()),
                   cl::sub(explainCommand()), cl::sub(planCommand()),
                   cl::sub(runCommand()), cl::sub(tuneCommand()),
                   cl::sub(benchCommand()), cl::cat(optionCategory()),
                   mods...) {}
  bool given() const { return this->getNumOccurrences() > 0; }
};

Opt<std::string> configOpt("config", "A model's config.json",
                           cl::value_desc("file"));
Opt<int64_t> headsOpt("heads", "Query heads", cl::value_desc("n"));
Opt<int64_t> kvHeadsOpt("kv-heads",
                        "KV heads (default: as many as query heads)",
                        cl::value_desc("n"));
Opt<int64_t> headDimOpt("head-dim", "Dimensions of a head of q and k",
                        cl::value_desc("n"));
Opt<int64_t> vHeadDimOpt("v-head-dim",
                         "Dimensions of a head of v and o (default: head-dim)",
                         cl::value_desc("n"));
Opt<int64_t> blockSizeOpt("block-size", "Tokens in a cache block (default 16)",
                          cl::value_desc("n"), cl::init(16));
Opt<std::string> layoutOpt("layout",
                           "Order inside a block: hnd (head major, default) or "
                           "nhd (token major)",
                           cl::value_desc("hnd|nhd"), cl::init("hnd"));
Opt<std::string> dtypeOpt("dtype",
                          "Element type of q and o: f32, f16 or bf16 (default: "
                          "the config's where the target is made for it, else "
                          "f32)",
                          cl::value_desc("type"));
Opt<std::string> kvDtypeOpt("kv-dtype",
                            "Element type of the cache (default: that of q)",
                            cl::value_desc("type"));
Opt<bool> causalOpt("causal", "A query sees no key after it (default)");
Opt<bool> noCausalOpt("no-causal", "A query sees all keys");
Opt<int64_t> windowOpt("window", "Keys a query sees, itself included",
                       cl::value_desc("n"));
Opt<int64_t> chunkOpt("attention-chunk",
                      "Positions per chunk; a query sees its own chunk",
                      cl::value_desc("n"));
Opt<double> softcapOpt("softcap", "Soft cap c of scores: c * tanh(score / c)",
                       cl::value_desc("x"));
Opt<bool> sinksOpt("sinks", "One sink logit per query head");
Opt<bool> prefixLmOpt("prefix-lm",
                      "The first keys of a sequence, as many as prefix_lens "
                      "says, are seen by all its queries");
Opt<int64_t> rotaryDimOpt("rotary-dim",
                          "Leading dims of a key that the append kernel "
                          "rotates (default: none)",
                          cl::value_desc("n"));
Opt<bool> ropeInterleavedOpt("rope-interleaved",
                             "Rotated dims pair up as neighbours, not halves");
Opt<double> scaleOpt("scale",
                     "Softmax scale (default: 1/sqrt(head-dim), or the "
                     "model's)",
                     cl::value_desc("x"));
Opt<int64_t> tpOpt("tp", "Ranks that share the model's heads (with --config)",
                   cl::value_desc("n"), cl::init(1));
Opt<int64_t> rankOpt("tp-rank",
                     "Which rank of --tp, from 0 (default): the library is the "
                     "same for all, ALiBi slopes are those of its heads",
                     cl::value_desc("n"), cl::init(0));
Opt<std::string> targetOpt("target",
                           "Machine to compile for: host (this one, default), "
                           "x86-64-v3, x86-64-v4, avx512-bf16, neon, sm_80, "
                           "...; several CPUs separated by commas make one "
                           "library with variants",
                           cl::value_desc("name"), cl::init("host"));
cl::opt<std::string> nameOpt("name",
                             cl::desc("Base name of the files and prefix of "
                                      "the kernels' names (default: "
                                      "attention)"),
                             cl::value_desc("name"), cl::init("attention"),
                             cl::sub(genCommand()), cl::sub(explainCommand()),
                             cl::cat(optionCategory()));
cl::opt<std::string> modsOpt(
    "mods",
    cl::desc("Mask and score functions: kv_range, mask_mod, score_mod (see "
             "README)"),
    cl::value_desc("file.mlir"), cl::sub(genCommand()),
    cl::sub(explainCommand()), cl::sub(runCommand()),
    cl::cat(optionCategory()));
cl::opt<int64_t> decodeTokensOpt(
    "decode-tokens",
    cl::desc("Query tokens of a sequence that decode takes at once, as "
             "speculative decoding does: more than 1 (default) adds a kernel "
             "for up to so many (CPU)"),
    cl::value_desc("n"), cl::init(1), cl::sub(genCommand()),
    cl::sub(explainCommand()), cl::sub(runCommand()),
    cl::cat(optionCategory()));
cl::list<std::string> scheduleOpt(
    "schedule",
    cl::desc("Overrides of the schedule, for example kv_tile=64, or "
             "prefill.q_tile=96 for one kernel of the two"),
    cl::value_desc("key=value,..."), cl::CommaSeparated, cl::sub(genCommand()),
    cl::sub(explainCommand()), cl::sub(runCommand()), cl::sub(benchCommand()),
    cl::cat(optionCategory()));

template <typename T>
llvm::Error bad(const Opt<T> &option, const Twine &expected) {
  std::string value;
  raw_string_ostream os(value);
  if constexpr (std::is_same_v<T, double>)
    os << format("%g", option.getValue());
  else
    os << option.getValue();
  return createStringError("--" + option.ArgStr + " " + value + ": expected " +
                           expected);
}

llvm::Error outOfRange(const Opt<int64_t> &option, int64_t lowest,
                       int64_t highest) {
  if (option.given() && (option < lowest || option > highest))
    return bad(option,
               "a number from " + Twine(lowest) + " to " + Twine(highest));
  return llvm::Error::success();
}

/// One shape: the option, or what is known; both must agree.
Expected<int64_t> settle(const Opt<int64_t> &option, int64_t known,
                         const KnownShape &from) {
  if (llvm::Error error = outOfRange(option, 1, 1 << 16))
    return std::move(error);
  if (option.given() && known && option != known)
    return bad(option, Twine(known) + " as in " + from.source);
  return option.given() ? int64_t(option) : known;
}

Expected<AttentionSpec> specFromOptions(const KnownShape &known) {
  AttentionSpec spec;
  struct {
    const Opt<int64_t> &option;
    int64_t known;
    int64_t &result;
  } const shapes[] = {{headsOpt, known.qHeads, spec.qHeads},
                      {kvHeadsOpt, known.kvHeads, spec.kvHeads},
                      {headDimOpt, known.headDim, spec.headDim},
                      {vHeadDimOpt, known.vHeadDim, spec.vHeadDim}};
  for (const auto &shape : shapes) {
    Expected<int64_t> value = settle(shape.option, shape.known, known);
    if (!value)
      return value.takeError();
    shape.result = *value;
  }
  if (!spec.qHeads || !spec.headDim)
    return createStringError(
        "nothing to work on: give --config, or --heads and --head-dim");
  if (!spec.kvHeads)
    spec.kvHeads = spec.qHeads;
  if (!spec.vHeadDim)
    spec.vHeadDim = spec.headDim;
  if (spec.qHeads % spec.kvHeads)
    return createStringError(
        formatv("--kv-heads {0}: expected a divisor of the {1} query heads",
                spec.kvHeads, spec.qHeads));
  spec.scale = 1 / std::sqrt(double(spec.headDim));
  if (windowOpt.given())
    spec.window = windowOpt;
  if (chunkOpt.given())
    spec.chunk = chunkOpt;
  if (softcapOpt.given())
    spec.softcap = softcapOpt;
  spec.sinks = sinksOpt;
  spec.prefixLm = prefixLmOpt;
  if (rotaryDimOpt.given() &&
      (rotaryDimOpt < 2 || rotaryDimOpt % 2 || rotaryDimOpt > spec.headDim))
    return bad(rotaryDimOpt,
               "an even number from 2 to the head dim " + Twine(spec.headDim));
  if (ropeInterleavedOpt && !rotaryDimOpt.given())
    return createStringError("--rope-interleaved: expected --rotary-dim "
                             "beside it");
  spec.rotaryDim = rotaryDimOpt;
  spec.ropeInterleaved = ropeInterleavedOpt;
  if (noCausalOpt && (spec.window || spec.chunk || spec.prefixLm))
    return createStringError("--no-causal: expected a causal mask with "
                             "--window, --attention-chunk and --prefix-lm");
  return spec;
}

/// Where a config.json is given, it alone says what the model is.
llvm::Error refuseWithConfig() {
  const cl::Option *const options[] = {
      &headsOpt,    &kvHeadsOpt,   &headDimOpt,        &vHeadDimOpt,
      &windowOpt,   &chunkOpt,     &softcapOpt,        &sinksOpt,
      &prefixLmOpt, &rotaryDimOpt, &ropeInterleavedOpt};
  for (const cl::Option *option : options)
    if (option->getNumOccurrences())
      return createStringError("--" + option->ArgStr +
                               ": not together with --config, which says it");
  return llvm::Error::success();
}

llvm::Error readModel(Specification &result) {
  if (configOpt.empty())
    return createStringError("--config '': expected a file");
  ImportOptions options;
  options.tensorParallel = tpOpt;
  options.tensorParallelRank = rankOpt;
  Expected<ModelConfig> model = loadModelConfig(configOpt, options);
  if (!model)
    return model.takeError();
  result.specs = model->specs();
  if (result.specs.empty())
    return createStringError(configOpt.getValue() +
                             ": no layer of this model keeps a KV cache");
  for (const AttentionSpec &spec : result.specs) {
    int64_t layers = 0;
    for (const LayerKind *kind : model->kindsServedBy(spec.name))
      layers += int64_t(kind->layers.size());
    result.layers.push_back(layers);
  }
  result.model = std::move(*model);
  return llvm::Error::success();
}

std::optional<DType> parseType(StringRef text) {
  return StringSwitch<std::optional<DType>>(text)
      .Case("f32", DType::F32)
      .Case("f16", DType::F16)
      .Case("bf16", DType::BF16)
      .Default(std::nullopt);
}

/// Whether config.json says what type the weights are of.
bool statesType(const ModelConfig &model) {
  return llvm::none_of(model.defaults, [](const DefaultTaken &taken) {
    return StringRef(taken.field).ends_with("dtype");
  });
}

/// What GPU kernels cannot do, in the words of the options and of the file.
llvm::Error checkGpu(const Specification &result) {
  const Machine &machine = result.compile.machine;
  if (machine.kind != TargetKind::Nvidia || planCommand())
    return llvm::Error::success();
  for (const AttentionSpec &spec : result.specs) {
    std::string from = configOpt.given()
                           ? configOpt.getValue() + ": " + spec.name + ": "
                           : std::string();
    for (auto [name, dim] : {std::pair("head dim", spec.headDim),
                             std::pair("v head dim", spec.vHeadDim)})
      if (dim > mostGpuHeadDim)
        return createStringError(
            formatv("{0}{1} is {2}, kernels of {3} have at most {4}", from,
                    name, dim, machine.name, mostGpuHeadDim));
    if (spec.kvType != spec.qType)
      return bad(kvDtypeOpt, Twine(nameOf(spec.qType)) +
                                 ", the type of q, on " + machine.name);
  }
  return llvm::Error::success();
}

/// Sets the element types of all specs.
llvm::Error chooseTypes(Specification &result) {
  const Machine &machine = result.compile.machine;
  DType type = result.model ? result.model->dtype : DType::F32;
  if (dtypeOpt.given()) {
    std::optional<DType> given = parseType(dtypeOpt);
    if (!given)
      return bad(dtypeOpt, "f32, f16 or bf16");
    type = *given;
  } else if (!convertsType(machine, type)) {
    std::string source = "without --config the data type is f32";
    if (result.model && statesType(*result.model))
      source =
          formatv("{0}: data type is {1}", configOpt.getValue(), nameOf(type))
              .str();
    else if (result.model)
      source = configOpt.getValue() + ": states no data type";
    if (!convertsType(machine, DType::F32))
      return createStringError(source + ", " + machine.name +
                               " has kernels of f16 and bf16: choose one with "
                               "--dtype");
    result.notes.push_back(source + "; kernels of " + machine.name +
                           " are f32 unless --dtype says otherwise");
    type = DType::F32;
  }
  DType kvType = type;
  if (kvDtypeOpt.given()) {
    std::optional<DType> given = parseType(kvDtypeOpt);
    if (!given)
      return bad(kvDtypeOpt, "f32, f16 or bf16");
    kvType = *given;
  }
  for (AttentionSpec &spec : result.specs) {
    spec.qType = type;
    spec.kvType = kvType;
  }
  return llvm::Error::success();
}

llvm::Error readTargets(CompileOptions &compile) {
  SmallVector<StringRef> names;
  StringRef(targetOpt).split(names, ',');
  if (names.size() > 1 && (runCommand() || tuneCommand() || benchCommand()))
    return bad(targetOpt, "one machine, since one runs the kernels");
  for (auto [index, name] : llvm::enumerate(names)) {
    Expected<Machine> machine = Machine::named(name);
    if (!machine)
      return createStringError("--target " + targetOpt + ": " +
                               toString(machine.takeError()));
    if (index == 0)
      compile.machine = std::move(*machine);
    else
      compile.variants.push_back(std::move(*machine));
  }
  if (llvm::Error error = checkTargets(compile))
    return createStringError("--target " + targetOpt + ": " +
                             toString(std::move(error)));
  return llvm::Error::success();
}

/// The name must do as a C identifier: the header declares it.
llvm::Error checkName() {
  StringRef name = nameOpt;
  if (name.empty() || isDigit(name[0]) ||
      !all_of(name, [](char c) { return isAlnum(c) || c == '_'; }))
    return createStringError("--name '" + name + "': expected a C identifier");
  return llvm::Error::success();
}

/// The options that hold for models and single shapes alike.
void applyCommon(AttentionSpec &spec) {
  spec.blockSize = blockSizeOpt;
  spec.layout = layoutOpt == "nhd" ? KvLayout::NHD : KvLayout::HND;
  if (noCausalOpt)
    spec.causal = false;
  if (scaleOpt.given())
    spec.scale = scaleOpt;
}

} // namespace

Expected<Specification> readSpecification(const KnownShape &known) {
  if (llvm::Error error = outOfRange(blockSizeOpt, 1, 256))
    return std::move(error);
  for (const Opt<int64_t> *option : {&windowOpt, &chunkOpt, &tpOpt})
    if (llvm::Error error = outOfRange(*option, 1, INT32_MAX))
      return std::move(error);
  if (layoutOpt != "nhd" && layoutOpt != "hnd")
    return bad(layoutOpt, "hnd or nhd");
  if (llvm::Error error = checkName())
    return std::move(error);
  if (causalOpt && noCausalOpt)
    return createStringError("--causal and --no-causal exclude each other");
  for (const Opt<double> *option : {&softcapOpt, &scaleOpt})
    if (option->given() && !(*option > 0 && std::isfinite(*option)))
      return bad(*option, "a number greater than 0");
  if (tpOpt.given() && !configOpt.given())
    return bad(tpOpt, "--config beside it");
  if (rankOpt.given() && !tpOpt.given())
    return bad(rankOpt, "--tp beside it");
  if (llvm::Error error = outOfRange(rankOpt, 0, tpOpt - 1))
    return std::move(error);

  Specification result;
  if (configOpt.given()) {
    if (llvm::Error error = refuseWithConfig())
      return std::move(error);
    if (llvm::Error error = readModel(result))
      return std::move(error);
  } else {
    Expected<AttentionSpec> spec = specFromOptions(known);
    if (!spec)
      return spec.takeError();
    result.specs.push_back(std::move(*spec));
    result.layers.push_back(1);
  }
  for (AttentionSpec &spec : result.specs)
    applyCommon(spec);
  if (llvm::Error error = readTargets(result.compile))
    return std::move(error);
  if (llvm::Error error = chooseTypes(result))
    return std::move(error);
  if (llvm::Error error = checkGpu(result))
    return std::move(error);
  result.compile.name = nameOpt;
  if (!modsOpt.empty()) {
    auto text = MemoryBuffer::getFile(modsOpt, /*IsText=*/true);
    if (!text)
      return createStringError("--mods " + modsOpt + ": " +
                               text.getError().message());
    result.compile.mods = (*text)->getBuffer().str();
    result.compile.modsFile = modsOpt;
    if (result.compile.mods.empty())
      return createStringError("--mods " + modsOpt + ": the file is empty");
  }
  result.compile.schedule.assign(scheduleOpt.begin(), scheduleOpt.end());
  constexpr int64_t mostTokens = 1024;
  if (decodeTokensOpt < 1 || decodeTokensOpt > mostTokens)
    return createStringError(
        formatv("--decode-tokens {0}: expected a number from 1 to {1}",
                int64_t(decodeTokensOpt), mostTokens));
  result.compile.decodeTokens = decodeTokensOpt;
  addNotes(result);
  return result;
}

bool namesSpecification() { return configOpt.given() || headsOpt.given(); }

Provenance provenanceOf(const Specification &specification) {
  return {specification.specs,
          specification.model ? &*specification.model : nullptr,
          specification.notes};
}

llvm::Error checkAgainst(const AttentionSpec &spec, const KnownShape &known) {
  struct {
    const char *what;
    int64_t here, there;
  } const shapes[] = {{"q heads", spec.qHeads, known.qHeads},
                      {"kv heads", spec.kvHeads, known.kvHeads},
                      {"head dim", spec.headDim, known.headDim},
                      {"v head dim", spec.vHeadDim, known.vHeadDim}};
  for (const auto &shape : shapes)
    if (shape.here != shape.there)
      return createStringError(formatv("{0}: {1} {2}, the model has {3}",
                                       known.source, shape.there, shape.what,
                                       shape.here));
  return llvm::Error::success();
}

} // namespace pagoda
