// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{coords dimensions must be at least 1, got 0x96 (Y4)}}
func.func private @f(!pagoda.coords<0x96>)

// -----

// expected-error @below {{coords dimensions must be at least 1, got 1x0 (Y4)}}
func.func private @f(!pagoda.coords<1x0>)

// -----

// expected-error @below {{expected 2 dimensions, got 3}}
func.func private @f(!pagoda.coords<1x2x3>)
