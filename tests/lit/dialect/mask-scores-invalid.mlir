// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x95>, %j: i32, %end: i32) {
  // expected-error @below {{'pagoda.mask_scores' op coords must be 1x96, got 1x95 (T10)}}
  %t = pagoda.mask_scores %s, %c, %j limit %end {
  ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
    pagoda.yield %sees : i1
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x95> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %end: i32) {
  // expected-error @below {{'pagoda.mask_scores' op result must be 1x96x64, got 1x64x96 (T8)}}
  %t = pagoda.mask_scores %s, %c, %j limit %end {
  ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
    pagoda.yield %sees : i1
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x64x96xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %end: i32) {
  // expected-error @below {{'pagoda.mask_scores' op mask_mod region must take ('i32', 'i32', 'i32', 'i32'), got ('i32', 'i32', 'i32') (R1)}}
  %t = pagoda.mask_scores %s, %c, %j limit %end {
  ^bb0(%seq: i32, %q_pos: i32, %kv_pos: i32):
    %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
    pagoda.yield %sees : i1
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %c: !pagoda.coords<1x96>, %j: i32, %end: i32) {
  // expected-error @below {{'pagoda.mask_scores' op mask_mod region must yield ('i1'), got ('i32') (R2)}}
  %t = pagoda.mask_scores %s, %c, %j limit %end {
  ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
    %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
    pagoda.yield %seq : i32
  } : !pagoda.tile<1x96x64xf32>, !pagoda.coords<1x96> -> !pagoda.tile<1x96x64xf32>
  return
}
