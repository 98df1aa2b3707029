//===- KernelAbi.cpp - The argument structs as the IR sees them -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/KernelAbi.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

#include <cstddef>
#include <cstring>

using namespace mlir;
using namespace pagoda;

// The C type of a field decides how the IR loads it.
template <typename T> static constexpr FieldType typeOf() {
  if constexpr (std::is_pointer_v<T>)
    return FieldType::Pointer;
  else if constexpr (std::is_same_v<T, float>)
    return FieldType::F32;
  else if constexpr (sizeof(T) == 8)
    return FieldType::I64;
  else
    return FieldType::I32;
}

#define FIELD(STRUCT, NAME)                                                    \
  {                                                                            \
    #NAME, AbiField {                                                          \
      int64_t(offsetof(STRUCT, NAME)), typeOf<decltype(STRUCT{}.NAME)>()       \
    }                                                                          \
  }

AbiField pagoda::attentionField(StringRef name) {
  static const llvm::StringMap<AbiField> fields = {
#define F(NAME) FIELD(pagoda_attention_args, NAME)
      F(q),
      F(q_token_stride),
      F(q_head_stride),
      F(o),
      F(o_token_stride),
      F(o_head_stride),
      F(lse),
      F(lse_token_stride),
      F(lse_head_stride),
      F(k.base),
      F(k.block_stride),
      F(k.head_stride),
      F(k.token_stride),
      F(v.base),
      F(v.block_stride),
      F(v.head_stride),
      F(v.token_stride),
      F(k_scale.base),
      F(k_scale.block_stride),
      F(k_scale.head_stride),
      F(k_scale.token_stride),
      F(v_scale.base),
      F(v_scale.block_stride),
      F(v_scale.head_stride),
      F(v_scale.token_stride),
      F(block_table),
      F(block_table_stride),
      F(items),
      F(counts),
      F(row_map),
      F(row_pos),
      F(row_seq),
      F(partial_o),
      F(partial_ml),
      F(merges),
      F(merge_slots),
      F(sinks),
      F(alibi_slopes),
      F(prefix_lens),
      F(aux),
      F(aux_count),
      F(scale),
      F(softcap),
      F(window),
      F(chunk)};
#undef F
  auto it = fields.find(name);
  assert(it != fields.end() && "unknown field of pagoda_attention_args");
  return it->second;
}

AbiField pagoda::appendField(StringRef name) {
  static const llvm::StringMap<AbiField> fields = {
#define F(NAME) FIELD(pagoda_append_args, NAME)
      F(k_new),          F(k_token_stride), F(k_head_stride), F(v_new),
      F(v_token_stride), F(v_head_stride),  F(k.base),        F(k.block_stride),
      F(k.head_stride),  F(k.token_stride), F(v.base),        F(v.block_stride),
      F(v.head_stride),  F(v.token_stride), F(slot_mapping),  F(positions),
      F(rope_cos),       F(rope_sin),       F(rope_stride)};
#undef F
  auto it = fields.find(name);
  assert(it != fields.end() && "unknown field of pagoda_append_args");
  return it->second;
}

AbiField pagoda::copyField(StringRef name) {
  static const llvm::StringMap<AbiField> fields = {
#define F(NAME) FIELD(pagoda_copy_args, NAME)
      F(k.base),         F(k.block_stride), F(k.head_stride),
      F(k.token_stride), F(v.base),         F(v.block_stride),
      F(v.head_stride),  F(v.token_stride), F(copies)};
#undef F
  auto it = fields.find(name);
  assert(it != fields.end() && "unknown field of pagoda_copy_args");
  return it->second;
}

AbiField pagoda::itemField(StringRef name) {
  static const llvm::StringMap<AbiField> fields = {
#define F(NAME) FIELD(pagoda_work_item, NAME)
      F(table_row),    F(row_map_offset), F(row_count), F(head_begin),
      F(head_count),   F(kv_begin),       F(kv_end),    F(q_pos0),
      F(partial_slot), F(flags)};
#undef F
  auto it = fields.find(name);
  assert(it != fields.end() && "unknown field of pagoda_work_item");
  return it->second;
}

AbiField pagoda::mergeField(StringRef name) {
  static const llvm::StringMap<AbiField> fields = {
#define F(NAME) FIELD(pagoda_merge_item, NAME)
      F(q_row), F(slots_begin), F(slot_count), F(flags)};
#undef F
  auto it = fields.find(name);
  assert(it != fields.end() && "unknown field of pagoda_merge_item");
  return it->second;
}

Type pagoda::fieldType(MLIRContext *context, FieldType type) {
  switch (type) {
  case FieldType::Pointer:
    return LLVM::LLVMPointerType::get(context);
  case FieldType::I32:
    return IntegerType::get(context, 32);
  case FieldType::I64:
    return IntegerType::get(context, 64);
  case FieldType::F32:
    return Float32Type::get(context);
  }
  llvm_unreachable("unknown field type");
}

int32_t pagoda::dtypeOf(Type element) {
  if (element.isF32())
    return PAGODA_F32;
  if (element.isF16())
    return PAGODA_F16;
  if (element.isBF16())
    return PAGODA_BF16;
  if (isa<Float8E4M3FNType>(element))
    return PAGODA_F8E4M3;
  return isa<Float8E5M2Type>(element) ? PAGODA_F8E5M2 : PAGODA_I8;
}

// The integers of a description, in one list, so that writing to and reading
// from an attribute cannot disagree.
// A list, not statements.
// clang-format off
#define PAGODA_INFO_INTEGERS(X)                                                \
  X(scratch_bytes)                                                             \
  X(cpu_features)                                                              \
  X(mods_hash) X(role) X(features) X(q_heads) X(kv_heads) X(head_dim)          \
      X(v_head_dim) X(block_size) X(layout) X(q_dtype) X(k_dtype) X(v_dtype)   \
          X(o_dtype) X(max_rows) X(heads_per_item) X(kv_tile) X(threads)       \
              X(shared_bytes) X(rotary_dim) X(rope_interleaved)
// clang-format on

static constexpr StringLiteral infoAttribute = "pagoda.kernel_info";

void pagoda::setDescription(LLVM::LLVMFuncOp function,
                            const KernelDescription &description) {
  Builder b(function.getContext());
  NamedAttrList list;
  list.set("target", b.getStringAttr(description.target));
  list.set("schedule", b.getStringAttr(description.schedule));
#define X(NAME)                                                                \
  list.set(#NAME, b.getI64IntegerAttr(int64_t(description.info.NAME)));
  PAGODA_INFO_INTEGERS(X)
#undef X
  function->setAttr(infoAttribute, list.getDictionary(function.getContext()));
}

std::vector<KernelDescription> pagoda::descriptionsOf(ModuleOp module) {
  std::vector<KernelDescription> result;
  module.walk([&](LLVM::LLVMFuncOp function) {
    auto dictionary = function->getAttrOfType<DictionaryAttr>(infoAttribute);
    if (!dictionary)
      return;
    KernelDescription description;
    description.symbol = function.getSymName().str();
    description.target = dictionary.getAs<StringAttr>("target").str();
    description.schedule = dictionary.getAs<StringAttr>("schedule").str();
#define X(NAME)                                                                \
  description.info.NAME = static_cast<decltype(description.info.NAME)>(        \
      dictionary.getAs<IntegerAttr>(#NAME).getInt());
    PAGODA_INFO_INTEGERS(X)
#undef X
    result.push_back(std::move(description));
  });
  return result;
}

void pagoda::addLibraryTable(llvm::Module &module,
                             ArrayRef<KernelDescription> kernels) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *i32 = llvm::Type::getInt32Ty(context);
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  auto integer = [](llvm::Type *type, uint64_t value) {
    return llvm::ConstantInt::get(type, value);
  };
  auto string = [&](StringRef text) -> llvm::Constant * {
    llvm::Constant *data = llvm::ConstantDataArray::getString(context, text);
    auto *global = new llvm::GlobalVariable(
        module, data->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, data, "pagoda_text");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return global;
  };

  SmallVector<llvm::Constant *> entries;
  for (const KernelDescription &kernel : kernels) {
    const pagoda_kernel_info &info = kernel.info;
    llvm::Constant *code = module.getFunction(kernel.symbol);
    if (!code) // for a GPU
      code =
          llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context));
    // In the order of pagoda_kernel_info; the assertion below guards the size.
    entries.push_back(
        llvm::ConstantStruct::getAnon({integer(i32, PAGODA_ABI_VERSION),
                                       integer(i32, sizeof(pagoda_kernel_info)),
                                       string(kernel.symbol),
                                       string(kernel.target),
                                       string(kernel.schedule),
                                       code,
                                       integer(i64, info.scratch_bytes),
                                       integer(i64, info.cpu_features),
                                       integer(i64, info.mods_hash),
                                       integer(i32, info.role),
                                       integer(i32, info.features),
                                       integer(i32, info.q_heads),
                                       integer(i32, info.kv_heads),
                                       integer(i32, info.head_dim),
                                       integer(i32, info.v_head_dim),
                                       integer(i32, info.block_size),
                                       integer(i32, info.layout),
                                       integer(i32, info.q_dtype),
                                       integer(i32, info.k_dtype),
                                       integer(i32, info.v_dtype),
                                       integer(i32, info.o_dtype),
                                       integer(i32, info.max_rows),
                                       integer(i32, info.heads_per_item),
                                       integer(i32, info.kv_tile),
                                       integer(i32, info.threads),
                                       integer(i32, info.shared_bytes),
                                       integer(i32, info.rotary_dim),
                                       integer(i32, info.rope_interleaved),
                                       integer(i32, 0)}));
  }
  auto *arrayType = llvm::ArrayType::get(
      entries.empty() ? llvm::StructType::get(context) : entries[0]->getType(),
      entries.size());
  assert(entries.empty() ||
         module.getDataLayout().getTypeAllocSize(entries[0]->getType()) ==
             sizeof(pagoda_kernel_info));
  auto *table = new llvm::GlobalVariable(
      module, arrayType, /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
      llvm::ConstantArray::get(arrayType, entries), "pagoda_kernels");
  llvm::Constant *library = llvm::ConstantStruct::getAnon(
      {integer(i32, PAGODA_ABI_VERSION), integer(i32, entries.size()), table});
  new llvm::GlobalVariable(module, library->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, library,
                           PAGODA_LIBRARY_SYMBOL);
}
