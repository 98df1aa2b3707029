// One warp, one matrix product deep: 16 rows, 16 keys, head dim 16.
// RUN: pagoda-opt %s -pagoda-nvidia-assign-layouts -pagoda-nvidia-lower-tiles -pagoda-nvidia-lower-fragments -canonicalize -cse | FileCheck %s

!cache = !pagoda.kv_cache<heads = 2, k_dim = 16, v_dim = 16, block = 5, layout = hnd, elt = f16>

// CHECK: gpu.module @pagoda_kernels [#nvvm.target<O = 3, chip = "sm_80">]
// CHECK: llvm.mlir.global external @pagoda_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @attention(
// CHECK-SAME: %[[args:.*]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<352 x i8>, nvvm.grid_constant})
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.reqntid = array<i32: 32>
// CHECK-SAME: max_rows = 8 : i64
// CHECK-SAME: shared_bytes = 2560 : i64
// CHECK-SAME: threads = 32 : i64
pagoda.kernel @attention(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1, stages = 2, warps = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  // Blocks take items by the number of blocks there are.
  // CHECK: %[[first:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: %[[step:.*]] = nvvm.read.ptx.sreg.nctaid.x
  // CHECK: scf.for %{{.*}} = %[[first]] to %{{.*}} step %[[step]]
  // CHECK: nvvm.cp.async.wait.group 0
  // CHECK: nvvm.barrier0
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    // Q: 16 rows of two chunks, one per lane; absent rows are zero-filled.
    // CHECK: %[[bytes:.*]] = arith.select %{{.*}}, %c16_i32, %c0_i32
    // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[bytes]]
    // CHECK: nvvm.cp.async.commit.group
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x16xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    // The range starts the pipeline: the first tile, if there is one.
    // CHECK: scf.if
    // CHECK-COUNT-2: nvvm.cp.async.shared.global
    // CHECK: nvvm.cp.async.commit.group
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x16>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    // Q's operand is read once.
    // CHECK: nvvm.cp.async.wait.group 1
    // CHECK: nvvm.barrier0
    // CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
    // CHECK: scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
    // CHECK: nvvm.cp.async.wait.group 0
    // CHECK: nvvm.barrier0
    // CHECK: scf.if
    // CHECK-COUNT-2: nvvm.cp.async.shared.global
    // CHECK: nvvm.cp.async.commit.group
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      // S: one matrix load, two products.
      // CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
      // CHECK-COUNT-2: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>{{.*}} : (vector<2xf16>, vector<2xf16>, f32)
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16> -> !pagoda.tile<1x16x16xf32>
      // Eight scores of a lane, scaled and capped one by one.
      // CHECK-COUNT-8: math.tanh
      %t = pagoda.map_scores %s, %c, %j scale %f {
      ^bb0(%score: f32, %seq: i32, %head: i32, %qp: i32, %kp: i32):
        %y = math.tanh %score : f32
        pagoda.yield %y : f32
      } : !pagoda.tile<1x16x16xf32>, !pagoda.coords<1x16> -> !pagoda.tile<1x16x16xf32>
      // CHECK: arith.cmpi sle
      // CHECK: arith.select {{.*}} : f32
      %u = pagoda.mask_scores %t, %c, %j limit %e {
      ^bb0(%seq: i32, %head: i32, %qp: i32, %kp: i32):
        %sees = arith.cmpi sle, %kp, %qp : i32
        pagoda.yield %sees : i1
      } : !pagoda.tile<1x16x16xf32>, !pagoda.coords<1x16> -> !pagoda.tile<1x16x16xf32>
      // CHECK: arith.maxnumf
      // CHECK-COUNT-2: nvvm.shfl.sync bfly
      // CHECK: math.exp2
      %p, %m1, %l1, %alpha = pagoda.softmax_step %u, %m, %l factor %f : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>
      // P becomes an operand in registers, V is transposed on its way.
      // CHECK-COUNT-4: arith.truncf {{.*}} : vector<2xf32> to vector<2xf16>
      // CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
      // CHECK-COUNT-2: nvvm.mma.sync
      // CHECK: scf.yield
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16>, !pagoda.tile<1x16x16xf32> -> !pagoda.tile<1x16x16xf32>
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    }
    // Final rows as pairs of f16, partial ones as pairs of f32.
    // CHECK: llvm.store {{.*}}alignment = 4 : i64} : vector<2xf16>, !llvm.ptr<1>
    // CHECK: llvm.store {{.*}}alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>, !pagoda.item
  }
}

// One index is one head of one merge; no shared memory.
// CHECK-LABEL: llvm.func @merge(
// CHECK-SAME: shared_bytes = 0 : i64
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: arith.maxnumf
// CHECK: scf.for {{.*}} -> (f32, f32)
// CHECK: math.exp2
// CHECK: llvm.store {{.*}} : f16, !llvm.ptr<1>
// CHECK-NOT: nvvm.barrier0
pagoda.kernel @merge(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role merge>,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 1, heads = 2>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  pagoda.for_merges %a {
  ^bb0(%g: !pagoda.merge):
    %m, %l, %o = pagoda.merge_partials %a, %g factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x16xf32>
    pagoda.store %m, %l, %o, %a, %g factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x16xf32>, !pagoda.merge
  }
}
