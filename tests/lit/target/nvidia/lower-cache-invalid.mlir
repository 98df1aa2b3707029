// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-nvidia-lower-cache=machine=sm_80

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @f(%k: tensor<?x2x64xf16>, %v: tensor<?x2x64xf16>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op cache elt must be f16 or bf16 on nvidia, got 'f32'}}
  pagoda.append_kv %k, %v to %cache at %slots : tensor<?x2x64xf16>, tensor<?x2x64xf16>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>

func.func @f(%k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op elements must be f16 or bf16 on nvidia, got 'f32'}}
  pagoda.append_kv %k, %v to %cache at %slots : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>

func.func @f(%k: tensor<?x2x64xf16>, %v: tensor<?x2x64xbf16>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op k and v must have one element type on nvidia, got 'f16' and 'bf16'}}
  pagoda.append_kv %k, %v to %cache at %slots : tensor<?x2x64xf16>, tensor<?x2x64xbf16>, !cache, tensor<?xi64>
  return
}
