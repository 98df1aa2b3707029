// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s
// RUN: pagoda-opt --mlir-print-op-generic %s | pagoda-opt | FileCheck %s

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

// CHECK-LABEL: func.func @plain
// CHECK: pagoda.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale(%{{.*}})
// CHECK-SAME: {causal}
// CHECK-SAME: : tensor<?x16x128xf32>, !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x16x64xf32>, tensor<?x16xf32>
func.func @plain(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32)
    -> (tensor<?x16x64xf32>, tensor<?x16xf32>) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return %o, %lse : tensor<?x16x64xf32>, tensor<?x16xf32>
}

// Every optional operand, in the order in which it prints.
// CHECK-LABEL: func.func @sugar
// CHECK: scale(%{{.*}}) window(%{{.*}}) chunk(%{{.*}}) softcap(%{{.*}}) alibi(%{{.*}} : tensor<16xf32>) sinks(%{{.*}} : tensor<16xf32>)
func.func @sugar(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %n: i32,
                 %heads: tensor<16xf32>) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      sinks(%heads : tensor<16xf32>) alibi(%heads : tensor<16xf32>) softcap(%scale)
      chunk(%n) window(%n) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// CHECK-LABEL: func.func @regions
// CHECK: kv_range {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK: pagoda.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32, i32
// CHECK: } mask_mod {
// CHECK: pagoda.yield %{{.*}} : i1
// CHECK: } score_mod {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK: pagoda.yield %{{.*}} : f32
// CHECK: features = 3 : i32
// CHECK-SAME: schedules = [#pagoda.schedule<order = q_outer
func.func @regions(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                   %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
      kv_range {
      ^bb0(%seq: i32, %q_lo: i32, %q_hi: i32):
        %c0 = arith.constant 0 : i32
        pagoda.yield %c0, %c0, %q_lo, %q_hi : i32, i32, i32, i32
      } mask_mod {
      ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
        %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
        pagoda.yield %sees : i1
      } score_mod {
      ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
        %twice = arith.addf %score, %score : f32
        pagoda.yield %twice : f32
      } {features = 3 : i32, schedules = [#pagoda.schedule<order = q_outer,
         lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}
