// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// Values of a region that something outside of it uses (R3). Each module is refused
// by the parser, which must not leave uses of what it destroys; valgrind and
// AddressSanitizer watch what goes wrong in silence.

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

// A region reads what the next one defines, and the op ends in an error.
func.func @sibling(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
    mask_mod {
    ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
      %visible = arith.cmpi ne, %limit, %q_pos : i32
      pagoda.yield %visible : i1
    }
    // expected-error @below {{region defines a value that is used outside of it (R3)}}
    score_mod {
    ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
      %limit = arith.addi %q_pos, %kv_pos : i32
      pagoda.yield %score : f32
    }
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32> and
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

// The second region ends early, in its second block.
func.func @unfinished_sibling(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
    %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
    mask_mod {
    ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
      %visible = arith.cmpi ne, %limit, %q_pos : i32
      pagoda.yield %visible : i1
    } score_mod {
    ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
      %limit = arith.addi %q_pos, %kv_pos : i32
      cf.br ^bb1
    ^bb1:
      // expected-error @below {{custom op 'pagoda.nothing' is unknown}}
      pagoda.nothing
    }
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

// An op before the region reads what it defines, in a region that must be there ...
func.func @op_before(%s: !pagoda.tile<1x4x8xf32>, %c: !pagoda.coords<1x4>, %j: i32, %x: f32) {
  %early = arith.addf %later, %x : f32
  // expected-error @below {{region defines a value that is used outside of it (R3)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %later = arith.addf %score, %score : f32
    pagoda.yield %later : f32
  } and : !pagoda.tile<1x4x8xf32>, !pagoda.coords<1x4> -> !pagoda.tile<1x4x8xf32>
  return
}

// -----

// ... in one that may be left out, as a block's argument ...
func.func @argument(%s: !pagoda.tile<1x4x8xf32>, %c: !pagoda.coords<1x4>, %j: i32, %limit: i32) {
  %early = arith.addi %later, %limit : i32
  // expected-error @below {{region defines a value that is used outside of it (R3)}}
  %t = pagoda.mask_scores %s, %c, %j limit %limit {
  ^bb0(%later: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %visible = arith.cmpi ne, %later, %q_pos : i32
    pagoda.yield %visible : i1
  } and : !pagoda.tile<1x4x8xf32>, !pagoda.coords<1x4> -> !pagoda.tile<1x4x8xf32>
  return
}

// -----

// ... and in a region inside the region.
func.func @nested(%w: !pagoda.item, %c: !pagoda.coords<1x4>, %i: i32, %yes: i1) {
  %early = arith.addi %later, %i : i32
  // expected-error @below {{region defines a value that is used outside of it (R3)}}
  %begin, %full_begin, %full_end, %end = pagoda.kv_range %w, %c step 64 {
  ^bb0(%seq: i32, %q_lo: i32, %q_hi: i32):
    %x = scf.if %yes -> i32 {
      %later = arith.addi %q_lo, %q_hi : i32
      scf.yield %later : i32
    } else {
      scf.yield %q_lo : i32
    }
    pagoda.yield %x, %x, %x, %x : i32, i32, i32, i32
  } and : !pagoda.coords<1x4>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

pagoda.kernel @items(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 16, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 32, kv_tile = 64, heads = 1>} {
  %early = arith.addf %later, %later : f32
  // expected-error @below {{region defines a value that is used outside of it (R3)}}
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %later = arith.constant 1.0 : f32
  } and
}
