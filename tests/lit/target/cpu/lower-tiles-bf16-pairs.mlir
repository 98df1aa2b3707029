// Products of pairs of bf16: one instruction where there is one, two fused
// operations on the halves where there is none.
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=avx512-bf16 override=prefill.q_tile=128" --pagoda-tile-attention=machine=avx512-bf16 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.avx512
// RUN: FileCheck %s --check-prefixes=CHECK,AVX512 --input-file=%t.avx512
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=x86-64-v3 override=prefill.q_tile=96,prefill.pack=2" --pagoda-tile-attention=machine=x86-64-v3 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.avx2
// RUN: FileCheck %s --check-prefixes=CHECK,AVX2 --input-file=%t.avx2 --implicit-check-not=bf16ps

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = bf16>

// Q moves as pairs.
// CHECK: llvm.func internal @qwen_prefill_open(
// AVX512: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi32>
// AVX2: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<8xi32>

// O is rounded to bf16: one conversion, or integers with a NaN kept apart.
// CHECK: llvm.func internal @qwen_prefill_close(
// AVX512: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// AVX2: arith.cmpf uno, %{{.*}} : vector<8xf32>

// CHECK: llvm.func @qwen_prefill(
// CHECK-SAME: pack = 2

// The tile's copy: values of two keys in turns, a line of each (AVX-512) or half
// of it; four such pairs, or two, whose blocks of four columns change places.
// AVX512: %[[A:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<32xi16>
// AVX512: %[[B:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<32xi16>
// AVX512: vector.shuffle %[[A]], %[[B]] [0, 32, 1, 33,
// AVX512: vector.shuffle %[[A]], %[[B]] [16, 48, 17, 49,
// AVX512: vector.shuffle %{{.*}} [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27]
// AVX512: vector.shuffle %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]
// AVX512: llvm.store %{{.*}} {alignment = 4 : i64} : vector<[[LANES:16]]xi32>, !llvm.ptr
// AVX2: %[[A:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi16>
// AVX2: %[[B:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi16>
// AVX2: vector.shuffle %[[A]], %[[B]] [0, 16, 1, 17,
// AVX2: vector.shuffle %{{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// AVX2: llvm.store %{{.*}} {alignment = 4 : i64} : vector<[[LANES:8]]xi32>, !llvm.ptr

// K Q^T: a pair of a key's dims, as it lies in the cache, in all lanes.
// CHECK: %[[PAIR:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> i32
// CHECK: vector.broadcast %[[PAIR]] : i32 to vector<[[LANES]]xi32>
// AVX512: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"({{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// AVX2: vector.fma %{{.*}} : vector<8xf32>
// AVX2: vector.fma %{{.*}} : vector<8xf32>

// P: weights of two keys, rounded to bf16.
// CHECK: math.exp2 %{{.*}} {pagoda.for_bf16, pagoda.nonpositive}
// CHECK: math.exp2 %{{.*}} {pagoda.for_bf16, pagoda.nonpositive}
// AVX512: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"(
// AVX512: vector.shuffle %{{.*}} [0, 16, 1, 17,
// AVX2: arith.ori %{{.*}}, %{{.*}} : vector<[[LANES]]xi32>
// CHECK: llvm.return
func.func @qwen(%q: tensor<?x16x128xbf16>, %cache: !cache, %table: tensor<?x?xi32>,
                %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xbf16>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xbf16>, tensor<?x16xf32>
  return
}
