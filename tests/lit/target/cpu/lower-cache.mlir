// RUN: pagoda-opt %s --pagoda-cpu-lower-cache=machine=x86-64-v3 --canonicalize > %t.avx2
// RUN: FileCheck %s --check-prefixes=CHECK,AVX2 --input-file=%t.avx2 --implicit-check-not="pagoda.append_kv" --implicit-check-not="pagoda.copy_blocks" --implicit-check-not=func.func
// RUN: pagoda-opt %s --pagoda-cpu-lower-cache=machine=x86-64-v4 --canonicalize > %t.avx512
// RUN: FileCheck %s --check-prefixes=CHECK,AVX512 --input-file=%t.avx512

!cache = !pagoda.kv_cache<heads = 8, k_dim = 80, v_dim = 71, block = 16, layout = hnd, elt = f32>
!half = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 3, layout = nhd, elt = f16>
!bf16 = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 3, layout = nhd, elt = bf16>

// A kernel is a pagoda_kernel_fn that knows what it was built for.
// CHECK: llvm.func @neox_append(%[[ARGS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %{{.*}}: !llvm.ptr)
// CHECK-SAME: block_size = 16
// CHECK-SAME: head_dim = 80
// CHECK-SAME: kv_heads = 8
// CHECK-SAME: layout = 1
// CHECK-SAME: role = 2
// CHECK-SAME: rope_interleaved = 0
// CHECK-SAME: rotary_dim = 32
// CHECK-SAME: scratch_bytes = 0
// AVX2-SAME: target = "cpu:x86-64-v3"
// CHECK-SAME: v_head_dim = 71

// One index is one token; -1 is skipped, in either width.
// CHECK: scf.for %[[TOKEN:.*]] = %[[BEGIN]] to %[[END]] step
// CHECK: %[[SLOT:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK-DAG: %[[NAMED:.*]] = arith.cmpi sge, %[[SLOT]], %c0_i64 : i64
// CHECK-DAG: %[[WIDE:.*]] = arith.cmpi ne, %[[SLOT]], %c4294967295_i64 : i64
// CHECK: %[[USED:.*]] = arith.andi %[[NAMED]], %[[WIDE]] : i1
// CHECK: scf.if %[[USED]]
// CHECK: arith.divui %[[SLOT]], %c16_i64 : i64

// With tables: 16 pairs, halves of the first 32 dims, then the other 48 dims.
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> i32
// AVX2: vector.fma %{{.*}} : vector<8xf32>
// AVX512: vector.fma %{{.*}} : vector<16xf32>
// CHECK: } else {
// Without: all 80. And V, whose 71 dims end in a piece of 4, 2 and 1.
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<2xi32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<1xi32>
// CHECK: llvm.return
func.func @neox_append(%k: tensor<?x8x80xf32>, %v: tensor<?x8x71xf32>, %cache: !cache,
                       %slots: tensor<?xi64>, %p: tensor<?xi32>, %t: tensor<?x16xf32>) {
  pagoda.append_kv %k, %v to %cache at %slots
      rope(%p, %t, %t : tensor<?xi32>, tensor<?x16xf32>, tensor<?x16xf32>)
    : tensor<?x8x80xf32>, tensor<?x8x71xf32>, !cache, tensor<?xi64>
  return
}

// Neighbours pair up; f16 is rotated in f32 and rounded once.
// CHECK: llvm.func @interleaved_append(
// CHECK-SAME: k_dtype = 1
// CHECK-SAME: q_dtype = 1
// CHECK-SAME: rope_interleaved = 1
// CHECK-SAME: rotary_dim = 64
// AVX2: %[[PAIRS:.*]] = arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// AVX2: vector.deinterleave %[[PAIRS]] : vector<16xf32> -> vector<8xf32>
// AVX2: %[[ROTATED:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<8xf32> -> vector<16xf32>
// AVX2: arith.truncf %[[ROTATED]] : vector<16xf32> to vector<16xf16>
// Without tables, and for V, bits move as they are, two bytes a lane.
// AVX2: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi16>
// CHECK: llvm.return
func.func @interleaved_append(%k: tensor<?x2x64xf16>, %v: tensor<?x2x64xf16>, %cache: !half,
                              %slots: tensor<?xi64>, %p: tensor<?xi32>, %t: tensor<?x32xf32>) {
  pagoda.append_kv %k, %v to %cache at %slots
      rope(%p, %t, %t : tensor<?xi32>, tensor<?x32xf32>, tensor<?x32xf32>) {interleaved}
    : tensor<?x2x64xf16>, tensor<?x2x64xf16>, !half, tensor<?xi64>
  return
}

// f32 tokens into an f16 cache, no rotation: no table is read.
// CHECK: llvm.func @plain_append(
// CHECK-SAME: k_dtype = 1
// CHECK-SAME: q_dtype = 0
// CHECK-SAME: rotary_dim = 0
// CHECK-NOT: vector.fma
// AVX2: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
// CHECK: llvm.return
func.func @plain_append(%k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cache: !half,
                        %slots: tensor<?xi64>) {
  pagoda.append_kv %k, %v to %cache at %slots
    : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !half, tensor<?xi64>
  return
}

// bf16 is rounded in integers: no library call for machines without the
// instruction.
// CHECK: llvm.func @bf16_append(
// CHECK-SAME: k_dtype = 2
// CHECK-NOT: arith.truncf
// CHECK: arith.trunci %{{.*}} : vector<{{8|16}}xi32> to vector<{{8|16}}xi16>
// CHECK-NOT: arith.truncf
// CHECK: llvm.return
func.func @bf16_append(%k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cache: !bf16,
                       %slots: tensor<?xi64>) {
  pagoda.append_kv %k, %v to %cache at %slots
    : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !bf16, tensor<?xi64>
  return
}

// One index is one copy of 8 bytes; a negative id is skipped. In hnd, heads are
// outside of slots.
// CHECK: llvm.func @copy(
// CHECK-SAME: role = 3
// CHECK: scf.for
// CHECK: %[[SRC:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: %[[DST:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: %[[LOWER:.*]] = arith.minsi %[[SRC]], %[[DST]] : i64
// CHECK: arith.cmpi sge, %[[LOWER]], %c0_i64 : i64
// CHECK: scf.for %{{.*}} to %c8_i64
// CHECK: scf.for %{{.*}} to %c16_i64
// CHECK: llvm.return
func.func @copy(%pairs: tensor<?x2xi32>, %cache: !cache) {
  pagoda.copy_blocks %pairs in %cache : tensor<?x2xi32>, !cache
  return
}
