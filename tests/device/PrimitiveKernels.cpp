//===- PrimitiveKernels.cpp - One instruction, one kernel -----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/device/Primitives.h"

#include "compiler/Passes.h"
#include "compiler/Pipeline.h"
#include "compiler/emit/Object.h"
#include "compiler/emit/Ptx.h"
#include "compiler/target/KernelAbi.h"
#include "compiler/target/nvidia/DeviceModule.h"
#include "compiler/target/nvidia/Fragment.h"
#include "compiler/target/nvidia/GpuBuilder.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace pagoda::device {

namespace {

using Predicate = arith::CmpIPredicate;

/// What the body of a kernel has at hand.
struct Frame {
  Value q, k, o;      ///< global memory
  Value count;        ///< q_token_stride
  Value thread, lane; ///< i32
  Value shared;
};

class PrimitiveBuilder {
public:
  PrimitiveBuilder(ModuleOp module, StringRef chip)
      : b(module.getLoc(), module.getContext()),
        device(deviceModule(module, chip)) {}

  void build();

private:
  void kernel(StringRef name, int64_t threads,
              llvm::function_ref<void(const Frame &)> body);
  void matrixLoads();
  void products();
  void fragments();
  void copies();
  void threads();
  void mathematics();
  void limits();

  /// Chunk `lane` of q to chunk `lane` of shared memory, waited for.
  void stage(const Frame &f) {
    b.copy16(b.at(f.shared, b.mul(f.thread, 16)),
             b.at(f.q, b.mul(f.thread, 16)), b.i32(16));
    b.commitCopies();
    b.waitForCopies(0);
    b.barrier();
  }
  /// `values` (4 bytes each) in the order of threads.
  void storeAll(const Frame &f, ValueRange values) {
    Value to = b.at(f.o, b.mul(f.thread, 4 * int64_t(values.size())));
    for (auto [index, value] : llvm::enumerate(values))
      b.store(value, b.at(to, 4 * int64_t(index)));
  }
  Values loadAll(Value from, const Frame &f, Type type, int64_t count) {
    Values result;
    Value at = b.at(from, b.mul(f.thread, 4 * count));
    for (int64_t i = 0; i < count; ++i)
      result.push_back(b.loadConstant(type, b.at(at, 4 * i)));
    return result;
  }
  Type f16() { return b.getF16Type(); }
  Type bf16() { return b.getBF16Type(); }

  GpuBuilder b;
  gpu::GPUModuleOp device;
};

} // namespace

void PrimitiveBuilder::kernel(StringRef name, int64_t threads,
                              llvm::function_ref<void(const Frame &)> body) {
  b.setInsertionPointToEnd(device.getBody());
  LLVM::LLVMFuncOp function =
      createGpuKernel(b, name, threads, sizeof(pagoda_attention_args));
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value args = entry->getArgument(0);
  auto field = [&](StringRef field, Type type) {
    return b.loadConstant(type, b.at(args, attentionField(field).offset));
  };
  Type pointer = b.pointerTo(GpuBuilder::globalSpace);
  Frame frame;
  frame.q = field("q", pointer);
  frame.k = field("k.base", pointer);
  frame.o = field("o", pointer);
  frame.count = field("q_token_stride", b.i64Type());
  frame.thread = b.threadId(threads);
  frame.lane = b.rem(frame.thread, 32);
  frame.shared = LLVM::AddressOfOp::create(
      b, b.pointerTo(GpuBuilder::sharedSpace), sharedSymbol);
  body(frame);
  LLVM::ReturnOp::create(b, ValueRange{});
  KernelDescription description;
  description.symbol = name.str();
  description.info.role = PAGODA_ROLE_ATTENTION;
  description.info.threads = int32_t(threads);
  setDescription(function, description);
}

void PrimitiveBuilder::matrixLoads() {
  for (int64_t count : {1, 2, 4})
    for (bool transpose : {false, true})
      kernel(("ldmatrix_x" + Twine(count) + (transpose ? "_trans" : "")).str(),
             32, [&](const Frame &f) {
               stage(f);
               storeAll(f, b.loadMatrices(b.at(f.shared, b.mul(f.lane, 16)),
                                          transpose, count));
             });
}

/// Registers of A and B one after the other in q, those of C in k.
void PrimitiveBuilder::products() {
  for (auto [name, element] :
       {std::pair("mma_m16n8k16_f16", f16()), {"mma_m16n8k16_bf16", bf16()}})
    kernel(name, 32, [&](const Frame &f) {
      Values operands = loadAll(f.q, f, b.i32Type(), 6);
      Values c = loadAll(f.k, f, b.getF32Type(), 4);
      storeAll(f, b.multiply(element, ArrayRef(operands).take_front(4),
                             ArrayRef(operands).drop_front(4), c));
    });
}

/// 16x16 matrices A, K and V one after the other in q, two chunks a row.
void PrimitiveBuilder::fragments() {
  auto matrix = [&](const Frame &f, int64_t number, bool rowsFirst,
                    bool transpose) {
    // The two ways in which kernels spread rows and chunks over lanes.
    Value row = rowsFirst
                    ? b.rem(f.lane, 16)
                    : b.add(b.mul(b.div(f.lane, 16), 8), b.rem(f.lane, 8));
    Value chunk = rowsFirst ? b.div(f.lane, 16) : b.rem(b.div(f.lane, 8), 2);
    Value index = b.add(b.mul(row, 2), chunk);
    return b.loadMatrices(b.at(b.at(f.shared, b.mul(index, 16)), 512 * number),
                          transpose);
  };
  auto multiply = [&](Type element, ArrayRef<Value> a,
                      ArrayRef<Value> operand) {
    Values sums;
    for (int64_t octet = 0; octet < 2; ++octet)
      llvm::append_range(sums,
                         b.multiply(element, a, operand.slice(2 * octet, 2),
                                    Values(4, b.f32(0))));
    return sums;
  };
  /// Rows of `columns` f32 by the accumulator's map.
  auto store = [&](const Frame &f, const Values &sums) {
    for (auto [index, sum] : llvm::enumerate(sums)) {
      Value row = b.add(b.div(f.lane, 4), 8 * Fragment::halfOf(int64_t(index)));
      Value column =
          b.add(b.mul(b.rem(f.lane, 4), 2), Fragment::columnOf(int64_t(index)));
      b.store(sum, b.element(f.o, b.add(b.mul(row, 16), column)));
    }
  };
  auto stageAll = [&](const Frame &f) {
    for (int64_t part = 0; part < 3; ++part) {
      Value offset = b.add(b.mul(f.thread, 16), 512 * part);
      b.copy16(b.at(f.shared, offset), b.at(f.q, offset), b.i32(16));
    }
    b.commitCopies();
    b.waitForCopies(0);
    b.barrier();
  };
  for (auto [suffix, element] : {std::pair("_f16", f16()), {"_bf16", bf16()}}) {
    kernel(("fragment_a_kt" + Twine(suffix)).str(), 32, [&](const Frame &f) {
      stageAll(f);
      store(f, multiply(element, matrix(f, 0, true, false),
                        matrix(f, 1, false, false)));
    });
    kernel(("fragment_a_v" + Twine(suffix)).str(), 32, [&](const Frame &f) {
      stageAll(f);
      store(f, multiply(element, matrix(f, 0, true, false),
                        matrix(f, 2, true, true)));
    });
    // The accumulator of one product is operand A of the next.
    kernel(("fragment_p_v" + Twine(suffix)).str(), 32, [&](const Frame &f) {
      stageAll(f);
      Values s = multiply(element, matrix(f, 0, true, false),
                          matrix(f, 1, false, false));
      Values p;
      for (int64_t pair = 0; pair < 4; ++pair)
        p.push_back(b.packPair(element, s[2 * pair], s[2 * pair + 1]));
      store(f, multiply(element, p, matrix(f, 2, true, true)));
    });
  }
  // The largest of each row of A K^T, in all 16 columns.
  kernel("fragment_row_max", 32, [&](const Frame &f) {
    stageAll(f);
    Values s =
        multiply(f16(), matrix(f, 0, true, false), matrix(f, 1, false, false));
    Value largest[2] = {s[0], s[2]};
    for (auto [index, value] : llvm::enumerate(s)) {
      Value &row = largest[Fragment::halfOf(int64_t(index))];
      row = b.maxf(row, value);
    }
    for (Value &row : largest)
      for (int64_t mask : {1, 2})
        row = b.maxf(row, b.shuffleXor(row, mask));
    for (auto [index, value] : llvm::enumerate(s))
      value = largest[Fragment::halfOf(int64_t(index))];
    store(f, s);
  });
}

void PrimitiveBuilder::copies() {
  // The first 0, 2, ... 16 bytes, zeros after them.
  kernel("cp_async_zero_fill", 32, [&](const Frame &f) {
    Value at = b.mul(f.thread, 16);
    b.copy16(b.at(f.shared, at), b.at(f.q, at), b.mul(b.rem(f.lane, 9), 2));
    b.commitCopies();
    b.waitForCopies(0);
    b.barrier();
    storeAll(f, b.loadMatrices(b.at(f.shared, at), false));
  });
  // The older of two groups is there once one is pending.
  kernel("cp_async_groups", 32, [&](const Frame &f) {
    Value at = b.mul(f.thread, 16);
    for (int64_t group = 0; group < 2; ++group) {
      b.copy16(b.at(b.at(f.shared, at), 512 * group),
               b.at(b.at(f.q, at), 512 * group), b.i32(16));
      b.commitCopies();
    }
    Values read;
    for (int64_t group = 0; group < 2; ++group) {
      b.waitForCopies(1 - group);
      b.barrier();
      llvm::append_range(
          read, b.loadMatrices(b.at(b.at(f.shared, at), 512 * group), false));
    }
    storeAll(f, read);
  });
  // 16 bytes through registers, read by the other warp.
  kernel("store_shared_barrier", 64, [&](const Frame &f) {
    Type chunk = VectorType::get({8}, b.getI16Type());
    Value at = b.mul(f.thread, 16);
    Value value = LLVM::PoisonOp::create(b, chunk);
    for (int64_t i = 0; i < 8; ++i)
      value = LLVM::InsertElementOp::create(
          b, value, b.loadConstant(b.getI16Type(), b.at(b.at(f.q, at), 2 * i)),
          b.i32(i));
    b.store(value, b.at(f.shared, at), 16);
    b.barrier();
    storeAll(f, b.loadMatrices(b.at(f.shared, b.bitXor(at, 512)), false));
  });
}

void PrimitiveBuilder::threads() {
  kernel("thread_block_grid", 64, [&](const Frame &f) {
    Value index = b.add(b.mul(b.blockId(), 64), f.thread);
    Value value = b.add(b.mul(b.gridSize(), 4096), index);
    b.store(arith::SIToFPOp::create(b, b.getF32Type(), value),
            b.element(f.o, index));
  });
  for (int64_t mask : {1, 2, 4, 8, 16})
    kernel(("shfl_bfly_" + Twine(mask)).str(), 64, [&](const Frame &f) {
      Value value = loadAll(f.q, f, b.getF32Type(), 1)[0];
      storeAll(f, {b.shuffleXor(value, mask)});
    });
}

void PrimitiveBuilder::mathematics() {
  auto map = [&](StringRef name, llvm::function_ref<Value(Value, Value)> of) {
    kernel(name, 32, [&](const Frame &f) {
      storeAll(f, {of(loadAll(f.q, f, b.getF32Type(), 1)[0],
                      loadAll(f.k, f, b.getF32Type(), 1)[0])});
    });
  };
  map("ex2_approx", [&](Value x, Value) { return b.exp2(x); });
  map("lg2_approx",
      [&](Value x, Value) -> Value { return math::Log2Op::create(b, x); });
  map("rcp_approx", [&](Value x, Value) { return b.divf(b.f32(1), x); });
  map("max_number", [&](Value x, Value y) { return b.maxf(x, y); });
  map("cvt_f16x2", [&](Value x, Value y) { return b.packPair(f16(), x, y); });
  map("cvt_bf16x2", [&](Value x, Value y) { return b.packPair(bf16(), x, y); });
}

void PrimitiveBuilder::limits() {
  kernel("limit_copy", limitThreads, [&](const Frame &f) {
    Type chunk = VectorType::get({4}, b.i32Type());
    Value first = b.add(b.mul(b.blockId(), limitThreads), f.thread);
    Value step = b.mul(b.gridSize(), limitThreads);
    b.forLoop(b.widen(first), f.count, b.widen(step), [&](Value index) {
      Value at = b.mul(index, 16);
      b.store(b.load(chunk, b.at(f.q, at), 16), b.at(f.o, at), 16);
    });
  });
  for (auto [name, element] :
       {std::pair("limit_mma_f16", f16()), {"limit_mma_bf16", bf16()}})
    kernel(name, limitThreads, [&, element = element](const Frame &f) {
      Value rounds = arith::TruncIOp::create(b, b.i32Type(), f.count);
      Value one = b.f32(1);
      Values operand(6, b.packPair(element, one, one));
      Values sums = b.forLoop(
          b.i32(0), rounds, 1, Values(4 * limitProducts, b.f32(0)),
          [&](Value, ValueRange carried) {
            Values next;
            for (int64_t i = 0; i < limitProducts; ++i)
              llvm::append_range(
                  next, b.multiply(element, ArrayRef(operand).take_front(4),
                                   ArrayRef(operand).drop_front(4),
                                   carried.slice(4 * i, 4)));
            return next;
          });
      Value total = sums[0];
      for (Value sum : ArrayRef(sums).drop_front())
        total = b.addf(total, sum);
      Value index = b.add(b.mul(b.blockId(), limitThreads), f.thread);
      b.store(total, b.element(f.o, index));
    });
}

void PrimitiveBuilder::build() {
  matrixLoads();
  products();
  fragments();
  copies();
  threads();
  mathematics();
  limits();
}

llvm::Expected<Artifact> compilePrimitives(const Machine &machine,
                                           bool emulate) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  PrimitiveBuilder(*module, machine.name).build();
  PassManager passes(&context);
  passes.addPass(createNvidiaExpandMath());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  if (emulate)
    buildEmulatedLlvm(passes);
  else
    buildPhase(passes, Phase::Llvm, machine, {});
  Artifact artifact;
  artifact.target = machine.name;
  for (const KernelDescription &kernel : descriptionsOf(*module)) {
    KernelSummary summary;
    summary.name = kernel.symbol;
    summary.info = kernel.info;
    artifact.kernels.push_back(std::move(summary));
  }
  if (failed(passes.run(*module)))
    return llvm::createStringError("primitives cannot be lowered");

  Machine code = emulate ? Machine::host() : machine;
  auto target = createTargetMachine(code);
  if (!target)
    return target.takeError();
  llvm::LLVMContext llvmContext;
  auto translated = emulate ? translate(*module, llvmContext, **target, code)
                            : translateDevice(*module, llvmContext, **target);
  if (!translated)
    return translated.takeError();
  optimize(**translated, **target);
  auto text = emitCode(**translated, **target, /*assembly=*/!emulate);
  if (!text)
    return text.takeError();
  (emulate ? artifact.object : artifact.ptx) = std::move(*text);
  if (!emulate)
    if (llvm::Error error = assemble(artifact, machine))
      return std::move(error);
  return std::move(artifact);
}

} // namespace pagoda::device
