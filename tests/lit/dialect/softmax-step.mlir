// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = pagoda.softmax_step %{{.*}}, %{{.*}}, %{{.*}} factor %{{.*}} : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32> -> !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
!s = !pagoda.tile<1x96x64xf32>
!row = !pagoda.tile<1x96x1xf32>
func.func @f(%s: !s, %m: !row, %l: !row, %c: f32) {
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c : !s, !row, !row
      -> !s, !row, !row, !row
  return
}
