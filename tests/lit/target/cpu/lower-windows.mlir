// Where a window begins and where sequences end, tiles are masked. The code for
// both is the same, so it stands there once.
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles="machine=x86-64-v3 override=decode.stages=2" --pagoda-tile-attention=machine=x86-64-v3 --pagoda-cpu-assign-layouts > %t.tiled
// RUN: pagoda-opt %t.tiled --pagoda-cpu-lower-tiles --canonicalize > %t.once
// RUN: FileCheck %s --check-prefix=ONCE --input-file=%t.once
// Not where the masks differ.
// RUN: sed "s/cmpi slt, \(.*\), %1 : i32/cmpi sle, \1, %1 : i32/" %t.tiled | pagoda-opt --pagoda-cpu-lower-tiles --canonicalize > %t.each
// RUN: FileCheck %s --check-prefix=EACH --input-file=%t.each

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 64, block = 16, layout = hnd, elt = f32>

// Two rounds: masked tiles, then whole ones, up to their first in the second.
// ONCE-LABEL: llvm.func @local_prefill(
// ONCE: scf.for %[[ROUND:.*]] = %c0_i64 to %c2_i64 step %c1_i64
// ONCE: %[[FIRST:.*]] = arith.cmpi eq, %[[ROUND]], %c0_i64
// ONCE: %[[LO:.*]] = arith.select %[[FIRST]], %[[BEGIN:.*]], %[[FULL_END:[^ ]*]] : i32
// ONCE: %[[HI:.*]] = arith.select %[[FIRST]], %[[FULL_BEGIN:.*]], %[[END:[^ ]*]] : i32
// ONCE: scf.for %{{.*}} = %[[LO]] to %[[HI]] step %c[[TILE:[0-9]*]]_i32
// ONCE: llvm.call @local_prefill_open
// ONCE: math.exp2
// ONCE: %[[WHOLE:.*]] = arith.select %[[FIRST]], %[[FULL_END]], %[[FULL_BEGIN]] : i32
// ONCE: scf.for %{{.*}} = %[[FULL_BEGIN]] to %[[WHOLE]] step %c[[TILE]]_i32
// ONCE: llvm.call @local_prefill_open
// ONCE: math.exp2
// Panels that met no tile.
// ONCE: llvm.call @local_prefill_open
// ONCE-NOT: llvm.call @local_prefill_open
// ONCE: llvm.return

// A tile is masked if it comes before the whole ones or after them.
// ONCE-LABEL: llvm.func @local_decode(
// ONCE: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c32_i32
// ONCE: %[[BEFORE:.*]] = arith.cmpi slt, %[[J]], %[[FULL_BEGIN:.*]] : i32
// ONCE: %[[AFTER:.*]] = arith.cmpi sge, %[[J]], %[[FULL_END:.*]] : i32
// ONCE: %[[MASKED:.*]] = arith.ori %[[BEFORE]], %[[AFTER]] : i1
// ONCE: scf.if %[[MASKED]] {
// ONCE-COUNT-2: %[[JOINS:.*]] = arith.andi %[[J]], %c255_i32
// ONCE-NOT: arith.andi %[[J]], %c255_i32
// ONCE: llvm.return

// EACH-LABEL: llvm.func @local_prefill(
// EACH-COUNT-4: llvm.call @local_prefill_open
// EACH-NOT: llvm.call @local_prefill_open
// EACH: llvm.return
// EACH-LABEL: llvm.func @local_decode(
// EACH: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c32_i32
// EACH-COUNT-3: arith.andi %[[J]], %c255_i32
func.func @local(%q: tensor<?x4x64xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                 %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32, %w: i32 {pagoda.arg = "window"}) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) window(%w) {causal}
    : tensor<?x4x64xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x4x64xf32>, tensor<?x4xf32>
  return
}
