// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-cpu-lower-cache=machine=x86-64-v3

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = i8, scales = tensor>

func.func @f(%k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op elements must be f32, f16 or bf16 on cpu, got 'i8'}}
  pagoda.append_kv %k, %v to %cache at %slots : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !cache, tensor<?xi64>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @f(%k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf16>, %cache: !cache, %slots: tensor<?xi64>) {
  // expected-error @below {{'pagoda.append_kv' op k and v must have one element type on cpu, got 'f32' and 'f16'}}
  pagoda.append_kv %k, %v to %cache at %slots : tensor<?x2x64xf32>, tensor<?x2x64xf16>, !cache, tensor<?xi64>
  return
}
