// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
  // expected-error @below {{'pagoda.for_items' op region must take one !pagoda.item (T4)}}
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.merge):
  }
}

// -----

pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
  // expected-error @below {{'pagoda.for_items' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
  pagoda.for_items %a {
  }
}

// -----

func.func @f(%a: !pagoda.args) {
  // expected-error @below {{'pagoda.for_items' op expects parent op 'pagoda.kernel'}}
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
  }
  return
}
