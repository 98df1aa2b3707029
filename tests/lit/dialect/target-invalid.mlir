// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{target kind must be cpu or nvidia, got 'gpu' (A2)}}
func.func private @f() attributes {t = #pagoda.target<kind = "gpu", name = "n">}

// -----

// expected-error @below {{target vector_bits must be a power of two of at least 64, got 0 (A2)}}
func.func private @f() attributes {t = #pagoda.target<kind = "cpu", name = "n">}

// -----

// expected-error @below {{target vector_bits must be a power of two of at least 64, got 32 (A2)}}
func.func private @f() attributes {t = #pagoda.target<kind = "cpu", name = "n", vector_bits = 32>}

// -----

// expected-error @below {{target vector_bits must be a power of two of at least 64, got 384 (A2)}}
func.func private @f() attributes {t = #pagoda.target<kind = "cpu", name = "n", vector_bits = 384>}
