// RUN: pagoda-opt %s -pagoda-nvidia-assign-layouts | FileCheck %s

!cache = !pagoda.kv_cache<heads = 2, k_dim = 16, v_dim = 32, block = 16, layout = hnd, elt = f16>

// CHECK-LABEL: pagoda.kernel @attention
pagoda.kernel @attention(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 32, kv_tile = 16, heads = 1, stages = 2, warps = 2>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 1.0 : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    // CHECK: pagoda.load_q {{.*}} : !pagoda.tile<1x32x16xf32, #pagoda.fragment<"a", warps = 2>>
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x32x16xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x32>
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x32>
    // CHECK: pagoda.state_init {{.*}} : !pagoda.tile<1x32x1xf32, #pagoda.fragment<"row", warps = 2>>, !pagoda.tile<1x32x32xf32, #pagoda.fragment<"acc", warps = 2>>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x32xf32>
    // CHECK: pagoda.kv_loop
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x32xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x32xf16>
      // CHECK: pagoda.qk {{.*}} -> !pagoda.tile<1x32x16xf32, #pagoda.fragment<"acc", warps = 2>>
      %s = pagoda.qk %q, %k : !pagoda.tile<1x32x16xf32>, !pagoda.kv<1x16x16xf16> -> !pagoda.tile<1x32x16xf32>
      %u = pagoda.mask_scores %s, %c, %j limit %e : !pagoda.tile<1x32x16xf32>, !pagoda.coords<1x32> -> !pagoda.tile<1x32x16xf32>
      // CHECK: pagoda.softmax_step {{.*}} -> !pagoda.tile<1x32x16xf32, #pagoda.fragment<"acc", warps = 2>>, !pagoda.tile<1x32x1xf32, #pagoda.fragment<"row", warps = 2>>
      %p, %m1, %l1, %alpha = pagoda.softmax_step %u, %m, %l factor %f : !pagoda.tile<1x32x16xf32>, !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x1xf32> -> !pagoda.tile<1x32x16xf32>, !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x1xf32>
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x32x32xf32>, !pagoda.tile<1x32x1xf32> -> !pagoda.tile<1x32x32xf32>
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x32x16xf32>, !pagoda.kv<1x16x32xf16>, !pagoda.tile<1x32x32xf32> -> !pagoda.tile<1x32x32xf32>
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x32xf32>
    }
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x32x32xf32>, !pagoda.item
  }
}

// Merges multiply no matrices.
// CHECK-LABEL: pagoda.kernel @merge
// CHECK-NOT: #pagoda.fragment
pagoda.kernel @merge(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role merge>,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 1, heads = 2>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 1.0 : f32
  pagoda.for_merges %a {
  ^bb0(%g: !pagoda.merge):
    %m, %l, %o = pagoda.merge_partials %a, %g factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    pagoda.store %m, %l, %o, %a, %g factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>, !pagoda.merge
  }
}
