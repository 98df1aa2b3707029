// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK-LABEL: func.func @fields
// CHECK-NEXT: pagoda.arg %{{.*}} "scale" : f32
// CHECK-NEXT: pagoda.arg %{{.*}} "softcap" : f32
// CHECK-NEXT: pagoda.arg %{{.*}} "window" : i32
// CHECK-NEXT: pagoda.arg %{{.*}} "chunk" : i32
// CHECK-NEXT: pagoda.arg %{{.*}} "sinks"[%{{.*}}] : f32
// CHECK-NEXT: pagoda.arg %{{.*}} "alibi_slopes"[%{{.*}}] : f32
// CHECK-NEXT: pagoda.arg %{{.*}} "prefix_lens"[%{{.*}}] : i32
func.func @fields(%a: !pagoda.args, %i: i32) {
  %0 = pagoda.arg %a "scale" : f32
  %1 = pagoda.arg %a "softcap" : f32
  %2 = pagoda.arg %a "window" : i32
  %3 = pagoda.arg %a "chunk" : i32
  %4 = pagoda.arg %a "sinks"[%i] : f32
  %5 = pagoda.arg %a "alibi_slopes"[%i] : f32
  %6 = pagoda.arg %a "prefix_lens"[%i] : i32
  return
}
