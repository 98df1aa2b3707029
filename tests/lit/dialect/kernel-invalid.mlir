// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'pagoda.kernel' op q_heads must be a multiple of 8 kv heads, got 12 (T2)}}
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 12 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
}

// -----

// expected-error @below {{'pagoda.kernel' op q_heads must be a multiple of 8 kv heads, got 0 (T2)}}
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 0 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
}

// -----

// expected-error @below {{'pagoda.kernel' op q_heads must be a multiple of 8 kv heads, got -16 (T2)}}
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = -16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
}

// -----

// expected-error @below {{'pagoda.kernel' op schedule heads must divide 8 kv heads, got 3 (T3)}}
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 3>} {
}

// -----

// expected-error @below {{'pagoda.kernel' op must take one !pagoda.args (T1)}}
"pagoda.kernel"() <{sym_name = "k", role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>}> ({
^bb0(%x: i32):
}) : () -> ()

// -----

// expected-error @below {{'pagoda.kernel' op must take one !pagoda.args (T1)}}
"pagoda.kernel"() <{sym_name = "k", role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>}> ({
^bb0:
  %0 = arith.constant 0 : i32
}) : () -> ()

// -----

// expected-error @below {{requires attribute 'cache'}}
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>} {
}
