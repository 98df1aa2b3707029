// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-select-tiles=machine=x86-64-v3
// RUN: not pagoda-opt %s -split-input-file --pagoda-select-tiles=machine=sm_75 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: unknown machine 'sm_75', known are host, x86-64-v3,

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

func.func @registers(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                     %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op schedule needs 28 registers, x86-64-v3 has 16 (M7)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      {causal, schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96,
                            kv_tile = 64, heads = 1, block_rows = 8, block_vectors = 3>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

func.func @element(%q: tensor<?x16x128xf64>, %cache: !cache, %table: tensor<?x?xi32>,
                   %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op element type must be f32, f16, bf16 or an 8-bit type, got 'f64'}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf64>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf64>, tensor<?x16xf32>
  return
}
