// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.mask_scores %{{.*}}, %{{.*}}, %{{.*}} limit %{{.*}} {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK-NEXT: %[[SEES:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : i32
// CHECK-NEXT: pagoda.yield %[[SEES]] : i1
// CHECK-NEXT: } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
// CHECK: pagoda.mask_scores %{{.*}}, %{{.*}}, %{{.*}} limit %{{.*}} : !pagoda.tile<1x96x64xf32>
func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %end: i32) {
  %t = pagoda.mask_scores %s, %c, %j limit %end {
  ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
    pagoda.yield %sees : i1
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  %u = pagoda.mask_scores %t, %c, %j limit %end
      : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}
