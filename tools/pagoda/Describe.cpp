//===- Describe.cpp - Specifications in words -----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes, values and layers of a specification, for people and for --json.
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/Describe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace pagoda {

namespace {

/// "3, 7, 11-13": runs of ascending numbers; long lists are cut.
std::string listText(ArrayRef<int64_t> numbers) {
  constexpr int most = 4;
  std::string text;
  int runs = 0;
  for (size_t i = 0, next; i < numbers.size(); i = next) {
    for (next = i + 1;
         next < numbers.size() && numbers[next] == numbers[next - 1] + 1;)
      ++next;
    text += text.empty() ? "" : ", ";
    if (runs++ == most)
      return text + "...";
    text += std::to_string(numbers[i]);
    if (next - i > 1)
      text += "-" + std::to_string(numbers[next - 1]);
  }
  return text;
}

/// "1000000" or "0.0884": no more digits than say something.
std::string shortText(double value) {
  std::string text;
  raw_string_ostream(text) << format(value < 1e15 ? "%.*g" : "%.*e",
                                     value >= 1000 ? 15 : 6, value);
  return text;
}

std::string stretchText(const RopeConfig &rope) {
  std::string factor = " factor " + shortText(rope.factor);
  std::string from =
      rope.originalMaxPosition
          ? " from " + std::to_string(rope.originalMaxPosition) + " positions"
          : "";
  switch (rope.kind) {
  case RopeKind::None:
  case RopeKind::Default:
    return "";
  case RopeKind::Linear:
  case RopeKind::Dynamic:
  case RopeKind::Yarn:
  case RopeKind::Llama3:
    return ", " + ropeKindName(rope.kind).str() + factor + from;
  case RopeKind::LongRope:
    return ", longrope" + from;
  case RopeKind::Proportional:
    return ", proportional, " + shortText(rope.rotatedFraction) +
           " of the frequencies";
  }
  llvm_unreachable("a kind of rope");
}

std::string ropeText(const ModelConfig &model, const LayerKind &kind) {
  const RopeConfig &rope = kind.rope;
  if (rope.kind == RopeKind::None || !rope.rotaryDim)
    return "no rope";
  std::string text = "rope theta " + shortText(rope.theta) + stretchText(rope);
  if (rope.attentionFactor != 1)
    text += ", cos and sin times " + shortText(rope.attentionFactor);
  if (!rope.sections.empty())
    text += formatv(", positions on {0} axes", rope.sections.size());
  if (rope.rotaryOffset)
    text += formatv(", on the last {0} of {1} dims: the caller rotates them, "
                    "in q and k",
                    rope.rotaryDim, kind.spec.headDim);
  std::vector<int64_t> still;
  for (int64_t layer : model.noRopeLayers)
    if (is_contained(kind.layers, layer))
      still.push_back(layer);
  if (still.size() == kind.layers.size())
    return "no rope";
  if (!still.empty())
    text += "; no rope in layers " + listText(still);
  return text;
}

} // namespace

std::string describeLayers(const ModelConfig &model, StringRef specName) {
  std::vector<int64_t> layers;
  for (const LayerKind *kind : model.kindsServedBy(specName))
    llvm::append_range(layers, kind->layers);
  llvm::sort(layers);
  return formatv("{0} layer{1}, {2}", layers.size(),
                 layers.size() == 1 ? "" : "s", listText(layers));
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
  os << ", " << nameOf(spec.qType);
  if (spec.kvType != spec.qType)
    os << " over " << nameOf(spec.kvType);
  os << (spec.causal ? ", causal" : ", not causal");
  if (spec.window)
    os << ", window " << *spec.window;
  if (spec.chunk)
    os << ", chunk " << *spec.chunk;
  if (spec.softcap)
    os << ", softcap " << format("%g", *spec.softcap);
  if (spec.sinks)
    os << ", sinks";
  if (spec.prefixLm)
    os << ", prefix-LM";
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
      {"prefix_lm", spec.prefixLm},
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

std::vector<std::string> describeValues(const AttentionSpec &spec,
                                        const ModelConfig *model) {
  std::string scale = "scale " + shortText(spec.scale);
  if (!model)
    return {scale};
  if (model->scaleByLayer)
    scale += " / (layer + 1)";
  std::vector<std::string> lines;
  std::vector<const LayerKind *> kinds = model->kindsServedBy(spec.name);
  for (const LayerKind *kind : kinds) {
    std::string rope = ropeText(*model, *kind);
    if (kinds.size() > 1)
      rope = kind->name + ": " + rope;
    if (!is_contained(lines, rope))
      lines.push_back(rope);
  }
  if (lines.empty())
    return {scale};
  lines.front() = scale + "; " + lines.front();
  return lines;
}

std::string describeRank(const ModelConfig &model, const LayerKind &kind) {
  auto text = [&](const char *what, int64_t first, int64_t count, int64_t of) {
    return count == 1 ? formatv("{0} head {1} of {2}", what, first, of).str()
                      : formatv("{0} heads {1}-{2} of {3}", what, first,
                                first + count - 1, of)
                            .str();
  };
  int64_t rank = model.tensorParallelRank;
  return text("q", rank * kind.spec.qHeads, kind.spec.qHeads, kind.qHeads) +
         ", " +
         text("kv", rank * kind.kvHeads / model.tensorParallel,
              kind.spec.kvHeads, kind.kvHeads);
}

} // namespace pagoda
