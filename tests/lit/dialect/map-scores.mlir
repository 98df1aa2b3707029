// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.map_scores %{{.*}}, %{{.*}}, %{{.*}} scale %{{.*}} {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[Y:.*]] = math.tanh %[[X]] : f32
// CHECK-NEXT: pagoda.yield %[[Y]] : f32
// CHECK-NEXT: } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %x: f32) {
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %y = math.tanh %score : f32
    pagoda.yield %y : f32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}
