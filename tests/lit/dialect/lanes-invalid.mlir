// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{lanes dimension must be rows or cols, got 'keys' (A3)}}
func.func private @f(!pagoda.tile<1x96x128xf32, #pagoda.lanes<"keys", panel = 24>>)

// -----

// expected-error @below {{lanes panel must be at least 1, got 0 (A3)}}
func.func private @f(!pagoda.tile<1x96x128xf32, #pagoda.lanes<"rows", panel = 0>>)
