// Each step of the fragment layer, value by value: which register goes where. One warp,
// 16 rows, 16 keys; a lane holds rows l / 4 and l / 4 + 8, its halves.
// RUN: pagoda-opt %s -pagoda-nvidia-assign-layouts -pagoda-nvidia-lower-tiles -pagoda-nvidia-lower-fragments -pagoda-nvidia-expand-math -canonicalize -cse | FileCheck %s

!cache = !pagoda.kv_cache<heads = 2, k_dim = 32, v_dim = 16, block = 16, layout = hnd, elt = f16>

// CHECK-LABEL: llvm.func @attention(
pagoda.kernel @attention(%a) attributes {cache = !cache, q_heads = 4 : i64, q_type = f16,
    role = #pagoda<role attention>,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 16, heads = 1, stages = 2, warps = 1>,
    target = #pagoda.target<kind = "nvidia", name = "sm_80">} {
  %f = arith.constant 2.0 : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x32xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b, %fb, %fe, %e = pagoda.kv_range %w, %c step 16 : !pagoda.coords<1x16>
    %m0, %l0, %o0 = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    // Load: operand A of columns 0 to 15 and 16 to 31, four registers each.
    // CHECK: %[[q0:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
    // CHECK: %[[q1:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
    // CHECK: scf.for {{.*}} iter_args(%[[m:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %[[o:[a-z0-9]+]] = %
    %st:3 = pagoda.kv_loop %j = %b to %e step 16 carry(%m = %m0, %l = %l0, %o = %o0) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32> {
      %k = pagoda.kv_ref key %a, %w, %j limit %e : !pagoda.kv<1x16x32xf16>
      %v = pagoda.kv_ref value %a, %w, %j limit %e : !pagoda.kv<1x16x16xf16>
      // Product: the second step along d adds to the first, octet by octet.
      // CHECK: %[[k0:.*]] = nvvm.ldmatrix
      // CHECK: %[[s0:.*]] = nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
      // CHECK: %[[s00:.*]] = llvm.extractvalue %[[s0]][0]
      // CHECK: nvvm.mma.sync
      // CHECK: %[[k1:.*]] = nvvm.ldmatrix
      // CHECK: %[[t0:.*]] = nvvm.mma.sync {{.*}} C[%[[s00]],
      // CHECK: %[[t00:.*]] = llvm.extractvalue %[[t0]][0]
      // CHECK: %[[t01:.*]] = llvm.extractvalue %[[t0]][1]
      // CHECK: %[[t1:.*]] = nvvm.mma.sync
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x32xf32>, !pagoda.kv<1x16x32xf16> -> !pagoda.tile<1x16x16xf32>
      // Row reduction: registers of a half, then the four lanes of the row.
      // CHECK: arith.maxnumf %[[t00]], %[[t01]]
      // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c1_i32, %c31_i32
      // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c2_i32, %c31_i32
      // CHECK: arith.maxnumf %[[m]],
      // Scale and 2^x: alpha first, then P.
      // CHECK: %[[alpha:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
      // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
      // CHECK: arith.subf %[[t00]],
      // CHECK: %[[p0:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
      // CHECK: arith.subf %[[t01]],
      // CHECK: %[[p1:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
      %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %f : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      // CHECK: %[[scaled:.*]] = arith.mulf %[[o]], %[[alpha]]
      %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x16x16xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x16xf32>
      // Accumulator to operand: neighbouring columns are rounded into one register.
      // CHECK: llvm.insertelement %[[p0]]
      // CHECK: %[[pair:.*]] = llvm.insertelement %[[p1]]
      // CHECK: arith.truncf %[[pair]] : vector<2xf32> to vector<2xf16>
      // CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
      // CHECK: nvvm.mma.sync {{.*}} C[%[[scaled]],
      %o2 = pagoda.pv %p, %v, %o1 : !pagoda.tile<1x16x16xf32>, !pagoda.kv<1x16x16xf16>, !pagoda.tile<1x16x16xf32> -> !pagoda.tile<1x16x16xf32>
      pagoda.yield %m1, %l1, %o2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>
    }
    // Store: a lane's two columns of each octet as one pair.
    // CHECK-COUNT-2: llvm.store {{.*}}alignment = 4 : i64} : vector<2xf16>, !llvm.ptr<1>
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x16xf32>, !pagoda.item
  }
}
