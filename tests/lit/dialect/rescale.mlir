// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.rescale %{{.*}}, %{{.*}} : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32> -> !pagoda.tile<1x96x128xf32>
func.func @f(%o: !pagoda.tile<1x96x128xf32>, %alpha: !pagoda.tile<1x96x1xf32>) {
  %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x128xf32>
  return
}
