// RUN: pagoda-opt %s -pagoda-nvidia-emulate | FileCheck %s

// CHECK-NOT: gpu.module
// CHECK-DAG: llvm.func @pagoda_emu_barrier(i32)
// CHECK-DAG: llvm.func @pagoda_emu_copy16(!llvm.ptr, !llvm.ptr, i32, i32)
gpu.module @pagoda_kernels {
  llvm.mlir.global external @pagoda_shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>

  // CHECK-LABEL: llvm.func @kernel(%arg0: !llvm.ptr)
  // CHECK-NOT: nvvm.
  llvm.func @kernel(%args: !llvm.ptr {llvm.byval = !llvm.array<352 x i8>, llvm.align = 8 : i64, nvvm.grid_constant})
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, nvvm.minctasm = 1 : i32} {
    %c2 = arith.constant 2 : i32
    %c16 = arith.constant 16 : i32
    %c31 = arith.constant 31 : i32
    %all = arith.constant -1 : i32
    %one = arith.constant 1.0 : f32
    // CHECK: llvm.call @pagoda_emu_thread_id() : () -> i32
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
    // CHECK: llvm.call @pagoda_emu_block_id() : () -> i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    // CHECK: llvm.call @pagoda_emu_grid_size() : () -> i32
    %g = nvvm.read.ptx.sreg.nctaid.x : i32
    // CHECK: %[[shared:.*]] = llvm.call @pagoda_emu_shared()
    // CHECK: llvm.addrspacecast %[[shared]] : !llvm.ptr to !llvm.ptr<3>
    %shared = llvm.mlir.addressof @pagoda_shared : !llvm.ptr<3>
    %p = llvm.load %args : !llvm.ptr -> !llvm.ptr<1>
    // CHECK: llvm.call @pagoda_emu_copy16
    nvvm.cp.async.shared.global %shared, %p, 16, cache = cg, %c16 : !llvm.ptr<3>, !llvm.ptr<1>, i32
    // CHECK: llvm.call @pagoda_emu_commit_copies()
    nvvm.cp.async.commit.group
    // CHECK: llvm.call @pagoda_emu_wait_copies(%{{.*}})
    nvvm.cp.async.wait.group 1
    // The number of an op is its place in the kernel.
    // CHECK: %[[number:.*]] = arith.constant {{[0-9]+}} : i32
    // CHECK: llvm.call @pagoda_emu_barrier(%[[number]])
    nvvm.barrier0
    // CHECK: llvm.call @pagoda_emu_load_matrices
    %m = nvvm.ldmatrix %shared {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    // CHECK: llvm.call @pagoda_emu_shuffle_xor
    %s = nvvm.shfl.sync bfly %all, %one, %c2, %c31 : f32 -> f32
    // CHECK: llvm.call @pagoda_emu_exp2
    %e = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%s) : (f32) -> f32
    // CHECK: llvm.call @pagoda_emu_log2
    %l = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%e) : (f32) -> f32
    // CHECK: llvm.call @pagoda_emu_reciprocal
    %r = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%l) : (f32) -> f32
    // CHECK: llvm.call @pagoda_emu_global
    // CHECK-NEXT: llvm.store
    llvm.store %l, %p : f32, !llvm.ptr<1>
    // CHECK: llvm.call @pagoda_emu_round_bf16
    %h = arith.truncf %l : f32 to bf16
    llvm.store %h, %p : bf16, !llvm.ptr<1>
    llvm.return
  }
}
