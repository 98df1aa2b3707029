// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%p: !pagoda.tile<8x2x32xf32>, %v: !pagoda.kv<8x16x64xf32>, %o: !pagoda.tile<8x2x64xf32>) {
  // expected-error @below {{'pagoda.pv' op p and v must agree in heads and keys, got 8 and 8 heads, keys 32 and 16 (T9)}}
  %o1 = pagoda.pv %p, %v, %o : !pagoda.tile<8x2x32xf32>, !pagoda.kv<8x16x64xf32>,
      !pagoda.tile<8x2x64xf32> -> !pagoda.tile<8x2x64xf32>
  return
}

// -----

func.func @f(%p: !pagoda.tile<8x2x16xf32>, %v: !pagoda.kv<4x16x64xf32>, %o: !pagoda.tile<8x2x64xf32>) {
  // expected-error @below {{'pagoda.pv' op p and v must agree in heads and keys, got 8 and 4 heads, keys 16 and 16 (T9)}}
  %o1 = pagoda.pv %p, %v, %o : !pagoda.tile<8x2x16xf32>, !pagoda.kv<4x16x64xf32>,
      !pagoda.tile<8x2x64xf32> -> !pagoda.tile<8x2x64xf32>
  return
}

// -----

func.func @f(%p: !pagoda.tile<8x2x16xf32>, %v: !pagoda.kv<8x16x64xf32>, %o: !pagoda.tile<8x2x64xf32>) {
  // expected-error @below {{'pagoda.pv' op result must be '!pagoda.tile<8x2x64xf32>', got '!pagoda.tile<8x2x32xf32>' (T8)}}
  %o1 = pagoda.pv %p, %v, %o : !pagoda.tile<8x2x16xf32>, !pagoda.kv<8x16x64xf32>,
      !pagoda.tile<8x2x64xf32> -> !pagoda.tile<8x2x32xf32>
  return
}

// -----

func.func @f(%p: !pagoda.tile<8x2x16xf32>, %v: !pagoda.kv<8x16x64xf32>, %o: !pagoda.tile<8x2x128xf32>) {
  // expected-error @below {{'pagoda.pv' op o must be 8x2x64, got 8x2x128 (T8)}}
  %o1 = pagoda.pv %p, %v, %o : !pagoda.tile<8x2x16xf32>, !pagoda.kv<8x16x64xf32>,
      !pagoda.tile<8x2x128xf32> -> !pagoda.tile<8x2x128xf32>
  return
}

// -----

func.func @f(%p: !pagoda.tile<8x2x16xf32>, %v: !pagoda.kv<8x16x64xf32>, %o: !pagoda.tile<8x4x64xf32>) {
  // expected-error @below {{'pagoda.pv' op o must be 8x2x64, got 8x4x64 (T8)}}
  %o1 = pagoda.pv %p, %v, %o : !pagoda.tile<8x2x16xf32>, !pagoda.kv<8x16x64xf32>,
      !pagoda.tile<8x4x64xf32> -> !pagoda.tile<8x4x64xf32>
  return
}
