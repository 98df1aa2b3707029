// RUN: pagoda-opt %s --pagoda-cpu-expand-math | FileCheck %s --implicit-check-not=math.exp2 --implicit-check-not=math.log --implicit-check-not=math.tanh

// RUN: pagoda-opt %s --pagoda-cpu-expand-math=scalef | FileCheck %s --check-prefix=SCALEF --implicit-check-not=math.exp2

// exp2 by shift-and-polynomial: the nearest integer by adding 1.5 * 2^23 and a
// bias, five coefficients and the constant one by fma, times the power of two.
// The last op is the product: nothing is selected after it.
// CHECK-LABEL: func.func @vector
// CHECK-SAME: (%[[X:.*]]: vector<8xf32>)
// CHECK: %[[SHIFTED:.*]] = arith.addf %{{.*}} : vector<8xf32>
// CHECK-COUNT-5: vector.fma %{{.*}} : vector<8xf32>
// CHECK: arith.bitcast %[[SHIFTED]] : vector<8xf32> to vector<8xi32>
// CHECK: arith.shli %{{.*}} : vector<8xi32>
// CHECK: %[[POWER:.*]] = arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %{{.*}}, %[[POWER]] : vector<8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @vector(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp2 %x : vector<8xf32>
  return %y : vector<8xf32>
}

// One comparison, with the least exponent, is enough where the operand is known
// not to be positive.
// CHECK-LABEL: func.func @non_positive
// CHECK-COUNT-1: arith.cmpf ogt
// CHECK-NOT: arith.cmpf
// CHECK: return
func.func @non_positive(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp2 %x {pagoda.nonpositive} : vector<8xf32>
  return %y : vector<8xf32>
}

// A result for bf16 takes three coefficients and the constant one.
// CHECK-LABEL: func.func @for_bf16
// CHECK-COUNT-3: vector.fma %{{.*}} : vector<8xf32>
// CHECK-NOT: vector.fma
// CHECK: return
func.func @for_bf16(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp2 %x {pagoda.for_bf16} : vector<8xf32>
  return %y : vector<8xf32>
}

// Scalars and any vector width alike.
// CHECK-LABEL: func.func @scalar
// CHECK: arith.shli %{{.*}} : i32
func.func @scalar(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// With vscalefps, vectors of 16 need no comparison; others are as without it.
// CHECK-LABEL: func.func @wide
// CHECK: vector.fma %{{.*}} : vector<16xf32>
// SCALEF-LABEL: func.func @vector
// SCALEF: arith.shli
// SCALEF-LABEL: func.func @wide
// SCALEF-NOT: arith.cmpf
// SCALEF: %[[NEAREST:.*]] = math.roundeven
// SCALEF: arith.subf %{{.*}}, %[[NEAREST]]
// SCALEF-COUNT-5: vector.fma %{{.*}} : vector<16xf32>
// SCALEF: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %[[NEAREST]],
func.func @wide(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp2 %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @others
func.func @others(%x: vector<8xf32>) -> (vector<8xf32>, vector<8xf32>) {
  %y = math.log %x : vector<8xf32>
  %z = math.tanh %x : vector<8xf32>
  return %y, %z : vector<8xf32>, vector<8xf32>
}
