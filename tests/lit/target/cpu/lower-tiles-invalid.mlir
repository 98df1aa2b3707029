// RUN: pagoda-opt %s -split-input-file -verify-diagnostics --pagoda-cpu-lower-tiles

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op has no cpu target}}
pagoda.kernel @target(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op target vector_bits must be at most 2048, got 4096}}
pagoda.kernel @vectors(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 4096, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = i8>
// expected-error @below {{'pagoda.kernel' op element type must be f32, f16 or bf16 on a cpu, got 'i8'}}
pagoda.kernel @elements(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule q_tile must hold the 2 query heads of a kv head, got 1}}
pagoda.kernel @small(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 1, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule q_tile must be at most 65536, got 65537}}
pagoda.kernel @large(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 65537, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule block_rows * block_vectors must be at most the 16 registers, got 20}}
pagoda.kernel @registers(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1, block_rows = 4, block_vectors = 5>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule heads must be 1 with lanes = queries, got 2}}
pagoda.kernel @heads(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule kv_tile must be a multiple of block_rows, 3, got 64}}
pagoda.kernel @rows(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1, block_rows = 3>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule order naive needs lanes = queries}}
pagoda.kernel @naive(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = naive, lanes = head_dim, q_tile = 2, kv_tile = 16, heads = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op lowers to a cpu with one pagoda.for_items, got 0}}
pagoda.kernel @empty(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @role(%a) attributes {role = #pagoda<role merge>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 1, heads = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  // expected-error @below {{'pagoda.for_items' op does not lower to a cpu inside pagoda.kernel}}
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @parts(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  // expected-error @below {{'pagoda.for_items' op lowers to a cpu with one pagoda.load_q, got 2}}
  // expected-error @below {{'pagoda.for_items' op lowers to a cpu with one pagoda.coords, got 0}}
  // expected-error @below {{'pagoda.for_items' op lowers to a cpu with one pagoda.kv_range, got 0}}
  // expected-error @below {{'pagoda.for_items' op lowers to a cpu with one pagoda.state_init, got 0}}
  // expected-error @below {{'pagoda.for_items' op lowers to a cpu with one pagoda.store, got 0}}
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x64xf32>
    %r = pagoda.load_q %a, %w : !pagoda.tile<1x16x64xf32>
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @step(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x64xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    // expected-error @below {{'pagoda.kv_range' op step must be the schedule's kv_tile, 64, got 32}}
    %b:4 = pagoda.kv_range %w, %c step 32 : !pagoda.coords<1x16>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>
    pagoda.store %m, %l, %o, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @shape(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    // expected-error @below {{'pagoda.load_q' op must be 1x16x64 by schedule and cache, got 1x16x32}}
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x32xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b:4 = pagoda.kv_range %w, %c step 64 : !pagoda.coords<1x16>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>
    pagoda.store %m, %l, %o, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @loop(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x64xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b:4 = pagoda.kv_range %w, %c step 64 : !pagoda.coords<1x16>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>
    // expected-error @below {{'pagoda.kv_loop' op must carry the state of state_init or of the kv_loop before it}}
    %st = pagoda.kv_loop %j = %b#0 to %b#3 step 64 carry(%n = %m) : !pagoda.tile<1x16x1xf32> {
      pagoda.yield %n : !pagoda.tile<1x16x1xf32>
    }
    pagoda.store %st, %l, %o, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @chain(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x16x64xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x16>
    %b:4 = pagoda.kv_range %w, %c step 64 : !pagoda.coords<1x16>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>
    // expected-error @below {{'pagoda.kv_loop' op is no step of the online softmax: expected the carried m, l and o through qk, softmax_step, rescale and pv to the yield}}
    %st:3 = pagoda.kv_loop %j = %b#0 to %b#3 step 64 carry(%n = %m, %p = %l, %r = %o) : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32> {
      %k = pagoda.kv_ref key %a, %w, %j : !pagoda.kv<1x64x64xf32>
      %v = pagoda.kv_ref value %a, %w, %j : !pagoda.kv<1x64x32xf32>
      %s = pagoda.qk %q, %k : !pagoda.tile<1x16x64xf32>, !pagoda.kv<1x64x64xf32> -> !pagoda.tile<1x16x64xf32>
      %e, %n1, %p1, %alpha = pagoda.softmax_step %s, %n, %p factor %f : !pagoda.tile<1x16x64xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x64xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>
      %r1 = pagoda.rescale %r, %alpha : !pagoda.tile<1x16x32xf32>, !pagoda.tile<1x16x1xf32> -> !pagoda.tile<1x16x32xf32>
      %r2 = pagoda.pv %s, %v, %r1 : !pagoda.tile<1x16x64xf32>, !pagoda.kv<1x64x32xf32>, !pagoda.tile<1x16x32xf32> -> !pagoda.tile<1x16x32xf32>
      pagoda.yield %n1, %p1, %r2 : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>
    }
    pagoda.store %st#0, %st#1, %st#2, %a, %w factor %f : !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x1xf32>, !pagoda.tile<1x16x32xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 1, k_dim = 65536, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op needs 17}}
pagoda.kernel @scratch(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 1 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 65536, kv_tile = 64, heads = 1>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<1x65536x65536xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<1x65536>
    %b:4 = pagoda.kv_range %w, %c step 64 : !pagoda.coords<1x65536>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x65536x1xf32>, !pagoda.tile<1x65536x32xf32>
    pagoda.store %m, %l, %o, %a, %w factor %f : !pagoda.tile<1x65536x1xf32>, !pagoda.tile<1x65536x1xf32>, !pagoda.tile<1x65536x32xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 63, v_dim = 32, block = 16, layout = hnd, elt = bf16>
// expected-error @below {{'pagoda.kernel' op schedule pack = 2 takes pairs of bf16: expected queries and keys of bf16, an even head dim and an even kv_tile, got 'bf16', 'bf16', 63 and 64}}
pagoda.kernel @odd(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = bf16,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 8, kv_tile = 64, heads = 1, pack = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = bf16>
// expected-error @below {{'pagoda.kernel' op schedule pack = 2 needs lanes = queries}}
pagoda.kernel @lanes(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = bf16,
    schedule = #pagoda.schedule<order = q_outer, lanes = head_dim, q_tile = 8, kv_tile = 64, heads = 1, pack = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule stages must be at most 1 with lanes = queries, got 2}}
pagoda.kernel @stages(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 16, kv_tile = 64, heads = 1, stages = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
// expected-error @below {{'pagoda.kernel' op schedule stages must be at most 2 with lanes = head_dim, got 3}}
pagoda.kernel @deeper(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 16, heads = 2, stages = 3>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @gap(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 16, heads = 2, block_rows = 2, stages = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<2x2x64xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<2x2>
    %b:4 = pagoda.kv_range %w, %c step 16 : !pagoda.coords<2x2>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    %st:3 = pagoda.kv_loop %j = %b#0 to %b#1 step 16 carry(%n = %m, %p = %l, %r = %o) : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32> {
      %k = pagoda.kv_ref key %a, %w, %j : !pagoda.kv<2x16x64xf32>
      %v = pagoda.kv_ref value %a, %w, %j : !pagoda.kv<2x16x32xf32>
      %s = pagoda.qk %q, %k : !pagoda.tile<2x2x64xf32>, !pagoda.kv<2x16x64xf32> -> !pagoda.tile<2x2x16xf32>
      %e, %n1, %p1, %alpha = pagoda.softmax_step %s, %n, %p factor %f : !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>
      %r1 = pagoda.rescale %r, %alpha : !pagoda.tile<2x2x32xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x32xf32>
      %r2 = pagoda.pv %e, %v, %r1 : !pagoda.tile<2x2x16xf32>, !pagoda.kv<2x16x32xf32>, !pagoda.tile<2x2x32xf32> -> !pagoda.tile<2x2x32xf32>
      pagoda.yield %n1, %p1, %r2 : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    }
    // expected-error @below {{'pagoda.kv_loop' op must begin where the kv_loop before it ends, with two stages}}
    %en:3 = pagoda.kv_loop %j = %b#2 to %b#3 step 16 carry(%n = %st#0, %p = %st#1, %r = %st#2) : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32> {
      %k = pagoda.kv_ref key %a, %w, %j : !pagoda.kv<2x16x64xf32>
      %v = pagoda.kv_ref value %a, %w, %j : !pagoda.kv<2x16x32xf32>
      %s = pagoda.qk %q, %k : !pagoda.tile<2x2x64xf32>, !pagoda.kv<2x16x64xf32> -> !pagoda.tile<2x2x16xf32>
      %e, %n1, %p1, %alpha = pagoda.softmax_step %s, %n, %p factor %f : !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>
      %r1 = pagoda.rescale %r, %alpha : !pagoda.tile<2x2x32xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x32xf32>
      %r2 = pagoda.pv %e, %v, %r1 : !pagoda.tile<2x2x16xf32>, !pagoda.kv<2x16x32xf32>, !pagoda.tile<2x2x32xf32> -> !pagoda.tile<2x2x32xf32>
      pagoda.yield %n1, %p1, %r2 : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    }
    pagoda.store %en#0, %en#1, %en#2, %a, %w factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>, !pagoda.item
  }
}

// -----

!cache = !pagoda.kv_cache<heads = 2, k_dim = 64, v_dim = 32, block = 16, layout = hnd, elt = f32>
pagoda.kernel @limit(%a) attributes {role = #pagoda<role attention>, cache = !cache, q_heads = 4 : i64, q_type = f32,
    schedule = #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 16, heads = 2, block_rows = 2, stages = 2>,
    target = #pagoda.target<kind = "cpu", name = "n", vector_bits = 256, registers = 16>} {
  %f = pagoda.arg %a "scale" : f32
  pagoda.for_items %a {
  ^bb0(%w: !pagoda.item):
    %q = pagoda.load_q %a, %w : !pagoda.tile<2x2x64xf32>
    %c = pagoda.coords %a, %w : !pagoda.coords<2x2>
    %b:4 = pagoda.kv_range %w, %c step 16 : !pagoda.coords<2x2>
    %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    %st:3 = pagoda.kv_loop %j = %b#0 to %b#1 step 16 carry(%n = %m, %p = %l, %r = %o) : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32> {
      %k = pagoda.kv_ref key %a, %w, %j : !pagoda.kv<2x16x64xf32>
      %v = pagoda.kv_ref value %a, %w, %j : !pagoda.kv<2x16x32xf32>
      %s = pagoda.qk %q, %k : !pagoda.tile<2x2x64xf32>, !pagoda.kv<2x16x64xf32> -> !pagoda.tile<2x2x16xf32>
      %e, %n1, %p1, %alpha = pagoda.softmax_step %s, %n, %p factor %f : !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>
      %r1 = pagoda.rescale %r, %alpha : !pagoda.tile<2x2x32xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x32xf32>
      %r2 = pagoda.pv %e, %v, %r1 : !pagoda.tile<2x2x16xf32>, !pagoda.kv<2x16x32xf32>, !pagoda.tile<2x2x32xf32> -> !pagoda.tile<2x2x32xf32>
      pagoda.yield %n1, %p1, %r2 : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    }
    %en:3 = pagoda.kv_loop %j = %b#1 to %b#3 step 16 carry(%n = %st#0, %p = %st#1, %r = %st#2) : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32> {
      // expected-error @below {{'pagoda.kv_ref' op limit must be the end of the last kv_loop, with two stages}}
      %k = pagoda.kv_ref key %a, %w, %j limit %b#2 : !pagoda.kv<2x16x64xf32>
      %v = pagoda.kv_ref value %a, %w, %j : !pagoda.kv<2x16x32xf32>
      %s = pagoda.qk %q, %k : !pagoda.tile<2x2x64xf32>, !pagoda.kv<2x16x64xf32> -> !pagoda.tile<2x2x16xf32>
      %e, %n1, %p1, %alpha = pagoda.softmax_step %s, %n, %p factor %f : !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x16xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>
      %r1 = pagoda.rescale %r, %alpha : !pagoda.tile<2x2x32xf32>, !pagoda.tile<2x2x1xf32> -> !pagoda.tile<2x2x32xf32>
      %r2 = pagoda.pv %e, %v, %r1 : !pagoda.tile<2x2x16xf32>, !pagoda.kv<2x16x32xf32>, !pagoda.tile<2x2x32xf32> -> !pagoda.tile<2x2x32xf32>
      pagoda.yield %n1, %p1, %r2 : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>
    }
    pagoda.store %en#0, %en#1, %en#2, %a, %w factor %f : !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x1xf32>, !pagoda.tile<2x2x32xf32>, !pagoda.item
  }
}
