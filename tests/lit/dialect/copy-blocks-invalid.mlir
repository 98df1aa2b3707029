// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%pairs: tensor<?xi32>, %cache: !cache) {
  // expected-error @below {{'pagoda.copy_blocks' op pairs must be a tensor of rank 2, got 'tensor<?xi32>' (S1)}}
  pagoda.copy_blocks %pairs in %cache : tensor<?xi32>, !cache
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%pairs: tensor<?x3xi32>, %cache: !cache) {
  // expected-error @below {{'pagoda.copy_blocks' op pairs dimension 1 must be 2, got 3 (S2)}}
  pagoda.copy_blocks %pairs in %cache : tensor<?x3xi32>, !cache
  return
}
