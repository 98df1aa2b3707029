// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-tile-attention=machine=x86-64-v3 --cse --split-input-file | FileCheck %s
// What comes out is whole: it parses back.
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-tile-attention=machine=x86-64-v3 --cse --split-input-file | pagoda-opt --split-input-file | FileCheck %s

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

// One kernel per schedule and one that merges; the function is gone. Causal without
// a window: no masked head, a middle without mask, a masked tail.
// CHECK-NOT: func.func
// CHECK: pagoda.kernel @causal_prefill(%[[A:.*]]) attributes {
// CHECK-SAME: cache = !pagoda.kv_cache<heads = 8
// CHECK-SAME: features = 1 : i32
// CHECK-SAME: q_heads = 16 : i64
// CHECK-SAME: role = #pagoda<role attention>
// CHECK-SAME: schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96
// CHECK-SAME: target = #pagoda.target<kind = "cpu", name = "x86-64-v3"
// CHECK: %[[SCALE:.*]] = pagoda.arg %[[A]] "scale" : f32
// CHECK: %[[C:.*]] = arith.mulf %[[SCALE]], %{{.*}} : f32
// CHECK: pagoda.for_items %[[A]] {
// CHECK-NEXT: ^bb0(%[[W:.*]]: !pagoda.item):
// CHECK: %[[Q:.*]] = pagoda.load_q %[[A]], %[[W]] : !pagoda.tile<1x96x128xf32>
// CHECK: %[[COORDS:.*]] = pagoda.coords %[[A]], %[[W]] : !pagoda.coords<1x96>
// CHECK: %[[BEGIN:.*]], %[[FB:.*]], %[[FE:.*]], %[[END:.*]] = pagoda.kv_range %[[W]], %[[COORDS]] step 64 {
// CHECK: pagoda.state_init %[[A]], %[[W]]
// CHECK-SAME: !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x64xf32>
// CHECK: %[[MID:.*]]:3 = pagoda.kv_loop %[[J:.*]] = %[[FB]] to %[[FE]] step 64 carry(
// CHECK: %[[K:.*]] = pagoda.kv_ref key %[[A]], %[[W]], %[[J]] : !pagoda.kv<1x64x128xf32>
// CHECK: %[[V:.*]] = pagoda.kv_ref value %[[A]], %[[W]], %[[J]] : !pagoda.kv<1x64x64xf32>
// CHECK: %[[S:.*]] = pagoda.qk %[[Q]], %[[K]]
// CHECK-NOT: pagoda.mask_scores
// CHECK-NOT: pagoda.map_scores
// CHECK: %[[P:.*]], %{{.*}}, %{{.*}}, %[[ALPHA:.*]] = pagoda.softmax_step %[[S]], %{{.*}}, %{{.*}} factor %[[C]]
// CHECK: %[[O:.*]] = pagoda.rescale %{{.*}}, %[[ALPHA]]
// CHECK: %[[SUM:.*]] = pagoda.pv %[[P]], %[[V]], %[[O]]
// CHECK: pagoda.yield %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK: %[[TAIL:.*]]:3 = pagoda.kv_loop %[[J2:.*]] = %[[FE]] to %[[END]] step 64 carry(%{{.*}} = %[[MID]]#0, %{{.*}} = %[[MID]]#1, %{{.*}} = %[[MID]]#2)
// CHECK: pagoda.kv_ref key %[[A]], %[[W]], %[[J2]] limit %[[END]]
// CHECK: pagoda.kv_ref value %[[A]], %[[W]], %[[J2]] limit %[[END]]
// CHECK: %[[S2:.*]] = pagoda.qk
// CHECK: %[[U:.*]] = pagoda.mask_scores %[[S2]], %[[COORDS]], %[[J2]] limit %[[END]] {
// CHECK: arith.cmpi sle
// CHECK: pagoda.softmax_step %[[U]]
// CHECK-NOT: pagoda.kv_loop
// CHECK: pagoda.store %[[TAIL]]#0, %[[TAIL]]#1, %[[TAIL]]#2, %[[A]], %[[W]] factor %[[C]]
// CHECK: pagoda.kernel @causal_decode(
// CHECK-SAME: lanes = head_dim
// CHECK: pagoda.load_q %{{.*}}, %{{.*}} : !pagoda.tile<8x2x128xf32>
// CHECK: pagoda.kernel @causal_merge(
// CHECK-SAME: role = #pagoda<role merge>
// CHECK: pagoda.for_merges
// CHECK: %[[M:.*]], %[[L:.*]], %[[MO:.*]] = pagoda.merge_partials {{.*}} : !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x64xf32>
// CHECK: pagoda.store %[[M]], %[[L]], %[[MO]]
// CHECK-NOT: func.func
func.func @causal(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32)
    -> (tensor<?x16x64xf32>, tensor<?x16xf32>) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      {causal, schedules = [
        #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1,
                         block_rows = 4, block_vectors = 3>,
        #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 16, heads = 8,
                         block_rows = 2, block_vectors = 4, prefetch = 1>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return %o, %lse : tensor<?x16x64xf32>, tensor<?x16xf32>
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// A window adds the masked head; its captured length becomes an argument read once.
// CHECK-LABEL: pagoda.kernel @window_prefill(
// CHECK: %[[W:.*]] = pagoda.arg %{{.*}} "window" : i32
// CHECK: %[[BEGIN:.*]], %[[FB:.*]], %[[FE:.*]], %[[END:.*]] = pagoda.kv_range
// CHECK: arith.subi %{{.*}}, %[[W]] : i32
// CHECK: pagoda.kv_loop %{{.*}} = %[[BEGIN]] to %[[FB]] step 64
// CHECK: pagoda.mask_scores
// CHECK: pagoda.kv_loop %{{.*}} = %[[FB]] to %[[FE]] step 64
// CHECK-NOT: pagoda.mask_scores
// CHECK: pagoda.kv_loop %{{.*}} = %[[FE]] to %[[END]] step 64
// CHECK: pagoda.mask_scores
// CHECK: pagoda.store
func.func @window(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32,
                  %w: i32 {pagoda.arg = "window"}) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) window(%w)
      {causal, schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96,
       kv_tile = 64, heads = 1, block_rows = 4, block_vectors = 3>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// A score region sees scaled scores, so the exponent's factor is log2 e alone. An
// element of a captured tensor is read where the region reads it.
// CHECK-LABEL: pagoda.kernel @scores_prefill(
// CHECK: %[[SCALE:.*]] = pagoda.arg %{{.*}} "scale" : f32
// CHECK: %[[LOG2E:.*]] = arith.constant 1.442695{{.*}} : f32
// CHECK: pagoda.map_scores {{.*}} scale %[[SCALE]]
// CHECK: pagoda.arg %{{.*}} "alibi_slopes"[%{{.*}}] : f32
// CHECK: pagoda.softmax_step {{.*}} factor %[[LOG2E]]
// CHECK: pagoda.store {{.*}} factor %[[LOG2E]]
func.func @scores(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32,
                  %slopes: tensor<16xf32> {pagoda.arg = "alibi_slopes"}) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      alibi(%slopes : tensor<16xf32>)
      {causal, schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96,
       kv_tile = 64, heads = 1, block_rows = 4, block_vectors = 3>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// Every query sees every key: the range has no region, the tail masks by its limit.
// CHECK-LABEL: pagoda.kernel @full_prefill(
// CHECK: pagoda.kv_range %{{.*}}, %{{.*}} step 64 : !pagoda.coords<1x96>
// CHECK: pagoda.state_init {{.*}} {sinks}
// CHECK: pagoda.mask_scores %{{.*}}, %{{.*}}, %{{.*}} limit %{{.*}} : !pagoda.tile<1x96x64xf32>
func.func @full(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32,
                %sinks: tensor<16xf32> {pagoda.arg = "sinks"}) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      sinks(%sinks : tensor<16xf32>)
      {schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96,
       kv_tile = 64, heads = 1, block_rows = 4, block_vectors = 3>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}
