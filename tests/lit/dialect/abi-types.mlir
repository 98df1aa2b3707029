// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: func.func private @abi(!pagoda.args, !pagoda.item, !pagoda.merge)
func.func private @abi(!pagoda.args, !pagoda.item, !pagoda.merge)
