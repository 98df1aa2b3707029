// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.pv %{{.*}}, %{{.*}}, %{{.*}} : !pagoda.tile<8x2x16xf32>, !pagoda.kv<8x16x64xf16>, !pagoda.tile<8x2x64xf32> -> !pagoda.tile<8x2x64xf32>
func.func @f(%p: !pagoda.tile<8x2x16xf32>, %v: !pagoda.kv<8x16x64xf16>, %o: !pagoda.tile<8x2x64xf32>) {
  %o1 = pagoda.pv %p, %v, %o : !pagoda.tile<8x2x16xf32>, !pagoda.kv<8x16x64xf16>,
      !pagoda.tile<8x2x64xf32> -> !pagoda.tile<8x2x64xf32>
  return
}
