//===- GpuBuilder.h - Shorthand for NVIDIA code -----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The op builder of target/nvidia: the scalar arithmetic, loads and loops that
// the CPU's builder has, and the NVVM ops that kernels emit all the time. One
// method is one instruction or close to it; what registers mean is Fragment.h's
// business.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_GPUBUILDER_H
#define PAGODA_COMPILER_TARGET_NVIDIA_GPUBUILDER_H

#include "compiler/target/cpu/CpuBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace pagoda {

class GpuBuilder : public CpuBuilder {
public:
  using CpuBuilder::CpuBuilder;
  using CpuBuilder::forLoop;

  static constexpr unsigned globalSpace = 1, sharedSpace = 3;
  Type pointerTo(unsigned space) {
    return mlir::LLVM::LLVMPointerType::get(getContext(), space);
  }

  //===--------------------------------------------------------------------===//
  // Scalars and memory
  //===--------------------------------------------------------------------===//

  Value rem(Value a, int64_t b) { return sub(a, mul(div(a, b), b)); }
  Value bitAnd(Value a, int64_t b) {
    return createOrFold<mlir::arith::AndIOp>(a, i32(b));
  }
  Value bitXor(Value a, int64_t b) {
    return createOrFold<mlir::arith::XOrIOp>(a, i32(b));
  }
  Value bitXor(Value a, Value b) {
    return createOrFold<mlir::arith::XOrIOp>(a, b);
  }
  Value both(Value a, Value b) {
    return createOrFold<mlir::arith::AndIOp>(a, b);
  }
  /// The larger; the other one where one is NaN. One max.f32.
  Value maxf(Value a, Value b) {
    return mlir::arith::MaxNumFOp::create(*this, a, b);
  }
  Value equal(Value a, Value b) {
    return mlir::arith::CmpFOp::create(*this, mlir::arith::CmpFPredicate::OEQ,
                                       a, b);
  }

  /// pointer + bytes, in the pointer's address space.
  Value at(Value pointer, Value bytes) {
    return mlir::LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(),
                                     pointer,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }
  Value at(Value pointer, int64_t bytes) {
    if (bytes == 0)
      return pointer;
    return mlir::LLVM::GEPOp::create(
        *this, pointer.getType(), getI8Type(), pointer,
        llvm::ArrayRef<mlir::LLVM::GEPArg>{int32_t(bytes)});
  }
  /// Element `index` of an array of 4-byte elements.
  Value element(Value array, Value index) {
    return at(array, mul(widen(index), 4));
  }
  /// A load of memory that nobody writes while the kernel runs.
  Value loadConstant(Type type, Value pointer) {
    return mlir::LLVM::LoadOp::create(*this, type, pointer, /*alignment=*/0,
                                      /*isVolatile=*/false,
                                      /*isNonTemporal=*/false,
                                      /*isInvariant=*/true);
  }
  Value isNotNull(Value pointer) {
    Value null = mlir::LLVM::ZeroOp::create(*this, pointer.getType());
    return mlir::LLVM::ICmpOp::create(*this, mlir::LLVM::ICmpPredicate::ne,
                                      pointer, null);
  }

  /// for (i = lo; i < hi; i += step) with a step known at run time only.
  void forLoop(Value lo, Value hi, Value step,
               llvm::function_ref<void(Value)> body) {
    auto loop = mlir::scf::ForOp::create(*this, lo, hi, step);
    mlir::OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  //===--------------------------------------------------------------------===//
  // Threads
  //===--------------------------------------------------------------------===//

  Value threadId(int64_t threads) {
    auto range =
        mlir::LLVM::ConstantRangeAttr::get(getContext(), 32, 0, threads);
    return mlir::NVVM::ThreadIdXOp::create(*this, i32Type(), range);
  }
  Value blockId() { return mlir::NVVM::BlockIdXOp::create(*this, i32Type()); }
  Value gridSize() { return mlir::NVVM::GridDimXOp::create(*this, i32Type()); }
  /// Every thread of the block arrives before any goes on.
  void barrier() { mlir::NVVM::Barrier0Op::create(*this); }
  /// `value` of the lane whose number differs by `mask`.
  Value shuffleXor(Value value, int64_t mask) {
    return mlir::NVVM::ShflOp::create(
        *this, value.getType(), i32(-1), value, i32(mask), i32(31),
        mlir::NVVM::ShflKind::bfly, mlir::UnitAttr());
  }

  //===--------------------------------------------------------------------===//
  // Asynchronous copies
  //===--------------------------------------------------------------------===//

  /// Copies `bytes` (0 to 16, i32) from global memory and fills up 16 bytes of
  /// shared memory with zeros. Both sides are aligned to 16 bytes.
  void copy16(Value target, Value source, Value bytes) {
    mlir::NVVM::CpAsyncOp::create(*this, target, source, 16,
                                  mlir::NVVM::LoadCacheModifierKind::CG, bytes);
  }
  /// Closes a group of copies; waits until at most `pending` groups of this
  /// thread are under way.
  void commitCopies() { mlir::NVVM::CpAsyncCommitGroupOp::create(*this); }
  void waitForCopies(int64_t pending) {
    mlir::NVVM::CpAsyncWaitGroupOp::create(*this, uint32_t(pending));
  }

  //===--------------------------------------------------------------------===//
  // Matrix products. 16-bit pairs travel as i32, the first in the low half.
  //===--------------------------------------------------------------------===//

  /// `count` (1, 2 or 4) 8x8 matrices of 16-bit elements; lane l gives row
  /// l % 8 of matrix l / 8. With `transpose` each is transposed on the way.
  Values loadMatrices(Value pointer, bool transpose, int64_t count = 4) {
    Type type = count == 1 ? i32Type() : structOf(i32Type(), count);
    Value matrices = mlir::NVVM::LdMatrixOp::create(
        *this, type, pointer, uint32_t(count),
        transpose ? mlir::NVVM::MMALayout::col : mlir::NVVM::MMALayout::row,
        mlir::NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
        mlir::NVVM::LdStMatrixEltType::B16);
    return count == 1 ? Values{matrices} : unpack(matrices, count);
  }

  /// D = A B + C by one m16n8k16 product of `element` (f16 or bf16) into f32.
  Values multiply(Type element, ValueRange a, ValueRange b, ValueRange c) {
    using namespace mlir::NVVM;
    Values operandA(a), operandB(b);
    std::optional<std::array<MMATypes, 2>> types;
    if (element.isF16()) {
      Type pair = mlir::VectorType::get({2}, element);
      for (Values *operand : {&operandA, &operandB})
        for (Value &value : *operand)
          value = mlir::LLVM::BitcastOp::create(*this, pair, value);
    } else {
      types = {MMATypes::bf16, MMATypes::bf16};
    }
    Value result = MmaOp::create(
        *this, structOf(getF32Type(), 4), operandA, operandB, c,
        llvm::ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt, types,
        std::array<MMALayout, 2>{MMALayout::row, MMALayout::col});
    return unpack(result, 4);
  }

  /// Two f32 rounded to `element` (f16 or bf16), as i32.
  Value packPair(Type element, Value low, Value high) {
    return mlir::LLVM::BitcastOp::create(
        *this, i32Type(), convertPair(element, pairOf(low, high)));
  }
  /// A vector of two f32 in elements of `element`.
  Value convertPair(Type element, Value pair) {
    if (element.isF32())
      return pair;
    return mlir::arith::TruncFOp::create(
        *this, mlir::VectorType::get({2}, element), pair);
  }
  Value pairOf(Value low, Value high) {
    Value pair = mlir::LLVM::PoisonOp::create(
        *this, mlir::VectorType::get({2}, low.getType()));
    pair = mlir::LLVM::InsertElementOp::create(*this, pair, low, i32(0));
    return mlir::LLVM::InsertElementOp::create(*this, pair, high, i32(1));
  }

private:
  Type structOf(Type type, int64_t count) {
    return mlir::LLVM::LLVMStructType::getLiteral(
        getContext(), llvm::SmallVector<Type>(count, type));
  }
  Values unpack(Value aggregate, int64_t count) {
    Values result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(mlir::LLVM::ExtractValueOp::create(
          *this, aggregate, llvm::ArrayRef<int64_t>{i}));
    return result;
  }
};

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_NVIDIA_GPUBUILDER_H
