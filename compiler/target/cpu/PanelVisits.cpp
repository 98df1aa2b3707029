//===- PanelVisits.cpp - Panels begin and end with their visits -----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/PanelVisits.h"

using namespace mlir;
using namespace pagoda;

PanelVisits::PanelVisits(KernelContext &context, TileEmitter &emitter,
                         LLVM::LLVMFuncOp kernel, StateInitOp init,
                         StoreOp store)
    : c(context), b(context.b), emitter(emitter), init(init), store(store),
      stages(c.slots.reserve(c.schedule.getHeads() * emitter.panels() * 4)) {
  opening =
      emitFunction(kernel, "_open", init.getFactor(), [&](const Panel &panel) {
        emitter.loadQ(panel);
        emitter.initState(init, panel);
      });
  closing =
      emitFunction(kernel, "_close", store.getFactor(),
                   [&](const Panel &panel) { emitter.store(store, panel); });
}

/// A function of (args, scratch, item, factor, head, panel). What the context
/// knows of the kernel's values is set aside meanwhile.
LLVM::LLVMFuncOp
PanelVisits::emitFunction(LLVM::LLVMFuncOp kernel, StringRef suffix,
                          Value factor,
                          llvm::function_ref<void(const Panel &)> body) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel);
  Type pointer = b.pointerType(), i64 = b.i64Type();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(b.getContext()),
      {pointer, pointer, pointer, b.getF32Type(), i64, i64});
  auto function = LLVM::LLVMFuncOp::create(b, (kernel.getName() + suffix).str(),
                                           type, LLVM::Linkage::Internal);
  function.setNoInline(true);
  function.setArgAttr(1, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);

  FunctionValues &values = c, kept = std::move(values);
  values = {};
  c.args = entry->getArgument(0);
  c.scratch = entry->getArgument(1);
  c.item = c.loadItem(entry->getArgument(2));
  c.scalars.map(factor, entry->getArgument(3));
  body({entry->getArgument(4), entry->getArgument(5)});
  values = std::move(kept);
  LLVM::ReturnOp::create(b, ValueRange{});
  return function;
}

void PanelVisits::call(LLVM::LLVMFuncOp function, Value factor,
                       const Panel &panel) {
  LLVM::CallOp::create(b, function,
                       ValueRange{c.args, c.scratch, c.itemPointer,
                                  c.scalars.lookup(factor), panel.head,
                                  panel.index});
}

Value PanelVisits::stageOf(const Panel &panel) {
  Value number = b.add(b.mul(panel.head, emitter.panels()), panel.index);
  return b.at(c.slot(stages), b.mul(number, 4));
}

Value PanelVisits::isAt(const Panel &panel, Stage stage) {
  Value now = b.load(b.i32Type(), stageOf(panel));
  return b.compare(arith::CmpIPredicate::eq, now, b.i32(stage));
}

void PanelVisits::begin() {
  emitter.forEachPanel(
      [&](const Panel &panel) { b.store(b.i32(Waiting), stageOf(panel)); });
}

Value PanelVisits::open(const Panel &panel) {
  Value isFirst = isAt(panel, Waiting);
  b.ifThen(isFirst, [&] {
    call(opening, init.getFactor(), panel);
    b.store(b.i32(Opened), stageOf(panel));
  });
  return isFirst;
}

void PanelVisits::close(const Panel &panel) {
  if (!panel.isLast)
    return;
  b.ifThen(panel.isLast, [&] {
    call(closing, store.getFactor(), panel);
    b.store(b.i32(Closed), stageOf(panel));
  });
}

void PanelVisits::finish() {
  emitter.forEachPanel([&](const Panel &panel) {
    b.ifThen(open(panel), [&] { emitter.clearO(panel); });
    b.ifThen(isAt(panel, Opened),
             [&] { call(closing, store.getFactor(), panel); });
  });
}
