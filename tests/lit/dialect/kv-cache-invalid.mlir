// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{cache heads must be between 1 and 65536, got 0 (Y1)}}
func.func private @f(!pagoda.kv_cache<heads = 0, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>)

// -----

// expected-error @below {{cache k_dim must be between 1 and 65536, got 0 (Y1)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 0, v_dim = 128, block = 16, layout = hnd, elt = f32>)

// -----

// expected-error @below {{cache v_dim must be between 1 and 65536, got 0 (Y1)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 0, block = 16, layout = hnd, elt = f32>)

// -----

// expected-error @below {{cache block must be between 1 and 65536, got 0 (Y1)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 0, layout = hnd, elt = f32>)

// -----

// expected-error @below {{cache block must be between 1 and 65536, got 65537 (Y1)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 65537, layout = hnd, elt = f32>)

// -----

// expected-error @below {{cache heads must be between 1 and 65536, got -8 (Y1)}}
func.func private @f(!pagoda.kv_cache<heads = -8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>)

// -----

// expected-error @below {{cache element must be f32, f16, bf16 or an 8-bit type, got 'f64' (Y2)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f64>)

// -----

// expected-error @below {{cache element must be f32, f16, bf16 or an 8-bit type, got 'i32' (Y2)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = i32>)

// -----

// expected-error @below {{cache element must be f32, f16, bf16 or an 8-bit type, got 'index' (Y2)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = index>)

// -----

// expected-error @below {{cache scales need an 8-bit element, got 'f16' (Y3)}}
func.func private @f(!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f16, scales = head>)
