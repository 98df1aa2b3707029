// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.load_q %{{.*}}, %{{.*}} : !pagoda.tile<1x96x128xf32>
func.func @f(%a: !pagoda.args, %w: !pagoda.item) {
  %q = pagoda.load_q %a, %w : !pagoda.tile<1x96x128xf32>
  return
}
