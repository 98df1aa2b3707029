// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-cpu-assign-layouts

// expected-error @below {{'pagoda.kernel' op has no cpu target}}
pagoda.kernel @none(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
}

// -----

// expected-error @below {{'pagoda.kernel' op has no cpu target}}
pagoda.kernel @gpu(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
}
