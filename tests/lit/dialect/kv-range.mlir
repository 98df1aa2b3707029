// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK-LABEL: func.func @causal
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = pagoda.kv_range %{{.*}}, %{{.*}} step 64 {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[LO:.*]]: i32, %[[HI:.*]]: i32):
// CHECK: pagoda.yield %{{.*}}, %{{.*}}, %[[LO]], %[[HI]] : i32, i32, i32, i32
// CHECK: } : !pagoda.coords<1x96>
func.func @causal(%w: !pagoda.item, %c: !pagoda.coords<1x96>) {
  %b:4 = pagoda.kv_range %w, %c step 64 {
  ^bb0(%seq: i32, %q_lo: i32, %q_hi: i32):
    %c0 = arith.constant 0 : i32
    pagoda.yield %c0, %c0, %q_lo, %q_hi : i32, i32, i32, i32
  } : !pagoda.coords<1x96>
  return
}

// Without a region every query sees every key.
// CHECK-LABEL: func.func @all
// CHECK: pagoda.kv_range %{{.*}}, %{{.*}} step 16 : !pagoda.coords<8x2>
func.func @all(%w: !pagoda.item, %c: !pagoda.coords<8x2>) {
  %b:4 = pagoda.kv_range %w, %c step 16 : !pagoda.coords<8x2>
  return
}
