// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=x86-64-v3 override=decode.kv_tile=8,decode.stages=2,decode.prefetch=1" --pagoda-tile-attention=machine=x86-64-v3 --pagoda-cpu-assign-layouts --pagoda-cpu-lower-tiles --canonicalize | FileCheck %s

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 4, layout = hnd, elt = bf16>

// Two stages: a tile's values come beside the next tile's keys.
// CHECK-LABEL: llvm.func @small_decode(
// CHECK-SAME: kv_tile = 8

// Queries: the even dims of two vectors come before the odd ones.
// CHECK: vector.shuffle %[[X:.*]], %[[Y:.*]] [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK: vector.shuffle %[[X]], %[[Y]] [1, 3, 5, 7, 9, 11, 13, 15]

// O begins at 0.
// CHECK: scf.for %{{.*}} = %c0_i64 to %c64_i64 step %c8_i64

// Keys of the first tile alone.
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[BEGIN:.*]], %[[END:.*]] : i32
// CHECK: scf.if %[[SOME]] {
// CHECK-COUNT-2: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: vector.fma
// CHECK-NOT: math.exp2

// Tiles: whole ones and masked ones differ in what happens to scores.
// CHECK: scf.for %[[J:.*]] = %[[BEGIN]] to %[[END]] step %c8_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %c8_i32
// CHECK: %[[WHOLE:.*]] = arith.cmpi slt, %[[J]],
// CHECK: scf.if %[[WHOLE]] {
// CHECK-NOT: } else {
// CHECK: math.exp2 {{.*}} : vector<8xf32>
// Sums of tiles join O, and it is multiplied, only where its scale changes and
// once in 256 keys.
// CHECK: %[[KEYS:.*]] = arith.andi %[[J]], %c255_i32
// CHECK: %[[DUE:.*]] = arith.cmpi slt, %[[KEYS]], %c8_i32
// CHECK: %[[CHANGES:.*]] = arith.cmpf une, %{{[^,]*}}, %{{[^ ]*}} : f32
// CHECK: %[[JOINS:.*]] = arith.ori %[[CHANGES]], %[[DUE]]
// CHECK: scf.if %[[JOINS]] {
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUM]],
// CHECK: llvm.store %[[SCALED]],
// CHECK: } else {
// CHECK: arith.select {{.*}} : vector<8xi1>, vector<8xf32>
// CHECK: math.exp2 {{.*}} : vector<8xf32>

// Values of this tile beside keys of the next one, two of each at a time, which
// lie half a tile apart, and two elements from 32 bits. Rows of queries go in
// passes; those after the first fetch what comes next.
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[END]]
// CHECK: scf.if %[[MORE]] {
// CHECK: scf.for %{{.*}} = %c0_i64 to %c4_i64 step %c1_i64
// CHECK: scf.for %[[ROW:.*]] = %c0_i64 to %c2_i64 step %c1_i64
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[ROW]], %c0_i64
// CHECK: %[[AHEAD:.*]] = arith.select %[[FIRST]], %c0_i64, %c512_i64
// CHECK: scf.for %[[D:.*]] = {{.*}} step %c32_i64 iter_args(%{{[^,]*}} = %cst{{[^,]*}}, %{{[^,]*}} = %cst{{[^,]*}})
// CHECK: %[[BYTES:.*]] = arith.muli %[[D]], %c2_i64
// CHECK: arith.addi %[[BYTES]], %[[AHEAD]]
// CHECK-COUNT-4: llvm.intr.prefetch
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<8xi32>
// CHECK: arith.shli
// CHECK: arith.andi
// CHECK: vector.fma
// CHECK-NOT: llvm.intr.prefetch
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK: scf.yield

// Values of the last tile alone, after which all sums join O.
// CHECK: } else {
// CHECK-NOT: math.exp2
// CHECK: vector.fma
// CHECK-NOT: math.exp2
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: llvm.store %[[SUM]],
// CHECK: llvm.store %cst
// CHECK: llvm.return
func.func @small(%q: tensor<?x4x64xbf16>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x4x64xbf16>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x4x64xbf16>, tensor<?x4xf32>
  return
}
