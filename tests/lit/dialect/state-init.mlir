// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = pagoda.state_init %{{.*}}, %{{.*}} factor %{{.*}} : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>
// CHECK: pagoda.state_init %{{.*}}, %{{.*}} factor %{{.*}} {sinks} : !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x64xf32>
func.func @f(%a: !pagoda.args, %w: !pagoda.item, %f: f32) {
  %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>
  %m1, %l1, %o1 = pagoda.state_init %a, %w factor %f {sinks} : !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x64xf32>
  return
}
