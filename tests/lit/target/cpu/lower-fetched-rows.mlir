// Two stages that fetch rows: those that a walk comes to, or a whole tile.
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=avx512-bf16 override=decode.prefetch=2" --pagoda-tile-attention=machine=avx512-bf16 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.rows
// RUN: FileCheck %s --check-prefixes=CHECK,ROWS --input-file=%t.rows
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=avx512-bf16 override=decode.prefetch=3" --pagoda-tile-attention=machine=avx512-bf16 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.tiles
// RUN: FileCheck %s --check-prefixes=CHECK,TILES --input-file=%t.tiles
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=avx512-bf16 override=decode.prefetch=4" --pagoda-tile-attention=machine=avx512-bf16 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize > %t.apart
// RUN: FileCheck %s --check-prefixes=APART --input-file=%t.apart

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = nhd, elt = bf16>

// CHECK-LABEL: llvm.func @large_decode(

// Queries stay as they are: they meet keys as pairs.
// CHECK: %[[PAIRS:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi32>
// CHECK: llvm.store %[[PAIRS]], %{{.*}} {alignment = 2 : i64} : vector<16xi32>, !llvm.ptr

// Keys of the first tile alone, then tiles.
// CHECK: scf.if
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c32_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %c32_i32
// CHECK: scf.if

// While scores become weights: two rows of four lines, of either half of the
// keys and then of the values; none in the products of rows before.
// CHECK: scf.for %[[HEAD:.*]] = %c0_i64 to %c8_i64 step %c1_i64
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c2_i64
// CHECK: %[[PAST:.*]] = arith.addi %[[FIRST]], %c2_i64
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[PAST]] step %c1_i64
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1_i64
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: math.exp2

// Token by token, the row 2048 bytes on: of the same head, a token later.
// ROWS: scf.for %[[KEY:.*]] = %c0_i64 to %c16_i64 step %c1_i64
// ROWS: scf.for %[[HEAD:.*]] = %c0_i64 to %c8_i64 step %c1_i64
// ROWS: %[[LATER:.*]] = arith.addi %[[KEY]], %c1_i64
// ROWS: %[[LEAVES:.*]] = arith.cmpi sge, %{{.*}}, %c16_i64
// The table of pointers is never read past a walk's rows.
// ROWS: arith.minsi %{{.*}}, %c15_i64
// ROWS: arith.select %[[LEAVES]], %{{.*}}, %{{.*}} : !llvm.ptr

// Head by head, the rows of the next tile as they lie.
// TILES: scf.for %[[HEAD:.*]] = %c0_i64 to %c8_i64 step %c1_i64
// TILES: scf.for %[[KEY:.*]] = %c0_i64 to %c16_i64 step %c1_i64
// TILES: %[[BEFORE:.*]] = arith.muli %[[HEAD]], %c16_i64
// TILES: %[[PLACE:.*]] = arith.addi %[[BEFORE]], %[[KEY]]
// TILES: %[[TOKEN:.*]] = arith.divui %[[PLACE]], %c8_i64

// One pass: four rows fit the registers. A line of each row meanwhile.
// CHECK: scf.for %{{.*}} = %c0_i64 to %c128_i64 step %c32_i64 iter_args(
// CHECK-COUNT-4: llvm.intr.prefetch
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: vector.fma

// All values of the tile, then all keys of the next one.
// APART-LABEL: llvm.func @large_decode(
// APART: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c32_i32
// APART: math.exp2
// APART: scf.for %{{.*}} = %c0_i64 to %c16_i64 step %c1_i64
// APART: scf.for %{{.*}} = %c0_i64 to %c8_i64 step %c1_i64
// APART: scf.for %{{.*}} = %c0_i64 to %c128_i64 step %c32_i64
// APART-COUNT-2: llvm.intr.prefetch
// APART-NOT: dpbf16ps
// APART: vector.fma
// APART: scf.for %{{.*}} = %c0_i64 to %c16_i64 step %c1_i64
// APART: scf.for %{{.*}} = %c0_i64 to %c8_i64 step %c1_i64
// APART: scf.for %{{.*}} = %c0_i64 to %c128_i64 step %c32_i64 iter_args(
// APART-COUNT-2: llvm.intr.prefetch
// APART-NOT: vector.fma
// APART-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// APART: } else {
func.func @large(%q: tensor<?x32x128xbf16>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x32x128xbf16>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x32x128xbf16>, tensor<?x32xf32>
  return
}
