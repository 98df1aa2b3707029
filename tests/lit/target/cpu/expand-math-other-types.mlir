// RUN: pagoda-opt %s --pagoda-cpu-expand-math | FileCheck %s

// The polynomial is of f32; other types are left alone.
// CHECK-LABEL: func.func @double
// CHECK: math.exp2 %{{.*}} : f64
func.func @double(%x: f64) -> f64 {
  %y = math.exp2 %x : f64
  return %y : f64
}
