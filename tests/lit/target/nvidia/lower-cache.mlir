// RUN: pagoda-opt %s --pagoda-nvidia-lower-cache=machine=sm_90a --canonicalize --cse > %t
// RUN: FileCheck %s --input-file=%t --implicit-check-not="pagoda.append_kv" --implicit-check-not="pagoda.copy_blocks" --implicit-check-not=func.func

!cache = !pagoda.kv_cache<heads = 8, k_dim = 80, v_dim = 71, block = 16, layout = hnd, elt = f16>

// Both are kernels of one gpu.module, each with its argument struct by value.
// CHECK: gpu.module @pagoda_kernels [#nvvm.target<O = 3, chip = "sm_90a">]

// CHECK: llvm.func @neox_append(%{{.*}}: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<216 x i8>, nvvm.grid_constant})
// CHECK-SAME: block_size = 16
// CHECK-SAME: head_dim = 80
// CHECK-SAME: role = 2
// CHECK-SAME: rotary_dim = 32
// CHECK-SAME: target = "nvidia:sm_90a"
// CHECK-SAME: threads = 128

// A block writes one token; -1 is skipped, in either width.
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[SLOT:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i64
// CHECK-DAG: %[[NAMED:.*]] = arith.cmpi sge, %[[SLOT]], %c0_i64 : i64
// CHECK-DAG: %[[WIDE:.*]] = arith.cmpi ne, %[[SLOT]], %c4294967295_i64 : i64
// CHECK: %[[USED:.*]] = arith.andi %[[NAMED]], %[[WIDE]] : i1
// CHECK: scf.if %[[USED]]

// 8 heads of 16 pairs, in f32; the other 48 dims, and without tables all 80, eight
// elements at a time; the 71 of V one by one.
// CHECK: scf.for %{{.*}} = %{{.*}} to %c128_i32 step %c128_i32
// CHECK: math.fma
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: scf.for %{{.*}} = %{{.*}} to %c48_i32 step
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %{{.*}} to %c80_i32 step
// CHECK: scf.for %{{.*}} = %{{.*}} to %c568_i32 step
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
func.func @neox_append(%k: tensor<?x8x80xf16>, %v: tensor<?x8x71xf16>, %cache: !cache,
                       %slots: tensor<?xi64>, %p: tensor<?xi32>, %t: tensor<?x16xf32>) {
  pagoda.append_kv %k, %v to %cache at %slots
      rope(%p, %t, %t : tensor<?xi32>, tensor<?x16xf32>, tensor<?x16xf32>)
    : tensor<?x8x80xf16>, tensor<?x8x71xf16>, !cache, tensor<?xi64>
  return
}

// A block copies one block of the cache, slot after slot.
// CHECK: llvm.func @copy(%{{.*}}: !llvm.ptr {{{.*}}llvm.byval = !llvm.array<72 x i8>
// CHECK-SAME: role = 3
// CHECK: scf.for %{{.*}} = %c0_i32 to %c16_i32 step %c1_i32
func.func @copy(%copies: tensor<?x2xi32>, %cache: !cache) {
  pagoda.copy_blocks %copies in %cache : tensor<?x2xi32>, !cache
  return
}
