// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.kernel @k(%{{.*}}) attributes {
// CHECK-SAME: cache = !pagoda.kv_cache<heads = 8
// CHECK-SAME: q_heads = 16 : i64
// CHECK-SAME: q_type = f32
// CHECK-SAME: role = #pagoda<role attention>
// CHECK-SAME: schedule = #pagoda.schedule<order = q_outer
// CHECK-NEXT: pagoda.arg
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
  %s = pagoda.arg %a "scale" : f32
}

// CHECK: pagoda.kernel @m(%{{.*}}) attributes {
// CHECK-SAME: features = 3 : i32
// CHECK-SAME: role = #pagoda<role merge>
// CHECK-SAME: target = #pagoda.target<kind = "cpu"
pagoda.kernel @m(%a) attributes {role = #pagoda<role merge>, features = 3 : i32,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = bf16,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 1, heads = 8>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256>} {
  pagoda.for_merges %a {
  ^bb0(%g: !pagoda.merge):
  }
}
