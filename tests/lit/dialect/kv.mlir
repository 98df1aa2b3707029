// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: func.func private @refs(!pagoda.kv<1x64x128xbf16>, !pagoda.kv<8x16x64xf8E5M2>)
func.func private @refs(!pagoda.kv<1x64x128xbf16>, !pagoda.kv<8x16x64xf8E5M2>)
