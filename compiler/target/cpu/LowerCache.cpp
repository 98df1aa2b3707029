//===- LowerCache.cpp - append_kv and copy_blocks to CPU code -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a function around one pagoda.append_kv or pagoda.copy_blocks into an
// llvm.func of type pagoda_kernel_fn. Both only move rows (CacheRows.h), so
// they go straight from the attention level to loops and vectors: no tiles, no
// schedule, no scratch. Addresses are 64-bit throughout.
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"
#include "compiler/target/KernelAbi.h"
#include "compiler/target/cpu/CacheRows.h"
#include "compiler/tiling/Machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

namespace {

/// View of one tensor or pool; strides in bytes.
struct View {
  Value base;
  Value blockStride; ///< null for tensors of new tokens
  Value headStride;
  Value tokenStride;
  int64_t dim;
};

class CacheLowering {
public:
  CacheLowering(func::FuncOp function, KvCacheType cache,
                const Machine &machine)
      : function(function), cache(cache), machine(machine),
        b(function.getLoc(), function) {}

  LogicalResult append(AppendKvOp op);
  void copy();

private:
  using FieldOf = AbiField (*)(StringRef);

  LLVM::LLVMFuncOp begin();
  void finish(LLVM::LLVMFuncOp kernel, pagoda_kernel_info info);
  Value field(FieldOf fieldOf, const Twine &name);
  View pool(FieldOf fieldOf, StringRef name, int64_t dim);
  View tensor(StringRef name, Type element, int64_t dim);

  int64_t bytes(Type element) { return element.getIntOrFloatBitWidth() / 8; }
  void forHeads(const View &from, Value source, const View &to, Value target,
                llvm::function_ref<void(Value, Value)> body);

  func::FuncOp function;
  KvCacheType cache;
  const Machine &machine;
  CpuBuilder b;
  Value args, first, last; ///< arguments of the kernel
};

} // namespace

//===----------------------------------------------------------------------===//
// The function and its arguments
//===----------------------------------------------------------------------===//

LLVM::LLVMFuncOp CacheLowering::begin() {
  Type pointer = b.pointerType();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  {pointer, b.i64Type(), b.i64Type(), pointer});
  auto kernel = LLVM::LLVMFuncOp::create(b, function.getSymName(), type);
  Block *entry = kernel.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  args = entry->getArgument(0);
  first = entry->getArgument(1);
  last = entry->getArgument(2);
  return kernel;
}

void CacheLowering::finish(LLVM::LLVMFuncOp kernel, pagoda_kernel_info info) {
  LLVM::ReturnOp::create(b, ValueRange{});
  KernelDescription description;
  description.symbol = kernel.getSymName().str();
  description.target = "cpu:" + machine.name;
  info.cpu_features = machine.cpuFeatures;
  info.kv_heads = int32_t(cache.getHeads());
  info.head_dim = int32_t(cache.getKDim());
  info.v_head_dim = int32_t(cache.getVDim());
  info.block_size = int32_t(cache.getBlock());
  info.layout = cache.getLayout() == CacheLayout::nhd ? PAGODA_NHD : PAGODA_HND;
  info.k_dtype = info.v_dtype = dtypeOf(cache.getElt());
  info.threads = 1;
  description.info = info;
  setDescription(kernel, description);
  function.erase();
}

Value CacheLowering::field(FieldOf fieldOf, const Twine &name) {
  AbiField abi = fieldOf(name.str());
  return b.load(fieldType(b.getContext(), abi.type), b.at(args, abi.offset));
}

View CacheLowering::pool(FieldOf fieldOf, StringRef name, int64_t dim) {
  auto stride = [&](const char *which) {
    return b.mul(field(fieldOf, name + which), bytes(cache.getElt()));
  };
  return {field(fieldOf, name + ".base"), stride(".block_stride"),
          stride(".head_stride"), stride(".token_stride"), dim};
}

View CacheLowering::tensor(StringRef name, Type element, int64_t dim) {
  auto stride = [&](const char *which) {
    return b.mul(field(appendField, name + which), bytes(element));
  };
  return {field(appendField, name + "_new"), Value(), stride("_head_stride"),
          stride("_token_stride"), dim};
}

void CacheLowering::forHeads(const View &from, Value source, const View &to,
                             Value target,
                             llvm::function_ref<void(Value, Value)> body) {
  b.forLoop(b.i64(0), b.i64(cache.getHeads()), 1, [&](Value head) {
    body(b.at(source, b.mul(head, from.headStride)),
         b.at(target, b.mul(head, to.headStride)));
  });
}

//===----------------------------------------------------------------------===//
// The two kernels
//===----------------------------------------------------------------------===//

static bool isFloat(Type type) {
  return type.isF32() || type.isF16() || type.isBF16();
}

LogicalResult CacheLowering::append(AppendKvOp op) {
  Type source = op.getK().getType().getElementType();
  if (op.getV().getType().getElementType() != source)
    return op.emitOpError("k and v must have one element type on cpu, got ")
           << source << " and " << op.getV().getType().getElementType();
  for (Type type : {source, cache.getElt()})
    if (!isFloat(type))
      return op.emitOpError("elements must be f32, f16 or bf16 on cpu, got ")
             << type;
  bool rope = bool(op.getPositions()), interleaved = op.getInterleaved();
  int64_t rotaryDim = 0;
  if (rope)
    rotaryDim = 2 * cast<RankedTensorType>(op.getCos().getType()).getDimSize(1);

  LLVM::LLVMFuncOp kernel = begin();
  View newK = tensor("k", source, cache.getKDim());
  View newV = tensor("v", source, cache.getVDim());
  View k = pool(appendField, "k", cache.getKDim());
  View v = pool(appendField, "v", cache.getVDim());
  Value slots = field(appendField, "slot_mapping");
  Value positions, cos, sin, ropeStride, rotates;
  if (rope) {
    positions = field(appendField, "positions");
    cos = field(appendField, "rope_cos");
    sin = field(appendField, "rope_sin");
    ropeStride = b.mul(field(appendField, "rope_stride"), sizeof(float));
    rotates = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, cos,
                                   LLVM::ZeroOp::create(b, b.pointerType()));
  }

  CacheRows rows(b, machine.vectorBits, source, cache.getElt());
  auto writeToken = [&](Value token, Value slot) {
    Value block = b.div(slot, cache.getBlock());
    Value inBlock = b.sub(slot, b.mul(block, cache.getBlock()));
    auto tokenOf = [&](const View &tensor) {
      return b.at(tensor.base, b.mul(token, tensor.tokenStride));
    };
    auto slotOf = [&](const View &pool) {
      return b.at(pool.base, b.add(b.mul(block, pool.blockStride),
                                   b.mul(inBlock, pool.tokenStride)));
    };
    auto copyHeads = [&](const View &from, const View &to) {
      forHeads(from, tokenOf(from), to, slotOf(to),
               [&](Value x, Value y) { rows.copy(x, y, 0, to.dim); });
    };
    auto rotateHeads = [&] {
      Value position =
          b.load(b.i32Type(), b.at(positions, b.mul(token, sizeof(int32_t))));
      Value offset = b.mul(b.widen(position), ropeStride);
      Value cosRow = b.at(cos, offset), sinRow = b.at(sin, offset);
      forHeads(newK, tokenOf(newK), k, slotOf(k), [&](Value x, Value y) {
        rows.rotate(x, y, cosRow, sinRow, rotaryDim, interleaved);
        rows.copy(x, y, rotaryDim, k.dim);
      });
    };
    if (rope)
      b.ifThenElse(rotates, rotateHeads, [&] { copyHeads(newK, k); });
    else
      copyHeads(newK, k);
    copyHeads(newV, v);
  };
  b.forLoop(first, last, 1, [&](Value token) {
    Value slot =
        b.load(b.i64Type(), b.at(slots, b.mul(token, sizeof(int64_t))));
    // -1 in either width: no cache reaches slot 2^32 - 1.
    Value named = b.compare(Predicate::sge, slot, b.i64(0));
    Value padding = b.compare(Predicate::ne, slot, b.i64(UINT32_MAX));
    b.ifThen(arith::AndIOp::create(b, named, padding),
             [&] { writeToken(token, slot); });
  });

  pagoda_kernel_info info{};
  info.role = PAGODA_ROLE_APPEND;
  info.q_dtype = dtypeOf(source);
  info.rotary_dim = int32_t(rotaryDim);
  info.rope_interleaved = interleaved;
  finish(kernel, info);
  return success();
}

void CacheLowering::copy() {
  LLVM::LLVMFuncOp kernel = begin();
  View pools[] = {pool(copyField, "k", cache.getKDim()),
                  pool(copyField, "v", cache.getVDim())};
  Value copies = field(copyField, "copies");
  CacheRows rows(b, machine.vectorBits, cache.getElt(), cache.getElt());
  auto copyBlock = [&](const View &pool, Value source, Value target) {
    Value from = b.at(pool.base, b.mul(source, pool.blockStride));
    Value to = b.at(pool.base, b.mul(target, pool.blockStride));
    // In the order of memory.
    bool nhd = cache.getLayout() == CacheLayout::nhd;
    int64_t outerCount = nhd ? cache.getBlock() : cache.getHeads();
    int64_t innerCount = nhd ? cache.getHeads() : cache.getBlock();
    Value outerStride = nhd ? pool.tokenStride : pool.headStride;
    Value innerStride = nhd ? pool.headStride : pool.tokenStride;
    b.forLoop(b.i64(0), b.i64(outerCount), 1, [&](Value outer) {
      b.forLoop(b.i64(0), b.i64(innerCount), 1, [&](Value inner) {
        Value offset =
            b.add(b.mul(outer, outerStride), b.mul(inner, innerStride));
        rows.copy(b.at(from, offset), b.at(to, offset), 0, pool.dim);
      });
    });
  };
  b.forLoop(first, last, 1, [&](Value index) {
    Value pair = b.at(copies, b.mul(index, sizeof(pagoda_block_copy)));
    auto id = [&](int64_t offset) {
      return b.widen(b.load(b.i32Type(), b.at(pair, offset)));
    };
    Value source = id(offsetof(pagoda_block_copy, src));
    Value target = id(offsetof(pagoda_block_copy, dst));
    b.ifThen(b.compare(Predicate::sge, b.min(source, target), b.i64(0)), [&] {
      for (const View &pool : pools)
        copyBlock(pool, source, target);
    });
  });

  pagoda_kernel_info info{};
  info.role = PAGODA_ROLE_COPY;
  finish(kernel, info);
}

namespace pagoda {
#define GEN_PASS_DEF_CPULOWERCACHE
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct CpuLowerCachePass : pagoda::impl::CpuLowerCacheBase<CpuLowerCachePass> {
  using CpuLowerCacheBase::CpuLowerCacheBase;
  void runOnOperation() override {
    llvm::Expected<Machine> named = Machine::named(machine);
    if (!named) {
      getOperation().emitError() << llvm::toString(named.takeError());
      return signalPassFailure();
    }
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      for (Operation &op : function.front()) {
        if (auto append = dyn_cast<AppendKvOp>(op)) {
          KvCacheType cache = append.getCache().getType();
          if (failed(CacheLowering(function, cache, *named).append(append)))
            return signalPassFailure();
          break;
        }
        if (auto copy = dyn_cast<CopyBlocksOp>(op)) {
          CacheLowering(function, copy.getCache().getType(), *named).copy();
          break;
        }
      }
    }
  }
};
} // namespace
