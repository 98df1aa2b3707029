// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

// CHECK-LABEL: func.func @plain
// CHECK: pagoda.append_kv %{{.*}}, %{{.*}} to %{{.*}} at %{{.*}} : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>, tensor<?xi64>
func.func @plain(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache,
                 %slots: tensor<?xi64>) {
  pagoda.append_kv %k, %v to %cache at %slots
    : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// CHECK-LABEL: func.func @rope
// CHECK: pagoda.append_kv %{{.*}} at %{{.*}} rope(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?x64xf32>, tensor<?x64xf32>) {interleaved}
func.func @rope(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache,
                %slots: tensor<?xi64>, %positions: tensor<?xi32>, %table: tensor<?x64xf32>) {
  pagoda.append_kv %k, %v to %cache at %slots
      rope(%positions, %table, %table : tensor<?xi32>, tensor<?x64xf32>, tensor<?x64xf32>)
      {interleaved}
    : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}
