// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%q: !pagoda.tile<1x96x128xf32>, %k: !pagoda.kv<1x64x64xf32>) {
  // expected-error @below {{'pagoda.qk' op q and k must agree in heads and dim, got 1 and 1 heads, dims 128 and 64 (T9)}}
  %s = pagoda.qk %q, %k : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x64xf32> -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%q: !pagoda.tile<2x96x128xf32>, %k: !pagoda.kv<1x64x128xf32>) {
  // expected-error @below {{'pagoda.qk' op q and k must agree in heads and dim, got 2 and 1 heads, dims 128 and 128 (T9)}}
  %s = pagoda.qk %q, %k : !pagoda.tile<2x96x128xf32>, !pagoda.kv<1x64x128xf32> -> !pagoda.tile<2x96x64xf32>
  return
}

// -----

func.func @f(%q: !pagoda.tile<1x96x128xf32>, %k: !pagoda.kv<1x64x128xf32>) {
  // expected-error @below {{'pagoda.qk' op s must be 1x96x64, got 1x64x96 (T8)}}
  %s = pagoda.qk %q, %k : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x128xf32> -> !pagoda.tile<1x64x96xf32>
  return
}

// -----

func.func @f(%q: !pagoda.tile<1x96x128xf32>, %k: !pagoda.kv<1x64x128xf32>) {
  // expected-error @below {{'pagoda.qk' op s must be 1x96x64, got 2x96x64 (T8)}}
  %s = pagoda.qk %q, %k : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x128xf32> -> !pagoda.tile<2x96x64xf32>
  return
}
