// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x48>, %j: i32, %x: f32) {
  // expected-error @below {{'pagoda.map_scores' op coords must be 1x96, got 1x48 (T10)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    pagoda.yield %score : f32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x48> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<2x96>, %j: i32, %x: f32) {
  // expected-error @below {{'pagoda.map_scores' op coords must be 1x96, got 2x96 (T10)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    pagoda.yield %score : f32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<2x96> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %x: f32) {
  // expected-error @below {{'pagoda.map_scores' op result must be 1x96x64, got 1x96x32 (T8)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    pagoda.yield %score : f32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x32xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %x: f32) {
  // expected-error @below {{'pagoda.map_scores' op score_mod region must take ('f32', 'i32', 'i32', 'i32', 'i32'), got ('i32', 'i32', 'i32', 'i32') (R1)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    pagoda.yield %x : f32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %x: f32) {
  // expected-error @below {{'pagoda.map_scores' op score_mod region must yield ('f32'), got ('i32') (R2)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    pagoda.yield %seq : i32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %x: f32) {
  // expected-error @below {{'pagoda.map_scores' op score_mod region must yield ('f32'), got () (R2)}}
  %t = pagoda.map_scores %s, %c, %j scale %x {
  ^bb0(%score: f32, %seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    pagoda.yield
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}
