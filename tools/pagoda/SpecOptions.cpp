//===- SpecOptions.cpp - What to compile, from the command line -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options, their checks, and descriptions of a specification.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/SpecOptions.h"

#include "tools/pagoda/Commands.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace pagoda {

namespace {

template <typename T> struct Opt : cl::opt<T> {
  template <typename... Mods>
  explicit Opt(StringRef name, const char *help, const Mods &...mods)
      : cl::opt<T>(name, cl::desc(help), cl::sub(genCommand()),
                   cl::sub(runCommand()), cl::cat(optionCategory()), mods...) {}
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
                          "Element type of tensors and cache: f32 (default), "
                          "f16, bf16, or model (what the config says)",
                          cl::value_desc("type"), cl::init("f32"));
Opt<bool> causalOpt("causal", "A query sees no key after it (default)");
Opt<bool> noCausalOpt("no-causal", "A query sees all keys");
Opt<int64_t> windowOpt("window", "Keys a query sees, itself included",
                       cl::value_desc("n"));
Opt<int64_t> chunkOpt("attention-chunk",
                      "Positions per chunk; a query sees its own chunk",
                      cl::value_desc("n"));
Opt<double> softcapOpt("softcap", "Soft cap c of scores: c * tanh(score / c)",
                       cl::value_desc("c"));
Opt<bool> sinksOpt("sinks", "One sink logit per query head");
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
Opt<std::string> targetOpt("target",
                           "Machine to compile for (default: this one)",
                           cl::value_desc("name"), cl::init("host"));
cl::list<std::string> scheduleOpt(
    "schedule", cl::desc("Overrides of the schedule, for example kv_tile=64"),
    cl::value_desc("key=value"), cl::CommaSeparated, cl::sub(genCommand()),
    cl::sub(runCommand()), cl::cat(optionCategory()));

template <typename T>
llvm::Error bad(const Opt<T> &option, const Twine &expected) {
  return createStringError(formatv("--{0} {1}: expected {2}", option.ArgStr,
                                   option.getValue(), expected.str()));
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
        "nothing to compile: give --config, or --heads and --head-dim");
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
  if (rotaryDimOpt.given() &&
      (rotaryDimOpt < 2 || rotaryDimOpt % 2 || rotaryDimOpt > spec.headDim))
    return bad(rotaryDimOpt,
               "an even number from 2 to the head dim " + Twine(spec.headDim));
  if (ropeInterleavedOpt && !rotaryDimOpt.given())
    return createStringError("--rope-interleaved: expected --rotary-dim "
                             "beside it");
  spec.rotaryDim = rotaryDimOpt;
  spec.ropeInterleaved = ropeInterleavedOpt;
  return spec;
}

/// Where a config.json is given, it alone says what the model is.
llvm::Error refuseWithConfig() {
  const cl::Option *const options[] = {
      &headsOpt, &kvHeadsOpt, &headDimOpt, &vHeadDimOpt,  &windowOpt,
      &chunkOpt, &softcapOpt, &sinksOpt,   &rotaryDimOpt, &ropeInterleavedOpt};
  for (const cl::Option *option : options)
    if (option->getNumOccurrences())
      return createStringError("--" + option->ArgStr +
                               ": not together with --config, which says it");
  return llvm::Error::success();
}

llvm::Error readModel(Specification &result) {
  ImportOptions options;
  options.tensorParallel = tpOpt;
  Expected<ModelConfig> model = loadModelConfig(configOpt, options);
  if (!model)
    return model.takeError();
  result.specs = model->specs();
  if (result.specs.empty())
    return createStringError(configOpt.getValue() +
                             ": no layer of this model keeps a KV cache");
  for (const AttentionSpec &spec : result.specs) {
    // specs() lists kinds that differ in nothing but their name once.
    int64_t layers = 0;
    for (const LayerKind &kind : model->kinds)
      if (kind.hasKvCache && sameKernel(kind.spec, spec))
        layers += int64_t(kind.layers.size());
    result.layers.push_back(layers);
  }
  result.model = std::move(*model);
  return llvm::Error::success();
}

/// The options that hold for models and single shapes alike.
void applyCommon(AttentionSpec &spec) {
  spec.blockSize = blockSizeOpt;
  spec.layout = layoutOpt == "nhd" ? KvLayout::NHD : KvLayout::HND;
  if (dtypeOpt != "model")
    spec.qType = spec.kvType = StringSwitch<DType>(dtypeOpt)
                                   .Case("f16", DType::F16)
                                   .Case("bf16", DType::BF16)
                                   .Default(DType::F32);
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
  if (dtypeOpt != "f32" && dtypeOpt != "f16" && dtypeOpt != "bf16" &&
      dtypeOpt != "model")
    return bad(dtypeOpt, "f32, f16, bf16 or model");
  if (dtypeOpt == "model" && !configOpt.given())
    return bad(dtypeOpt, "a type, as there is no --config");
  if (causalOpt && noCausalOpt)
    return createStringError("--causal and --no-causal exclude each other");
  for (const Opt<double> *option : {&softcapOpt, &scaleOpt})
    if (option->given() && !(*option > 0 && std::isfinite(*option)))
      return bad(*option, "a number greater than 0");
  if (tpOpt.given() && !configOpt.given())
    return bad(tpOpt, "--config beside it");

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

  Expected<Machine> machine = Machine::named(targetOpt);
  if (!machine)
    return machine.takeError();
  result.compile.machine = std::move(*machine);
  result.compile.schedule.assign(scheduleOpt.begin(), scheduleOpt.end());
  return result;
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

std::string describe(const AttentionSpec &spec) {
  std::string text;
  raw_string_ostream os(text);
  os << spec.qHeads << " q heads, " << spec.kvHeads << " kv heads, head dim "
     << spec.headDim;
  if (spec.vHeadDim != spec.headDim)
    os << " (v: " << spec.vHeadDim << ')';
  os << ", block " << spec.blockSize
     << (spec.layout == KvLayout::HND ? " hnd" : " nhd");
  const char *const types[] = {"f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i8"};
  os << ", " << types[int(spec.qType)];
  if (spec.kvType != spec.qType)
    os << " over " << types[int(spec.kvType)];
  os << (spec.causal ? ", causal" : ", not causal");
  if (spec.window)
    os << ", window " << *spec.window;
  if (spec.chunk)
    os << ", chunk " << *spec.chunk;
  if (spec.softcap)
    os << ", softcap " << format("%g", *spec.softcap);
  if (spec.sinks)
    os << ", sinks";
  if (!spec.alibiSlopes.empty())
    os << ", alibi";
  return text;
}

json::Object toJson(const AttentionSpec &spec) {
  json::Object object{
      {"name", spec.name},
      {"q_heads", spec.qHeads},
      {"kv_heads", spec.kvHeads},
      {"head_dim", spec.headDim},
      {"v_head_dim", spec.vHeadDim},
      {"block_size", spec.blockSize},
      {"layout", spec.layout == KvLayout::HND ? "hnd" : "nhd"},
      {"scale", spec.scale},
      {"causal", spec.causal},
      {"sinks", spec.sinks},
      {"alibi", !spec.alibiSlopes.empty()},
      {"description", describe(spec)},
  };
  if (spec.window)
    object["window"] = *spec.window;
  if (spec.chunk)
    object["chunk"] = *spec.chunk;
  if (spec.softcap)
    object["softcap"] = *spec.softcap;
  return object;
}

} // namespace pagoda
