// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.kv_ref key %{{.*}}, %{{.*}}, %{{.*}} : !pagoda.kv<1x64x128xbf16>
// CHECK: pagoda.kv_ref value %{{.*}}, %{{.*}}, %{{.*}} limit %{{.*}} : !pagoda.kv<1x64x64xbf16>
func.func @f(%a: !pagoda.args, %w: !pagoda.item, %j: i32, %end: i32) {
  %k = pagoda.kv_ref key %a, %w, %j : !pagoda.kv<1x64x128xbf16>
  %v = pagoda.kv_ref value %a, %w, %j limit %end : !pagoda.kv<1x64x64xbf16>
  return
}
