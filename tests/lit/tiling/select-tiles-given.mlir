// A schedule given by hand is checked and kept; overrides do not touch it.
// RUN: pagoda-opt %s --pagoda-select-tiles="machine=x86-64-v3 override=kv_tile=128" | FileCheck %s

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// CHECK: schedules = [#pagoda.schedule<order = naive, lanes = queries, q_tile = 8, kv_tile = 16, heads = 1>]
func.func @given(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      {causal, schedules = [#pagoda.schedule<order = naive, lanes = queries, q_tile = 8,
                            kv_tile = 16, heads = 1>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}
