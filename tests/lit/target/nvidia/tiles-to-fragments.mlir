// Attention as steps of a thread block: fragments, shared tiles, a pipeline. Addresses
// and limits are left out of the checks: lower-tiles.mlir has them.
// RUN: pagoda-opt %s -split-input-file -pagoda-nvidia-assign-layouts -pagoda-nvidia-lower-tiles -canonicalize -cse | FileCheck %s
// The text is read back, and verified, as it was:
// RUN: pagoda-opt %s -split-input-file -pagoda-nvidia-assign-layouts -pagoda-nvidia-lower-tiles | pagoda-opt -split-input-file -canonicalize -cse | FileCheck %s

!cache = !pagoda.kv_cache<heads = 2, k_dim = 32, v_dim = 16, block = 16, layout = hnd, elt = f16>

// CHECK-LABEL: llvm.func @attention(
// One slot for Q, then three of a K and a V tile:
// CHECK: %[[Q:.*]] = pagoda_nv.pipeline at 0 : <1 of 16x32xf16>
// CHECK: %[[KV:.*]] = pagoda_nv.pipeline at 1024 : <3 of 16x32xf16, 16x16xf16>
pagoda.kernel @attention(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1, stages = 3, warps = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    // CHECK: pagoda_nv.wait %[[Q]] pending 0
    // CHECK: %[[QTILE:.*]] = pagoda_nv.slot %[[Q]][%c0_i32]
    // CHECK: pagoda_nv.copy_rows %[[QTILE]] below
    // CHECK: pagoda_nv.commit %[[Q]]
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x32xf32>
    // CHECK: %[[C:.*]]:3 = pagoda_nv.per_row() {
    // CHECK: } : () -> (!pagoda_nv.fragment<16x1xi32, row>, !pagoda_nv.fragment<16x1xi32, row>, !pagoda_nv.fragment<16x1xi32, row>)
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    // The first two tiles, each if it exists; a group is closed in any case:
    // CHECK: scf.if
    // CHECK-COUNT-2: pagoda_nv.copy_rows
    // CHECK: pagoda_nv.commit %[[KV]]
    // CHECK: scf.if
    // CHECK-COUNT-2: pagoda_nv.copy_rows
    // CHECK: pagoda_nv.commit %[[KV]]
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x16>
    // CHECK: %[[M0:.*]] = pagoda_nv.splat %{{.*}} : !pagoda_nv.fragment<16x1xf32, row>
    // CHECK: %[[L0:.*]] = pagoda_nv.splat %{{.*}} : !pagoda_nv.fragment<16x1xf32, row>
    // CHECK: %[[O0:.*]] = pagoda_nv.splat %{{.*}} : !pagoda_nv.fragment<16x16xf32, acc>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    // Two groups are younger than Q:
    // CHECK: pagoda_nv.wait %[[Q]] pending 2
    // CHECK: %[[A:.*]] = pagoda_nv.load %[[QTILE]] : <16x32xf16> -> <16x32xf16, a>
    // CHECK: %[[STATE:.*]]:3 = scf.for {{.*}} iter_args(%[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[O:.*]] = %[[O0]])
    // CHECK: pagoda_nv.wait %[[KV]] pending 1
    // CHECK: pagoda_nv.acquire %[[KV]]
    // CHECK: scf.if
    // CHECK-COUNT-2: pagoda_nv.copy_rows
    // CHECK: pagoda_nv.commit %[[KV]]
    // CHECK: %[[TILES:.*]]:2 = pagoda_nv.slot %[[KV]]
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x32xf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      // CHECK: %[[S:.*]] = pagoda_nv.mma %[[A]], %[[TILES]]#0 transposed, %[[O0]] :
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x32xf32>, !pagoda.kv<1x16x32xf16> -> !pagoda.tile<1x16x16xf32>
      // CHECK: %[[U:.*]] = pagoda_nv.map %[[S]], %[[C]]#0, %[[C]]#1, %[[C]]#2 from %{{.*}} {
      // CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %[[QP:.*]]: i32, %[[KP:.*]]: i32):
      // CHECK: arith.cmpi slt, %[[KP]],
      // CHECK: arith.cmpi sle, %[[KP]], %[[QP]]
      // CHECK: arith.select %{{.*}}, %[[X]],
      %u = pagoda.mask_scores %s, %c, %j limit %e {
      ^bb0(%seq: i32, %head: i32, %qp: i32, %kp: i32):
        %sees = arith.cmpi sle, %kp, %qp : i32
        pagoda.yield %sees : i1
      } : !pagoda.tile<1x16x16xf32>, !pagoda.coords<1x16> -> !pagoda.tile<1x16x16xf32>
      // CHECK: %[[R:.*]] = pagoda_nv.row_reduce max %[[U]]
      // CHECK: %[[M1:.*]] = pagoda_nv.per_row(%[[M]], %[[R]]) {
      // CHECK: arith.maxnumf
      // CHECK: %[[ALPHA:.*]] = pagoda_nv.exp2 %[[M]] minus %[[M1]] times
      // CHECK: %[[P:.*]] = pagoda_nv.exp2 %[[U]] minus %[[M1]] times
      // CHECK: %[[SUM:.*]] = pagoda_nv.row_reduce add %[[P]]
      // CHECK: %[[L1:.*]] = pagoda_nv.per_row(%[[L]], %[[ALPHA]], %[[SUM]]) {
      // CHECK: math.fma
      %p, %m1, %l1, %alpha = pagoda.softmax_step %u, %m, %l factor %f : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      // CHECK: %[[O1:.*]] = pagoda_nv.scale %[[O]], %[[ALPHA]]
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>
      // CHECK: %[[PA:.*]] = pagoda_nv.convert %[[P]] : <16x16xf32, acc> -> <16x16xf16, a>
      // CHECK: %[[O2:.*]] = pagoda_nv.mma %[[PA]], %[[TILES]]#1, %[[O1]] :
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16>, !pagoda.tile<1x16x16xf32> -> !pagoda.tile<1x16x16xf32>
      // CHECK: pagoda_nv.release %[[KV]]
      // CHECK: scf.yield %[[M1]], %[[L1]], %[[O2]]
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    }
    // Final rows and their log-sum-exp, or a partial state:
    // CHECK: %[[INVERSE:.*]] = pagoda_nv.per_row(%[[STATE]]#1) {
    // CHECK: %[[Y:.*]] = pagoda_nv.scale %[[STATE]]#2, %[[INVERSE]]
    // CHECK: pagoda_nv.store %[[Y]] as f16 below
    // CHECK: pagoda_nv.for_rows(%[[STATE]]#0, %[[STATE]]#1) below
    // CHECK: } else {
    // CHECK: pagoda_nv.store %[[STATE]]#2 as f32 below
    // CHECK: pagoda_nv.for_rows(%[[STATE]]#0, %[[STATE]]#1) below
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 128, v_dim = 16, block = 16, layout = hnd, elt = bf16>

// Above head dim 64 the first product reads Q from shared memory.
// CHECK-LABEL: llvm.func @wide(
// CHECK-NOT: pagoda_nv.load
// CHECK: pagoda_nv.mma %{{.*}}, %{{.*}} transposed, %{{.*}} : !pagoda_nv.shared<16x128xbf16>, <16x128xbf16>, <16x16xf32, acc>
pagoda.kernel @wide(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = bf16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1, stages = 2, warps = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x128xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x16>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x128xbf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x16xbf16>
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x128xf32>, !pagoda.kv<1x16x128xbf16> -> !pagoda.tile<1x16x16xf32>
      %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %f : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xbf16>, !pagoda.tile<1x16x16xf32> -> !pagoda.tile<1x16x16xf32>
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    }
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>, !pagoda.item
  }
}
