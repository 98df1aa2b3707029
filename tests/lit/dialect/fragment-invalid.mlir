// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{fragment form must be a, acc or row, got 'b' (A4)}}
func.func private @f(!pagoda.tile<1x64x64xf32, #pagoda.fragment<"b", warps = 4>>)

// -----

// expected-error @below {{fragment warps must be at least 1, got 0 (A4)}}
func.func private @f(!pagoda.tile<1x64x64xf32, #pagoda.fragment<"acc", warps = 0>>)
