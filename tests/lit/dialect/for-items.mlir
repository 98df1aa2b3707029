// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

// CHECK: pagoda.for_items %{{.*}} {
// CHECK-NEXT: ^bb0(%[[W:.*]]: !pagoda.item):
// CHECK-NEXT: pagoda.coords %{{.*}}, %[[W]]
pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>,
    cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>,
    q_heads = 16 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>} {
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %c = pagoda.coords %a, %w : !pagoda.coords<1x96>
  }
}
