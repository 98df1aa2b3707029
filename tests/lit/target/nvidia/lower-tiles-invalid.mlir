// What the Ampere path cannot do is refused with the field, what is expected and
// what came.
// RUN: pagoda-opt %s -pagoda-nvidia-lower-tiles -split-input-file -verify-diagnostics

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, stages = 2, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{q_type must be f16 or bf16 on nvidia, got 'f32'}}
pagoda.kernel @f32(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f32,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, stages = 2, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{cache elt must be q_type, 'f16', on nvidia, got 'bf16'}}
pagoda.kernel @mixed(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = bf16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, stages = 2, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{cache k_dim must be at most 256 on nvidia, got 264}}
pagoda.kernel @k_dim(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 264, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, stages = 2, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{cache v_dim must be at most 256 on nvidia, got 512}}
pagoda.kernel @v_dim(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 512, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = kv_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{schedule order must be q_outer or split_kv on nvidia, got kv_outer}}
pagoda.kernel @order(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 2, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{schedule heads must be 1 on nvidia, got 2}}
pagoda.kernel @heads(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{schedule q_tile must be 16 rows for each of at most 32 warps on nvidia, got 96 rows and 4 warps}}
pagoda.kernel @rows(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{schedule q_tile must hold the 71 query heads of a kv head, got 64}}
pagoda.kernel @group(%a) attributes {role = #pagoda<role attention>, q_heads = 71 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 1, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 24, heads = 1, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{schedule kv_tile must be a multiple of 16 on nvidia, got 24}}
pagoda.kernel @keys(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, warps = 4>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
// expected-error @below {{role append has no kernel on nvidia yet, expected attention or merge}}
pagoda.kernel @append(%a) attributes {role = #pagoda<role append>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
}

// -----

#schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1, warps = 1>
#target = #pagoda.target<kind = "nvidia", name = "sm_80">
pagoda.kernel @layouts(%a) attributes {role = #pagoda<role attention>, q_heads = 4 : i64, q_type = f16,
    cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f16>,
    schedule = #schedule, target = #target} {
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    // expected-error @below {{tile '!pagoda.tile<1x16x64xf32>' has no #pagoda.fragment: run pagoda-nvidia-assign-layouts first}}
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x64xf32>
  }
}
