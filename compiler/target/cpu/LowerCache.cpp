//===- LowerCache.cpp - append_kv and copy_blocks to CPU code -------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a function around one pagoda.append_kv or pagoda.copy_blocks into an
// llvm.func of type pagoda_kernel_fn. Both only move rows of the cache, so they
// go straight from the attention level to loops and vectors: no tiles, no
// schedule, no scratch. Addresses are 64-bit throughout.
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"
#include "compiler/target/KernelAbi.h"
#include "compiler/target/cpu/CpuBuilder.h"
#include "compiler/tiling/Machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

namespace {

/// Rows of one tensor or pool; strides in bytes.
struct Rows {
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
  Rows pool(FieldOf fieldOf, StringRef name, int64_t dim);
  Rows tensor(StringRef name, Type element, int64_t dim);

  int64_t bytes(Type element) { return element.getIntOrFloatBitWidth() / 8; }
  Value load(Value row, Value index, Type element, int64_t width);
  void store(Value vector, Value row, Value index);
  Value convert(Value vector, Type element);
  void forPieces(int64_t begin, int64_t end, int64_t lanes,
                 llvm::function_ref<void(Value, int64_t)> body);
  void copyRow(Value from, Type source, Value to, int64_t begin, int64_t end);
  void rotateRow(Value from, Type source, Value to, Value cos, Value sin,
                 int64_t rotaryDim, bool interleaved);
  void forHeads(const Rows &from, Value source, const Rows &to, Value target,
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

Rows CacheLowering::pool(FieldOf fieldOf, StringRef name, int64_t dim) {
  auto stride = [&](const char *which) {
    return b.mul(field(fieldOf, name + which), bytes(cache.getElt()));
  };
  return {field(fieldOf, name + ".base"), stride(".block_stride"),
          stride(".head_stride"), stride(".token_stride"), dim};
}

Rows CacheLowering::tensor(StringRef name, Type element, int64_t dim) {
  auto stride = [&](const char *which) {
    return b.mul(field(appendField, name + which), bytes(element));
  };
  return {field(appendField, name + "_new"), Value(), stride("_head_stride"),
          stride("_token_stride"), dim};
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// `width` elements of `row` from `index` on. Rows are aligned to an element.
Value CacheLowering::load(Value row, Value index, Type element, int64_t width) {
  return b.load(VectorType::get({width}, element),
                b.at(row, b.mul(index, bytes(element))), bytes(element));
}

void CacheLowering::store(Value vector, Value row, Value index) {
  int64_t size = bytes(cast<VectorType>(vector.getType()).getElementType());
  b.store(vector, b.at(row, b.mul(index, size)), size);
}

/// f32 to the nearest bf16, ties to even, in integers: on a machine without the
/// instruction LLVM would call a library function for each lane.
static Value roundToBf16(CpuBuilder &b, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  auto constant = [&](int32_t value) -> Value {
    return b.splat(b.i32(value), type.getNumElements());
  };
  auto upperHalf = [&](Value bits) -> Value {
    return arith::ShRUIOp::create(b, bits, constant(16));
  };
  Value bits = arith::BitcastOp::create(b, type.clone(b.i32Type()), vector);
  Value odd = arith::AndIOp::create(b, upperHalf(bits), constant(1));
  Value rounded = upperHalf(b.add(bits, b.add(odd, constant(0x7fff))));
  // A NaN stays one, whatever its payload.
  Value quiet = arith::OrIOp::create(b, upperHalf(bits), constant(0x40));
  Value isNan =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, vector, vector);
  Value half = arith::TruncIOp::create(b, type.clone(b.getI16Type()),
                                       b.select(isNan, quiet, rounded));
  return arith::BitcastOp::create(b, type.clone(b.getBF16Type()), half);
}

/// Between floating-point types, through f32.
Value CacheLowering::convert(Value vector, Type element) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType() == element)
    return vector;
  if (!type.getElementType().isF32())
    vector = arith::ExtFOp::create(b, type.clone(b.getF32Type()), vector);
  if (element.isBF16())
    return roundToBf16(b, vector);
  if (!element.isF32())
    vector = arith::TruncFOp::create(b, type.clone(element), vector);
  return vector;
}

/// Covers [begin, end) by calls of body(index, width): a loop over whole
/// vectors of `lanes`, a few at a time, then what is left in falling powers of
/// two.
void CacheLowering::forPieces(int64_t begin, int64_t end, int64_t lanes,
                              llvm::function_ref<void(Value, int64_t)> body) {
  constexpr int64_t unroll = 4;
  int64_t step = lanes * unroll;
  int64_t looped = begin + (end - begin) / step * step;
  if (looped != begin)
    b.forLoop(b.i64(begin), b.i64(looped), step, [&](Value index) {
      for (int64_t u = 0; u != unroll; ++u)
        body(b.add(index, u * lanes), lanes);
    });
  for (int64_t at = looped, width = lanes; at != end; at += width) {
    while (width > end - at)
      width /= 2;
    body(b.i64(at), width);
  }
}

/// Dims [begin, end) of a row of `source` elements to a row of the cache.
void CacheLowering::copyRow(Value from, Type source, Value to, int64_t begin,
                            int64_t end) {
  Type target = cache.getElt();
  if (source == target) // bits are bits: no float can be changed on the way
    source = target = b.getIntegerType(source.getIntOrFloatBitWidth());
  int64_t bits =
      std::max(source.getIntOrFloatBitWidth(), target.getIntOrFloatBitWidth());
  forPieces(
      begin, end, machine.vectorBits / bits, [&](Value index, int64_t width) {
        store(convert(load(from, index, source, width), target), to, index);
      });
}

/// A key's first `rotaryDim` dims, rotated in f32 and rounded once:
/// (x, y) becomes (x cos - y sin, y cos + x sin).
void CacheLowering::rotateRow(Value from, Type source, Value to, Value cos,
                              Value sin, int64_t rotaryDim, bool interleaved) {
  Type f32 = b.getF32Type(), target = cache.getElt();
  int64_t half = rotaryDim / 2;
  forPieces(0, half, machine.lanesF32(), [&](Value index, int64_t width) {
    auto read = [&](Value at, int64_t count) {
      return convert(load(from, at, source, count), f32);
    };
    Value x, y, xAt = index, yAt = b.add(index, half);
    if (interleaved) {
      xAt = b.mul(index, 2);
      auto pairs = vector::DeinterleaveOp::create(b, read(xAt, 2 * width));
      x = pairs.getRes1();
      y = pairs.getRes2();
    } else {
      x = read(xAt, width);
      y = read(yAt, width);
    }
    Value c = load(cos, index, f32, width), s = load(sin, index, f32, width);
    Value newX = b.fma(x, c, b.negf(b.mulf(y, s)));
    Value newY = b.fma(y, c, b.mulf(x, s));
    if (interleaved) {
      Value pairs = vector::InterleaveOp::create(b, newX, newY);
      store(convert(pairs, target), to, xAt);
    } else {
      store(convert(newX, target), to, xAt);
      store(convert(newY, target), to, yAt);
    }
  });
}

void CacheLowering::forHeads(const Rows &from, Value source, const Rows &to,
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
  Rows newK = tensor("k", source, cache.getKDim());
  Rows newV = tensor("v", source, cache.getVDim());
  Rows k = pool(appendField, "k", cache.getKDim());
  Rows v = pool(appendField, "v", cache.getVDim());
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

  auto writeToken = [&](Value token, Value slot) {
    Value block = b.div(slot, cache.getBlock());
    Value inBlock = b.sub(slot, b.mul(block, cache.getBlock()));
    auto source0 = [&](const Rows &rows) {
      return b.at(rows.base, b.mul(token, rows.tokenStride));
    };
    auto target0 = [&](const Rows &rows) {
      return b.at(rows.base, b.add(b.mul(block, rows.blockStride),
                                   b.mul(inBlock, rows.tokenStride)));
    };
    auto copyHeads = [&](const Rows &from, const Rows &to) {
      forHeads(from, source0(from), to, target0(to),
               [&](Value x, Value y) { copyRow(x, source, y, 0, to.dim); });
    };
    auto rotateHeads = [&] {
      Value position =
          b.load(b.i32Type(), b.at(positions, b.mul(token, sizeof(int32_t))));
      Value offset = b.mul(b.widen(position), ropeStride);
      Value cosRow = b.at(cos, offset), sinRow = b.at(sin, offset);
      forHeads(newK, source0(newK), k, target0(k), [&](Value x, Value y) {
        rotateRow(x, source, y, cosRow, sinRow, rotaryDim, interleaved);
        copyRow(x, source, y, rotaryDim, k.dim);
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
    // -1 in either width: no cache has 2^32 slots less one.
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
  Rows pools[] = {pool(copyField, "k", cache.getKDim()),
                  pool(copyField, "v", cache.getVDim())};
  Value copies = field(copyField, "copies");
  auto copyBlock = [&](const Rows &rows, Value source, Value target) {
    Value from = b.at(rows.base, b.mul(source, rows.blockStride));
    Value to = b.at(rows.base, b.mul(target, rows.blockStride));
    // In the order of memory.
    bool nhd = cache.getLayout() == CacheLayout::nhd;
    int64_t outerCount = nhd ? cache.getBlock() : cache.getHeads();
    int64_t innerCount = nhd ? cache.getHeads() : cache.getBlock();
    Value outerStride = nhd ? rows.tokenStride : rows.headStride;
    Value innerStride = nhd ? rows.headStride : rows.tokenStride;
    b.forLoop(b.i64(0), b.i64(outerCount), 1, [&](Value outer) {
      b.forLoop(b.i64(0), b.i64(innerCount), 1, [&](Value inner) {
        Value offset =
            b.add(b.mul(outer, outerStride), b.mul(inner, innerStride));
        copyRow(b.at(from, offset), cache.getElt(), b.at(to, offset), 0,
                rows.dim);
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
      for (const Rows &rows : pools)
        copyBlock(rows, source, target);
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
