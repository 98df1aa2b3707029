//===- BuildAttention.cpp - Specification to attention IR -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last step of import: plain data becomes functions around one
// pagoda.attention, append_kv or copy_blocks each. What varies at run time
// (scale, window, soft cap, ...) is a function argument; what the code is
// specialised for is in the types.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/BuildAttention.h"
#include "compiler/import/Mods.h"
#include "dialect/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace pagoda;

static Type elementType(MLIRContext *context, DType type) {
  switch (type) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::F8E4M3:
    return Float8E4M3FNType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::I8:
    return IntegerType::get(context, 8);
  }
  llvm_unreachable("unknown data type");
}

bool pagoda::hasNarrowCache(const AttentionSpec &spec) {
  DType kv = spec.kvType;
  return kv == DType::F8E4M3 || kv == DType::F8E5M2 || kv == DType::I8;
}

static Type cacheType(MLIRContext *context, const AttentionSpec &spec) {
  return KvCacheType::get(
      context, spec.kvHeads, spec.headDim, spec.vHeadDim, spec.blockSize,
      spec.layout == KvLayout::NHD ? CacheLayout::nhd : CacheLayout::hnd,
      elementType(context, spec.kvType),
      hasNarrowCache(spec) ? ScaleGranularity::tensor : ScaleGranularity::none);
}

/// Copies the body of `from` into `to`; `tensor(i)` stands for argument i of
/// those that are tensors.
static void fillRegion(func::FuncOp from, Region &to,
                       function_ref<Value(unsigned)> tensor) {
  IRMapping mapping;
  from.getBody().cloneInto(&to, mapping);
  Block &block = to.front();
  while (isa<RankedTensorType>(block.getArguments().back().getType())) {
    unsigned index = block.getNumArguments() - 1;
    block.getArgument(index).replaceAllUsesWith(tensor(index));
    block.eraseArgument(index);
  }
  Operation *end = block.getTerminator();
  OpBuilder b(end);
  YieldOp::create(b, end->getLoc(), end->getOperands());
  end->erase();
}

void pagoda::buildAttention(ModuleOp module, const AttentionSpec &spec,
                            StringRef name, const Mods *mods) {
  MLIRContext *context = module.getContext();
  ImplicitLocOpBuilder b(NameLoc::get(StringAttr::get(context, name)), context);
  b.setInsertionPointToEnd(module.getBody());

  constexpr int64_t dynamic = ShapedType::kDynamic;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Type element = elementType(context, spec.qType);
  Type q = RankedTensorType::get({dynamic, spec.qHeads, spec.headDim}, element);
  Type o =
      RankedTensorType::get({dynamic, spec.qHeads, spec.vHeadDim}, element);
  Type lse = RankedTensorType::get({dynamic, spec.qHeads}, f32);
  Type table = RankedTensorType::get({dynamic, dynamic}, i32);
  Type lengths = RankedTensorType::get({dynamic}, i32);
  Type perHead = RankedTensorType::get({spec.qHeads}, f32);
  Type cache = cacheType(context, spec);

  // Optional arguments say which field of the kernel's argument struct they
  // are, so that regions may capture them.
  SmallVector<Type> arguments{q, cache, table, lengths, lengths, f32};
  SmallVector<StringRef> fields(arguments.size());
  auto optional = [&](bool present, Type type, StringRef field) -> int {
    if (!present)
      return -1;
    arguments.push_back(type);
    fields.push_back(field);
    return int(arguments.size()) - 1;
  };
  int window = optional(spec.window.has_value(), i32, "window");
  int chunk = optional(spec.chunk.has_value(), i32, "chunk");
  int softcap = optional(spec.softcap.has_value(), f32, "softcap");
  int alibi = optional(!spec.alibiSlopes.empty(), perHead, "alibi_slopes");
  int sinks = optional(spec.sinks, perHead, "sinks");
  int prefix = optional(spec.prefixLm, lengths, "prefix_lens");

  // Auxiliary tensors in the order of their table.
  unsigned firstAux = arguments.size();
  std::vector<std::string> auxFields;
  if (mods) {
    for (auto [index, aux] : llvm::enumerate(mods->aux)) {
      SmallVector<int64_t> shape(aux.rank, dynamic);
      arguments.push_back(
          RankedTensorType::get(shape, aux.isFloat ? f32 : i32));
      auxFields.push_back("aux." + std::to_string(index));
    }
    fields.append(auxFields.begin(), auxFields.end());
  }

  auto function =
      func::FuncOp::create(b, name, b.getFunctionType(arguments, {o, lse}));
  for (auto [index, field] : llvm::enumerate(fields))
    if (!field.empty())
      function.setArgAttr(index, "pagoda.arg", b.getStringAttr(field));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  auto argument = [&](int index) -> Value {
    return index < 0 ? Value() : entry->getArgument(index);
  };
  auto attention = AttentionOp::create(
      b, TypeRange{o, lse}, argument(0), argument(1), argument(2), argument(3),
      argument(4), argument(5), argument(window), argument(chunk),
      argument(softcap), argument(alibi), argument(sinks), argument(prefix),
      spec.causal,
      /*features=*/0, /*schedules=*/ArrayAttr());
  func::ReturnOp::create(b, attention.getResults());
  if (!mods)
    return;
  function->setAttr("pagoda.mods_hash", b.getI64IntegerAttr(mods->hash));
  auto move = [&](func::FuncOp from, Region &to) {
    if (from)
      fillRegion(from, to, [&](unsigned index) -> Value {
        return entry->getArgument(firstAux + mods->auxOf(from, index));
      });
  };
  move(mods->kvRange, attention.getKvRange());
  move(mods->maskMod, attention.getMaskMod());
  move(mods->scoreMod, attention.getScoreMod());
}

/// A function @name of `arguments` that returns nothing, around what `body`
/// builds from them.
static void
buildFunction(ModuleOp module, StringRef name, ArrayRef<Type> arguments,
              function_ref<void(ImplicitLocOpBuilder &, Block &)> body) {
  MLIRContext *context = module.getContext();
  ImplicitLocOpBuilder b(NameLoc::get(StringAttr::get(context, name)), context);
  b.setInsertionPointToEnd(module.getBody());
  auto function =
      func::FuncOp::create(b, name, b.getFunctionType(arguments, {}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  body(b, *entry);
  func::ReturnOp::create(b);
}

void pagoda::buildAppend(ModuleOp module, const AttentionSpec &spec,
                         StringRef name) {
  MLIRContext *context = module.getContext();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto rows = [&](int64_t dim) {
    return RankedTensorType::get({dynamic, spec.kvHeads, dim},
                                 elementType(context, spec.qType));
  };
  SmallVector<Type> arguments{
      rows(spec.headDim), rows(spec.vHeadDim), cacheType(context, spec),
      RankedTensorType::get({dynamic}, IntegerType::get(context, 64))};
  if (spec.rotaryDim) {
    Type table = RankedTensorType::get({dynamic, spec.rotaryDim / 2},
                                       Float32Type::get(context));
    arguments.push_back(
        RankedTensorType::get({dynamic}, IntegerType::get(context, 32)));
    arguments.append({table, table});
  }
  buildFunction(
      module, name, arguments, [&](ImplicitLocOpBuilder &b, Block &entry) {
        auto rope = [&](unsigned index) -> Value {
          return spec.rotaryDim ? entry.getArgument(index) : Value();
        };
        AppendKvOp::create(b, entry.getArgument(0), entry.getArgument(1),
                           entry.getArgument(2), entry.getArgument(3), rope(4),
                           rope(5), rope(6),
                           spec.rotaryDim != 0 && spec.ropeInterleaved);
      });
}

void pagoda::buildCopy(ModuleOp module, const AttentionSpec &spec,
                       StringRef name) {
  MLIRContext *context = module.getContext();
  Type pairs = RankedTensorType::get({ShapedType::kDynamic, 2},
                                     IntegerType::get(context, 32));
  buildFunction(module, name, {pairs, cacheType(context, spec)},
                [](ImplicitLocOpBuilder &b, Block &entry) {
                  CopyBlocksOp::create(b, entry.getArgument(0),
                                       entry.getArgument(1));
                });
}
