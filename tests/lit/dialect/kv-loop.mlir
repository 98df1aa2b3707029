// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK-LABEL: func.func @state
// CHECK: %{{.*}}:2 = pagoda.kv_loop %[[J:.*]] = %{{.*}} to %{{.*}} step 64 carry(%[[M:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}) : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32> {
// CHECK-NEXT: %[[R:.*]] = pagoda.rescale %[[O]], %[[M]]
// CHECK: pagoda.yield %{{.*}}, %[[R]] : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>
func.func @state(%lo: i32, %hi: i32, %m0: !pagoda.tile<1x96x1xf32>, %o0: !pagoda.tile<1x96x128xf32>,
                 %next: !pagoda.tile<1x96x1xf32>) -> !pagoda.tile<1x96x128xf32> {
  %st:2 = pagoda.kv_loop %j = %lo to %hi step 64 carry(%m = %m0, %o = %o0)
      : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32> {
    %o1 = pagoda.rescale %o, %m : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32>
        -> !pagoda.tile<1x96x128xf32>
    pagoda.yield %next, %o1 : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>
  }
  return %st#1 : !pagoda.tile<1x96x128xf32>
}
