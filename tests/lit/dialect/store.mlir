// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK-LABEL: func.func @item
// CHECK: pagoda.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} factor %{{.*}} : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>, !pagoda.item
func.func @item(%a: !pagoda.args, %w: !pagoda.item, %m: !pagoda.tile<1x96x1xf32>,
                %o: !pagoda.tile<1x96x128xf32>, %c: f32) {
  pagoda.store %m, %m, %o, %a, %w factor %c : !pagoda.tile<1x96x1xf32>,
      !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>, !pagoda.item
  return
}

// CHECK-LABEL: func.func @merge
// CHECK: pagoda.store {{.*}}, !pagoda.merge
func.func @merge(%a: !pagoda.args, %g: !pagoda.merge, %m: !pagoda.tile<8x2x1xf32>,
                 %o: !pagoda.tile<8x2x128xf32>, %c: f32) {
  pagoda.store %m, %m, %o, %a, %g factor %c : !pagoda.tile<8x2x1xf32>,
      !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x128xf32>, !pagoda.merge
  return
}
