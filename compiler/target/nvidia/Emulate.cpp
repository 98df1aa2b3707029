//===- Emulate.cpp - NVVM ops to calls of the emulator --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the kernels out of their gpu.module and replaces what only a GPU can do
// by calls of the functions that runtime/emulator/Emulator.h declares. What is
// left is code for any host. Each call carries the number of its op, which is
// how the emulator's reports name places: look for the number among the calls'
// arguments.
//
//===----------------------------------------------------------------------===//

#include "compiler/Passes.h"
#include "compiler/target/nvidia/GpuBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pagoda;

namespace {

class Emulation {
public:
  Emulation(ModuleOp module)
      : module(module), b(module.getLoc(), module.getContext()),
        pointer(b.pointerType()),
        none(LLVM::LLVMVoidType::get(b.getContext())) {}

  LogicalResult run(LLVM::LLVMFuncOp kernel);

private:
  LogicalResult replace(Operation *op);
  LogicalResult replace(NVVM::ShflOp op);
  LogicalResult replace(NVVM::LdMatrixOp op);
  LogicalResult replace(NVVM::MmaOp op);
  LogicalResult replace(NVVM::CpAsyncOp op);
  LogicalResult replace(LLVM::CallIntrinsicOp op);
  LogicalResult replace(LLVM::AddressOfOp op);
  LogicalResult replace(arith::TruncFOp op);
  LogicalResult announce(Operation *op, Value address, Type type, bool write);

  /// Calls pagoda_emu_`name`; the result is null for void.
  Value call(StringRef name, Type result, ValueRange arguments);
  /// The same in place of `op`.
  LogicalResult become(Operation *op, StringRef name, ValueRange arguments);
  Value number() { return b.i32(count); }
  Value flat(Value address) {
    if (address.getType() == pointer)
      return address;
    return LLVM::AddrSpaceCastOp::create(b, pointer, address);
  }
  /// `size` 4-byte slots of stack.
  Value slots(int64_t size);
  Value slotsWith(ValueRange values);

  ModuleOp module;
  GpuBuilder b;
  Type pointer, none;
  LLVM::LLVMFuncOp kernel;
  int32_t count = 0; ///< of the current op, from 1
};

} // namespace

Value Emulation::call(StringRef name, Type result, ValueRange arguments) {
  std::string symbol = ("pagoda_emu_" + name).str();
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!callee) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    callee = LLVM::LLVMFuncOp::create(
        b, symbol,
        LLVM::LLVMFunctionType::get(result,
                                    llvm::to_vector(arguments.getTypes())));
  }
  auto op = LLVM::CallOp::create(b, callee, arguments);
  return op.getNumResults() ? op.getResult() : Value();
}

LogicalResult Emulation::become(Operation *op, StringRef name,
                                ValueRange arguments) {
  bool hasResult = op->getNumResults() != 0;
  Value result =
      call(name, hasResult ? op->getResult(0).getType() : none, arguments);
  if (hasResult)
    op->getResult(0).replaceAllUsesWith(result);
  op->erase();
  return success();
}

Value Emulation::slots(int64_t size) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  return LLVM::AllocaOp::create(b, pointer, b.i32Type(), b.i32(size), 16);
}

Value Emulation::slotsWith(ValueRange values) {
  Value result = slots(values.size());
  for (auto [index, value] : llvm::enumerate(values))
    b.store(value, b.at(result, 4 * int64_t(index)));
  return result;
}

LogicalResult Emulation::replace(NVVM::ShflOp op) {
  if (op.getKind() != NVVM::ShflKind::bfly)
    return op.emitError("only butterfly shuffles are emulated");
  Type type = op.getType();
  Value value = LLVM::BitcastOp::create(b, b.i32Type(), op.getVal());
  Value result =
      call("shuffle_xor", b.i32Type(), {value, op.getOffset(), number()});
  op.replaceAllUsesWith(LLVM::BitcastOp::create(b, type, result).getResult());
  op.erase();
  return success();
}

LogicalResult Emulation::replace(NVVM::LdMatrixOp op) {
  if (op.getEltType() != NVVM::LdStMatrixEltType::B16)
    return op.emitError("only ldmatrix of 16-bit elements is emulated");
  int64_t count = op.getNum();
  Value transpose = b.i32(op.getLayout() == NVVM::MMALayout::col);
  Value out = slots(count);
  call("load_matrices", none,
       {flat(op.getPtr()), b.i32(count), transpose, out, number()});
  op.replaceAllUsesWith(b.load(op.getType(), out));
  op.erase();
  return success();
}

LogicalResult Emulation::replace(NVVM::MmaOp op) {
  auto shape = op.getShape();
  auto type = op.getMultiplicandAPtxType();
  if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 || !type ||
      (*type != NVVM::MMATypes::f16 && *type != NVVM::MMATypes::bf16))
    return op.emitError("only m16n8k16 of f16 and bf16 is emulated");
  Values in(op.getOperandA());
  llvm::append_range(in, op.getOperandB());
  llvm::append_range(in, op.getOperandC());
  Value out = slots(4);
  Value isBf16 = b.i32(*type == NVVM::MMATypes::bf16);
  call("multiply", none, {isBf16, slotsWith(in), out, number()});
  op.replaceAllUsesWith(b.load(op.getType(), out));
  op.erase();
  return success();
}

LogicalResult Emulation::replace(NVVM::CpAsyncOp op) {
  if (op.getSize() != 16)
    return op.emitError("only copies of 16 bytes are emulated");
  Value bytes = op.getCpSize() ? op.getCpSize() : b.i32(16);
  return become(op, "copy16",
                {flat(op.getDst()), flat(op.getSrc()), bytes, number()});
}

LogicalResult Emulation::replace(LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  if (name.starts_with("llvm.nvvm.ex2.approx"))
    return become(op, "exp2", op.getArgs());
  if (name.starts_with("llvm.nvvm.lg2.approx"))
    return become(op, "log2", op.getArgs());
  if (name.starts_with("llvm.nvvm.rcp.approx"))
    return become(op, "reciprocal", op.getArgs());
  return op.emitError() << "intrinsic " << name << " is not emulated";
}

LogicalResult Emulation::replace(LLVM::AddressOfOp op) {
  Value base = call("shared", pointer, {});
  op.replaceAllUsesWith(
      LLVM::AddrSpaceCastOp::create(b, op.getType(), base).getResult());
  op.erase();
  return success();
}

/// Hosts have f16 conversions, but bf16 ones are library calls on most.
LogicalResult Emulation::replace(arith::TruncFOp op) {
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  if (!element.isBF16())
    return success();
  auto round = [&](Value value) -> Value {
    Value bits = call("round_bf16", b.i32Type(), value);
    Value low = arith::TruncIOp::create(b, b.getI16Type(), bits);
    return LLVM::BitcastOp::create(b, element, low);
  };
  Value result;
  if (auto vector = dyn_cast<VectorType>(type)) {
    result = LLVM::PoisonOp::create(b, type);
    for (int64_t lane = 0; lane < vector.getNumElements(); ++lane) {
      Value value = LLVM::ExtractElementOp::create(b, op.getIn(), b.i32(lane));
      result =
          LLVM::InsertElementOp::create(b, result, round(value), b.i32(lane));
    }
  } else {
    result = round(op.getIn());
  }
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

LogicalResult Emulation::announce(Operation *op, Value address, Type type,
                                  bool write) {
  auto space = cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
  int64_t bytes = DataLayout::closest(op).getTypeSize(type);
  if (space == GpuBuilder::globalSpace) {
    call("global", none, {flat(address), b.i32(bytes), b.i32(write), number()});
  } else if (space == GpuBuilder::sharedSpace) {
    if (bytes != 16)
      return op->emitError("only accesses of 16 bytes to shared memory are "
                           "emulated, got ")
             << bytes;
    call("shared_access", none, {flat(address), b.i32(write), number()});
  }
  return success();
}

LogicalResult Emulation::replace(Operation *op) {
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  ++count;
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](NVVM::ThreadIdXOp) { return become(op, "thread_id", {}); })
      .Case([&](NVVM::BlockIdXOp) { return become(op, "block_id", {}); })
      .Case([&](NVVM::GridDimXOp) { return become(op, "grid_size", {}); })
      .Case([&](NVVM::Barrier0Op) { return become(op, "barrier", number()); })
      .Case([&](NVVM::CpAsyncCommitGroupOp) {
        return become(op, "commit_copies", {});
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp wait) {
        return become(op, "wait_copies", b.i32(wait.getN()));
      })
      .Case<NVVM::ShflOp, NVVM::LdMatrixOp, NVVM::MmaOp, NVVM::CpAsyncOp,
            LLVM::CallIntrinsicOp, LLVM::AddressOfOp, arith::TruncFOp>(
          [&](auto known) { return replace(known); })
      .Case([&](LLVM::LoadOp load) {
        return announce(op, load.getAddr(), load.getType(), /*write=*/false);
      })
      .Case([&](LLVM::StoreOp store) {
        return announce(op, store.getAddr(), store.getValue().getType(),
                        /*write=*/true);
      })
      .Default([](Operation *other) -> LogicalResult {
        if (isa<NVVM::NVVMDialect>(other->getDialect()))
          return other->emitError()
                 << "'" << other->getName() << "' is not emulated";
        return success();
      });
}

LogicalResult Emulation::run(LLVM::LLVMFuncOp function) {
  kernel = function;
  count = 0;
  for (StringRef name : {NVVM::NVVMDialect::getKernelFuncAttrName(),
                         NVVM::NVVMDialect::getReqntidAttrName(),
                         NVVM::NVVMDialect::getMinctasmAttrName()})
    kernel->removeAttr(name);
  // The struct comes by pointer: every thread reads the caller's.
  for (StringRef name : {LLVM::LLVMDialect::getByValAttrName(),
                         LLVM::LLVMDialect::getAlignAttrName(),
                         NVVM::NVVMDialect::getGridConstantAttrName()})
    kernel.removeArgAttr(0, StringAttr::get(b.getContext(), name));
  SmallVector<Operation *> ops;
  kernel.getBody().walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (failed(replace(op)))
      return failure();
  return success();
}

namespace pagoda {
#define GEN_PASS_DEF_NVIDIAEMULATE
#include "compiler/Passes.h.inc"
} // namespace pagoda

namespace {
struct NvidiaEmulatePass : pagoda::impl::NvidiaEmulateBase<NvidiaEmulatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto device :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
      for (auto kernel :
           llvm::make_early_inc_range(device.getOps<LLVM::LLVMFuncOp>())) {
        kernel->moveBefore(module.getBody(), module.getBody()->end());
        if (failed(Emulation(module).run(kernel)))
          return signalPassFailure();
      }
      device.erase();
    }
  }
};
} // namespace
