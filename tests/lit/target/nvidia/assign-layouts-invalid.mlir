// RUN: pagoda-opt %s -pagoda-nvidia-assign-layouts -verify-diagnostics

// expected-error @below {{has no nvidia target}}
pagoda.kernel @k(%a) attributes {
    cache = !pagoda.kv_cache<heads = 2, k_dim = 16, v_dim = 16, block = 16, layout = hnd, elt = f16>,
    q_heads = 4 : i64, q_type = f16, role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "x86-64-v3", vector_bits = 256, registers = 16>} {
}
