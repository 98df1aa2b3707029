// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-expand-features --pagoda-tile-attention=machine=x86-64-v3
// RUN: not pagoda-opt %s -split-input-file --pagoda-tile-attention=machine=z80 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: unknown machine 'z80', known are host

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

func.func @no_schedules(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                        %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{has no schedules: run pagoda-select-tiles first}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// expected-error @below {{expected one pagoda.attention in a function, got 2}}
func.func @two(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
               %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  %o2, %lse2 = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// The window is not known to be a field of the argument struct.
func.func @capture(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                   %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %w: i32) {
  // expected-error @below {{a region may capture only function arguments with pagoda.arg}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) window(%w)
      {causal, schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96,
       kv_tile = 64, heads = 1, block_rows = 4, block_vectors = 3>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}
