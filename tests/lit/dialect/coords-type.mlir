// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: func.func private @coords(!pagoda.coords<8x2>)
func.func private @coords(!pagoda.coords<8x2>)
