// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: #pagoda.fragment<{{"?}}a{{"?}}, warps = 4>
// CHECK-SAME: #pagoda.fragment<{{"?}}acc{{"?}}, warps = 4>
// CHECK-SAME: #pagoda.fragment<{{"?}}row{{"?}}, warps = 8>
func.func private @forms(!pagoda.tile<1x64x64xf16, #pagoda.fragment<"a", warps = 4>>,
                         !pagoda.tile<1x64x64xf32, #pagoda.fragment<"acc", warps = 4>>,
                         !pagoda.tile<1x128x1xf32, #pagoda.fragment<"row", warps = 8>>)
