// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=x86-64-v3 override=prefill.q_tile=96" --pagoda-tile-attention=machine=x86-64-v3 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.avx2
// RUN: FileCheck %s --check-prefixes=CHECK,AVX2 --input-file=%t.avx2 --implicit-check-not="{{ pagoda\.[a-z_]+ [@%%]}}" --implicit-check-not=func.call --implicit-check-not=llvm.call
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=x86-64-v4 override=prefill.q_tile=96" --pagoda-tile-attention=machine=x86-64-v4 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.avx512
// RUN: FileCheck %s --check-prefixes=CHECK,AVX512 --input-file=%t.avx512

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

// A panel's queries are loaded and its results stored by functions of their own.
// CHECK: llvm.func internal @qwen_prefill_open({{.*}}) attributes {no_inline}
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector
// CHECK: vector.shuffle
// CHECK: llvm.func internal @qwen_prefill_close({{.*}}) attributes {no_inline}
// CHECK: vector.shuffle
// CHECK: llvm.store %{{.*}}, %{{.*}} : vector

// A kernel is a pagoda_kernel_fn that knows what it was built for.
// CHECK: llvm.func @qwen_prefill(%[[ARGS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr {llvm.noalias})
// CHECK-SAME: block_size = 16
// CHECK-SAME: features = 1
// CHECK-SAME: head_dim = 128
// CHECK-SAME: heads_per_item = 1
// CHECK-SAME: kv_heads = 8
// CHECK-SAME: layout = 1
// CHECK-SAME: max_rows = 48
// CHECK-SAME: q_heads = 16
// CHECK-SAME: role = 0
// CHECK-SAME: schedule = "#pagoda.schedule<order = q_outer, lanes = queries
// CHECK-SAME: scratch_bytes = {{[1-9][0-9]*}}
// AVX2-SAME: target = "cpu:x86-64-v3"
// AVX512-SAME: target = "cpu:x86-64-v4"
// CHECK-SAME: v_head_dim = 64

// Items [begin, end) of 40 bytes each.
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]] step %{{.*}} : i64
// CHECK: arith.muli %[[I]], %c40_i64 : i64

// A row of the cache: table entry to 64 bits before it is multiplied, and the
// position inside the block as well.
// CHECK: %[[LOGICAL:.*]] = arith.div{{[su]}}i %[[POSITION:.*]], %c16_i32 : i32
// CHECK: %[[PHYSICAL:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: %[[WIDE:.*]] = arith.extsi %[[PHYSICAL]] : i32 to i64
// CHECK: %[[A:.*]] = arith.muli %[[WIDE]], %{{.*}} : i64
// CHECK: %[[B:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: %[[OFFSET:.*]] = arith.addi %[[A]], %[[B]] : i64
// CHECK: llvm.getelementptr %{{.*}}[%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8

// The products run on whole vectors. A panel opens with the first tile that it
// meets.
// CHECK: llvm.call @qwen_prefill_open
// AVX2: vector.fma %{{.*}} : vector<8xf32>
// AVX2: math.exp2 %{{.*}} : vector<8xf32>
// AVX512: vector.fma %{{.*}} : vector<16xf32>
// AVX512: math.exp2 %{{.*}} : vector<16xf32>

// Masked tiles: the panel's last one among them, which closes it.
// CHECK: llvm.call @qwen_prefill_open
// CHECK: llvm.call @qwen_prefill_close

// Panels that met no tile, or whose last one was not known to be the last.
// CHECK: llvm.call @qwen_prefill_open
// CHECK: llvm.call @qwen_prefill_close
// CHECK: llvm.return

// CHECK: llvm.func @qwen_decode(
// CHECK-SAME: heads_per_item = 8
// CHECK-SAME: max_rows = 1
// CHECK-SAME: schedule = "#pagoda.schedule<order = split_kv, lanes = head_dim
// AVX2: vector.fma %{{.*}} : vector<8xf32>
// AVX512: vector.fma %{{.*}} : vector<16xf32>
// CHECK: llvm.return

// CHECK: llvm.func @qwen_merge(
// CHECK-SAME: role = 1
// CHECK: llvm.return
func.func @qwen(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}
