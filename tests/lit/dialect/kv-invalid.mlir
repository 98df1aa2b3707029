// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{kv dimensions must be at least 1, got 0x64x128 (Y4)}}
func.func private @f(!pagoda.kv<0x64x128xf32>)

// -----

// expected-error @below {{kv dimensions must be at least 1, got 1x0x128 (Y4)}}
func.func private @f(!pagoda.kv<1x0x128xf32>)

// -----

// expected-error @below {{kv dimensions must be at least 1, got 1x64x0 (Y4)}}
func.func private @f(!pagoda.kv<1x64x0xf32>)

// -----

// expected-error @below {{kv element must be f32, f16, bf16 or an 8-bit type, got 'i16' (Y2)}}
func.func private @f(!pagoda.kv<1x64x128xi16>)

// -----

// expected-error @below {{expected 3 dimensions, got 4}}
func.func private @f(!pagoda.kv<1x1x64x128xf32>)
