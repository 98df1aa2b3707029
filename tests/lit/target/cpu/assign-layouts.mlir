// RUN: pagoda-opt %s --pagoda-cpu-assign-layouts | FileCheck %s

// Lanes are queries: panels of block_vectors vectors of 8.
// CHECK-LABEL: pagoda.kernel @queries
// CHECK: pagoda.load_q {{.*}} : !pagoda.tile<1x96x128xf32, #pagoda.lanes<{{"?}}rows{{"?}}, panel = 24>>
// CHECK: pagoda.state_init {{.*}} : !pagoda.tile<1x96x1xf32, #pagoda.lanes<{{"?}}rows{{"?}}, panel = 24>>, !pagoda.tile<1x96x128xf32, #pagoda.lanes<{{"?}}rows{{"?}}, panel = 24>>
// CHECK: pagoda.kv_loop {{.*}} : !pagoda.tile<1x96x1xf32, #pagoda.lanes<{{"?}}rows{{"?}}, panel = 24>>
// CHECK: pagoda.qk {{.*}} -> !pagoda.tile<1x96x64xf32, #pagoda.lanes<{{"?}}rows{{"?}}, panel = 24>>
pagoda.kernel @queries(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64,
                                heads = 1, block_rows = 4, block_vectors = 3>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x96x128xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x96>
    %b:4 = pagoda.kv_range %w, %c step 64 : !pagoda.coords<1x96>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>
    %st = pagoda.kv_loop %j = %b#0 to %b#3 step 64 carry(%n = %m) : !pagoda.tile<1x96x1xf32> {
      %k = pagoda.kv_ref key %a, %w, %j : !pagoda.kv<1x64x128xf32>
      %s = pagoda.qk %q, %k : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x128xf32> -> !pagoda.tile<1x96x64xf32>
      pagoda.yield %n : !pagoda.tile<1x96x1xf32>
    }
  }
}

// The same block on wider vectors.
// CHECK-LABEL: pagoda.kernel @wide
// CHECK: pagoda.load_q {{.*}} : !pagoda.tile<1x96x128xf32, #pagoda.lanes<{{"?}}rows{{"?}}, panel = 48>>
pagoda.kernel @wide(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64,
                                heads = 1, block_rows = 4, block_vectors = 3>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 512, registers = 32>} {
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x96x128xf32>
  }
}

// Lanes are the head dim: panels of block_rows rows.
// CHECK-LABEL: pagoda.kernel @head_dim
// CHECK: pagoda.load_q {{.*}} : !pagoda.tile<8x2x128xf32, #pagoda.lanes<{{"?}}cols{{"?}}, panel = 2>>
pagoda.kernel @head_dim(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 16,
                                heads = 8, block_rows = 2, block_vectors = 4>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<8x2x128xf32>
  }
}
