// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

pagoda.kernel @k(%a) attributes {role = #pagoda<role merge>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
  // expected-error @below {{'pagoda.for_merges' op region must take one !pagoda.merge (T4)}}
  pagoda.for_merges %a {
  ^bb0(%g: !pagoda.item):
  }
}
