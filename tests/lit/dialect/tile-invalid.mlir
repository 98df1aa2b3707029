// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{tile dimensions must be at least 1, got 0x96x128 (Y4)}}
func.func private @f(!pagoda.tile<0x96x128xf32>)

// -----

// expected-error @below {{tile dimensions must be at least 1, got 1x0x128 (Y4)}}
func.func private @f(!pagoda.tile<1x0x128xf32>)

// -----

// expected-error @below {{tile dimensions must be at least 1, got 1x96x0 (Y4)}}
func.func private @f(!pagoda.tile<1x96x0xf32>)

// -----

// expected-error @below {{tile element must be f32, f16, bf16 or an 8-bit type, got 'f64' (Y2)}}
func.func private @f(!pagoda.tile<1x96x128xf64>)

// -----

// expected-error @below {{tile layout must be #pagoda.lanes or #pagoda.fragment, got 1 : i64 (Y5)}}
func.func private @f(!pagoda.tile<1x96x128xf32, 1 : i64>)

// -----

// expected-error @below {{expected 3 dimensions, got 2}}
func.func private @f(!pagoda.tile<96x128xf32>)
