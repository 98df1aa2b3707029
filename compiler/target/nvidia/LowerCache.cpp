//===- LowerCache.cpp - append_kv and copy_blocks to GPU kernels ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a function around one pagoda.append_kv or pagoda.copy_blocks into a
// kernel whose grid has one block per token, or per copy; the threads of a
// block share out its elements. Whole rows move 16 bytes at a time where their
// length allows it (GpuArgs.h says what that asks of callers), other elements
// one by one. Addresses are 64-bit throughout.
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"
#include "compiler/target/KernelAbi.h"
#include "compiler/target/nvidia/DeviceModule.h"
#include "compiler/target/nvidia/GpuBuilder.h"
#include "compiler/tiling/Machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace pagoda;

using Predicate = arith::CmpIPredicate;

namespace {

/// Rows of one tensor or pool at one token or block: where the first head's
/// begins, and how far the others are, in bytes.
struct Rows {
  Value base, headStride;
  Type element;
  int64_t dim;
};

class CacheLowering {
public:
  CacheLowering(func::FuncOp function, KvCacheType cache, StringRef chip,
                gpu::GPUModuleOp device)
      : function(function), cache(cache), chip(chip),
        b(function.getLoc(), device.getContext()) {
    b.setInsertionPointToEnd(device.getBody());
  }

  LogicalResult append(AppendKvOp op);
  LogicalResult copy(CopyBlocksOp op);

private:
  using FieldOf = AbiField (*)(StringRef);
  static constexpr int64_t threads = 128;

  LogicalResult checkElement(Operation *op, StringRef what, Type type);
  LLVM::LLVMFuncOp begin(int64_t argBytes);
  void finish(LLVM::LLVMFuncOp kernel, pagoda_kernel_info info);
  Value field(FieldOf fieldOf, const Twine &name);
  /// A stride field in bytes.
  Value stride(FieldOf fieldOf, const Twine &name, Type element);
  Value pointerTo(FieldOf fieldOf, const Twine &name);

  int64_t bytes(Type element) { return element.getIntOrFloatBitWidth() / 8; }
  /// Spreads [0, count) over the threads.
  void forThreads(int64_t count, llvm::function_ref<void(Value)> body) {
    b.forLoop(thread, b.i32(count), threads, body);
  }
  Value at(const Rows &rows, Value head, Value element) {
    return b.at(rows.base, b.add(b.mul(b.widen(head), rows.headStride),
                                 b.mul(b.widen(element), bytes(rows.element))));
  }
  void copyHeads(const Rows &from, const Rows &to, int64_t first);
  void rotateHeads(const Rows &from, const Rows &to, Value cos, Value sin,
                   int64_t rotaryDim, bool interleaved);
  Value convert(Value value, Type element);

  func::FuncOp function;
  KvCacheType cache;
  std::string chip;
  GpuBuilder b;
  Value args, thread;
};

} // namespace

//===----------------------------------------------------------------------===//
// The function and its arguments
//===----------------------------------------------------------------------===//

LogicalResult CacheLowering::checkElement(Operation *op, StringRef what,
                                          Type type) {
  if (type.isF16() || type.isBF16())
    return success();
  return op->emitOpError() << what << " must be f16 or bf16 on nvidia, got "
                           << type;
}

LLVM::LLVMFuncOp CacheLowering::begin(int64_t argBytes) {
  LLVM::LLVMFuncOp kernel =
      createGpuKernel(b, function.getSymName(), threads, argBytes);
  Block *entry = kernel.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  args = entry->getArgument(0);
  thread = b.threadId(threads);
  return kernel;
}

void CacheLowering::finish(LLVM::LLVMFuncOp kernel, pagoda_kernel_info info) {
  LLVM::ReturnOp::create(b, ValueRange{});
  KernelDescription description;
  description.symbol = kernel.getSymName().str();
  description.target = "nvidia:" + chip;
  info.kv_heads = int32_t(cache.getHeads());
  info.head_dim = int32_t(cache.getKDim());
  info.v_head_dim = int32_t(cache.getVDim());
  info.block_size = int32_t(cache.getBlock());
  info.layout = cache.getLayout() == CacheLayout::nhd ? PAGODA_NHD : PAGODA_HND;
  info.k_dtype = info.v_dtype = dtypeOf(cache.getElt());
  info.threads = threads;
  description.info = info;
  setDescription(kernel, description);
  function.erase();
}

Value CacheLowering::field(FieldOf fieldOf, const Twine &name) {
  AbiField abi = fieldOf(name.str());
  return b.loadConstant(fieldType(b.getContext(), abi.type),
                        b.at(args, abi.offset));
}

Value CacheLowering::stride(FieldOf fieldOf, const Twine &name, Type element) {
  return b.mul(field(fieldOf, name), bytes(element));
}

Value CacheLowering::pointerTo(FieldOf fieldOf, const Twine &name) {
  return b.loadConstant(b.pointerTo(GpuBuilder::globalSpace),
                        b.at(args, fieldOf(name.str()).offset));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Between floating-point types, through f32.
Value CacheLowering::convert(Value value, Type element) {
  if (value.getType() == element)
    return value;
  if (!value.getType().isF32())
    value = arith::ExtFOp::create(b, b.getF32Type(), value);
  if (!element.isF32())
    value = arith::TruncFOp::create(b, element, value);
  return value;
}

/// Elements `first` and on of every head.
void CacheLowering::copyHeads(const Rows &from, const Rows &to, int64_t first) {
  int64_t count = to.dim - first;
  if (count == 0)
    return;
  bool same = from.element == to.element;
  bool whole = same && first % 8 == 0 && to.dim % 8 == 0;
  int64_t width = whole ? 8 : 1, pieces = count / width;
  // Bits are bits: no float can be changed on the way.
  Type read = same ? b.getIntegerType(to.element.getIntOrFloatBitWidth())
                   : from.element;
  if (whole)
    read = VectorType::get({width}, read);
  forThreads(cache.getHeads() * pieces, [&](Value index) {
    Value head = b.div(index, pieces);
    Value element = b.add(b.mul(b.rem(index, pieces), width), first);
    unsigned alignment = unsigned(width * bytes(to.element));
    Value value = b.load(read, at(from, head, element),
                         whole ? alignment : unsigned(bytes(from.element)));
    if (!same)
      value = convert(value, to.element);
    b.store(value, at(to, head, element), alignment);
  });
}

void CacheLowering::rotateHeads(const Rows &from, const Rows &to, Value cos,
                                Value sin, int64_t rotaryDim,
                                bool interleaved) {
  int64_t half = rotaryDim / 2;
  Type f32 = b.getF32Type();
  forThreads(cache.getHeads() * half, [&](Value index) {
    Value head = b.div(index, half), pair = b.rem(index, half);
    Value first = interleaved ? b.mul(pair, 2) : pair;
    Value second = b.add(first, interleaved ? 1 : half);
    auto read = [&](Value element) {
      return convert(b.load(from.element, at(from, head, element)), f32);
    };
    auto write = [&](Value value, Value element) {
      b.store(convert(value, to.element), at(to, head, element));
    };
    Value x = read(first), y = read(second);
    Value c = b.load(f32, b.element(cos, pair));
    Value s = b.load(f32, b.element(sin, pair));
    write(b.fma(x, c, b.negf(b.mulf(y, s))), first);
    write(b.fma(y, c, b.mulf(x, s)), second);
  });
}

//===----------------------------------------------------------------------===//
// The two kernels
//===----------------------------------------------------------------------===//

LogicalResult CacheLowering::append(AppendKvOp op) {
  Type source = op.getK().getType().getElementType(), elt = cache.getElt();
  if (op.getV().getType().getElementType() != source)
    return op.emitOpError("k and v must have one element type on nvidia, got ")
           << source << " and " << op.getV().getType().getElementType();
  if (failed(checkElement(op, "elements", source)) ||
      failed(checkElement(op, "cache elt", elt)))
    return failure();
  int64_t rotaryDim = 0;
  if (op.getPositions())
    rotaryDim = 2 * cast<RankedTensorType>(op.getCos().getType()).getDimSize(1);

  LLVM::LLVMFuncOp kernel = begin(sizeof(pagoda_append_args));
  Value token = b.widen(b.blockId());
  Value slot =
      b.loadConstant(b.i64Type(), b.at(pointerTo(appendField, "slot_mapping"),
                                       b.mul(token, 8)));
  auto writeToken = [&] {
    Value block = b.div(slot, cache.getBlock());
    Value inBlock = b.sub(slot, b.mul(block, cache.getBlock()));
    auto tensor = [&](StringRef name, int64_t dim) {
      Value offset =
          b.mul(token, stride(appendField, name + "_token_stride", source));
      return Rows{b.at(pointerTo(appendField, name + "_new"), offset),
                  stride(appendField, name + "_head_stride", source), source,
                  dim};
    };
    auto pool = [&](StringRef name, int64_t dim) {
      Value offset = b.add(
          b.mul(block, stride(appendField, name + ".block_stride", elt)),
          b.mul(inBlock, stride(appendField, name + ".token_stride", elt)));
      return Rows{b.at(pointerTo(appendField, name + ".base"), offset),
                  stride(appendField, name + ".head_stride", elt), elt, dim};
    };
    Rows newK = tensor("k", cache.getKDim()), k = pool("k", cache.getKDim());
    Rows newV = tensor("v", cache.getVDim()), v = pool("v", cache.getVDim());
    if (rotaryDim) {
      Value cos = pointerTo(appendField, "rope_cos");
      Value sin = pointerTo(appendField, "rope_sin");
      b.ifThenElse(
          b.isNotNull(cos),
          [&] {
            Value position = b.loadConstant(
                b.i32Type(),
                b.element(pointerTo(appendField, "positions"), token));
            Value offset = b.mul(
                b.mul(b.widen(position), field(appendField, "rope_stride")),
                int64_t(sizeof(float)));
            rotateHeads(newK, k, b.at(cos, offset), b.at(sin, offset),
                        rotaryDim, op.getInterleaved());
            copyHeads(newK, k, rotaryDim);
          },
          [&] { copyHeads(newK, k, 0); });
    } else {
      copyHeads(newK, k, 0);
    }
    copyHeads(newV, v, 0);
  };
  // -1 in either width: no cache reaches slot 2^32 - 1.
  Value named = b.compare(Predicate::sge, slot, b.i64(0));
  Value padding = b.compare(Predicate::ne, slot, b.i64(UINT32_MAX));
  b.ifThen(b.both(named, padding), writeToken);

  pagoda_kernel_info info{};
  info.role = PAGODA_ROLE_APPEND;
  info.q_dtype = dtypeOf(source);
  info.rotary_dim = int32_t(rotaryDim);
  info.rope_interleaved = op.getInterleaved();
  finish(kernel, info);
  return success();
}

LogicalResult CacheLowering::copy(CopyBlocksOp op) {
  Type elt = cache.getElt();
  if (failed(checkElement(op, "cache elt", elt)))
    return failure();
  LLVM::LLVMFuncOp kernel = begin(sizeof(pagoda_copy_args));
  Value pair = b.at(pointerTo(copyField, "copies"),
                    b.mul(b.widen(b.blockId()), sizeof(pagoda_block_copy)));
  auto id = [&](int64_t offset) {
    return b.widen(b.loadConstant(b.i32Type(), b.at(pair, offset)));
  };
  Value source = id(offsetof(pagoda_block_copy, src));
  Value target = id(offsetof(pagoda_block_copy, dst));
  b.ifThen(b.compare(Predicate::sge, b.min(source, target), b.i64(0)), [&] {
    for (auto [name, dim] :
         {std::pair("k", cache.getKDim()), std::pair("v", cache.getVDim())}) {
      Value base = pointerTo(copyField, name + Twine(".base"));
      Value blockStride = stride(copyField, name + Twine(".block_stride"), elt);
      Value slotStride = stride(copyField, name + Twine(".token_stride"), elt);
      Value headStride = stride(copyField, name + Twine(".head_stride"), elt);
      auto rowsAt = [&](Value block, Value slot) {
        Value offset =
            b.add(b.mul(block, blockStride), b.mul(b.widen(slot), slotStride));
        return Rows{b.at(base, offset), headStride, elt, dim};
      };
      b.forLoop(b.i32(0), b.i32(cache.getBlock()), 1, [&](Value slot) {
        copyHeads(rowsAt(source, slot), rowsAt(target, slot), 0);
      });
    }
  });

  pagoda_kernel_info info{};
  info.role = PAGODA_ROLE_COPY;
  finish(kernel, info);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace pagoda {
#define GEN_PASS_DEF_NVIDIALOWERCACHE
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct NvidiaLowerCachePass
    : pagoda::impl::NvidiaLowerCacheBase<NvidiaLowerCachePass> {
  using NvidiaLowerCacheBase::NvidiaLowerCacheBase;

  LogicalResult lower(func::FuncOp function, Operation *op) {
    gpu::GPUModuleOp device = deviceModule(getOperation(), machine);
    if (auto append = dyn_cast<AppendKvOp>(op))
      return CacheLowering(function, append.getCache().getType(), machine,
                           device)
          .append(append);
    auto copy = cast<CopyBlocksOp>(op);
    return CacheLowering(function, copy.getCache().getType(), machine, device)
        .copy(copy);
  }

  void runOnOperation() override {
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      for (Operation &op : function.front())
        if (isa<AppendKvOp, CopyBlocksOp>(op)) {
          if (failed(lower(function, &op)))
            return signalPassFailure();
          break;
        }
    }
  }
};
} // namespace
