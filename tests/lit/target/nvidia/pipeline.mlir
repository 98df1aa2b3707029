// The pipeline of K and V tiles: commit, wait, acquire and release by stages. Copies
// of a thread land in the order in which their groups were closed.
// RUN: pagoda-opt %s -split-input-file -pagoda-nvidia-assign-layouts -pagoda-nvidia-lower-tiles -pagoda-nvidia-lower-fragments -canonicalize -cse | FileCheck %s

!cache = !pagoda.kv_cache<heads = 2, k_dim = 16, v_dim = 16, block = 5, layout = hnd, elt = f16>

// Three stages: two tiles are on their way before the first is needed.
// CHECK-LABEL: llvm.func @three_stages(
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// Group 1 is Q, groups 2 and 3 the first two tiles, each if there is one:
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.if
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.if
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// Q has landed when two younger groups are left:
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.barrier0
// CHECK: scf.for
// Acquire: this tile has landed, and every warp has released the one before it ...
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: nvvm.barrier0
// ... whose slot takes the tile two rounds ahead. A group is closed in any case, so
// that the numbers above stay right at the end.
// CHECK: scf.if
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK: }
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.barrier0
pagoda.kernel @three_stages(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1, stages = 3, warps = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x16xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x16>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16> -> !pagoda.tile<1x16x16xf32>
      %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %f : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16>, !pagoda.tile<1x16x16xf32> -> !pagoda.tile<1x16x16xf32>
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    }
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 16, v_dim = 16, block = 5, layout = hnd, elt = f16>

// One stage: everyone leaves the slot, it is filled, everyone sees it.
// CHECK-LABEL: llvm.func @one_stage(
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: scf.for
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier0
// CHECK: nvvm.mma.sync
pagoda.kernel @one_stage(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1, stages = 1, warps = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x16xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x16>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16> -> !pagoda.tile<1x16x16xf32>
      %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %f : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16>, !pagoda.tile<1x16x16xf32> -> !pagoda.tile<1x16x16xf32>
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    }
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>, !pagoda.item
  }
}
