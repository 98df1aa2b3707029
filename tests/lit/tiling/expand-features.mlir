// RUN: pagoda-opt %s --pagoda-expand-features --split-input-file | FileCheck %s
// Expanding twice is expanding once.
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-expand-features --split-input-file | FileCheck %s

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// A query sees keys up to its own position: all rows those up to the first row's,
// some row those up to the last row's.
// CHECK-LABEL: func.func @causal
// CHECK: pagoda.attention {{.*}} kv_range {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[QLO:.*]]: i32, %[[QHI:.*]]: i32):
// CHECK: %[[A:.*]] = arith.addi %[[QLO]], %{{.*}} : i32
// CHECK: %[[FULL:.*]] = arith.minsi %{{.*}}, %[[A]] : i32
// CHECK: %[[B:.*]] = arith.addi %[[QHI]], %{{.*}} : i32
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[B]] : i32
// CHECK: pagoda.yield %[[LO:.*]], %[[LO]], %[[FULL]], %[[END]] : i32, i32, i32, i32
// CHECK: } mask_mod {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[SEES:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : i32
// CHECK: pagoda.yield %[[SEES]] : i1
// CHECK-NOT: score_mod
// CHECK: features = 1 : i32
// CHECK-NOT: causal
// CHECK: return
func.func @causal(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// No feature: nothing to expand.
// CHECK-LABEL: func.func @full
// CHECK: pagoda.attention
// CHECK-NOT: kv_range
// CHECK-NOT: mask_mod
// CHECK: return
func.func @full(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// A window of w keys, the query's own included: q_pos - kv_pos < w. The first key
// of a run of queries is the first query's, keys seen by all start at the last's.
// CHECK-LABEL: func.func @window
// CHECK-SAME: %[[W:[a-z0-9]+]]: i32)
// CHECK: kv_range {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[QLO:.*]]: i32, %[[QHI:.*]]: i32):
// CHECK: %[[A:.*]] = arith.subi %[[QLO]], %[[W]] : i32
// CHECK: %[[B:.*]] = arith.addi %[[A]], %{{.*}} : i32
// CHECK: %[[LO:.*]] = arith.maxsi %{{.*}}, %[[B]] : i32
// CHECK: %[[C:.*]] = arith.subi %[[QHI]], %[[W]] : i32
// CHECK: %[[D:.*]] = arith.addi %[[C]], %{{.*}} : i32
// CHECK: %[[FULL:.*]] = arith.maxsi %{{.*}}, %[[D]] : i32
// CHECK: pagoda.yield %[[LO]], %[[FULL]], %{{.*}}, %{{.*}} : i32, i32, i32, i32
// CHECK: mask_mod {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[CAUSAL:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : i32
// CHECK: %[[DISTANCE:.*]] = arith.subi %[[Q]], %[[K]] : i32
// CHECK: %[[NEAR:.*]] = arith.cmpi slt, %[[DISTANCE]], %[[W]] : i32
// CHECK: %[[BOTH:.*]] = arith.andi %[[CAUSAL]], %[[NEAR]] : i1
// CHECK: pagoda.yield %[[BOTH]] : i1
// CHECK: features = 3 : i32
func.func @window(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %w: i32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) window(%w) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// A query sees the keys of its own chunk: kv_pos >= q_pos / chunk * chunk.
// CHECK-LABEL: func.func @chunk
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32)
// CHECK: kv_range {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[QLO:.*]]: i32, %[[QHI:.*]]: i32):
// CHECK: %[[A:.*]] = arith.divsi %[[QLO]], %[[N]] : i32
// CHECK: arith.muli %[[A]], %[[N]] : i32
// CHECK: %[[B:.*]] = arith.divsi %[[QHI]], %[[N]] : i32
// CHECK: arith.muli %[[B]], %[[N]] : i32
// CHECK: mask_mod {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[C:.*]] = arith.divsi %[[Q]], %[[N]] : i32
// CHECK: %[[START:.*]] = arith.muli %[[C]], %[[N]] : i32
// CHECK: arith.cmpi sge, %[[K]], %[[START]] : i32
// CHECK: features = 33 : i32
func.func @chunk(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %n: i32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) chunk(%n) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// score = c * tanh(score / c), then the bias slope[head] * (kv_pos - q_pos). Neither
// hides a key: there is no range and no mask. Sinks stay.
// CHECK-LABEL: func.func @scores
// CHECK-SAME: %[[CAP:[a-z0-9]+]]: f32, %[[SLOPES:[a-z0-9]+]]: tensor<16xf32>, %[[SINKS:[a-z0-9]+]]: tensor<16xf32>)
// CHECK: sinks(%[[SINKS]] : tensor<16xf32>)
// CHECK-NOT: kv_range
// CHECK-NOT: mask_mod
// CHECK: score_mod {
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[R:.*]] = arith.divf %[[S]], %[[CAP]] : f32
// CHECK: %[[T:.*]] = math.tanh %[[R]] : f32
// CHECK: %[[CAPPED:.*]] = arith.mulf %[[T]], %[[CAP]] : f32
// CHECK: %[[I:.*]] = arith.index_cast %[[H]] : i32 to index
// CHECK: %[[SLOPE:.*]] = tensor.extract %[[SLOPES]][%[[I]]] : tensor<16xf32>
// CHECK: %[[D:.*]] = arith.subi %[[K]], %[[Q]] : i32
// CHECK: %[[F:.*]] = arith.sitofp %[[D]] : i32 to f32
// CHECK: %[[BIAS:.*]] = arith.mulf %[[SLOPE]], %[[F]] : f32
// CHECK: %[[SUM:.*]] = arith.addf %[[CAPPED]], %[[BIAS]] : f32
// CHECK: pagoda.yield %[[SUM]] : f32
// CHECK: features = 28 : i32
func.func @scores(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %cap: f32,
                  %slopes: tensor<16xf32>, %sinks: tensor<16xf32>) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      softcap(%cap) alibi(%slopes : tensor<16xf32>) sinks(%sinks : tensor<16xf32>)
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// Regions of the user's come first and are kept; a mask without a range may hide any
// key, so no tile counts as seen by all.
// CHECK-LABEL: func.func @compose
// CHECK: kv_range {
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[FULL:.*]] = arith.minsi %[[ZERO]], %{{.*}} : i32
// CHECK: pagoda.yield %[[ZERO]], %[[ZERO]], %[[FULL]], %{{.*}} : i32, i32, i32, i32
// CHECK: mask_mod {
// CHECK-NEXT: ^bb0(%[[SEQ:.*]]: i32, %{{.*}}: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[USER:.*]] = arith.cmpi ne, %[[SEQ]], %[[K]] : i32
// CHECK: %[[CAUSAL:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : i32
// CHECK: %[[BOTH:.*]] = arith.andi %[[USER]], %[[CAUSAL]] : i1
// CHECK: pagoda.yield %[[BOTH]] : i1
// CHECK: score_mod {
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32,
// CHECK: %[[TWICE:.*]] = arith.addf %[[S]], %[[S]] : f32
// CHECK: arith.divf %[[TWICE]], %{{.*}} : f32
// CHECK: features = 133 : i32
func.func @compose(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                   %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %cap: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) softcap(%cap)
      mask_mod {
      ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
        %sees = arith.cmpi ne, %seq, %kv_pos : i32
        pagoda.yield %sees : i1
      } score_mod {
      ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
        %twice = arith.addf %score, %score : f32
        pagoda.yield %twice : f32
      } {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}
