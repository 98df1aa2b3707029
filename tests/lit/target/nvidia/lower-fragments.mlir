// Each step of a thread block, alone: which registers and instructions it becomes. One
// warp, 16 rows; a lane holds rows l / 4 and l / 4 + 8, its halves.
// RUN: pagoda-opt %s -pagoda-nvidia-lower-fragments -canonicalize -cse | FileCheck %s

!acc = !pagoda_nv.fragment<16x16xf32, acc>
!row = !pagoda_nv.fragment<16x1xf32, row>

gpu.module @device [#nvvm.target<chip = "sm_80">] {
  llvm.mlir.global external @pagoda_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>

  // 16 rows of two chunks of 16 bytes: one chunk per lane. The row's chunk is permuted
  // (xori), rows from the limit on are filled with zeros.
  // CHECK-LABEL: llvm.func @copy(
  // CHECK: arith.xori
  // CHECK: %[[there:.*]] = arith.cmpi slt, %{{.*}}, %arg1
  // CHECK: %[[bytes:.*]] = arith.select %[[there]], %c16_i32, %c0_i32
  // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[bytes]]
  // CHECK-NOT: nvvm.cp.async.shared.global
  // CHECK: nvvm.cp.async.commit.group
  // CHECK-NEXT: nvvm.cp.async.wait.group 0
  // CHECK-NEXT: nvvm.barrier0
  // CHECK-NEXT: llvm.return
  llvm.func @copy(%from: !llvm.ptr<1>, %limit: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %zero = arith.constant 0 : i32
    %pipe = pagoda_nv.pipeline at 0 : !pagoda_nv.pipeline<2 of 16x16xf16>
    %tile = pagoda_nv.slot %pipe[%zero] : !pagoda_nv.pipeline<2 of 16x16xf16>
    pagoda_nv.acquire %pipe : !pagoda_nv.pipeline<2 of 16x16xf16>
    pagoda_nv.copy_rows %tile below %limit {
    ^bb0(%row: i32):
      %begin = llvm.getelementptr %from[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<32 x i8>
      pagoda_nv.yield %begin : !llvm.ptr<1>
    } : !pagoda_nv.shared<16x16xf16>
    pagoda_nv.commit %pipe : !pagoda_nv.pipeline<2 of 16x16xf16>
    pagoda_nv.wait %pipe pending 0 : !pagoda_nv.pipeline<2 of 16x16xf16>
    pagoda_nv.release %pipe : !pagoda_nv.pipeline<2 of 16x16xf16>
    llvm.return
  }

  // With one slot, acquiring it is a barrier.
  // CHECK-LABEL: llvm.func @one_slot(
  // CHECK: nvvm.barrier0
  // CHECK-NEXT: llvm.return
  llvm.func @one_slot() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %pipe = pagoda_nv.pipeline at 0 : !pagoda_nv.pipeline<1 of 16x16xf16>
    pagoda_nv.acquire %pipe : !pagoda_nv.pipeline<1 of 16x16xf16>
    llvm.return
  }

  // Operand A by one matrix load, B by one; the product of a transposed B takes it as it
  // lies, the other one turns it on the way. Two octets of columns each.
  // CHECK-LABEL: llvm.func @products(
  // CHECK: %[[a:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
  // CHECK: %[[b:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
  // CHECK-COUNT-2: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
  // CHECK-COUNT-4: arith.truncf {{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
  // CHECK-COUNT-2: nvvm.mma.sync
  // A lane's two columns of each octet as one pair, in each half:
  // CHECK: scf.if
  // CHECK-COUNT-2: llvm.store {{.*}}alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  // CHECK: scf.if
  // CHECK-COUNT-2: llvm.store {{.*}}alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  llvm.func @products(%to: !llvm.ptr<1>, %limit: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %zero = arith.constant 0 : i32
    %none = arith.constant 0.0 : f32
    %pipe = pagoda_nv.pipeline at 512 : !pagoda_nv.pipeline<1 of 16x16xf16, 16x16xf16, 16x16xf16>
    %tiles:3 = pagoda_nv.slot %pipe[%zero] : !pagoda_nv.pipeline<1 of 16x16xf16, 16x16xf16, 16x16xf16>
    %a = pagoda_nv.load %tiles#0 : !pagoda_nv.shared<16x16xf16> -> !pagoda_nv.fragment<16x16xf16, a>
    %c = pagoda_nv.splat %none : !acc
    %s = pagoda_nv.mma %a, %tiles#1 transposed, %c : !pagoda_nv.fragment<16x16xf16, a>, !pagoda_nv.shared<16x16xf16>, !acc
    %p = pagoda_nv.convert %s : !acc -> !pagoda_nv.fragment<16x16xf16, a>
    %o = pagoda_nv.mma %p, %tiles#2, %c : !pagoda_nv.fragment<16x16xf16, a>, !pagoda_nv.shared<16x16xf16>, !acc
    pagoda_nv.store %o as f32 below %limit {
    ^bb0(%row: i32):
      %begin = llvm.getelementptr %to[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<64 x i8>
      pagoda_nv.yield %begin : !llvm.ptr<1>
    } : !acc
    llvm.return
  }

  // Eight registers of a lane, four of each half. A loop carries them all.
  // CHECK-LABEL: llvm.func @rows(
  // CHECK: scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  // Registers of a half, then the four lanes that share the row:
  // CHECK-COUNT-6: arith.maxnumf
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c1_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c2_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c1_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c2_i32, %c31_i32
  // A reference of -inf counts as 0; difference, factor, power:
  // CHECK-COUNT-2: arith.cmpf oeq
  // CHECK-COUNT-8: math.exp2
  // CHECK-NOT: math.exp2
  // CHECK-COUNT-8: arith.mulf
  // CHECK: scf.yield
  // One lane of four runs the region, for each half:
  // CHECK: arith.cmpi eq
  // CHECK-COUNT-2: scf.if
  llvm.func @rows(%to: !llvm.ptr<1>, %limit: i32, %n: i32, %c: f32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant 0.0 : f32
    %s0 = pagoda_nv.splat %none : !acc
    %m0 = pagoda_nv.splat %none : !row
    %s, %m = scf.for %i = %zero to %n step %one iter_args(%x = %s0, %old = %m0) -> (!acc, !row) : i32 {
      %r = pagoda_nv.row_reduce max %x : !acc -> !row
      %p = pagoda_nv.exp2 %x minus %r times %c : !acc, !row
      %y = pagoda_nv.scale %p, %r : !acc, !row
      scf.yield %y, %r : !acc, !row
    }
    pagoda_nv.for_rows(%m) below %limit {
    ^bb0(%row: i32, %value: f32):
      %at = llvm.getelementptr %to[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %value, %at : f32, !llvm.ptr<1>
      pagoda_nv.yield
    } : !row
    llvm.return
  }

  // A region runs once per register: with its column's number, which begins at `from`,
  // and its row's value. Rows are numbered through the warps.
  // CHECK-LABEL: llvm.func @regions(
  // CHECK: %[[warps:.*]] = arith.muli %{{.*}}, %c16_i32
  // CHECK: %[[row:.*]] = arith.addi %[[warps]],
  // CHECK: %[[other:.*]] = arith.addi %[[row]], %c8_i32
  // CHECK-COUNT-16: arith.cmpi sle
  // CHECK-NOT: arith.cmpi sle
  llvm.func @regions(%to: !llvm.ptr<1>, %limit: i32, %from: i32, %x: f32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>} {
    %none = arith.constant 0.0 : f32
    %pos = pagoda_nv.per_row() {
    ^bb0(%row: i32):
      pagoda_nv.yield %row : i32
    } : () -> !pagoda_nv.fragment<32x1xi32, row>
    %s = pagoda_nv.splat %x : !pagoda_nv.fragment<32x32xf32, acc>
    %u = pagoda_nv.map %s, %pos from %from {
    ^bb0(%score: f32, %q: i32, %k: i32):
      %sees = arith.cmpi sle, %k, %q : i32
      %y = arith.select %sees, %score, %none : f32
      pagoda_nv.yield %y : f32
    } : !pagoda_nv.fragment<32x32xf32, acc>, !pagoda_nv.fragment<32x1xi32, row>
    pagoda_nv.store %u as f32 below %limit {
    ^bb0(%row: i32):
      pagoda_nv.yield %to : !llvm.ptr<1>
    } : !pagoda_nv.fragment<32x32xf32, acc>
    llvm.return
  }
}
