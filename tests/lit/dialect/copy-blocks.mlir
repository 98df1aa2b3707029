// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = bf16>

// CHECK: pagoda.copy_blocks %{{.*}} in %{{.*}} : tensor<?x2xi32>, !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = bf16>
func.func @copy(%pairs: tensor<?x2xi32>, %cache: !cache) {
  pagoda.copy_blocks %pairs in %cache : tensor<?x2xi32>, !cache
  return
}
