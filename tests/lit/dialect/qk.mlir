// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.qk %{{.*}}, %{{.*}} : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x128xbf16> -> !pagoda.tile<1x96x64xf32>
func.func @f(%q: !pagoda.tile<1x96x128xf32>, %k: !pagoda.kv<1x64x128xbf16>) {
  %s = pagoda.qk %q, %k : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x128xbf16>
      -> !pagoda.tile<1x96x64xf32>
  return
}
