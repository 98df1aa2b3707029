// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: func.func private @tiles(!pagoda.tile<1x96x128xf32>, !pagoda.tile<8x2x1xbf16>, !pagoda.tile<1x64x64xi8>)
func.func private @tiles(!pagoda.tile<1x96x128xf32>, !pagoda.tile<8x2x1xbf16>,
                         !pagoda.tile<1x64x64xi8>)
