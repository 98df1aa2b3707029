// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.coords %{{.*}}, %{{.*}} : !pagoda.coords<8x2>
func.func @f(%a: !pagoda.args, %w: !pagoda.item) {
  %c = pagoda.coords %a, %w : !pagoda.coords<8x2>
  return
}
