// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-cpu-lower-tiles

// expected-error @below {{'pagoda.kernel' op loop order naive needs lanes = queries}}
pagoda.kernel @naive(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = naive, lanes = head_dim, q_tile = 96, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

// expected-error @below {{'pagoda.kernel' op schedule q_tile must hold the 2 query heads of a kv head, got 1}}
pagoda.kernel @small(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 1, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}
