// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = pagoda.merge_partials %{{.*}}, %{{.*}} factor %{{.*}} : !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x128xf32>
func.func @f(%a: !pagoda.args, %g: !pagoda.merge, %c: f32) {
  %m, %l, %o = pagoda.merge_partials %a, %g factor %c
      : !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x128xf32>
  return
}
