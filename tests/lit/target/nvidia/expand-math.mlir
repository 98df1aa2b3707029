// RUN: pagoda-opt %s -pagoda-nvidia-expand-math | FileCheck %s

// CHECK-LABEL: @powers
// CHECK: %[[a:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%arg0) : (f32) -> f32
// CHECK: %[[log2e:.*]] = arith.constant 1.44269502 : f32
// CHECK: %[[x:.*]] = arith.mulf %[[a]], %[[log2e]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[x]])
func.func @powers(%x: f32) -> f32 {
  %a = math.exp2 %x : f32
  %b = math.exp %a : f32
  return %b : f32
}

// CHECK-LABEL: @logarithms
// CHECK: %[[a:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%arg0)
// CHECK: %[[b:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%[[a]])
// CHECK: %[[ln2:.*]] = arith.constant 0.693147182 : f32
// CHECK: arith.mulf %[[b]], %[[ln2]]
func.func @logarithms(%x: f32) -> f32 {
  %a = math.log2 %x : f32
  %b = math.log %a : f32
  return %b : f32
}

// 1 - 2 / (2^(2 x log2 e) + 1): no tanh.approx, whose error would show.
// CHECK-LABEL: @tanh
// CHECK: arith.constant 2.88539{{.*}} : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: %[[power:.*]] = arith.addf
// CHECK: %[[inverse:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[power]])
// CHECK: math.fma %[[inverse]],
// CHECK-NOT: divf
func.func @tanh(%x: f32) -> f32 {
  %a = math.tanh %x : f32
  return %a : f32
}

// CHECK-LABEL: @division
// CHECK: %[[inverse:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%arg1)
// CHECK: arith.mulf %arg0, %[[inverse]] : f32
func.func @division(%x: f32, %y: f32) -> f32 {
  %a = arith.divf %x, %y : f32
  return %a : f32
}

// CHECK-LABEL: @division_by_a_constant
// CHECK: %[[inverse:.*]] = arith.constant 2.500000e-01 : f32
// CHECK: arith.mulf %arg0, %[[inverse]]
func.func @division_by_a_constant(%x: f32) -> f32 {
  %four = arith.constant 4.0 : f32
  %a = arith.divf %x, %four : f32
  return %a : f32
}

// An inverse that f32 cannot hold in full:
// CHECK-LABEL: @division_by_zero
// CHECK: llvm.nvvm.rcp.approx.ftz.f
func.func @division_by_zero(%x: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %a = arith.divf %x, %zero : f32
  return %a : f32
}

// CHECK-LABEL: @instructions
// CHECK: math.fma
// CHECK: math.absf
// CHECK: math.sqrt
func.func @instructions(%x: f32) -> f32 {
  %a = math.fma %x, %x, %x : f32
  %b = math.absf %a : f32
  %c = math.sqrt %b : f32
  return %c : f32
}
