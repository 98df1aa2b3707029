// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%w: !pagoda.item, %c: !pagoda.coords<1x96>) {
  // expected-error @below {{'pagoda.kv_range' op kv_range region must take ('i32', 'i32', 'i32'), got ('f32') (R1)}}
  %b:4 = pagoda.kv_range %w, %c step 64 {
  ^bb0(%q: f32):
    %c0 = arith.constant 0 : i32
    pagoda.yield %c0, %c0, %c0, %c0 : i32, i32, i32, i32
  } : !pagoda.coords<1x96>
  return
}

// -----

func.func @f(%w: !pagoda.item, %c: !pagoda.coords<1x96>) {
  // expected-error @below {{'pagoda.kv_range' op kv_range region must yield ('i32', 'i32', 'i32', 'i32'), got ('i32', 'i32') (R2)}}
  %b:4 = pagoda.kv_range %w, %c step 64 {
  ^bb0(%seq: i32, %q_lo: i32, %q_hi: i32):
    pagoda.yield %q_lo, %q_hi : i32, i32
  } : !pagoda.coords<1x96>
  return
}
