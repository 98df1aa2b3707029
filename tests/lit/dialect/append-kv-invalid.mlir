// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x1024xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op k must be a tensor of rank 3, got 'tensor<?x1024xf32>' (S1)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x1024xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op v must be a tensor of rank 3, got 'tensor<?xf32>' (S1)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x8x128xf32>, tensor<?xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?x1xi64>) {
  // expected-error @below {{'pagoda.append_kv' op slot_mapping must be a tensor of rank 1, got 'tensor<?x1xi64>' (S1)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?x1xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x4x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op k dimension 1 must be 8, got 4 (S2)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x4x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x64xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op k dimension 2 must be 128, got 64 (S2)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x8x64xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x16x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op v dimension 1 must be 8, got 16 (S2)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x8x128xf32>, tensor<?x16x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x128xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op v dimension 2 must be 64, got 128 (S2)}}
  pagoda.append_kv %k, %v to %cache at %slots  : tensor<?x8x128xf32>, tensor<?x8x128xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>, %p: tensor<?x1xi32>, %c: tensor<?x64xf32>) {
  // expected-error @below {{'pagoda.append_kv' op positions must be a tensor of rank 1, got 'tensor<?x1xi32>' (S1)}}
  pagoda.append_kv %k, %v to %cache at %slots rope(%p, %c, %c : tensor<?x1xi32>, tensor<?x64xf32>, tensor<?x64xf32>) : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>, %p: tensor<?xi32>, %c: tensor<?xf32>) {
  // expected-error @below {{'pagoda.append_kv' op cos must be a tensor of rank 2, got 'tensor<?xf32>' (S1)}}
  pagoda.append_kv %k, %v to %cache at %slots rope(%p, %c, %c : tensor<?xi32>, tensor<?xf32>, tensor<?xf32>) : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>, %p: tensor<?xi32>, %c: tensor<?x64xf32>, %s: tensor<?xf32>) {
  // expected-error @below {{'pagoda.append_kv' op sin must be a tensor of rank 2, got 'tensor<?xf32>' (S1)}}
  pagoda.append_kv %k, %v to %cache at %slots rope(%p, %c, %s : tensor<?xi32>, tensor<?x64xf32>, tensor<?xf32>) : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op interleaved needs rope (S6)}}
  pagoda.append_kv %k, %v to %cache at %slots {interleaved} : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>, %p: tensor<?xi32>, %c: tensor<?x65xf32>) {
  // expected-error @below {{'pagoda.append_kv' op cos dimension 1 must be from 1 to 64 pairs of dims of a key, got 65 (S7)}}
  pagoda.append_kv %k, %v to %cache at %slots rope(%p, %c, %c : tensor<?xi32>, tensor<?x65xf32>, tensor<?x65xf32>) : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>, %p: tensor<?xi32>, %c: tensor<?x?xf32>) {
  // expected-error-re @below {{'pagoda.append_kv' op cos dimension 1 must be from 1 to 64 pairs of dims of a key, got {{.*}} (S7)}}
  pagoda.append_kv %k, %v to %cache at %slots rope(%p, %c, %c : tensor<?xi32>, tensor<?x?xf32>, tensor<?x?xf32>) : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = nhd, elt = f32>

func.func @f(%k: tensor<?x8x128xf32>, %v: tensor<?x8x64xf32>, %cache: !cache, %slots: tensor<?xi64>, %p: tensor<?xi32>, %c: tensor<?x64xf32>, %s: tensor<?x32xf32>) {
  // expected-error @below {{'pagoda.append_kv' op sin dimension 1 must be 64, got 32 (S2)}}
  pagoda.append_kv %k, %v to %cache at %slots rope(%p, %c, %s : tensor<?xi32>, tensor<?x64xf32>, tensor<?x32xf32>) : tensor<?x8x128xf32>, tensor<?x8x64xf32>, !cache, tensor<?xi64>
  return
}
