// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: func.func private @rows(!pagoda.tile<1x96x128xf32, #pagoda.lanes<
// CHECK-SAME: rows{{"?}}, panel = 24>>)
func.func private @rows(!pagoda.tile<1x96x128xf32, #pagoda.lanes<"rows", panel = 24>>)

// CHECK: #pagoda.lanes<{{"?}}cols{{"?}}, panel = 2>
func.func private @cols(!pagoda.tile<8x2x128xf32, #pagoda.lanes<"cols", panel = 2>>)
